-- Sets `weighted` to the functions for a log whose actions have costs.
--
-- An entry is a moment and, for each window, the sum of all costs up to it. So what a window uses
-- is the difference of two sums, and bisections find moments. Attempts of one microsecond share an
-- entry. Beyond MOST_ENTRIES, neighbours are merged onto the newer one. So what they used comes
-- back never earlier, and later by less than a cell of its window.
--
-- Bytes:
--   4           the second since the epoch up to which the key lives at least
--   2           how many entries there are
--   4           low bytes of the first sum of the newest entry
--   1           widths: 1 if stamps have 8 bytes instead of 4, plus 2 if sums have 7 instead of 4
--   1           how many sums an entry has; 0: one for all windows
--   2           how many entries are dropped but still there
--   8, 4        moment and first sum of the newest dropped entry
--   4, 4        stamp and first sum of the oldest entry that is not dropped
--   then        entries, oldest first, each a stamp and its sums. One more is before them: only its
--               sums count, from which the others grow
-- weighted_window.lua needs the parts of entries that are in the head.

local HEAD, BEFORE_ENTRIES = '<I4I2I4BBI2i8I4I4I4', 34
local WIDE_STAMPS, WIDE_SUMS = 1, 2
local CELLS = 512 -- in all zones together
local CELLS_OF_USES = 1024 -- of the longest window, for the uses of a lease

-- Entries have places: `base` is that of the newest dropped one, `final` that of the newest. They
-- are in `log` from the byte stamps_at on, except the final one if is_pending; the final one has
-- the moment `newest` and the sums `sums`. From the place changed_from on, `log` differs from what
-- is stored; nil: all of it does. `dropped` is the moment of the newest dropped entry.
local base, final, is_pending, changed_from, dropped
local was_ring -- whether the state was a ring, of which `bytes` may have only the beginning
local has_wide_stamps, modulus, sum_count, sums
local stamp_bytes, sum_bytes, entry_bytes
local one_stamp, one_sum, all_sums, entry_layout
local all_equal -- whether entries have one sum for all windows

local function set_layout(wide_stamps, wide_sums, stored_count)
  has_wide_stamps, modulus = wide_stamps, wide_sums and LATEST or NARROW
  all_equal, sum_count = stored_count == 0, max_of(1, stored_count)
  stamp_bytes, one_stamp = wide_stamps and 8 or 4, wide_stamps and '<i8' or '<I4'
  sum_bytes, one_sum = wide_sums and 7 or 4, wide_sums and '<I7' or '<I4'
  all_sums = '<' .. string.rep(sub(one_sum, 2), sum_count)
  entry_layout = one_stamp .. sub(all_sums, 2)
  entry_bytes = stamp_bytes + sum_count * sum_bytes
  for w = 1, window_count do windows[w].sum = all_equal and 1 or w end
end

local function stamp_of(place)
  if place == final then return newest end
  local stamp = unpack_bytes(one_stamp, log, stamps_at + place * entry_bytes)
  return has_wide_stamps and stamp or last - (last - stamp) % NARROW
end

local function sum_of(place, s)
  if place == final then return sums[s] end
  return unpack_bytes(one_sum, log, stamps_at + place * entry_bytes + stamp_bytes
    + (s - 1) * sum_bytes)
end

local function pack_entry(stamp, its_sums)
  return pack_bytes(entry_layout, has_wide_stamps and stamp or stamp % NARROW,
    unpack(its_sums, 1, sum_count))
end

-- The place of the newest entry that is `length` or more before `at`; `base` if there is none.
local function newest_outside(length, at)
  local outside, inside = base, final + 1
  if final == base or at - stamp_of(base + 1) < length then return base end
  while inside - outside > 1 do
    local middle = floor((outside + inside) / 2)
    if at - stamp_of(middle) >= length then outside = middle else inside = middle end
  end
  return outside
end

-- Makes the log of the moments in `stamps` and the sums in `sums_at`; sums_at[0] is before them.
local function set_log(stamps, sums_at)
  local parts = { pack_entry(0, sums_at[0]) }
  for n = 1, #stamps do parts[n + 1] = pack_entry(stamps[n], sums_at[n]) end
  log, stamps_at, base, final = table.concat(parts), 1, 0, #stamps
  sums, is_pending, changed_from = sums_at[final], false, nil
end

-- Changes the layout of all entries. Takes excess[s] of the s-th sum from its oldest costs.
local function rebuild(wide_stamps, wide_sums, stored_count, excess)
  local stamps, sums_at = {}, {}
  local new_count = max_of(1, stored_count)
  for place = base, final do
    local n, its = place - base, {}
    if n > 0 then stamps[n] = stamp_of(place) end
    for s = 1, new_count do
      local from = all_equal and 1 or s
      local sum = from <= sum_count and (sum_of(place, from) - sum_of(base, from)) % modulus or 0
      its[s] = max_of(0, sum - (excess and excess[s] or 0))
    end
    sums_at[n] = its
  end
  set_layout(wide_stamps, wide_sums, stored_count)
  set_log(stamps, sums_at)
end

-- Makes room for sums that grow by `total`, or by the costs of an attempt; to settle, by what was
-- more than these.
local function make_room(is_settled, total)
  local excess, is_short = {}, false
  for s = 1, sum_count do
    local window = windows[s]
    local sum = (sums[s] - sum_of(base, s)) % modulus
    local growth = total or is_settled and max_of(0, window.actual - window.cost) or window.cost
    is_short = is_short or sum + growth >= modulus
    excess[s] = max_of(0, growth - (LATEST - 1 - sum)) -- their sum may be no exact number
  end
  if is_short then rebuild(has_wide_stamps, true, all_equal and 0 or sum_count, excess) end
end

-- The ages that divide entries into zones: the intervals. How long a cell is in each zone.
local zones, cells
local function find_zones()
  if zones then return end
  zones, cells = {}, {}
  for w = 1, window_count do zones[w] = windows[w].interval end
  table.sort(zones)
  for z = 1, window_count do cells[z] = max_of(1, ceil(zones[z] * window_count / CELLS)) end
end

-- Merges the entries of each cell, except the final entry.
local function merge()
  find_zones()
  local before = stamp_of(final - 1)
  local kept, zone, zone_before, cell_before = {}, window_count, nil, nil
  local entry_at = stamps_at + (base + 1) * entry_bytes
  for place = base + 1, final - 1 do
    local stamp = stamp_of(place)
    while zone > 1 and before - stamp < zones[zone - 1] do zone = zone - 1 end
    local cell = floor(stamp / cells[zone])
    if zone ~= zone_before or cell ~= cell_before then kept[#kept + 1] = true end
    zone_before, cell_before = zone, cell
    kept[#kept] = sub(log, entry_at, entry_at + entry_bytes - 1)
    entry_at = entry_at + entry_bytes
  end
  if #kept == final - 1 - base then table.remove(kept, 1) end
  local first = stamps_at + base * entry_bytes
  log = sub(log, first, first + entry_bytes - 1) .. table.concat(kept) .. pack_entry(newest, sums)
  stamps_at, base, final, is_pending, changed_from = 1, 0, #kept + 1, false, nil
end

-- Counts the stamps of a plain log in each moment, or in each cell; nil if there are more than
-- MOST_ENTRIES moments.
local function count_stamps(in_cells)
  local stamps, counts = {}, {}
  local n, zone = size, window_count
  while n > 0 do
    local stamp = nth(n)
    local latest = stamp -- of its entry
    if in_cells then
      while zone > 1 and last - stamp < zones[zone - 1] do zone = zone - 1 end
      latest = floor(stamp / cells[zone]) * cells[zone] + cells[zone] - 1
      if zone > 1 then latest = min(latest, last - zones[zone - 1]) end
    elseif #stamps == MOST_ENTRIES then
      return nil
    end
    local inside, step = n, 1
    while inside - step > 0 and nth(inside - step) <= latest do
      inside, step = inside - step, step * 2
    end
    local outside = max_of(0, inside - step)
    while inside - outside > 1 do
      local middle = floor((inside + outside) / 2)
      if nth(middle) <= latest then inside = middle else outside = middle end
    end
    stamps[#stamps + 1], counts[#counts + 1] = nth(inside), n - inside + 1
    n = inside - 1
  end
  return stamps, counts
end

weighted = {}

function weighted.open(state, from)
  last = newest
  if #state < from + BEFORE_ENTRIES - 1 then return false end
  local count_now, widths, stored_count, _
  lives_until, count_now, _, widths, stored_count, base, dropped = unpack_bytes(HEAD, state, from)
  if widths > WIDE_STAMPS + WIDE_SUMS then return false end
  set_layout(widths % WIDE_SUMS == WIDE_STAMPS, widths >= WIDE_SUMS, stored_count)
  log, stamps_at, final = state, from + BEFORE_ENTRIES, base + count_now
  if #state ~= stamps_at - 1 + (final + 1) * entry_bytes then return false end
  sums = { unpack_bytes(all_sums, log, stamps_at + final * entry_bytes + stamp_bytes) }
  is_pending, changed_from, was_ring = false, final + 1, false
  local wide_stamps = retention >= NARROW
  local new_count = all_equal and not is_named and 0 or window_count
  if stored_count ~= new_count or wide_stamps ~= has_wide_stamps then
    rebuild(wide_stamps, modulus > NARROW, new_count)
  end
  return true
end

-- Makes the current log of stamps a weighted one.
function weighted.convert(key_of_it)
  was_ring = is_long
  if is_long then log = call('GET', key_of_it) end
  local stamps, counts = count_stamps(false)
  if not stamps then
    find_zones()
    stamps, counts = count_stamps(true)
  end
  dropped = size > 0 and nth(size) - 1 or NONE
  set_layout(retention >= NARROW, largest_max >= NARROW / 2, is_named and window_count or 0)
  local sums_at, sum = {}, 0
  for n = 0, #stamps do
    sum = sum + (counts[n] or 0)
    local its = {}
    for s = 1, sum_count do its[s] = sum end
    sums_at[n] = its
  end
  is_weighted, is_long = true, false
  set_log(stamps, sums_at)
end

function weighted.used(window, at)
  local costs = sums[window.sum] - sum_of(newest_outside(window.interval, at), window.sum)
  return costs % modulus + (leases and leasing.permits(window, at) or 0)
end

local function recorded_below(window, n, at)
  local s = window.sum
  local final_sum = sums[s]
  if (final_sum - sum_of(base, s)) % modulus < n then return 0 end
  -- The newest entry such that it and the later ones use n or more.
  local enough, few = base + 1, final + 1
  while few - enough > 1 do
    local middle = floor((enough + few) / 2)
    if (final_sum - sum_of(middle - 1, s)) % modulus >= n then enough = middle else few = middle end
  end
  return stamp_of(enough) + window.interval - at
end

function weighted.below(window, n, at)
  if leases then return leasing.below(window, n, at, recorded_below) end
  return recorded_below(window, n, at)
end

function weighted.record(at)
  make_room(false)
  if final == base or newest ~= at then
    if is_pending then log, is_pending = log .. pack_entry(newest, sums), false end
    final = final + 1
  end
  local its = {}
  for s = 1, sum_count do its[s] = (sums[s] + windows[s].cost) % modulus end
  sums, is_pending = its, true
  if changed_from and final < changed_from then changed_from = final end
end

-- Returns whether anything was left of the attempt at `settled_at`.
function weighted.settle()
  local at = settled_at
  if settled_of ~= generation or final == base or at <= dropped or at > newest then return false end
  make_room(true)
  local before, found = base, final
  while found - before > 1 do
    local middle = floor((before + found) / 2)
    if stamp_of(middle) >= at then found = middle else before = middle end
  end
  local changes, is_left = {}, false
  for s = 1, sum_count do
    local own = (sum_of(found, s) - sum_of(found - 1, s)) % modulus
    changes[s] = max_of(-own, windows[s].actual - windows[s].cost)
    is_left = is_left or own + changes[s] > 0
  end
  local parts = { sub(log, 1, stamps_at + found * entry_bytes - 1) }
  local its
  for place = found, final do
    its = place == final and sums
      or { unpack_bytes(all_sums, log, stamps_at + place * entry_bytes + stamp_bytes) }
    for s = 1, sum_count do its[s] = (its[s] + changes[s]) % modulus end
    if place > found or is_left then parts[#parts + 1] = pack_entry(stamp_of(place), its) end
  end
  log = table.concat(parts)
  if is_left then
    changed_from = changed_from and min(changed_from, found)
  else
    if found == final then newest = found - 1 > base and stamp_of(found - 1) or dropped end
    final, changed_from = final - 1, nil
  end
  sums = its
  return true
end

-- Records uses, oldest first, which cost `total` together. A use joins the next later moment if
-- that is close to it: what it used comes back later by less than a cell.
function weighted.insert(uses, total)
  make_room(false, total)
  if not has_wide_stamps then
    -- Older stamps would be taken for later ones.
    local outside = newest_outside(NARROW, max_of(newest, uses[#uses].moment))
    if outside > base then dropped, base = stamp_of(outside), outside end
  end
  local cell = max_of(1, ceil(longest_window / CELLS_OF_USES))
  local before, place = base, final + 1 -- around the first entry that is not before the first use
  while place - before > 1 do
    local middle = floor((before + place) / 2)
    if stamp_of(middle) >= uses[1].moment then place = middle else before = middle end
  end
  local function sums_of(its_place)
    return { unpack_bytes(all_sums, log, stamps_at + its_place * entry_bytes + stamp_bytes) }
  end
  local entries = { sub(log, stamps_at, stamps_at + place * entry_bytes - 1) }
  local sums_before, added, next_use = sums_of(place - 1), 0, 1
  local final_stamp, final_sums, final_place = nil, nil, place - 1
  if changed_from then changed_from = place end
  local function add(stamp)
    final_stamp, final_sums, final_place = stamp, {}, final_place + 1
    for s = 1, sum_count do final_sums[s] = (sums_before[s] + added) % modulus end
    entries[#entries + 1] = pack_entry(stamp, final_sums)
  end
  while place <= final or next_use <= #uses do
    local use, stamp = uses[next_use], place <= final and stamp_of(place)
    if use and (not stamp or use.moment <= stamp) then
      next_use, added = next_use + 1, added + use.cost
      local later = uses[next_use] and min(uses[next_use].moment, stamp or LATEST) or stamp
      if not later or floor(later / cell) ~= floor(use.moment / cell) then add(use.moment) end
    else
      sums_before = sums_of(place)
      add(stamp)
      place = place + 1
    end
  end
  log, stamps_at, final = table.concat(entries), 1, final_place
  newest, last, sums = final_stamp, final_stamp, final_sums
end

-- Writes what has changed; or returns a new state in place of `stored`, and whether the expiry of
-- its key is late enough. The bytes `before` are in front of it.
function weighted.write(its_key, stored, keeps_end, lifetime, before)
  -- Drops what the entry before the newest does not need, as core/weighted_entries.h does.
  local outside = newest_outside(retention, final - 1 > base and stamp_of(final - 1) or newest)
  if not has_wide_stamps then outside = max_of(outside, newest_outside(NARROW, newest)) end
  if final - outside > MOST_ENTRIES then outside = newest_outside(longest_window, newest) end
  if outside > base then dropped, base = stamp_of(outside), outside end
  if final - base > MOST_ENTRIES then merge() end
  if final == base and not is_blocked and before == '' and now - dropped >= retention then
    call('DEL', its_key)
    return nil
  end
  local oldest, base_sum = min(base + 1, final), sum_of(base, 1) % NARROW
  local oldest_stamp, oldest_sum = stamp_of(oldest) % NARROW, sum_of(oldest, 1) % NARROW
  local first = stamps_at
  if (read and has_repeats) or #before ~= front or bytes_before ~= #blocks or not stored
    or base > MOST_WASTED or #log - stamps_at < FEW_BYTES then
    changed_from = nil
  end
  if not changed_from then first, base, final = first + base * entry_bytes, 0, final - base end
  local widths = (has_wide_stamps and WIDE_STAMPS or 0) + (modulus > NARROW and WIDE_SUMS or 0)
  local header = before .. header_of(WEIGHTED, newest) .. pack_bytes(HEAD, expires, final - base,
    sums[1] % NARROW, widths, all_equal and 0 or sum_count, base, dropped, base_sum, oldest_stamp,
    oldest_sum)
  local entry = is_pending and pack_entry(newest, sums) or ''
  if not changed_from then
    local length = (final + (is_pending and 0 or 1)) * entry_bytes
    local entries = first == 1 and #log == length and log or sub(log, first, first + length - 1)
    log, stamps_at, is_pending = entries .. entry, 1, false
    return header .. log, keeps_end and not was_ring
  end
  local changed = sub(log, stamps_at + changed_from * entry_bytes,
    stamps_at + (final + (is_pending and 0 or 1)) * entry_bytes - 1) .. entry
  call('SETRANGE', its_key, '0', header)
  call('SETRANGE', its_key, format('%d', #header + changed_from * entry_bytes), changed)
  if not keeps_end then
    call('PEXPIREAT', its_key, format('%d', base_of_ends + ceil(lifetime / 1000)))
  end
end
