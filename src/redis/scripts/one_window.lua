-- A fast path for the most frequent case: attempts under a single window without minDifference and
-- blocks. Stops before the first key that it cannot judge; any_policy.lua continues there.
if is_common then
  local answers = replied - (is_full and 9 or 1) * (first_key - 1)
  local costs_at = amount_count == 1 and #word + 1 - 8 * key_count
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
    -- Judges an attempt with the cost `own` on the state in `bytes`, which is false if there is
    -- none. Leaves the loop if this path cannot judge what is in `bytes`. Otherwise sets
    --   time_left          how long the attempt has to wait; lifetime: how long the state matters
    --   after, keeps_end   the new state if it changes; whether the key's expiry is late enough.
    --                      Or only keeps_end, if the part wrote the state and the expiry itself
    --   at, generation, used, reset, wait   if is_full: the rest of the reply
    -- PLACE: ONE WINDOW
    local is_written = true
    if after then
      -- INCLUDE: write_key
    elseif i == looked_after and not keeps_end and call('PTTL', key) < 0 then
      call('PEXPIREAT', key, format('%d', base_of_ends + ceil(lifetime / 1000)))
    end
    -- The answer: one integer, or 9 if is_full; -1 if the key was not written.
    if not is_full then
      reply[answers + i] = is_written and time_left or -1
    elseif not is_written then
      for place = answers + 9 * i - 8, answers + 9 * i do reply[place] = -1 end
    else
      local start, is_blocked = answers + 9 * i - 8, time_left > 0
      reply[start], reply[start + 1] = is_blocked and 1 or 0, time_left
      reply[start + 2] = used < max and max - used or 0
      reply[start + 3] = is_blocked and time_left or reset
      reply[start + 4], reply[start + 5], reply[start + 6] = wait, at, generation
      reply[start + 7], reply[start + 8] = used, reset
    end
    done = i
  end
  if done == last_key then
    return answers + (is_full and 9 or 1) * last_key, done + 1
  end
end
