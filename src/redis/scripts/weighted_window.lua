-- In frame.lua, for the log: attempts with costs under a single window without minDifference and
-- blocks, on weighted logs with narrow stamps and sums. Ends before the first state that needs more
-- care. Bytes are those of weighted_log.lua. The head is read and written, and the entry of the
-- attempt written; others are read where some have left or an attempt has to wait.
if is_weighted_window then
  local answers = replied - (is_full and 9 or 1) * (first_key - 1) -- what answers follow
  local costs_at = #word + 1 - 8 * key_count
  local stored_as = is_of_named and 1 or 0 -- how many sums an entry has

  -- The entries from the place `first` to `last`.
  local function entries_of(key, first, last)
    return call('GETRANGE', key, format('%d', HEAD_BYTES + first * ENTRY_BYTES),
      format('%d', HEAD_BYTES + (last + 1) * ENTRY_BYTES - 1))
  end

  -- The moment of the newest entry from which on n are used; behind the place `base` are `total`.
  local function moment_of(key, base, total, final, final_sum, newest, n)
    local low, high, high_use = base, final, 0 -- used behind `high`
    for tries = 1, MOST_TRIES do
      local first = floor((low + high) / 2) - GUESSED_BEFORE
      if low == base then -- never too far back yet: by the mean of what is behind `high`
        -- Where refusals were counted, entries that are merged are much larger than new ones.
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
    local at, lives_until, dropped, total, base, final = now, 0, NONE, 0, 0, 0
    local base_sum, final_sum, oldest_sum = 0, 0, 0
    local generation, newest, oldest, stored_base
    local first, outside = now, 0 -- the oldest inside of the window; the place of the one before
    if not bytes then
      generation, newest, oldest = server_time % GENERATIONS, NONE, now
    else
      if type(bytes) ~= 'string' or #bytes < HEAD_BYTES then break end
      local form, widths, stored_count, count
      form, generation, newest, lives_until, count, final_sum, widths, stored_count, base, dropped,
        base_sum, oldest, oldest_sum = unpack_bytes(WEIGHTED_STATE, bytes)
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
        first, first_sum = unpack_bytes('<I4I4', entries, from)
        first, from = newest - (newest - first) % NARROW, from + ENTRY_BYTES
        -- The newest needs the others.
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
      -- So much must be left of what is used without the attempt itself.
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
      local kept -- of what is written whole
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
      local entry = pack_bytes('<I4I4', at % NARROW, final_sum)
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

    if not is_full then
      reply[answers + i] = is_written and time_left or -1
    elseif not is_written then
      for place = answers + 9 * i - 8, answers + 9 * i do reply[place] = -1 end
    else
      local reset = first + interval - now
      if used > max then reset = wait end
      if hides_overdraft then used = min(used, max) end
      local start = answers + 9 * i - 8
      reply[start], reply[start + 1] = is_refused and 1 or 0, time_left
      reply[start + 2] = used < max and max - used or 0
      reply[start + 3] = is_refused and time_left or reset
      reply[start + 4], reply[start + 5], reply[start + 6] = wait, at, generation
      reply[start + 7], reply[start + 8] = used, reset
    end
    done = i
  end
  if done == last_key then
    return answers + (is_full and 9 or 1) * last_key, done + 1
  end
end
