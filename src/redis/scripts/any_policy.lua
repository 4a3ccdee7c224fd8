-- The general code path: any policy, any state, any operation. Judges the keys behind `done`.
local windows = {}
local asks = operation ~= RECORD -- whether costs may be refused
local longest_window, largest_max = 0, 0
for w = 1, window_count do
  local length, most = interval, max
  if w > 1 then length, most = further[2 * w - 3], further[2 * w - 2] end
  longest_window, largest_max = max_of(longest_window, length, -length), max_of(largest_max, most)
  -- Sets windows[w], from its interval `length` and its max `most`, to a table with `max` and what
  -- the algorithm needs and keeps.
  -- PLACE: A WINDOW
  -- `actual` is the actual cost, to settle. An attempt is refused if `full_from` or more are used;
  -- it can never pass if that is below 1; false if the attempt asks the window nothing.
  local window = windows[w]
  window.cost, window.actual, window.full_from = cost, 0, asks and cost > 0 and most - cost + 1
end
local has_names = cost == AMOUNTS
local amounts_at, amounts_layout
if amount_count > 0 then
  amounts_layout = '<' .. string.rep('d', amount_count)
  amounts_at = #word + 1 - 8 * amount_count * (last_key - done)
end
local has_blocks = block_count > 0
-- How long a block matters after its end: until then, another refusal is a further offence.
local remembered = has_blocks and longest_window or 0
-- luacheck: ignore 211
local is_plain = window_count == 1 and min_difference == 0 and not has_blocks

-- The state of the current key, together with `windows`: the moment of the newest recorded attempt,
-- the id's generation, the end of the newest block by blockFor and the number of its offence, and
-- the end of the block by a call.
local newest, generation, block_until, offences, blocked_by_call
local seen -- a moment that time is taken as no earlier than, besides `newest`
local front -- how many bytes are in front of the state
local asked -- luacheck: ignore 231 -- the amounts of a call about leases
-- The blocks in the state to write, as bytes; whether the key must exist because of one.
local blocks, is_blocked
local new_generation = server_time and server_time % GENERATIONS or 0
local LAST_MOMENT = 2 * LATEST -- a state does not hold a later one

-- The bytes of a state before what the algorithm keeps: header and blocks.
local function header_of(form, moment)
  if blocks == '' then return pack_bytes(HEADER, form, generation, moment) end
  return pack_bytes(HEADER, form + WITH_BLOCK, generation, moment) .. blocks
end

-- Sets
--   CLAMPS                 whether time is taken as no earlier than `newest`
--   used(window, at)       how much of the window is used
--   below(window, n, at)   how long from `at` until fewer than n are used; 0 or less: already
-- PLACE: ANY POLICY

local reply_length = is_full and 7 + 2 * window_count + (operation == LEASE and 2 or 0) or 1
-- The answer for the i-th key begins at answers + i * reply_length.
local answers = replied + 1 - reply_length * first_key
for i = done + 1, last_key do
  local key = keys[i]
  local bytes = unjudged
  unjudged = nil
  if bytes == nil then
    -- INCLUDE: read_key
  end
  -- Of several costs, `cost` is the largest.
  if amounts_at then
    local amounts = { unpack_bytes(amounts_layout, word, amounts_at) }
    amounts_at, cost, asked = amounts_at + 8 * amount_count, 0, amounts
    for w = 1, window_count do
      local own = amounts[operation == LEASE and COST_OF_LEASE or has_names and w or 1]
      local window = windows[w]
      window.cost, window.actual = own, amounts[has_names and window_count + w or 2]
      window.full_from = asks and own > 0 and window.max - own + 1
      if own > cost then cost = own end
    end
  end
  local type_of_bytes = type(bytes)
  if type_of_bytes == 'table' and not string.find(bytes.err, '^WRONGTYPE') then
    return nil, bytes
  end

  -- A state of another algorithm counts as none. Of one that was written under other limits, the
  -- windows that exist under these are kept.
  local is_state, is_own = not bytes, false
  newest, generation, block_until, offences, blocked_by_call = NONE, new_generation, NONE, 0, NONE
  seen, front = NONE, 0
  -- May read what is in front of a state.
  -- PLACE: IN FRONT
  if type_of_bytes == 'string' and #bytes >= front + HEADER_BYTES then
    local form, its_generation, last_moment = unpack_bytes(HEADER, bytes, front + 1)
    if form >= FIRST_FORM and form < END_OF_FORMS then
      local from = front + HEADER_BYTES + 1
      local block, offence, by_call = NONE, 0, NONE
      is_state = last_moment <= LAST_MOMENT and (last_moment >= -LAST_MOMENT or last_moment == NONE)
      if form % 16 >= WITH_BLOCK then
        form, from = form - WITH_BLOCK, from + BLOCK_BYTES
        is_state = is_state and #bytes >= from - 1
        if is_state then block, offence = unpack_bytes(BLOCK, bytes, from - BLOCK_BYTES) end
        if block == TWO_BLOCKS then
          from = from + TWO_BYTES - BLOCK_BYTES
          is_state = #bytes >= from - 1
          if is_state then
            local _
            _, _, block, offence, by_call = unpack_bytes(TWO_LAYOUT, bytes, from - TWO_BYTES)
          end
        elseif offence == 0 then
          block, by_call = NONE, block
        end
        is_state = is_state and max_of(block, by_call) <= LAST_MOMENT
          and (block >= -LAST_MOMENT or block == NONE)
          and (by_call >= -LAST_MOMENT or by_call == NONE)
      end
      if is_state then
        -- Sets is_own to whether `form`, here without WITH_BLOCK, is the algorithm's, and is_state
        -- to whether the state is valid. If so, reads what the algorithm keeps, from the byte
        -- `from` on; may correct `newest`.
        newest = last_moment
        -- PLACE: READ
      end
      if is_own and is_state then
        generation = its_generation
        block_until, offences, blocked_by_call = block, offence, by_call
      else
        newest = NONE
      end
    elseif #bytes == 20 and string.find(bytes, '^%-[1-8]%d*$') then
      is_state = true
      -- If this integer is the algorithm's, sets is_own, and reads generation, newest and windows.
      -- PLACE: READ INTEGER
    end
  end
  if not is_own then
    -- Sets what the algorithm keeps to that of an unknown id.
    -- PLACE: READ NOTHING
  end
  if is_state then -- luacheck: ignore 542
    -- May prepare what was read, or set is_state to false.
    -- PLACE: STATE
  end

  local at, blocked, is_changed = now, 0, false
  if is_state and operation == SETTLE then
    at = settled_at
    -- Replaces, in each window, `cost` by `actual` for the attempt whose reply had the moment `at`
    -- and the generation settled_of. Sets is_changed if anything was left of it.
    -- PLACE: SETTLE
  elseif is_state and operation == SET_BLOCK then
    local from = CLAMPS and max_of(now, newest, seen) or now
    local by_call = settled_at > 0 and max_of(blocked_by_call, from + settled_at) or NONE
    local block_end = settled_at > 0 and block_until or min(block_until, now)
    is_changed = by_call ~= blocked_by_call or block_end ~= block_until
    blocked_by_call, block_until = by_call, block_end
  elseif is_state then
    if CLAMPS then at = max_of(now, newest, seen) end
    -- What comes before the attempt. May set is_changed.
    -- PLACE: BEFORE
    for w = 1, window_count do
      local full_from = windows[w].full_from
      if full_from and full_from < 1 then blocked = NEVER end
    end
    if blocked == NEVER then -- luacheck: ignore 542
    elseif at < block_until or at < blocked_by_call then
      blocked = 4
    elseif asks and cost > 0 then
      if min_difference > 0 and at - newest < min_difference then blocked = 2 end
      for w = 1, window_count do
        local window = windows[w]
        local full_from = window.full_from
        if full_from and below(window, full_from, at) > 0 then
          blocked = blocked + 1
          break
        end
      end
    end
    if cost > 0 and (not asks or blocked == 0 or (count_blocked and blocked < 4)) then
      -- Records the costs at `at`.
      -- PLACE: RECORD
      if at > newest then newest = at end
      is_changed = true
    end
    if has_blocks and blocked ~= 0 and blocked < 4 and operation ~= ATTEMPT_IF_ALLOWED then
      if at >= block_until + longest_window then offences = 0 end
      offences = min(offences + 1, block_count)
      block_until = at + further[2 * window_count - 2 + offences]
      is_changed = true
    end
    -- What comes after the attempt. May set is_changed.
    -- PLACE: AFTER
  end

  if is_state and operation > 0 and (is_changed or i == looked_after) then
    local lifetime
    -- Sets `lifetime`: how long from `now` on the windows matter.
    -- PLACE: LIFETIME
    if min_difference > 0 then lifetime = max_of(lifetime, newest + min_difference - now) end
    lifetime = max_of(lifetime, max_of(block_until + remembered, blocked_by_call) - now)
    if lifetime < 0 then lifetime = 0 end
    if is_changed then
      local after
      local keeps_end -- luacheck: ignore 221
      local least = CLAMPS and max_of(now, newest) or now
      if blocked_by_call <= least then blocked_by_call = NONE end
      if not has_blocks and block_until <= least then block_until, offences = NONE, 0 end
      is_blocked, blocks = block_until ~= NONE or blocked_by_call ~= NONE, ''
      if block_until ~= NONE and blocked_by_call ~= NONE then
        blocks = pack_bytes(TWO_LAYOUT, TWO_BLOCKS, 0, block_until, offences, blocked_by_call)
      elseif has_blocks or is_blocked then
        blocks = pack_bytes(BLOCK, max_of(block_until, blocked_by_call), offences)
      end
      -- Sets `after` to the new state, and keeps_end if the key's expiry is late enough; or writes
      -- the state itself.
      -- PLACE: WRITE
      local is_written = true
      if after then
        -- INCLUDE: write_key
      end
      is_state = is_written
    elseif is_attempt and call('PTTL', key) < 0 then
      call('PEXPIREAT', key, format('%d', base_of_ends + ceil(lifetime / 1000)))
    end
  end

  local first, late, time_left = answers + i * reply_length, at - now, 0
  local until_unblocked = max_of(block_until, blocked_by_call) - at
  if blocked == NEVER then
    time_left = longest_window
  elseif blocked ~= 0 then
    if asks and cost > 0 then
      if min_difference > 0 then time_left = newest + min_difference - at end
      for w = 1, window_count do
        local window = windows[w]
        local full_from = window.full_from
        if full_from then time_left = max_of(time_left, below(window, full_from, at)) end
      end
    end
    time_left = max_of(time_left, until_unblocked) + late
  end
  if not is_state then
    for place = first, first + reply_length - 1 do reply[place] = -1 end
  elseif operation == SETTLE then
    reply[first] = is_changed and 1 or 0
  elseif operation == SET_BLOCK then
    reply[first] = 1
  elseif not is_full then
    reply[first] = time_left
  else
    local wait, actions_left, reset_in = max_of(0, until_unblocked), nil, nil
    if min_difference > 0 then wait = max_of(wait, newest + min_difference - at) end
    for w = 1, window_count do
      local window = windows[w]
      if window.max > 0 then wait = max_of(wait, below(window, window.max, at)) end
      local used_now = used(window, at)
      if hides_overdraft then used_now = min(used_now, window.max) end
      local taken = min(used_now, window.max)
      local window_reset = taken == 0 and 0 or below(window, taken, at) + late
      local remaining = window.max - taken
      if not actions_left or remaining < actions_left then
        actions_left, reset_in = remaining, window_reset
      elseif remaining == actions_left and window_reset > reset_in then
        reset_in = window_reset
      end
      reply[first + 5 + 2 * w], reply[first + 6 + 2 * w] = used_now, window_reset
    end
    -- May replace the generation in the reply by what settling needs, and add numbers behind.
    -- PLACE: RECEIPT
    reply[first], reply[first + 1], reply[first + 2] = blocked, time_left, actions_left
    reply[first + 3] = (blocked == 0 or blocked == NEVER) and reset_in or time_left
    reply[first + 4] = wait > 0 and wait + late or 0
    reply[first + 5], reply[first + 6] = at, generation
  end
end
return answers - 1 + (last_key + 1) * reply_length, last_key + 1
