-- The frame of scripts that keep a few numbers for each window: the questions, answers and writes.
-- An algorithm's own file has a part for each line of PLACE below; what it is to do is told there.
-- Parts are code in line, for functions take long to make, anew in each call of a script: the more
-- variables from outside they use the longer. Those that there are use few.
--
-- KEYS     one state each, of one policy; all different, or an attempt has to say that keys repeat:
--          else it judges some by a state that it has written over. Judged in their order.
-- ARGV[1]  'attempt', 'peek' or 'refund'; 'attempt, keys repeat'
-- ARGV[2]  attempt, peek: 'brief' or 'full', which is how much to reply
--          refund: the moment the attempt was recorded at in us, a comma, and its generation
-- ARGV[3]  the time in us; '' for the server's own
-- ARGV[4]  cost, an integer from 1 to the smallest max; a peek with 0 tells what is used, and for
--          how long a next action has to wait
-- ARGV[5]  '1' if blocked attempts count as actions, else '0'
-- ARGV[6]  minDifference in us
-- ARGV[7]  blockFor: the lengths of the first block, the second and so on in us, separated by
--          commas; '' for no blocks
-- ARGV[8]  interval of the first window in us, ARGV[9] its max; likewise for each further window
--
-- Reply    integers, for each key the same number of them; durations in us from the given time on
--   brief   time left: 0 when allowed
--   full    why it is blocked (bits: 1 count, 2 minDifference, 4 block), time left, actions left,
--           reset in, wait until a next action, the moment of the action, generation; then for
--           each window how much of it is used and its own reset in
--   refund  1 if there was anything to take back, else 0
--   Where a key holds something that is no state, its first integer is -1 and nothing is changed.
--
-- A state is one string. Its first byte tells the form; none but an integer's can begin a UTF-8
-- text.
--   integer  for one window and nothing else, by the server's clock: '-', 16 digits, a moment in us
--            from where the algorithm's integers begin, and 3 digits. Redis keeps it in place of a
--            pointer, so it needs no memory but the value's own header.
--   compact  an algorithm's own, of 12 to 20 bytes, for one window and nothing else
--   general  a header, and for each window the numbers that the algorithm keeps

local COMPACT_FORMS, GENERAL_FORMS, END_OF_FORMS = 0xB0, 0xB8, 0xC0 -- where each kind begins
-- form, windows, offences, generation, newest, block until
local HEADER, HEADER_BYTES = '<BI2BI7i8i8', 27
local NONE = -2 ^ 62 -- stands for a moment that there is not, and is long past
local LATEST = 2 ^ 53 -- times are within what a number tells exactly, back and forth
local NARROW = 2 ^ 24 - 1 -- luacheck: ignore 211 (the most that three bytes can count)
-- In integers: the moments that there are, between 2001 and 2112, and how they are written.
local EARLIEST_OF_INTEGERS, END_OF_INTEGERS = 10 ^ 15, 45 * 10 ^ 14
local INTEGER = '-%d%03d' -- luacheck: ignore 211

local ceil, min, max_of = math.ceil, math.min, math.max
local pack_bytes, unpack_bytes, call, format = struct.pack, struct.unpack, redis.call, string.format

-- `interval` and `max` are those of the first window; `further` is there if it is not the only one.
local operation, detail, time, cost, count_blocked, min_difference, block_lengths, interval, max,
  further = unpack(ARGV)
cost, count_blocked, interval, max = cost + 0, count_blocked == '1', interval + 0, max + 0
local has_repeats = operation == 'attempt, keys repeat'
local is_attempt = has_repeats or operation == 'attempt'
local is_full, has_own_time = detail == 'full', time == ''
local keys = KEYS
local key_count = #keys
local now, server_time
if operation ~= 'peek' or has_own_time then
  local seconds_and_micros = call('TIME')
  server_time = seconds_and_micros[1] * 1000000 + seconds_and_micros[2]
end
now = has_own_time and server_time or time + 0

-- What is written has an end, which is cheaper to set than a length: that Redis would have to turn
-- into an end for its replicas. A key lives a second longer than its state matters.
local base_of_ends = server_time and server_time / 1000 + 1000 -- in ms; '%d' rounds down

-- The states of an attempt are read at once; if keys repeat, what was written since then is in
-- `written`.
local read, written = nil, {}
if is_attempt then
  read = key_count == 1 and { redis.pcall('GET', keys[1]) } or call('MGET', unpack(keys))
end
-- Brief answers take the places of what was read; another table would have to grow several times.
local reply = not is_full and read or {}

-- Somebody may have taken a key's time to live away. Who writes sets it; where nothing is written,
-- one key of a call is looked after, each in its turn.
local looked_after = server_time and server_time % key_count + 1

-- Both parts of a state that is an integer, where the algorithm's begin with `first`; nothing if it
-- is none of its. As a whole it is beyond 2^53: Lua has its first 15 digits, and the last 4 apart.
local function parts_of_integer(bytes, first) -- luacheck: ignore 211
  if #bytes ~= 20 or not string.find(bytes, '^%-%d*$') then return nil end
  local end_digits = string.sub(bytes, 17) + 0
  local rest, tens = end_digits % 1000, math.floor((-bytes - end_digits) / 10000 + 0.5)
  local moment = tens * 10 + (end_digits - rest) / 1000 - first
  if moment < EARLIEST_OF_INTEGERS or moment >= END_OF_INTEGERS then return nil end
  return moment, rest
end

-- x * y / z rounded down, and the remainder; exact, for integers up to 2^53 whose quotient is one.
local function multiply_divide(x, y, z) -- luacheck: ignore 211
  local product = x * y
  if product < 2 ^ 53 then
    local quotient = math.floor(product / z)
    return quotient, product - quotient * z
  end
  -- The product bit by bit of x; what is carried over never exceeds z.
  local whole = math.floor(y / z)
  local rest = y - whole * z
  local quotient, remainder = 0, 0
  for power = 53, 0, -1 do
    quotient = 2 * quotient
    if remainder >= z - remainder then
      quotient, remainder = quotient + 1, remainder - (z - remainder)
    else
      remainder = 2 * remainder
    end
    if x >= 2 ^ power then
      x, quotient = x - 2 ^ power, quotient + whole
      if remainder >= z - rest then
        quotient, remainder = quotient + 1, remainder - (z - rest)
      else
        remainder = remainder + rest
      end
    end
  end
  return quotient, remainder
end

-- The algorithm's constants, and what several of its other parts need.
-- PLACE: FIRST

-- The commonest case in the fewest steps: attempts under a single window and nothing else. Ends
-- before the first state that needs more care.
local done = 0
if is_attempt and min_difference == '0' and block_lengths == '' and not further then
  for i = 1, key_count do
    local key = keys[i]
    local bytes = written[key] or read[i]
    local time_left, lifetime, after, at, life, used, reset, wait
    -- Judges an attempt on the state in `bytes`, false if there is none. Leaves the loop where that
    -- is something else, or the general way has to be gone; else sets
    --   time_left; lifetime, how long the state matters; after, the new state if there is one
    --   at, life, used, reset, wait   where is_full: the rest of the reply, `life` the generation
    -- PLACE: ONE WINDOW
    local is_written = true
    if after then
      local ends_at = format('%d', base_of_ends + ceil(lifetime / 1000))
      if bytes then
        call('SET', key, after, 'PXAT', ends_at)
      else
        is_written = call('SET', key, after, 'PXAT', ends_at, 'NX') -- for reading shows no lists
      end
      if has_repeats and is_written then written[key] = after end
    elseif i == looked_after and call('PTTL', key) < 0 then
      call('PEXPIREAT', key, format('%d', base_of_ends + ceil(lifetime / 1000)))
    end
    if not is_full then
      reply[i] = is_written and time_left or -1
    elseif not is_written then
      for place = 9 * i - 8, 9 * i do reply[place] = -1 end
    else
      local first, is_blocked = 9 * i - 8, time_left > 0
      reply[first], reply[first + 1] = is_blocked and 1 or 0, time_left
      reply[first + 2], reply[first + 3] = max - used, is_blocked and time_left or reset
      reply[first + 4], reply[first + 5], reply[first + 6] = wait, at, life
      reply[first + 7], reply[first + 8] = used, reset
    end
    done = i
  end
  if done == key_count then return reply end
end

-- From here on: any policy, any state, any question.
min_difference = min_difference + 0
local windows, window_count = {}, (#ARGV - 7) / 2
local longest_window, largest_max = 0, 0 -- luacheck: ignore 231
for w = 1, window_count do
  local length, most = ARGV[6 + 2 * w] + 0, ARGV[7 + 2 * w] + 0
  if length > longest_window then longest_window = length end
  if most > largest_max then largest_max = most end
  -- Makes windows[w] of an interval `length` and a max `most`: a table with `max` and with what the
  -- algorithm needs and keeps.
  -- PLACE: A WINDOW
end
local has_blocks = block_lengths ~= ''
local is_plain = window_count == 1 and min_difference == 0 and not has_blocks

-- The state at hand, together with what is in `windows`: the moment of the newest recorded attempt,
-- the life that the id is in, the end of the newest block, and which offence that was for.
local newest, generation, block_until, offences

-- Sets
--   GENERAL_FORM           its form
--   WINDOW, WINDOW_BYTES   the numbers of a window there, for struct.pack; how many bytes those are
--   CLAMPS                 whether time is taken as no earlier than `newest`
--   used(window, at)       how much of the window is used
--   below(window, n, at)   how long after `at` less than n is used; 0 or less: it is already
-- PLACE: ANY POLICY

local function is_moment(moment, latest)
  return moment == NONE or (moment <= latest and moment >= -latest)
end

local reply_length = is_full and 7 + 2 * window_count or 1
for i = done + 1, key_count do
  local key = keys[i]
  local bytes
  if read then bytes = written[key] or read[i] else bytes = redis.pcall('GET', key) end
  if type(bytes) == 'table' and not string.find(bytes.err, '^WRONGTYPE') then
    bytes = call('GET', key) -- raises
  end

  -- What the key holds: nothing, a state, or neither. Another algorithm's state is begun anew, and
  -- one under other limits keeps the windows that have a counterpart, `known` of them.
  local is_state, known, form = not bytes, 0, nil
  newest, generation, block_until, offences = NONE, 0, NONE, 0
  if type(bytes) == 'string' and bytes ~= '' then
    form = string.byte(bytes)
    if form >= GENERAL_FORMS and form < END_OF_FORMS then
      if #bytes > HEADER_BYTES then
        local _, count, offence, life, last, block = unpack_bytes(HEADER, bytes)
        local size = (#bytes - HEADER_BYTES) / count
        is_state = count > 0 and size % 1 == 0 and is_moment(last, LATEST)
          and is_moment(block, 2 * LATEST)
        if is_state and form == GENERAL_FORM and size == WINDOW_BYTES then
          known, generation, newest = min(count, window_count), life, last
          if has_blocks and block ~= NONE then block_until, offences = block, offence end
        end
      end
    elseif form >= COMPACT_FORMS and form < GENERAL_FORMS then
      is_state = #bytes >= 12 and #bytes <= 20
    elseif #bytes == 20 and string.find(bytes, '^%-[1-8]%d*$') then
      is_state = true
    elseif #bytes >= 18 then
      -- A log as sliding_window_log.lua writes it.
      local _, displaced, _, _, last = unpack_bytes('<BBI4I4i8', bytes)
      is_state = form >= 0x44 and form < 0x60 and form % 8 >= 4 and displaced <= 1
        and is_moment(last, LATEST)
    end
  end
  for w = 1, window_count do
    local window = windows[w]
    local from = w <= known and HEADER_BYTES + (w - 1) * WINDOW_BYTES + 1
    -- Takes what the window keeps from `bytes`, at `from`; false if it has kept nothing.
    -- PLACE: READ WINDOW
  end
  if known == 0 then
    -- Takes the state at hand from an integer or the compact form, where that is in `bytes`; else
    -- sets `generation` to that of an id that has done nothing, if there is a server_time.
    -- PLACE: READ COMPACT
  end

  local at, blocked, is_changed = now, 0, false
  if is_state and operation == 'refund' then
    local of
    at, of = string.match(detail, '(.*),(.*)')
    at, of = at + 0, of + 0
    -- Takes back what an attempt recorded at `at`, in the generation `of`; sets is_changed if
    -- there was anything.
    -- PLACE: REFUND
  elseif is_state then
    if CLAMPS and newest > now then at = newest end
    if at < block_until then
      blocked = 4
    elseif cost > 0 then
      if min_difference > 0 and at - newest < min_difference then blocked = 2 end
      for w = 1, window_count do
        local window = windows[w]
        if below(window, window.max - cost + 1, at) > 0 then
          blocked = blocked + 1
          break
        end
      end
    end
    if cost > 0 and (blocked == 0 or (count_blocked and blocked ~= 4)) then
      -- Records the cost at `at`.
      -- PLACE: RECORD
      if at > newest then newest = at end
      is_changed = true
    end
    if has_blocks and blocked ~= 0 and blocked ~= 4 then
      local lengths = {}
      for length in string.gmatch(block_lengths, '%d+') do lengths[#lengths + 1] = length + 0 end
      if at >= block_until + longest_window then offences = 0 end
      offences = min(offences + 1, #lengths)
      block_until = at + lengths[offences]
      is_changed = true
    end
  end

  if is_state and operation ~= 'peek' and (is_changed or i == looked_after) then
    local lifetime
    -- Sets how long from `now` on the windows matter.
    -- PLACE: LIFETIME
    if min_difference > 0 then lifetime = max_of(lifetime, newest + min_difference - now) end
    lifetime = max_of(0, lifetime, block_until + longest_window - now)
    local ends_at = format('%d', base_of_ends + ceil(lifetime / 1000))
    if is_changed then
      local after
      if is_plain then
        -- Sets `after` to the integer or the compact form of the state at hand, if it has one.
        -- PLACE: WRITE COMPACT
      end
      if not after then
        after = pack_bytes(HEADER, GENERAL_FORM, window_count, offences, generation, newest,
          block_until)
        for w = 1, window_count do
          local window = windows[w]
          -- Puts what the window keeps at the end of `after`.
          -- PLACE: WRITE WINDOW
        end
      end
      if bytes then
        call('SET', key, after, 'PXAT', ends_at)
      else
        is_state = call('SET', key, after, 'PXAT', ends_at, 'NX') -- for reading shows no lists
      end
      if has_repeats and is_state then written[key] = after end
    elseif is_attempt and call('PTTL', key) < 0 then
      call('PEXPIREAT', key, ends_at)
    end
  end

  local first, late, time_left = (i - 1) * reply_length + 1, at - now, 0
  if blocked ~= 0 then
    if cost > 0 then
      if min_difference > 0 then time_left = newest + min_difference - at end
      for w = 1, window_count do
        local window = windows[w]
        time_left = max_of(time_left, below(window, window.max - cost + 1, at))
      end
    end
    time_left = max_of(time_left, block_until - at) + late
  end
  if not is_state then
    for place = first, first + reply_length - 1 do reply[place] = -1 end
  elseif operation == 'refund' then
    reply[first] = is_changed and 1 or 0
  elseif not is_full then
    reply[first] = time_left
  else
    local wait, actions_left, reset_in = max_of(0, block_until - at), nil, nil
    if min_difference > 0 then wait = max_of(wait, newest + min_difference - at) end
    for w = 1, window_count do
      local window = windows[w]
      wait = max_of(wait, below(window, window.max, at))
      local used_now = min(used(window, at), window.max)
      local window_reset = used_now == 0 and 0 or below(window, used_now, at) + late
      local remaining = window.max - used_now
      if not actions_left or remaining < actions_left then
        actions_left, reset_in = remaining, window_reset
      elseif remaining == actions_left and window_reset > reset_in then
        reset_in = window_reset
      end
      reply[first + 5 + 2 * w], reply[first + 6 + 2 * w] = used_now, window_reset
    end
    reply[first], reply[first + 1], reply[first + 2] = blocked, time_left, actions_left
    reply[first + 3] = blocked == 0 and reset_in or time_left
    reply[first + 4] = wait > 0 and wait + late or 0
    reply[first + 5], reply[first + 6] = at, generation
  end
end
return reply
