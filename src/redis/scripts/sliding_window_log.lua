-- The parts of the exact algorithm: a log of the id's newest actions judges every window, as in
-- core/sliding_window_log.h.
--
-- Bytes: the second since the epoch up to which the key lives at least (4), and a stamp for each
-- action except the newest, oldest first: the low bytes of its time; the rest follows from the
-- newest.
--   short   the stamps, which are read and written whole
--   long    the number of stamps, the place of the oldest one in the ring, how many have room there
--           (4 bytes each); then the ring, of which only what changes is read and written
-- The form says how many bytes a stamp has, and whether refusals pushed out actions that may still
-- be in a window. Each write drops the actions that had left the longest window by the time of the
-- last one before. So a log has only what it needs: at most as many actions as the largest max, or
-- as are in the longest window since limits were larger or actions were recorded by operation 5,
-- which pushes out what is beyond MOST_ENTRIES.
--
-- A log of which permits are leased has these in front of it: see leases.lua.
--
-- Logs of named windows, and those that got a cost above 1 under a max above MOST_ENTRIES, have
-- another form as long as they live: see weighted_log.lua.

local FORM, DISPLACED, LONG = 0x80, 4, 16 -- the form also has the bytes of a stamp above 4
local LOG, LOG_BYTES = '<BI4i8I4', 17 -- the header and the second
local RING, RING_BYTES = '<I4I4I4', 12 -- count, head, room
local LEAST_WIDTH = 4
local MOST_OF_SHORT = 256 -- stamps
local MOST_STAMPS = 2 ^ 32 - 1 -- that RING can count; a Redis string has room for less
local FEW_STAMPS = 16 -- of a ring, which are looked at one by one

-- Of weighted logs: see weighted_log.lua.
local WEIGHTED, MOST_ENTRIES = 0xA6, 1024
-- Of leases, in front of a log: see leases.lua.
local LEASED, LEASE_LAYOUT, LEASE_BYTES = 0xB2, '<I4I4I6I4i8', 26 -- holder, number, permits, end
local MOST_LEASES, FEWEST_PERMITS = 128, 2
local GUARD = 1000000 -- how much longer than it ends, for the holder, a lease counts
local NARROW = 2 ^ 32 -- how many values stamps and sums of 4 bytes have
local MOST_WASTED = 64 -- entries that are dropped but still there
local FEW_BYTES = 1024 -- entries with fewer bytes are written whole, which is faster
local HEAD_BYTES, ENTRY_BYTES = 47, 8 -- without blocks, and for a single window
local LAST_OF_FIRST_BYTES = 127 -- where reading ends at first if there may be a ring
local LAST_OF_WEIGHTED = 255 -- the same if the log is probably weighted

-- How many bytes of a stamp tell moments apart over an interval, and how many moments that are.
local width, range = LEAST_WIDTH, 2 ^ 32
local stamp_layout, two_stamps_layout, stamps_layout = '<I4', '<BI4i8I4I4I4', '<BI4i8I4c0I4'
if interval >= range then
  repeat width, range = width + 1, range * 256 until interval < range
  stamp_layout = '<I' .. width
  two_stamps_layout, stamps_layout = LOG .. 'I' .. width .. 'I' .. width, LOG .. 'c0I' .. width
end
local may_weigh = cost ~= 1 and operation ~= 0 -- whether a plain log may become a weighted one
-- Forms of a short log: refusals pushed out nothing that may still be in a window, or they did.
local kept_all = FORM + width - LEAST_WIDTH
local pushed_out = kept_all + DISPLACED

local most_before = min(max, MOST_OF_SHORT) - 1 -- stamps, so that one more leaves the log short

-- A log may be long if the policy has room for one.
local room_of_policy = max_of(max, keep, operation == RECORD and MOST_ENTRIES or 0)
for w = 2, window_count do room_of_policy = max_of(room_of_policy, further[2 * w - 2]) end
local is_named = cost == AMOUNTS and operation ~= SETTLE
-- A log of unnamed windows counts no more refusals than its max.
hides_overdraft = counts_refusals and not is_named
if (room_of_policy > MOST_OF_SHORT + 1 or is_named) and operation ~= LEASE then
  last_of_first, parted = may_weigh and LAST_OF_WEIGHTED or LAST_OF_FIRST_BYTES, FORM + LONG
end
local is_weighted_window = amount_count == 1 and is_attempt and min_difference == 0
  and not further and range == NARROW and max < NARROW / 2
  and (room_of_policy > MOST_ENTRIES or is_named)
is_common = is_weighted_window or (is_common and cost == 1 and range <= LATEST)
local entries_of, moment_of
if is_weighted_window then
  last_of_first = HEAD_BYTES - 1
  -- INCLUDE: weighted_search
end

-- A key lives up to SPARE seconds longer than its log matters, so few writes of a batch have to
-- move its expiry.
local SPARE = 2
-- In seconds since the epoch: the earliest sufficient expiry under this policy, and the expiry to
-- write. In us: how long until then, without the second that every key gets in addition.
local needed, expires, usual_lifetime
if server_time then
  needed = ceil((server_time + interval) / 1000000)
  expires = needed + SPARE
  usual_lifetime = (expires - 1) * 1000000 - server_time
end

-- PART: ONE WINDOW
    local lives_until = 0
    local newest, oldest
    if is_weighted_window then
      -- INCLUDE: weighted_window
    else
      local form = kept_all
      local count
      local from = LOG_BYTES + 1 -- where the stamps to keep begin
      used, time_left = 1, 0
      if bytes then
        count = (#bytes - LOG_BYTES) / width
        if count < 0 or count > most_before or count % 1 ~= 0 then break end
        local second
        if count > 1 then
          form, generation, newest, lives_until, oldest, second =
            unpack_bytes(two_stamps_layout, bytes)
          oldest = newest - (newest - oldest) % range
        else
          form, generation, newest, lives_until = unpack_bytes(LOG, bytes)
          oldest, second = newest, newest
          if count == 1 then
            oldest = newest - (newest - unpack_bytes(stamp_layout, bytes, from)) % range
          end
        end
        if (form ~= kept_all and form ~= pushed_out) or newest > LATEST then break end
        at = newest > now and newest or now
        if at - newest >= range then
          form, newest, oldest = kept_all, nil, at -- all has left
        elseif count + 1 == max and at - oldest < interval then
          used, time_left = max, oldest + interval - now
          if count_blocked then
            if keep > max then break end -- the log grows
            -- The oldest makes room, so an attempt has to wait for the next one.
            form, from = pushed_out, from + width
            oldest = count > 0 and newest - (newest - second) % range or at
            time_left = oldest + interval - now
          end
        else
          -- Drops what the newest does not need: see NeedsAll in core/ring_log.h.
          while count >= 0 and (newest - oldest >= interval or at - oldest >= range
            or count + 1 == room_of_policy) do
            from, count, form = from + width, count - 1, kept_all
            oldest = newest - (newest - second) % range
            second = count > 1 and unpack_bytes(stamp_layout, bytes, from + width) or newest
          end
          if is_full then
            local outside = 0
            while outside <= count and at - oldest >= interval do
              outside = outside + 1
              local stamp = outside < count
                and unpack_bytes(stamp_layout, bytes, from + outside * width) or newest
              oldest = newest - (newest - stamp) % range
            end
            used = count + 2 - outside
            if used == 1 then oldest = at end
          end
        end
      else
        at, oldest, generation = now, now, server_time % GENERATIONS
      end
      if is_full then
        reset = oldest + interval - now
        wait = used >= max and reset or 0
      end
      lifetime = usual_lifetime
      if time_left == 0 or count_blocked then
        local last_needed, last_second = needed, expires
        if at > now then
          last_needed = ceil((server_time + interval + at - now) / 1000000)
          last_second = last_needed + SPARE
          lifetime = (last_second - 1) * 1000000 - server_time
        end
        keeps_end = lives_until >= last_needed and i ~= looked_after
        if keeps_end then last_second = lives_until end
        if newest and room_of_policy > 1 then
          after = pack_bytes(stamps_layout, form, generation, at, last_second, sub(bytes, from),
            newest % range)
        else
          after = pack_bytes(LOG, form, generation, at, last_second)
        end
      elseif lives_until > expires then
        lifetime = (lives_until - 1) * 1000000 - server_time
      end
    end

-- PART: A WINDOW
  windows[w] = { max = most, interval = length, cost = 0, actual = 0, full_from = 0 }

-- PART: ANY POLICY
local CLAMPS = true
local retention = max_of(longest_window, min_difference)
local policy_width, policy_range = width, range
while retention >= policy_range do
  policy_width, policy_range = policy_width + 1, policy_range * 256
end
local policy_form = FORM + policy_width - LEAST_WIDTH
local most_kept = min(room_of_policy, MOST_STAMPS)

-- The current log of stamps has `size` actions: `recorded` new ones at `newest`, before them the
-- one at `last`, and before that `count` stamps as they were read. In a short log, the stamps are
-- in `log` from the byte stamps_at up to before end_of_stamps; of a long one, stamp_in_ring(n)
-- returns that of the n-th newest action. The blocks had bytes_before bytes.
local displaced, lives_until, bytes_before, is_long, count, head, room, stamps_at, entries_from
local log, last, end_of_stamps, recorded, size
local key_of_log, stamp_in_ring, known_from, known -- see READ
-- `width`, `range` and stamp_layout are those of the form that was read last; those of a log to
-- write are policy_width and policy_range.

-- Whether the current log is weighted; functions for it (see weighted_log.lua), once one is or may
-- become weighted.
local is_weighted, weighted
local may_be_weighted = is_named or operation == LEASE
  or (may_weigh and room_of_policy > MOST_ENTRIES)

-- The leases of the current log, if there were any or the call has made one; how many of their
-- permits count in a window, once that is asked; the functions for them (see leases.lua), once
-- there are. What the call got.
local leases, permits_in, leasing
local granted, was_known

-- The n-th newest action, 1 <= n <= size.
local function nth(n)
  if n <= recorded then return newest end
  n = n - recorded
  if n == 1 then return last end
  local stamp = is_long and stamp_in_ring(n)
    or unpack_bytes(stamp_layout, log, end_of_stamps - (n - 1) * width)
  return last - (last - stamp) % range
end

local function used(window, at)
  if is_weighted then return weighted.used(window, at) end
  local inside, outside = 0, (hides_overdraft and min(size, window.max) or size) + 1
  -- Mostly all of them are inside.
  if outside > 1 and at - nth(outside - 1) < window.interval then return outside - 1 end
  while outside - inside > 1 do
    local n = floor((inside + outside) / 2)
    if at - nth(n) < window.interval then inside = n else outside = n end
  end
  return inside
end

local function below(window, n, at)
  if is_weighted then return weighted.below(window, n, at) end
  return size >= n and nth(n) + window.interval - at or 0
end

-- PART: IN FRONT
  leases, permits_in, granted, was_known = nil, {}, 0, 0
  local is_leased = type_of_bytes == 'string' and string.byte(bytes) == LEASED
  if (is_leased or operation == LEASE) and not leasing then
    -- INCLUDE: leases
  end
  if is_leased then
    if last_of_first and #bytes > last_of_first then bytes = call('GET', key) end
    local _, lease_count
    if #bytes >= HEADER_BYTES then _, lease_count, seen = unpack_bytes(HEADER, bytes) end
    front = HEADER_BYTES + (lease_count or 0) * LEASE_BYTES
    leases = {}
    local is_valid = #bytes > front and lease_count <= MOST_LEASES and seen <= LAST_MOMENT
    for l = 1, is_valid and lease_count or 0 do
      local high, low, number, permits, ends =
        unpack_bytes(LEASE_LAYOUT, bytes, HEADER_BYTES + 1 + (l - 1) * LEASE_BYTES)
      leases[l] = { high = high, low = low, number = number, permits = permits, ends = ends }
      is_valid = is_valid and ends <= LAST_MOMENT
    end
    if not is_valid then front = #bytes end -- there is no state behind
  end

-- PART: READ
        is_own, is_weighted = form < FORM + 2 * LONG, false
        if form == WEIGHTED then
          is_own, is_weighted = true, true
          if last_of_first and not leases and #bytes > last_of_first then
            bytes = call('GET', key)
          end
          is_long, entries_from, bytes_before = false, from, from - front - HEADER_BYTES - 1
        elseif is_own then
          if form % DISPLACED + LEAST_WIDTH ~= width then
            width = form % DISPLACED + LEAST_WIDTH
            range, stamp_layout = 256 ^ width, '<I' .. width
          end
          is_long, displaced = form >= FORM + LONG, form % (2 * DISPLACED) < DISPLACED and 0 or 1
          bytes_before = from - front - HEADER_BYTES - 1
          log, last, recorded, stamps_at = bytes, newest, 0, from + 4
          is_state = #bytes >= stamps_at - 1
          if is_state then lives_until = unpack_bytes('<I4', bytes, from) end
          if is_state and is_long then
            -- `bytes` may have only the beginning of a ring.
            stamps_at = stamps_at + RING_BYTES
            is_state = #bytes >= stamps_at - 1
            if is_state then
              count, head, room = unpack_bytes(RING, bytes, stamps_at - RING_BYTES)
              is_state = count <= room and head < room
            end
            -- `known` is the stamp that GETRANGE read last; it begins at known_from.
            key_of_log, known_from = key, nil
            stamp_in_ring = stamp_in_ring or function(n)
              local first = stamps_at + (head + count + 1 - n) % room * width
              if first + width - 1 <= #log then return unpack_bytes(stamp_layout, log, first) end
              if first ~= known_from then
                known_from, known = first, unpack_bytes(stamp_layout, call('GETRANGE', key_of_log,
                  format('%d', first - 1), format('%d', first + width - 2)))
              end
              return known
            end
          else
            count = (#bytes - stamps_at + 1) / width
            end_of_stamps = #bytes + 1
            is_state = is_state and count % 1 == 0
          end
          size = last == NONE and 0 or (count or 0) + 1
        end

-- PART: READ NOTHING
    is_weighted = false
    is_long, displaced, lives_until, count, last, recorded, size = false, 0, 0, 0, NONE, 0, 0

-- PART: STATE
    if leases and not is_weighted then
      is_state = false -- only logs with entries have leases
    elseif is_weighted or may_be_weighted then
      if not weighted then
        may_be_weighted = true
        -- INCLUDE: weighted_log
      end
      if is_weighted then
        is_state = weighted.open(bytes, entries_from)
      elseif is_named then
        weighted.convert(key)
      end
    end

-- PART: SETTLE
    local actual = windows[1].actual
    if not is_weighted and actual > cost and room_of_policy > MOST_ENTRIES
      and settled_of == generation and last ~= NONE then
      weighted.convert(key)
    end
    if is_weighted then
      is_changed = weighted.settle()
    elseif settled_of == generation and last ~= NONE then
      -- Times never ascend with n: find the first that is not later than `at`, then count the equal
      -- ones.
      local later, n, own = 0, size + 1, 0
      while n - later > 1 do
        local middle = floor((later + n) / 2)
        if nth(middle) > at then later = middle else n = middle end
      end
      while own < cost and n + own <= size and nth(n + own) == at do own = own + 1 end
      is_changed = own > 0
      local removed, added, lost, displaces = max_of(0, own - actual), 0, 0, false
      if is_changed and actual > cost then
        -- See Insert in core/sliding_window_log.h.
        local room_here = max_of(most_kept, size, MOST_ENTRIES)
        added = min(actual - cost, room_here - n + 1)
        lost = max_of(0, size + added - room_here)
        displaces = lost > 0 and last - nth(size - lost + 1) < retention
      end
      if removed > 0 or added > 0 then
        local oldest = nth(size)
        -- See TakeBack in core/sliding_window_log.h.
        local was_full = size >= most_kept and retention < range
        local keeps_places = displaced == 1 and last - oldest < retention
        local skipped, older = 0, nil -- luacheck: ignore 311
        -- INCLUDE: older_stamps
        local stamps = older .. sub(pack_bytes('<i8', last), 1, width)
        local kept = (size - n - removed + 1) * width
        stamps = sub(stamps, 1, kept)
          .. string.rep(sub(pack_bytes('<i8', at), 1, width), added)
          .. sub(stamps, kept + removed * width + 1)
        stamps = sub(stamps, lost * width + 1)
        if keeps_places or was_full then
          local taken_since = oldest
          if not keeps_places then
            taken_since = last - retention
            if stamps ~= '' then
              local stamp = unpack_bytes(stamp_layout, stamps)
              taken_since = min(taken_since, last - (last - stamp) % range)
            end
          end
          stamps = string.rep(sub(pack_bytes('<i8', taken_since), 1, width), removed) .. stamps
        end
        displaced, is_long = (keeps_places or displaces) and 1 or 0, false
        size = #stamps / width
        newest = NONE
        if size > 0 then
          local stamp = unpack_bytes(stamp_layout, stamps, (size - 1) * width + 1)
          newest = last - (last - stamp) % range
        end
        last, log, stamps_at = newest, sub(stamps, 1, -width - 1), 1
        count, end_of_stamps = max_of(0, size - 1), #log + 1
      end
    end

-- PART: RECORD
      if may_be_weighted and not is_weighted and cost > 1 and room_of_policy > MOST_ENTRIES then
        weighted.convert(key)
      end
      if is_weighted then weighted.record(at) else recorded, size = cost, size + cost end

-- PART: BEFORE
    if operation == LEASE then
      -- INCLUDE: settle_lease
    end

-- PART: AFTER
    if operation == LEASE then
      -- INCLUDE: grant_lease
    end

-- PART: LIFETIME
    -- After a refund, the clock may step back before the attempt.
    local matters = (operation == SETTLE and max_of(newest, at) or newest) + retention - now
    matters = max_of(matters, max_of(block_until + remembered, blocked_by_call) - now)
    for l = leases and #leases or 0, 1, -1 do
      local over = leases[l].ends + GUARD + longest_window
      if over <= at then table.remove(leases, l) else matters = max_of(matters, over - now) end
    end
    needed = ceil((server_time + (matters > 0 and matters or 0)) / 1000000)
    expires = needed + SPARE
    if not is_changed and lives_until > expires then expires = lives_until end
    lifetime = (expires - 1) * 1000000 - server_time

-- PART: WRITE
      keeps_end = lives_until >= needed and i ~= looked_after
      if keeps_end then
        -- Also the expiry, if the state is written anew.
        expires, lifetime = lives_until, (lives_until - 1) * 1000000 - server_time
      end
      if is_weighted then
        local before = ''
        if leases and #leases > 0 then
          local parts = { pack_bytes(HEADER, LEASED, #leases, max_of(seen, at)) }
          for l = 1, #leases do
            local lease = leases[l]
            parts[l + 1] = pack_bytes(LEASE_LAYOUT, lease.high, lease.low, lease.number,
              lease.permits, lease.ends)
          end
          before = table.concat(parts)
        end
        after, keeps_end = weighted.write(key, bytes, keeps_end, lifetime, before)
        -- For its holder, who reads the reply, these permits are not used.
        if granted > 0 then leases[#leases], permits_in = nil, {} end
      else
        -- INCLUDE: write_log
      end

-- PART: RECEIPT
    if operation == LEASE then
      reply[first + 7 + 2 * window_count], reply[first + 8 + 2 * window_count] = granted, was_known
    end
