-- A fast path for the most frequent case: attempts under a single window without minDifference and
-- blocks. Stops before the first key that it cannot judge; any_policy.lua continues there.
if is_common then
  local answers = replied - (is_full and 9 or 1) * (first_key - 1) -- see answer.lua
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
    -- Judges an attempt with the cost `own` on the state in `bytes`, which is false if there is
    -- none. Leaves the loop if this path cannot judge what is in `bytes`. Otherwise sets
    --   time_left          how long the attempt has to wait; lifetime: how long the state matters
    --   after, keeps_end   the new state if it changes; whether the key's expiry is late enough
    --   at, generation, used, reset, wait   if is_full: the rest of the reply
    -- PLACE: ONE WINDOW
    local is_written = true
    if after then
      -- INCLUDE: write_key
    elseif i == looked_after and call('PTTL', key) < 0 then
      call('PEXPIREAT', key, format('%d', base_of_ends + ceil(lifetime / 1000)))
    end
    -- INCLUDE: answer
    done = i
  end
  if done == last_key then
    return answers + (is_full and 9 or 1) * last_key, done + 1
  end
end
