-- The commonest case in the fewest steps: attempts under a single window without minDifference and
-- blocks. Ends before the first state that needs more care.
if is_common then
  local answers = replied - (is_full and 9 or 1) * (first_key - 1) -- what answers follow
  local costs_at = cost == ONE_AMOUNT and #word + 1 - 8 * key_count
  for i = first_key, last_key do
    local key = keys[i]
    local bytes
    -- INCLUDE: read_key
    unjudged = bytes
    local own = cost -- luacheck: ignore 311
    if costs_at then
      own = unpack_bytes('<d', word, costs_at + 8 * (i - first_key))
      if own > max then break end
    end
    local time_left, lifetime, after, at, generation, used, reset, wait
    local keeps_end -- luacheck: ignore 221
    -- Judges an attempt at the cost `own` on the state in `bytes`, false if there is none. Leaves
    -- the loop if that is something else, or needs the general way; otherwise sets
    --   time_left; lifetime, how long the state matters
    --   after, the new state if there is one; keeps_end, whether its key lives long enough
    --   at, generation, used, reset, wait   if is_full: the rest of the reply
    -- PLACE: ONE WINDOW
    local is_written = true
    if after then
      -- INCLUDE: write_key
    elseif i == looked_after and call('PTTL', key) < 0 then
      call('PEXPIREAT', key, format('%d', base_of_ends + ceil(lifetime / 1000)))
    end
    if not is_full then
      reply[answers + i] = is_written and time_left or -1
    elseif not is_written then
      for place = answers + 9 * i - 8, answers + 9 * i do reply[place] = -1 end
    else
      local first, is_blocked = answers + 9 * i - 8, time_left > 0
      reply[first], reply[first + 1] = is_blocked and 1 or 0, time_left
      reply[first + 2] = used < max and max - used or 0
      reply[first + 3] = is_blocked and time_left or reset
      reply[first + 4], reply[first + 5], reply[first + 6] = wait, at, generation
      reply[first + 7], reply[first + 8] = used, reset
    end
    done = i
  end
  if done == last_key then
    return answers + (is_full and 9 or 1) * last_key, done + 1
  end
end
