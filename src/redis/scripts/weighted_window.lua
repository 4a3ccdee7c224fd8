-- A fast path of sliding_window_log.lua: attempts with costs under a single window without
-- minDifference and blocks, on weighted logs with narrow stamps and sums. Stops before the first
-- key that it cannot judge; any_policy.lua continues there. It reads and writes the head of the
-- state, whose bytes weighted_log.lua describes, and writes the entry of the attempt. It reads
-- other entries only if some have left the window, or an attempt has to wait.
-- Costs of 1 to 10,000 with max 2,000,000 take 8 us of the server each; 30 us in any_policy.lua.
if is_weighted_window then
  -- A state up to its entries, and both parts of it: what changes with each entry, and what changes
  -- when some are dropped.
  local STATE, WITH_EACH, WITH_DROPPED =
    '<BI4i8I4I2I4BBI2i8I4I4I4', '<BI4i8I4I2I4', '<BBI2i8I4I4I4'
  local ENTRY, ENTRY_BYTES = '<I4I4', 8 -- stamp, sum
  -- How many entries are read at first if some have left the window. A search reads so many at
  -- once, begins so many before the guessed place, and ends after so many steps in any state.
  local FEW_READ, MOST_READ, GUESSED_BEFORE, MOST_TRIES = 4, 16, 8, 1024

  local answers = replied - (is_full and 9 or 1) * (first_key - 1) -- see answer.lua
  local costs_at = #word + 1 - 8 * key_count
  local stored_as = is_of_named and 1 or 0 -- how many sums an entry has

  -- The bytes of the entries from the place `first` to the place `last`.
  local function entries_of(key, first, last)
    return call('GETRANGE', key, format('%d', HEAD_BYTES + first * ENTRY_BYTES),
      format('%d', HEAD_BYTES + (last + 1) * ENTRY_BYTES - 1))
  end

  -- The moment of the newest entry such that it and the later ones use n or more. The entries
  -- behind the place `base` use `total`.
  local function moment_of(key, base, total, final, final_sum, newest, n)
    local low, high, high_use = base, final, 0 -- high_use: used by the entries behind `high`
    for tries = 1, MOST_TRIES do
      local first = floor((low + high) / 2) - GUESSED_BEFORE
      if low == base then -- not too far back yet: a guess by the mean use behind `high`
        -- At first by the mean of all; but where refusals are counted, merged entries are much
        -- larger.
        local back = (n - high_use) * (final - high) / max_of(1, high_use)
        if tries == 1 then back = total < 4 * max and n * (final - base) / total or 0 end
        first = high - max_of(MOST_READ, min(high, ceil(back) + GUESSED_BEFORE))
      end
      first = max_of(low, first)
      local last = min(first + MOST_READ, high)
      local part = entries_of(key, first, last)
      local enough, few = -1, last - first + 1 -- within the part
      while few - enough > 1 do
        local middle = floor((enough + few) / 2)
        local sum = unpack_bytes('<I4', part, middle * ENTRY_BYTES + 5)
        if (final_sum - sum) % NARROW >= n then enough = middle else few = middle end
      end
      if enough >= 0 and few <= last - first then
        local stamp = unpack_bytes('<I4', part, few * ENTRY_BYTES + 1)
        return newest - (newest - stamp) % NARROW
      end
      local place = enough < 0 and first or last
      local sum = unpack_bytes('<I4', part, (place - first) * ENTRY_BYTES + 5)
      if enough < 0 then high, high_use = place, (final_sum - sum) % NARROW else low = place end
    end
    return newest
  end

  for i = first_key, last_key do
    local key = keys[i]
    local bytes
    -- INCLUDE: read_key
    unjudged = bytes
    local own = unpack_bytes('<d', word, costs_at + 8 * (i - first_key))
    if own > max then break end
    local at, lives_until, dropped, total, base, final = now, 0, NONE, 0, 0, 0
    local base_sum, final_sum, oldest_sum = 0, 0, 0
    local generation, newest, oldest, stored_base
    -- The moment of the oldest entry inside the window; the place of the one before it.
    local first, outside = now, 0
    if not bytes then
      generation, newest, oldest = server_time % GENERATIONS, NONE, now
    else
      if type(bytes) ~= 'string' or #bytes < HEAD_BYTES then break end
      local form, widths, stored_count, count
      form, generation, newest, lives_until, count, final_sum, widths, stored_count, base, dropped,
        base_sum, oldest, oldest_sum = unpack_bytes(STATE, bytes)
      if newest > now then at = newest end
      if form ~= WEIGHTED or widths ~= 0 or stored_count ~= stored_as or newest > LATEST
        or count == 0 or at - newest >= interval then break end
      stored_base, final, oldest = base, base + count, newest - (newest - oldest) % NARROW
      local entries, from, few = '', 1, FEW_READ
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
    local used, time_left, wait = total + recorded, 0, 0
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
    local is_written, lifetime = true, usual_lifetime
    if is_recorded then
      local last_needed, last_second = needed, expires
      if late > 0 then
        last_needed = ceil((server_time + interval + late) / 1000000)
        last_second = last_needed + SPARE
        lifetime = (last_second - 1) * 1000000 - server_time
      end
      local keeps_end = lives_until >= last_needed and i ~= looked_after
      if keeps_end then last_second = lives_until end
      local before = at > newest and final or final - 1 -- attempts of one moment share an entry
      local kept -- the entries to keep, if the state is written whole
      if not bytes then
        kept = '\0\0\0\0\0\0\0\0'
      elseif base > MOST_WASTED then
        kept, before, base = entries_of(key, base, before), before - base, 0
      end
      final, final_sum = before + 1, (final_sum + own) % NARROW
      local after = pack_bytes(WITH_EACH, WEIGHTED, generation, at, last_second, final - base,
        final_sum)
      if kept or base ~= stored_base or final == base + 1 then
        if final == base + 1 then oldest_sum = final_sum end
        after = after .. pack_bytes(WITH_DROPPED, 0, stored_as, base, dropped, base_sum,
          oldest % NARROW, oldest_sum)
      end
      local entry = pack_bytes(ENTRY, at % NARROW, final_sum)
      if kept then
        after = after .. kept .. entry
        -- INCLUDE: write_key
      else
        call('SETRANGE', key, '0', after)
        call('SETRANGE', key, format('%d', HEAD_BYTES + final * ENTRY_BYTES), entry)
        if not keeps_end then
          call('PEXPIREAT', key, format('%d', base_of_ends + ceil(lifetime / 1000)))
        end
      end
    elseif i == looked_after and call('PTTL', key) < 0 then
      if lives_until > expires then lifetime = (lives_until - 1) * 1000000 - server_time end
      call('PEXPIREAT', key, format('%d', base_of_ends + ceil(lifetime / 1000)))
    end

    local reset = used > max and wait or first + interval - now
    if hides_overdraft then used = min(used, max) end
    -- INCLUDE: answer
    done = i
  end
  if done == last_key then
    return answers + (is_full and 9 or 1) * last_key, done + 1
  end
end
