-- The frame of scripts that keep a few numbers for each window: the questions, answers and writes.
-- An algorithm's own file has three parts, which stand at the lines of PLACE below. What they are
-- to do is told there.
--
-- KEYS     one state each, of one policy; a key may occur more than once. Judged in their order.
-- ARGV[1]  'attempt', 'peek' or 'refund'
-- ARGV[2]  attempt, peek: 'brief' or 'full', which is how much to reply
--          refund: the moment the attempt was recorded at in us, a comma, and its incarnation
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
--           reset in, wait until a next action, the moment of the action, incarnation; then for
--           each window how much of it is used and its own reset in
--   refund  1 if there was anything to take back, else 0
--   Where a key holds something that is no state, its first integer is -1 and nothing is changed.
--
-- A state is one string. Its first byte tells the form; none of them can begin a UTF-8 text.
--   compact  an algorithm's own, of 12 to 20 bytes, for one window and nothing else
--   general  a header, and for each window the numbers that the algorithm keeps

local COMPACT_FORMS, GENERAL_FORMS, END_OF_FORMS = 0xB0, 0xB8, 0xC0 -- where each kind begins
-- form, windows, offences, incarnation, newest, block until
local HEADER, HEADER_BYTES = '<BI2BI7i8i8', 27
local NONE = -2 ^ 62 -- stands for a moment that there is not
local LATEST = 2 ^ 53 -- times are within what a number tells exactly, back and forth
local NARROW = 2 ^ 24 - 1 -- luacheck: ignore 211 (the most that three bytes can count)

local ceil, min, max_of = math.ceil, math.min, math.max
local pack_bytes, unpack_bytes, call, format = struct.pack, struct.unpack, redis.call, string.format

-- `interval` and `max` are those of the first window; `further` is there if it is not the only one.
local operation, detail, time, cost, count_blocked, min_difference, block_lengths, interval, max,
  further = unpack(ARGV)
cost, count_blocked, interval, max = cost + 0, count_blocked == '1', interval + 0, max + 0
local is_attempt, is_full, has_own_time = operation == 'attempt', detail == 'full', time == ''
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

local reply = {}
-- The states of an attempt are read at once; what was written since then is in `written`.
local read, written = nil, {}

-- Somebody may have taken a key's time to live away. Who writes sets it; where nothing is written,
-- one key of a call is looked after, each in its turn.
local looked_after = server_time and server_time % key_count + 1

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

-- The algorithm's constants, and what both of its other parts need.
-- PLACE: FIRST

-- The commonest case in the fewest steps: attempts under a single window and nothing else. No
-- function is made before, for that takes as long as all the rest. Ends before the first state that
-- needs more care.
local done = 0
if is_attempt and min_difference == '0' and block_lengths == '' and not further then
  read = key_count == 1 and { redis.pcall('GET', keys[1]) } or call('MGET', unpack(keys))
  for i = 1, key_count do
    local key = keys[i]
    local bytes = written[key] or read[i]
    local time_left, lifetime, after, at, life, used, reset, wait
    -- Judges an attempt on the state in `bytes`, false if there is none. Leaves the loop where that
    -- is something else, or the general way has to be gone; else sets
    --   time_left; lifetime, how long the state matters; after, the new state if there is one
    --   at, life, used, reset, wait   where is_full: the rest of the reply, `life` the incarnation
    -- PLACE: ONE WINDOW
    local is_written = true
    if after then
      local ends_at = format('%d', base_of_ends + ceil(lifetime / 1000))
      if bytes then
        call('SET', key, after, 'PXAT', ends_at)
      else
        is_written = call('SET', key, after, 'PXAT', ends_at, 'NX') -- for reading shows no lists
      end
      if is_written and key_count > 1 then written[key] = after end
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

-- From here on: any policy, any state.
min_difference = min_difference + 0
local intervals, maxes, window_count = {}, {}, (#ARGV - 7) / 2
local longest_window = 0
for i = 1, window_count do
  intervals[i], maxes[i] = tonumber(ARGV[6 + 2 * i]), tonumber(ARGV[7 + 2 * i])
  longest_window = max_of(longest_window, intervals[i])
end
local lengths = {}
for length in string.gmatch(block_lengths, '%d+') do lengths[#lengths + 1] = tonumber(length) end
local is_plain = window_count == 1 and min_difference == 0 and #lengths == 0

-- The state at hand: the moment of the newest recorded attempt, the life that the id is in, and the
-- end of the newest block.
local newest, incarnation, block_until, offences

-- A table `algorithm` of
--   general_form, window_format   its form, and the numbers of a window for struct.pack
--   new_incarnation()             for an id that has done nothing
--   clamps                        whether time is taken as no earlier than `newest`
--   open_compact(bytes)           takes the compact form, sets newest and incarnation; or false
--   compact()                     the compact form of the state at hand, where there is one
--   new_window(i), take_window(i, ...), window_numbers(i)   a window's numbers
--   used(i, at)                   how much of window i is used
--   below(i, n, at)               how long after `at` less than n is used; 0 or less: it is already
--   record(at)                    records the cost
--   refund(at, incarnation)       takes back what an attempt recorded; whether there was anything
--   lifetime()                    how long from `now` on the windows matter
-- PLACE: ANY POLICY

local used_at, below = algorithm.used, algorithm.below
local window_format = '<' .. algorithm.window_format
local window_bytes = struct.size(window_format)

-- When the key of a state ends that matters for so long.
local function end_of(lifetime)
  return format('%d', base_of_ends + max_of(0, ceil(lifetime / 1000)))
end

-- Writes a state that matters for so long; false if the key holds something else, which reading has
-- not shown.
local function write(key, bytes, exists, lifetime)
  local ends_at = end_of(lifetime)
  if exists then
    call('SET', key, bytes, 'PXAT', ends_at)
  elseif not call('SET', key, bytes, 'PXAT', ends_at, 'NX') then
    return false
  end
  written[key] = bytes
  return true
end

local function repair_ttl(i, lifetime)
  if i == looked_after and call('PTTL', keys[i]) < 0 then
    call('PEXPIREAT', keys[i], end_of(lifetime))
  end
end

-- The state of an id that has done nothing.
local function open_new()
  newest, block_until, offences = nil, nil, 0
  incarnation = server_time and algorithm.new_incarnation() or 0
  for i = 1, window_count do algorithm.new_window(i) end
end

local function is_moment(moment, latest)
  return moment == NONE or math.abs(moment) <= latest
end

-- Whether it is the general form of an algorithm, `size` bytes for each window.
local function is_general(bytes, size)
  if #bytes <= HEADER_BYTES then return false end
  local form, windows, _, _, last, block = unpack_bytes(HEADER, bytes)
  if form < GENERAL_FORMS or form >= END_OF_FORMS or windows == 0 then return false end
  local of_windows = #bytes - HEADER_BYTES
  if of_windows % windows ~= 0 or (size and of_windows ~= windows * size) then return false end
  return is_moment(last, LATEST) and is_moment(block, 2 * LATEST)
end

-- Takes the general form; under other limits, the windows that have a counterpart.
local function open_general(bytes)
  if string.byte(bytes) ~= algorithm.general_form then return false end
  if not is_general(bytes, window_bytes) then return false end
  local windows, _
  _, windows, offences, incarnation, newest, block_until = unpack_bytes(HEADER, bytes)
  if newest == NONE then newest = nil end
  if block_until == NONE or #lengths == 0 then block_until, offences = nil, 0 end
  for i = 1, min(windows, window_count) do
    local first = HEADER_BYTES + (i - 1) * window_bytes + 1
    algorithm.take_window(i, unpack_bytes(window_format, bytes, first))
  end
  return true
end

-- Whether it is a log as sliding_window_log.lua writes it.
local function is_log(bytes)
  if #bytes < 18 then return false end
  local form, displaced, _, _, last = unpack_bytes('<BBI4I4i8', bytes)
  return form >= 0x44 and form < 0x60 and form % 8 >= 4 and displaced <= 1
    and is_moment(last, LATEST)
end

local function is_of_another_algorithm(bytes)
  local form = string.byte(bytes)
  if form < COMPACT_FORMS or form >= END_OF_FORMS then return is_log(bytes) end
  if form < GENERAL_FORMS then return #bytes >= 12 and #bytes <= 20 end
  return is_general(bytes)
end

-- Takes the state from what a key holds; false if that is none. Another algorithm's is begun anew.
local function open(bytes)
  open_new()
  if not bytes then return true end
  if bytes == '' then return false end
  return algorithm.open_compact(bytes) or open_general(bytes) or is_of_another_algorithm(bytes)
end

local function encode()
  local compact = is_plain and algorithm.compact()
  if compact then return compact end
  local parts = {
    pack_bytes(HEADER, algorithm.general_form, window_count, offences, incarnation,
      newest or NONE, block_until or NONE),
  }
  for i = 1, window_count do
    parts[i + 1] = pack_bytes(window_format, algorithm.window_numbers(i))
  end
  return table.concat(parts)
end

-- How long from `now` on the state at hand matters.
local function lifetime_now()
  local lifetime = algorithm.lifetime()
  if newest and min_difference > 0 then
    lifetime = max_of(lifetime, newest + min_difference - now)
  end
  if block_until then lifetime = max_of(lifetime, block_until + longest_window - now) end
  return lifetime
end

-- How long from `now` until an attempt of cost `places` passes.
local function wait_for(places, at)
  local wait = 0
  if places > 0 then
    if newest and min_difference > 0 then wait = newest + min_difference - at end
    for i = 1, window_count do
      wait = max_of(wait, below(i, maxes[i] - places + 1, at))
    end
  end
  if block_until then wait = max_of(wait, block_until - at) end
  return wait <= 0 and 0 or wait + (at - now)
end

local function start_block(at)
  if block_until and at >= block_until + longest_window then offences = 0 end
  offences = min(offences + 1, #lengths)
  block_until = at + lengths[offences]
end

-- Judges the attempt, and does to the state at hand what it does. Tells why it is blocked, the
-- moment, and whether anything changed.
local function judge()
  local at = now
  if algorithm.clamps and newest and newest > now then at = newest end
  if block_until and at < block_until then return 4, at, false end
  local by_count, by_min_difference = 0, 0
  if cost > 0 then
    if newest and min_difference > 0 and at - newest < min_difference then by_min_difference = 2 end
    for i = 1, window_count do
      if below(i, maxes[i] - cost + 1, at) > 0 then by_count = 1 end
    end
  end
  local blocked = by_count + by_min_difference
  local records = cost > 0 and (blocked == 0 or count_blocked)
  if records then
    algorithm.record(at)
    newest = newest and max_of(newest, at) or at
  end
  local starts_block = blocked ~= 0 and #lengths > 0
  if starts_block then start_block(at) end
  return blocked, at, records or starts_block
end

-- Writes a full reply from place `first` on.
local function describe(first, blocked, time_left, at)
  local actions_left, reset_in
  for i = 1, window_count do
    local used = min(used_at(i, at), maxes[i])
    local window_reset = used == 0 and 0 or below(i, used, at) + (at - now)
    local remaining = maxes[i] - used
    if not actions_left or remaining < actions_left then
      actions_left, reset_in = remaining, window_reset
    elseif remaining == actions_left and window_reset > reset_in then
      reset_in = window_reset
    end
    reply[first + 5 + 2 * i], reply[first + 6 + 2 * i] = used, window_reset
  end
  reply[first], reply[first + 1], reply[first + 2] = blocked, time_left, actions_left
  reply[first + 3] = blocked == 0 and reset_in or time_left
  reply[first + 4], reply[first + 5], reply[first + 6] = wait_for(1, at), at, incarnation
end

-- What the key holds; a table if that is no string.
local function get(key)
  local bytes = redis.pcall('GET', key)
  local is_failure = type(bytes) == 'table' and not string.find(bytes.err, '^WRONGTYPE')
  return is_failure and call('GET', key) or bytes -- raises
end

-- Takes back what an attempt recorded.
local function refund(key)
  local bytes = get(key)
  if type(bytes) == 'table' or not open(bytes) then return -1 end
  local at, of = string.match(detail, '(.*),(.*)')
  if not bytes or not algorithm.refund(at + 0, of + 0) then return 0 end
  write(key, encode(), true, lifetime_now())
  return 1
end

if operation == 'refund' then return { refund(keys[1]) } end

if is_attempt and done == 0 then read = call('MGET', unpack(keys)) end
local reply_length = is_full and 7 + 2 * window_count or 1
for i = done + 1, key_count do
  local first = (i - 1) * reply_length + 1
  local key = keys[i]
  local bytes = is_attempt and (written[key] or read[i])
  if not is_attempt or type(bytes) == 'table' then bytes = get(key) end
  local is_state = type(bytes) ~= 'table' and open(bytes)
  if is_state then
    local blocked, at, is_changed = judge()
    if is_attempt and is_changed then
      is_state = write(key, encode(), bytes, lifetime_now())
    elseif is_attempt then
      repair_ttl(i, lifetime_now())
    end
    if is_state then
      local time_left = blocked == 0 and 0 or wait_for(cost, at)
      if is_full then describe(first, blocked, time_left, at) else reply[first] = time_left end
    end
  end
  if not is_state then
    for place = first, first + reply_length - 1 do reply[place] = -1 end
  end
end
return reply
