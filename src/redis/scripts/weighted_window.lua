-- A part of sliding_window_log.lua for ONE WINDOW: an attempt with any cost on a weighted log with
-- narrow stamps and sums. It reads and writes the head of the state, whose bytes weighted_log.lua
-- describes, and writes the entry of the attempt. It reads other entries only if some have left the
-- window, or an attempt has to wait.
-- Costs of 1 to 10,000 with max 2,000,000 take 8 us of the server each; 30 us in any_policy.lua.

-- A state up to its entries, and both parts of it: what changes with each entry, and what changes
-- when some are dropped.
local STATE, WITH_EACH, WITH_DROPPED = '<BI4i8I4I2I4BBI2i8I4I4I4', '<BI4i8I4I2I4', '<BBI2i8I4I4I4'
local ENTRY = '<I4I4' -- stamp, sum
local stored_as = is_named and 1 or 0 -- how many sums an entry has
local few = 4 -- how many entries are read at first if some have left the window
local dropped, total, base, final = NONE, 0, 0, 0
local base_sum, final_sum, oldest_sum = 0, 0, 0
local stored_base
-- The moment of the oldest entry inside the window; the place of the one before it.
local first, outside = now, 0
if not bytes then
  at, generation, newest, oldest = now, server_time % GENERATIONS, NONE, now
else
  if type(bytes) ~= 'string' or #bytes < HEAD_BYTES then break end
  local form, widths, stored_count, count
  form, generation, newest, lives_until, count, final_sum, widths, stored_count, base, dropped,
    base_sum, oldest, oldest_sum = unpack_bytes(STATE, bytes)
  at = max_of(now, newest)
  if form ~= WEIGHTED or widths ~= 0 or stored_count ~= stored_as or newest > LATEST
    or count == 0 or at - newest >= interval then break end
  stored_base, final, oldest = base, base + count, newest - (newest - oldest) % NARROW
  local entries, from = '', 1
  local outside_sum, first_sum = base_sum, oldest_sum
  first, outside = oldest, base
  while at - first >= interval do -- the newest has not left, so this ends
    if from > #entries then
      entries, from = entries_of(key, outside + 2, min(outside + 1 + few, final)), 1
      few = 4 * few
    end
    local last_outside = first
    outside, outside_sum = outside + 1, first_sum
    first, first_sum = unpack_bytes(ENTRY, entries, from)
    first, from = newest - (newest - first) % NARROW, from + ENTRY_BYTES
    -- Drops what had left by the time of the newest. What leaves later stays until then: the
    -- newest may be refunded and the clock step back.
    if newest - last_outside >= interval or at - last_outside >= NARROW then
      dropped, base, base_sum, oldest, oldest_sum =
        last_outside, outside, outside_sum, first, first_sum
    end
  end
  total = (final_sum - outside_sum) % NARROW
  if first_sum == outside_sum or total + own >= NARROW or final - base >= MOST_ENTRIES then
    break
  end
end

local is_refused, late = total + own > max, at - now
local is_recorded = not is_refused or count_blocked
local recorded = is_recorded and own or 0
used, time_left, wait = total + recorded, 0, 0
if is_refused then
  -- Such an attempt fits once the entries before this one use fewer than n.
  local n = max - own + 1 - recorded
  local from = n > 0 and moment_of(key, outside, total, final, final_sum, newest, n) or at
  time_left = from + interval - now
end
if is_full and used >= max then
  local n = max - recorded
  local from = n > 0 and moment_of(key, outside, total, final, final_sum, newest, n) or at
  wait = from + interval - now
end
lifetime = usual_lifetime
if is_recorded then
  local last_needed, last_second = needed, expires
  if late > 0 then
    last_needed = ceil((server_time + interval + late) / 1000000)
    last_second = last_needed + SPARE
    lifetime = (last_second - 1) * 1000000 - server_time
  end
  keeps_end = lives_until >= last_needed and i ~= looked_after
  if keeps_end then last_second = lives_until end
  local before = at > newest and final or final - 1 -- attempts of one moment share an entry
  local kept -- the entries to keep, if the state is written whole
  if not bytes then
    kept = '\0\0\0\0\0\0\0\0'
  elseif base > MOST_WASTED then
    kept, before, base = entries_of(key, base, before), before - base, 0
  end
  final, final_sum = before + 1, (final_sum + own) % NARROW
  after = pack_bytes(WITH_EACH, WEIGHTED, generation, at, last_second, final - base,
    final_sum)
  if kept or base ~= stored_base or final == base + 1 then
    if final == base + 1 then oldest_sum = final_sum end
    after = after .. pack_bytes(WITH_DROPPED, 0, stored_as, base, dropped, base_sum,
      oldest % NARROW, oldest_sum)
  end
  local entry = pack_bytes(ENTRY, at % NARROW, final_sum)
  if kept then
    after = after .. kept .. entry
  else
    call('SETRANGE', key, '0', after)
    call('SETRANGE', key, format('%d', HEAD_BYTES + final * ENTRY_BYTES), entry)
    if not keeps_end then
      call('PEXPIREAT', key, format('%d', base_of_ends + ceil(lifetime / 1000)))
    end
    after, keeps_end = nil, true
  end
elseif lives_until > expires then
  lifetime = (lives_until - 1) * 1000000 - server_time
end

reset = used > max and wait or first + interval - now
if hides_overdraft then used = min(used, max) end
