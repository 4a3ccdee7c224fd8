-- In frame.lua, for the log: attempts with costs under a single window without minDifference and
-- blocks, on weighted logs with narrow stamps and sums. Ends before the first state that needs more
-- care. Bytes are those of weighted_log.lua. Of long states only parts are read, because Lua takes
-- long for long strings.
if amount_count == 1 and is_attempt and min_difference == 0 and not further
  and range == NARROW and max < NARROW / 2 and (max > MOST_ENTRIES or is_of_named) then
  local answers = replied - (is_full and 9 or 1) * (first_key - 1) -- what answers follow
  local costs_at = #word + 1 - 8 * key_count
  local stored_as = is_of_named and 1 or 0 -- how many sums an entry has

  -- The entries from the place `first` to `last`, of which `state` may have some.
  local function entries_of(key, state, first, last)
    local from, to = ENTRIES_AT + first * ENTRY_BYTES, ENTRIES_AT - 1 + (last + 1) * ENTRY_BYTES
    if to <= #state then return sub(state, from, to) end
    return call('GETRANGE', key, format('%d', from - 1), format('%d', to - 1))
  end

  -- The moment of the newest entry from which on n are used; behind the place `base` are `total`.
  local function moment_of(key, state, base, total, final, final_sum, newest, n)
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
      local part = entries_of(key, state, first, last)
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
    local at, lives_until, dropped, total, final_sum, base, final = now, 0, NONE, 0, 0, 0, 0
    local generation, newest, oldest, is_whole
    if not bytes then
      generation, newest, oldest = server_time % GENERATIONS, NONE, now
    else
      if type(bytes) ~= 'string' or #bytes < ENTRIES_AT + 2 * ENTRY_BYTES - 1 then break end
      local form, widths, stored_count, count
      form, generation, newest, lives_until, widths, stored_count, base, count, dropped =
        unpack_bytes(WEIGHTED_STATE, bytes)
      final = base + count
      local size = ENTRIES_AT - 1 + (final + 1) * ENTRY_BYTES
      is_whole = #bytes <= last_of_first
      if form ~= WEIGHTED or widths ~= 0 or stored_count ~= stored_as or newest > LATEST
        or (is_whole and #bytes ~= size) or size < #bytes or base > MOST_WASTED then break end
      if newest > now then at = newest end
      if at - newest >= interval then break end
      local most = min(base + FEW_STAMPS, final - 1)
      local some, place = entries_of(key, bytes, base, most + 1), 1
      local _, base_sum, stamp, sum = unpack_bytes('<I4I4I4I4', some)
      oldest = newest - (newest - stamp) % NARROW
      while at - oldest >= interval and base < most do
        dropped, base, base_sum, place = oldest, base + 1, sum, place + ENTRY_BYTES
        stamp, sum = unpack_bytes('<I4I4', some, place + ENTRY_BYTES)
        oldest = newest - (newest - stamp) % NARROW
      end
      final_sum = unpack_bytes('<I4', entries_of(key, bytes, final, final), 5)
      total = (final_sum - base_sum) % NARROW
      if at - oldest >= interval or sum == base_sum or total + own >= NARROW
        or final - base >= MOST_ENTRIES then break end
    end

    local is_refused = total + own > max
    local is_recorded = not is_refused or count_blocked
    local recorded = is_recorded and own or 0
    total = total + recorded
    local late = at - now
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
      local final_now = at > newest and final + 1 or final -- attempts of one moment share an entry
      local entry = pack_bytes('<I4I4', at % NARROW, (final_sum + own) % NARROW)
      if not bytes then
        local after = pack_bytes(WEIGHTED_STATE, WEIGHTED, generation, at, last_second, 0,
          stored_as, 0, 1, NONE) .. '\0\0\0\0\0\0\0\0' .. entry
        -- INCLUDE: write_key
      elseif is_whole then
        local after = pack_bytes(WEIGHTED_STATE, WEIGHTED, generation, at, last_second, 0,
          stored_as, 0, final_now - base, dropped)
          .. sub(bytes, ENTRIES_AT + base * ENTRY_BYTES, ENTRIES_AT - 1 + final_now * ENTRY_BYTES)
          .. entry
        -- INCLUDE: write_key
      else
        call('SETRANGE', key, '0', pack_bytes(WEIGHTED_STATE, WEIGHTED, generation, at, last_second,
          0, stored_as, base, final_now - base, dropped))
        call('SETRANGE', key, format('%d', ENTRIES_AT - 1 + final_now * ENTRY_BYTES), entry)
        if not keeps_end then
          call('PEXPIREAT', key, format('%d', base_of_ends + ceil(lifetime / 1000)))
        end
      end
    elseif i == looked_after and call('PTTL', key) < 0 then
      if lives_until > expires then lifetime = (lives_until - 1) * 1000000 - server_time end
      call('PEXPIREAT', key, format('%d', base_of_ends + ceil(lifetime / 1000)))
    end

    -- Of what is used without the attempt itself, n - recorded must be left.
    local time_left, n = 0, max - own + 1 - recorded
    if is_refused then
      time_left = interval + late
      if n > 0 then
        time_left = moment_of(key, bytes, base, total - recorded, final, final_sum, newest, n)
          + interval - now
      end
    end
    if not is_full then
      reply[answers + i] = is_written and time_left or -1
    elseif not is_written then
      for place = answers + 9 * i - 8, answers + 9 * i do reply[place] = -1 end
    else
      local used, reset, wait = total, oldest + interval - now, 0
      if total >= max then
        wait = interval + late
        if max > recorded then
          local rest = max - recorded
          wait = moment_of(key, bytes, base, total - recorded, final, final_sum, newest, rest)
            + interval - now
        end
        if counts_refusals then used, reset = max, wait end
      end
      local first = answers + 9 * i - 8
      reply[first], reply[first + 1] = is_refused and 1 or 0, time_left
      reply[first + 2] = used < max and max - used or 0
      reply[first + 3] = is_refused and time_left or reset
      reply[first + 4], reply[first + 5], reply[first + 6] = wait, at, generation
      reply[first + 7], reply[first + 8] = used, reset
    end
    done = i
  end
  if done == last_key then
    return answers + (is_full and 9 or 1) * last_key, done + 1
  end
end
