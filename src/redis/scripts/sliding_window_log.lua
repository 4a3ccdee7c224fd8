-- The exact algorithm on Redis: every window is judged by the log of the id's newest actions, as in
-- core/sliding_window_log.h and with its words.
--
-- KEYS     one log each, of one policy; all different, or an attempt has to say that keys repeat:
--          else it judges some by a log that it has written over. Judged in their order.
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
-- last     may be 'keep' and a number: a log has room for so many actions at least, and one that
--          has grown longer stays as long as it is
--
-- Reply    integers, for each key the same number of them; durations in us from the given time on
--   brief   time left: 0 when allowed
--   full    why it is blocked (bits: 1 count, 2 minDifference, 4 block), time left, actions left,
--           reset in, wait until a next action, the moment of the action, generation; then for
--           each window how much of it is used and its own reset in
--   refund  1 if there was anything to take back, else 0
--   Where a key holds something that is no state, its first integer is -1 and nothing is changed.
--   Another algorithm's state (see frame.lua) is an empty log, and is written over.
--
-- A log is one string: a header with the newest action in full, and a stamp for each older one, the
-- low bytes of its time, from which it follows (see nth).
--   short   header, then stamps from newest to oldest: read and written whole
--   long    header, then how many stamps there are, where in the ring the oldest one is and how
--           many there is room for, then the ring: read and written only where it changes
-- The first byte tells the form and how many bytes a stamp has. Under a policy with blockFor the
-- header has a second part: the end of the newest block, and which offence it was for.

-- form, displaced, generation, the second since the epoch up to which the key lives at least,
-- newest
local HEADER, HEADER_BYTES = '<BBI4I4i8', 18
local NEWEST = 11 -- where in the header the newest action is, low byte first
-- Where a command begins to read or write: as text, as all such places are, for Redis takes nearly
-- as long to make one of a number as for the command.
local BEGIN, BEFORE_NEWEST = '0', '10'
local RING, RING_BYTES = '<I4I4I4', 12 -- count, head, room
local BLOCK, BLOCK_BYTES = 'i8B', 9 -- block until, offences
local SHORT, LONG, END_OF_FORMS = 0x40, 0x50, 0x60
local WITH_BLOCK = 8 -- in the form
local NONE = -2 ^ 62 -- stands for a moment that there is not
local MOST_STAMPS_OF_SHORT = 256
local MOST_STAMPS = 4294967295 -- what RING can count; a Redis string has room for less
local GENERATIONS = 4294967296
local LATEST = 9007199254740992 -- times are within what a number tells exactly, back and forth
local SPARE_SECONDS = 2 -- that a log is kept longer than it matters

local operation, detail, time, cost, count_blocked, min_difference, block_lengths = unpack(ARGV)
local has_repeats = operation == 'attempt, keys repeat'
local is_attempt = has_repeats or operation == 'attempt'
local is_full, has_own_time = detail == 'full', time == ''
count_blocked = count_blocked == '1'
cost = cost == '1' and 1 or cost + 0
min_difference = min_difference == '0' and 0 or min_difference + 0
local keys = KEYS
local key_count = #keys
local now, server_time
if operation ~= 'peek' or has_own_time then
  local seconds_and_micros = redis.call('TIME')
  server_time = seconds_and_micros[1] * 1000000 + seconds_and_micros[2]
end
now = has_own_time and server_time or time + 0

local argument_count, keeps = #ARGV, nil
if argument_count > 9 then
  keeps = string.match(ARGV[argument_count], '^keep(%d+)$')
  if keeps then argument_count, keeps = argument_count - 1, keeps + 0 end
end
local intervals, maxes, window_count = { ARGV[8] + 0 }, { ARGV[9] + 0 }, 1
local longest_window, policy_capacity = intervals[1], maxes[1]
if keeps and keeps > policy_capacity then policy_capacity = keeps end
for i = 10, argument_count, 2 do
  local interval, max = ARGV[i] + 0, ARGV[i + 1] + 0
  window_count = window_count + 1
  intervals[window_count], maxes[window_count] = interval, max
  if interval > longest_window then longest_window = interval end
  if max > policy_capacity then policy_capacity = max end
end
local retention = min_difference > longest_window and min_difference or longest_window
local has_blocks, lengths = block_lengths ~= '', nil
if has_blocks then
  lengths = {}
  for length in string.gmatch(block_lengths, '%d+') do lengths[#lengths + 1] = length + 0 end
end

-- The short logs of an attempt are read at once, and again, if keys repeat, where they were written
-- since then.
local read, written = nil, {}

local pack_bytes, unpack_bytes, sub = struct.pack, struct.unpack, string.sub
local floor, ceil, max_of = math.floor, math.ceil, math.max
local call, format = redis.call, string.format

-- A key lives a little longer than its log matters: so in a call for many keys few writes have to
-- put the end off, and one that leaves it is cheaper. In seconds since the epoch: the first that is
-- not too early to be the end, and the one that is written; the same in ms as text. An end is
-- cheaper to set than a length, which Redis would have to turn into an end for its replicas.
local needed, expires, expires_at
if server_time then
  needed = ceil((server_time + retention) / 1000000)
  expires = needed + SPARE_SECONDS
  expires_at = format('%d000', expires)
end

-- Somebody may have taken a key's end away: one key of a call is looked after, each in its turn,
-- and gets one that is no earlier than its log says.
local looked_after = server_time and server_time % key_count + 1

-- Three ways follow, from the commonest case to any. Each ends before the first log that needs
-- more care, where the next goes on: `done` is how many logs are judged. The last one's functions
-- come after the others, for to make them takes longer than all that these do.
local done = 0
local policy_width, policy_range = 4, 4294967296
while retention >= policy_range do
  policy_width, policy_range = policy_width + 1, policy_range * 256
end
local is_short_policy = policy_capacity - 1 <= MOST_STAMPS_OF_SHORT
local is_common = is_attempt and cost == 1 and not keeps and policy_capacity <= MOST_STAMPS
if is_common and is_short_policy then
  read = key_count == 1 and { redis.pcall('GET', keys[1]) } or call('MGET', unpack(keys))
end
-- Brief answers take the places of what was read; another table would have to grow several times.
local reply = not is_full and read or {}
local reply_length = is_full and 7 + 2 * window_count or 1

-- The first: brief answers under a single window alone, in the fewest steps.
local is_plain = window_count == 1 and min_difference == 0 and not has_blocks
if is_common and is_plain and is_short_policy and policy_width == 4 and policy_capacity > 2
    and not is_full then
  local interval, max, width, range = intervals[1], policy_capacity, 4, policy_range
  -- Here form and `displaced`, one byte each, are one number, `kind`: all is kept, or something was
  -- pushed out.
  local PLAIN_HEADER, kept_all, pushed_out = '<I2I4I4i8', SHORT + 4, SHORT + 4 + 256
  local full_bytes = HEADER_BYTES + (max - 1) * width
  -- The stamps up to the second oldest, that, the oldest; Lua's struct cannot take an empty text.
  local full_layout = PLAIN_HEADER .. (max > 3 and 'c' .. (max - 3) * width or '') .. 'I4I4'
  local grown_layout = PLAIN_HEADER .. 'I4c0' -- and the stamps from the newest on
  for i = 1, key_count do
    local key, bytes, time_left = keys[i], read[i], 0
    local log, is_in_time
    if has_repeats and written[key] then bytes = call('GET', key) end
    if not bytes then
      local first = pack_bytes(PLAIN_HEADER, kept_all, server_time % GENERATIONS, expires, now)
      -- Reading shows no lists and the like.
      if not call('SET', key, first, 'PXAT', expires_at, 'NX') then time_left = -1 end
    elseif #bytes == full_bytes then
      local kind, generation, lives_until, newest, newer, second_oldest, oldest =
        unpack_bytes(full_layout, bytes)
      if (kind ~= kept_all and kind ~= pushed_out) or newest > LATEST then break end
      if max == 3 then newer, second_oldest, oldest = '', newer, second_oldest end
      local at = newest > now and newest or now
      local age = at - newest + (newest - oldest) % range
      if age >= range then break end
      local is_blocked = age < interval
      if is_blocked and not count_blocked then
        time_left = interval - age + at - now
        if i == looked_after and call('PTTL', key) < 0 then
          call('PEXPIREAT', key, format('%d000', max_of(expires, lives_until)))
        end
      else
        local kind_after = kept_all
        if is_blocked then
          kind_after = pushed_out
          -- The oldest makes room, so it is the next one that is waited for.
          local wait = interval - (newest - second_oldest) % range + newest - now
          if wait + now > at then time_left = wait end
        end
        is_in_time = lives_until >= needed and i ~= looked_after
        if is_in_time and kind == kind_after then
          call('SETRANGE', key, BEFORE_NEWEST,
            pack_bytes('<i8I4c0I4', at, newest % range, newer, second_oldest))
        else
          log = pack_bytes(PLAIN_HEADER .. 'I4c0I4', kind_after, generation,
            is_in_time and lives_until or expires, at, newest % range, newer, second_oldest)
        end
      end
    else
      local length = #bytes
      if length < HEADER_BYTES or length > full_bytes or (length - HEADER_BYTES) % width ~= 0 then
        break
      end
      local kind, generation, lives_until, newest = unpack_bytes(PLAIN_HEADER, bytes)
      if (kind ~= kept_all and kind ~= pushed_out) or newest > LATEST then break end
      local at, oldest = newest > now and newest or now, newest
      if length > HEADER_BYTES then oldest = unpack_bytes('<I4', bytes, length - width + 1) end
      if at - newest + (newest - oldest) % range >= range then break end
      is_in_time = lives_until >= needed and i ~= looked_after
      log = pack_bytes(grown_layout, kind, generation,
        is_in_time and lives_until or expires, at, newest % range, sub(bytes, HEADER_BYTES + 1))
    end
    if log and is_in_time then
      call('SET', key, log, 'KEEPTTL')
    elseif log then
      call('SET', key, log, 'PXAT', expires_at)
    end
    reply[i] = time_left
    if has_repeats and time_left >= 0 then written[key] = true end
    done = i
  end
  if done == key_count then return reply end
end

-- The second: attempts of cost 1 under any policy without a number of actions to keep, on logs of
-- its own form.
if is_common then
  local is_long, width, range = not is_short_policy, policy_width, policy_range
  local policy_form = (is_long and LONG or SHORT) + (has_blocks and WITH_BLOCK or 0) + width
  local header_layout = HEADER .. (has_blocks and BLOCK or '')
  local header_bytes = HEADER_BYTES + (has_blocks and BLOCK_BYTES or 0)
  local begin_bytes = header_bytes + (is_long and RING_BYTES or 0) -- before the first stamp
  local full_bytes = header_bytes + (policy_capacity - 1) * width
  local stamp_layout = '<I' .. width
  local end_of_begin = is_long and format('%d', begin_bytes - 1)
  local key, bytes, newest, count, head, room

  local function nth(n)
    if n == 1 then return newest end
    local stamp
    if is_long then
      local from = begin_bytes + (head + count + 1 - n) % room * width
      stamp = unpack_bytes(stamp_layout, call('GETRANGE', key,
        format('%d', from), format('%d', from + width - 1)))
    else
      stamp = unpack_bytes(stamp_layout, bytes, begin_bytes + (n - 2) * width + 1)
    end
    return newest - (newest - stamp) % range
  end

  for i = done + 1, key_count do
    key = keys[i]
    local form, displaced, generation, lives_until, block_until, oldest
    local size, offences = 0, 0
    if is_long then
      bytes = redis.pcall('GETRANGE', key, BEGIN, end_of_begin)
      if bytes == '' then bytes = nil end
    else
      bytes = read[i]
      if has_repeats and written[key] then bytes = call('GET', key) end
    end
    newest = nil
    if bytes then
      if #bytes < begin_bytes or (not is_long and #bytes > full_bytes) then break end
      form, displaced, generation, lives_until, newest = unpack_bytes(HEADER, bytes)
      if form ~= policy_form or displaced > 1 or newest > LATEST or newest < -LATEST then break end
      if is_long then
        count, head, room = unpack_bytes(RING, bytes, header_bytes + 1)
        if room ~= policy_capacity - 1 or count > room or head > room then break end
      else
        count = (#bytes - header_bytes) / width
        if count % 1 ~= 0 then break end
      end
      if has_blocks then
        block_until, offences = unpack_bytes('<' .. BLOCK, bytes, HEADER_BYTES + 1)
        if block_until == NONE then
          block_until = nil
        elseif block_until > 2 * LATEST or block_until < -2 * LATEST then
          break
        end
      end
      size = count + 1
      oldest = nth(size)
    end
    local at = newest and newest > now and newest or now
    -- What a stamp could not tell apart any more is not kept.
    if oldest and at - oldest >= range then break end

    local blocked = 0
    if block_until and at < block_until then
      blocked = 4
    elseif newest then
      if at - newest < min_difference then blocked = 2 end
      for w = 1, window_count do
        local max = maxes[w]
        if size >= max and at - (max == size and oldest or nth(max)) < intervals[w] then
          blocked = blocked + (blocked % 2 == 0 and 1 or 0)
        end
      end
    else
      generation = server_time % GENERATIONS
    end
    local recorded = (blocked == 0 or (count_blocked and blocked ~= 4)) and 1 or 0
    local starts_block = has_blocks and blocked ~= 0 and blocked ~= 4
    if starts_block then
      if block_until and at >= block_until + longest_window then offences = 0 end
      offences = offences < #lengths and offences + 1 or #lengths
      block_until = at + lengths[offences]
    end

    -- How long until a next action may come, and what is used.
    local first = (i - 1) * reply_length + 1
    if is_full or blocked ~= 0 then
      local last = recorded == 1 and at or newest
      local allowed_at = last + min_difference
      if block_until and block_until > allowed_at then allowed_at = block_until end
      local actions_left, reset_in
      for w = 1, window_count do
        local interval, max = intervals[w], maxes[w]
        local earlier, moment = max - recorded, at -- of the actions that the window may hold
        if earlier > size then
          earlier = size
        else
          -- The window is full until the max-th newest leaves.
          if earlier > 0 then moment = earlier == size and oldest or nth(earlier) end
          if moment + interval > allowed_at then allowed_at = moment + interval end
        end
        if is_full then
          local inside, outside, first_inside = 0, earlier + 1, at
          while outside - inside > 1 do
            local n = floor((inside + outside) / 2)
            moment = n == size and oldest or nth(n)
            if at - moment < interval then inside, first_inside = n, moment else outside = n end
          end
          local used = inside + recorded
          local remaining, reset = max - used, used > 0 and first_inside + interval - now or 0
          if not actions_left or remaining < actions_left then
            actions_left, reset_in = remaining, reset
          elseif remaining == actions_left and reset > reset_in then
            reset_in = reset
          end
          reply[first + 5 + 2 * w], reply[first + 6 + 2 * w] = used, reset
        end
      end
      -- Time is never taken as earlier than the newest action, so up to then there is no waiting.
      local wait = allowed_at > now and allowed_at > last and allowed_at - now or 0
      local time_left = blocked ~= 0 and wait or 0
      if is_full then
        reply[first], reply[first + 1], reply[first + 2] = blocked, time_left, actions_left
        reply[first + 3] = blocked ~= 0 and time_left or reset_in
        reply[first + 4], reply[first + 5], reply[first + 6] = wait, at, generation
      else
        reply[first] = time_left
      end
    else
      reply[first] = 0
    end

    if has_blocks then
      local of_block = block_until and block_until + longest_window - now or 0
      needed = ceil((server_time + (of_block > retention and of_block or retention)) / 1000000)
      expires = needed + SPARE_SECONDS
      expires_at = format('%d000', expires)
    end
    if recorded == 0 and not starts_block then
      if i == looked_after and call('PTTL', key) < 0 then
        call('PEXPIREAT', key, format('%d000', max_of(expires, lives_until)))
      end
    else
      local is_in_time = bytes and lives_until >= needed and i ~= looked_after
      if recorded == 1 and size == policy_capacity then
        displaced = blocked ~= 0 and at - oldest < retention and 1 or 0
      end
      local log = pack_bytes(header_layout, policy_form, displaced or 0, generation,
        is_in_time and lives_until or expires, recorded == 1 and at or newest,
        block_until or NONE, offences)
      if is_long and bytes then
        if recorded == 1 then
          -- In the place behind the newest, which is that of the oldest where the ring is full.
          call('SETRANGE', key, format('%d', begin_bytes + (head + count) % room * width),
            sub(bytes, NEWEST, NEWEST + width - 1))
          if count < room then count = count + 1 else head = (head + 1) % room end
        end
        call('SETRANGE', key, BEGIN, log .. pack_bytes(RING, count, head, room))
        if not is_in_time then call('PEXPIREAT', key, expires_at) end
      else
        if is_long then
          log = log .. pack_bytes(RING, 0, 0, policy_capacity - 1)
        elseif recorded == 0 then
          log = log .. sub(bytes, begin_bytes + 1)
        elseif bytes and policy_capacity > 1 then
          log = log .. sub(bytes, NEWEST, NEWEST + width - 1)
            .. sub(bytes, begin_bytes + 1, full_bytes - width)
        end
        if is_in_time then
          call('SET', key, log, 'KEEPTTL')
        elseif bytes then
          call('SET', key, log, 'PXAT', expires_at)
        elseif not call('SET', key, log, 'PXAT', expires_at, 'NX') then
          for place = first, first + reply_length - 1 do reply[place] = -1 end
        end
        if has_repeats and reply[first] >= 0 then written[key] = true end
      end
    end
    done = i
  end
  if done == key_count then return reply end
end

-- The third: anything else.

-- Writes a whole log; false if the key holds something else, which reading has not shown.
local function write(key, bytes, exists)
  if exists then
    redis.call('SET', key, bytes, 'PXAT', expires_at)
  elseif not redis.call('SET', key, bytes, 'PXAT', expires_at, 'NX') then
    return false
  end
  written[key] = true
  return true
end

local capacity, most_stamps, policy_form
local function set_capacity(actions)
  capacity, most_stamps = actions, math.min(actions - 1, MOST_STAMPS)
  is_short_policy = most_stamps <= MOST_STAMPS_OF_SHORT
  policy_form = (is_short_policy and SHORT or LONG) + (has_blocks and WITH_BLOCK or 0)
    + policy_width
end
set_capacity(policy_capacity)
local policy_header_bytes = HEADER_BYTES + (has_blocks and BLOCK_BYTES or 0)

-- The log at hand: `count` stamps besides `newest`, which is nil while there is no action. A long
-- log has all its bytes at hand only after load(); its stamps stand in a ring of `room`, the oldest
-- at `head`. In an attempt these tell of the log as it was; `block_until` and `offences` as it is.
local key, bytes, exists, is_long, known, form, header_bytes, block_until, offences
local width, range, stamp_format, displaced, generation, lives_until, newest, count, head, room

local function repair_ttl(i)
  if i == looked_after and redis.call('PTTL', keys[i]) < 0 then
    redis.call('PEXPIREAT', keys[i], format('%d000', max_of(expires, lives_until or 0)))
  end
end

local function set_width(bytes_per_stamp)
  if width == bytes_per_stamp then return end
  width, range, stamp_format = bytes_per_stamp, 256 ^ bytes_per_stamp, '<I' .. bytes_per_stamp
end

-- The log of an id that has done nothing.
local function open_new()
  bytes, exists, is_long, form, header_bytes = '', false, not is_short_policy, 0, 0
  block_until, offences = nil, 0
  displaced, generation, newest, count, head, room = 0, 0, nil, 0, 0, most_stamps
  set_width(policy_width)
end

-- Whether it is a state that frame.lua has written: an integer, or of how many bytes and with which
-- moments.
local function is_of_another_algorithm(whole)
  local other_form = string.byte(whole)
  if #whole == 20 and string.find(whole, '^%-[1-8]%d*$') then return true end
  if other_form < 0xB0 or other_form >= 0xC0 then return false end
  if other_form < 0xB8 then return #whole >= 12 and #whole <= 20 end
  if #whole <= 27 then return false end
  local _, windows, _, _, last, block = unpack_bytes('<BI2BI7i8i8', whole)
  return windows > 0 and (#whole - 27) % windows == 0
    and (last == NONE or math.abs(last) <= LATEST)
    and (block == NONE or math.abs(block) <= 2 * LATEST)
end

-- Takes the log from its first bytes, which are all of a short one; false if they are none.
local function open(first_bytes)
  if is_of_another_algorithm(first_bytes) then
    open_new()
    exists = true
    return true
  end
  if #first_bytes < HEADER_BYTES then return false end
  form, displaced, generation, lives_until, newest = unpack_bytes(HEADER, first_bytes)
  if form < SHORT or form >= END_OF_FORMS then return false end
  is_long = form >= LONG
  local has_block, bytes_per_stamp = form % 16 >= WITH_BLOCK, form % WITH_BLOCK
  if bytes_per_stamp < 4 then return false end
  block_until, offences, header_bytes = nil, 0, HEADER_BYTES
  if has_block then
    header_bytes = HEADER_BYTES + BLOCK_BYTES
    if #first_bytes < header_bytes then return false end
    block_until, offences = unpack_bytes('<' .. BLOCK, first_bytes, HEADER_BYTES + 1)
    if block_until ~= NONE and math.abs(block_until) > 2 * LATEST then return false end
    if block_until == NONE or not has_blocks then block_until, offences = nil, 0 end
  end
  if has_block and newest == NONE then newest = nil end
  -- A text of somebody's may begin like a log, and would stand for a day that never comes.
  if displaced > 1 or (newest and math.abs(newest) > LATEST) then return false end
  set_width(bytes_per_stamp)
  exists, bytes, known = true, first_bytes, {}
  if not is_long then
    count = (#first_bytes - header_bytes) / width
    return count % 1 == 0
  end
  if #first_bytes < header_bytes + RING_BYTES then return false end
  count, head, room = unpack_bytes(RING, first_bytes, header_bytes + 1)
  if count > room or head > room then return false end
  local ring = #first_bytes - header_bytes - RING_BYTES
  if ring == 0 and count > 0 then
    bytes = nil
    return true
  end
  return ring >= math.min(head + count, room) * width
end

-- Gets all bytes of the log at hand.
local function load()
  if not bytes then bytes = redis.call('GET', key) end
end

local function size() return newest and count + 1 or 0 end

-- The bytes of stamps from a place in the ring on.
local function ring_bytes(first, stamps)
  local from = header_bytes + RING_BYTES + first * width
  if bytes then return sub(bytes, from + 1, from + stamps * width) end
  return redis.call('GETRANGE', key,
    format('%d', from), format('%d', from + stamps * width - 1))
end

-- The time of the n-th newest action, 1 <= n <= size().
local function nth(n)
  if n == 1 then return newest end
  if not is_long then
    local stamp = unpack_bytes(stamp_format, bytes, header_bytes + (n - 2) * width + 1)
    return newest - (newest - stamp) % range
  end
  local moment = known[n]
  if not moment then
    local stamp = unpack_bytes(stamp_format, ring_bytes((head + count + 1 - n) % room, 1))
    moment = newest - (newest - stamp) % range
    known[n] = moment
  end
  return moment
end

-- How many of the newest actions are less than `duration` before `at`, `most` at most.
local function count_inside(duration, most, at)
  local inside, outside = 0, math.min(size(), most) + 1
  while outside - inside > 1 do
    local n = math.floor((inside + outside) / 2)
    if at - nth(n) < duration then inside = n else outside = n end
  end
  return inside
end

-- The times of the newest `actions` actions, from newest to oldest.
local function newest_times(actions)
  load()
  local times = {}
  for n = 1, actions do times[n] = nth(n) end
  return times
end

-- The header of the log as it is to be written, its newest action at `at`.
local function header_of(at)
  local header = pack_bytes(HEADER, policy_form, displaced, generation, expires, at or NONE)
  if not has_blocks then return header end
  return header .. pack_bytes('<' .. BLOCK, block_until or NONE, offences)
end

-- The bytes of a whole log, in the form that suits the policy: `actions` at `at`, and before them
-- those of these times, from newest to oldest.
local function log_of(at, actions, older)
  set_width(policy_width)
  local same = actions > 1 and string.rep(pack_bytes(stamp_format, at % range), actions - 1) or ''
  local stamps = {}
  for n = 1, #older do
    local place = is_short_policy and n or #older - n + 1
    stamps[place] = pack_bytes(stamp_format, older[n] % range)
  end
  local header = header_of(at)
  if is_short_policy then return header .. same .. table.concat(stamps) end
  local ring = pack_bytes(RING, #older + actions - 1, 0, most_stamps)
  return header .. ring .. table.concat(stamps) .. same
end

-- Whether recording `cost` refusals at `at` pushes out what may be inside of a window.
local function displaces(at)
  local pushed_out = math.min(size() + cost - capacity, size())
  return pushed_out > 0 and at - nth(size() - pushed_out + 1) < retention
end

local function write_ring(first, stamps)
  if stamps == '' then return end
  redis.call('SETRANGE', key, format('%d', header_bytes + RING_BYTES + first * width), stamps)
end

-- Records `cost` actions at `at` in a long log that stays where it is.
local function record_in_ring(at)
  local at_stamp = pack_bytes(stamp_format, at % range)
  local stamps = pack_bytes(stamp_format, newest % range)
    .. string.rep(at_stamp, math.min(cost - 1, room))
  stamps = sub(stamps, -room * width)
  local added = #stamps / width
  local first = (head + count) % room
  local up_to_end = math.min(added, room - first)
  write_ring(first, sub(stamps, 1, up_to_end * width))
  write_ring(0, sub(stamps, up_to_end * width + 1))
  local overwritten = math.max(0, count + added - room)
  head, count, newest = (head + overwritten) % room, count + added - overwritten, at
  redis.call('SETRANGE', key, BEGIN, header_of(newest) .. pack_bytes(RING, count, head, room))
  redis.call('PEXPIREAT', key, expires_at)
end

-- Records `cost` actions at `at` in the log at hand; false if the key holds something else.
local function record(at, is_blocked)
  local kept = size()
  -- What a stamp could not tell apart any more is outside of every window.
  if newest and at - nth(kept) >= math.min(range, policy_range) then
    kept, displaced = count_inside(retention, kept, at), 0
  end
  if kept + cost > capacity then displaced = is_blocked and displaces(at) and 1 or 0 end
  local fits = form == policy_form and newest and kept == size()
  if fits and is_long and room == most_stamps then
    record_in_ring(at)
    return true
  end
  local log
  if fits and not is_long and cost == 1 then
    log = header_of(at)
    if most_stamps > 0 then
      log = log .. sub(bytes, NEWEST, NEWEST + width - 1)
        .. sub(bytes, header_bytes + 1, header_bytes + (most_stamps - 1) * width)
    end
  else
    local older = newest_times(math.max(0, math.min(kept, capacity - cost)))
    -- Where the limit was lowered, the log is cut as by refusals.
    if kept > capacity then displaced = 1 end
    log = log_of(at, math.min(cost, capacity), older)
  end
  return write(key, log, exists)
end

-- The log of these times, from newest to oldest, as far as this policy has room for them. Under
-- other limits it may have become longer.
local function log_of_times(times)
  if #times > capacity then displaced = 1 end
  local kept = math.min(#times, capacity)
  while kept > 1 and times[1] - times[kept] >= policy_range do kept = kept - 1 end
  for place = #times, kept + 1, -1 do times[place] = nil end
  return log_of(table.remove(times, 1), 1, times)
end

-- Writes a block that has begun, where nothing is recorded.
local function write_block()
  if form ~= policy_form then
    local log = log_of_times(newest_times(size()))
    redis.call('SET', key, log, 'PXAT', expires_at)
    written[key] = true
  elseif is_long then
    redis.call('SETRANGE', key, BEGIN, header_of(newest))
    redis.call('PEXPIREAT', key, expires_at)
  else
    write(key, header_of(newest) .. sub(bytes, header_bytes + 1), true)
  end
end

-- The key is to live as long as the log and the block matter.
local function retain()
  local of_block = block_until and block_until + longest_window - now or 0
  expires = ceil((server_time + math.max(retention, of_block)) / 1000000) + SPARE_SECONDS
  expires_at = format('%d000', expires)
end

local function start_block(at)
  if block_until and at >= block_until + longest_window then offences = 0 end
  offences = math.min(offences + 1, #lengths)
  block_until = at + lengths[offences]
end

-- The n-th newest action once `recorded` more are recorded at `at`.
local function nth_after(n, at, recorded)
  if n <= recorded then return at end
  return nth(n - recorded)
end

-- How long from `now` until an attempt of cost `places` passes, once `recorded` actions more are
-- recorded at `at`.
local function wait_for(places, at, recorded)
  local total = size() + recorded
  local last, allowed_at = now, now
  if total > 0 then
    last = nth_after(1, at, recorded)
    if places > 0 then allowed_at = last + min_difference end
  end
  for i = 1, window_count do
    local n = maxes[i] - places + 1
    if places > 0 and total >= n then
      local leaves_at = nth_after(n, at, recorded) + intervals[i]
      if leaves_at > allowed_at then allowed_at = leaves_at end
    end
  end
  if block_until and block_until > allowed_at then allowed_at = block_until end
  -- Time is never taken as earlier than the newest action, so up to then there is no waiting.
  if allowed_at <= now or allowed_at <= last then return 0 end
  return allowed_at - now
end

-- Writes a full reply from place `first` on.
local function describe(first, blocked, time_left, at, recorded)
  local actions_left, reset_in
  for i = 1, window_count do
    local counted = math.min(recorded, maxes[i])
    local used = counted + count_inside(intervals[i], maxes[i] - counted, at)
    local window_reset = 0
    if used > 0 then window_reset = nth_after(used, at, recorded) + intervals[i] - now end
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
  reply[first + 4] = wait_for(1, at, recorded)
  reply[first + 5], reply[first + 6] = at, generation
end

-- Gets the bytes that a log begins with, by redis.call or redis.pcall.
local function first_bytes_by(call_or_pcall)
  if is_short_policy then return call_or_pcall('GET', key) end
  return call_or_pcall('GETRANGE', key,
    BEGIN, format('%d', policy_header_bytes + RING_BYTES - 1))
end

-- Opens the log at `key`, of which MGET has shown `whole`; false if there is something else.
local function open_key(whole)
  if keeps then set_capacity(policy_capacity) end
  local first_bytes = not keeps and not written[key] and whole or nil
  if first_bytes == nil then first_bytes = first_bytes_by(redis.pcall) end
  if type(first_bytes) == 'table' then
    if not string.find(first_bytes.err, '^WRONGTYPE') then first_bytes_by(redis.call) end -- raises
    return false
  end
  if not first_bytes or first_bytes == '' then
    open_new()
    return true
  end
  if not is_short_policy then
    -- Only of a long log with such a header are these the bytes to begin with.
    local first = string.byte(first_bytes)
    local is_like_policy = first >= LONG and first < END_OF_FORMS
      and (first % 16 >= WITH_BLOCK) == has_blocks
    if not is_like_policy then first_bytes = redis.call('GET', key) end
  end
  if not open(first_bytes) then return false end
  if keeps then set_capacity(math.max(policy_capacity, size())) end
  return true
end

-- Takes back `cost` actions at `at`; tells whether there was any.
local function refund(at)
  -- Times never ascend with n: skip the later ones by halves, then take the equal ones.
  local later, n = 0, size() + 1
  while n - later > 1 do
    local middle = math.floor((later + n) / 2)
    if nth(middle) > at then later = middle else n = middle end
  end
  local removed = 0
  while removed < cost and n + removed <= size() and nth(n + removed) == at do
    removed = removed + 1
  end
  if removed == 0 then return 0 end
  local oldest = nth(size())
  -- The places that become free would belong to what refusals have pushed out.
  local keeps_places = displaced == 1 and newest - oldest < retention
  displaced = keeps_places and 1 or 0
  local times = newest_times(size())
  for _ = 1, removed do
    table.remove(times, n)
    if keeps_places then times[#times + 1] = oldest end
  end
  if #times == 0 and not block_until then
    redis.call('DEL', key)
  else
    retain()
    redis.call('SET', key, log_of_times(times), 'PXAT', expires_at)
  end
  return 1
end

if operation == 'refund' then
  key = keys[1]
  if not open_key() then return { -1 } end
  local at, of = string.match(detail, '(.*),(.*)')
  if not exists or generation ~= of + 0 then return { 0 } end
  load()
  return { refund(at + 0) }
end

if is_attempt and is_short_policy and not read and not keeps then
  read = redis.call('MGET', unpack(keys))
end
for i = done + 1, key_count do
  local first = (i - 1) * reply_length + 1
  key = keys[i]
  if open_key(read and read[i]) then
    local at, by_count, by_min_difference, by_block = now, 0, 0, 0
    if newest and newest > now then at = newest end
    if block_until and at < block_until then
      by_block = 4
    elseif newest then
      if cost > 0 and at - newest < min_difference then by_min_difference = 2 end
      for w = 1, window_count do
        local n = maxes[w] - cost + 1
        if cost > 0 and size() >= n and at - nth(n) < intervals[w] then by_count = 1 end
      end
    elseif is_attempt then
      generation = server_time % GENERATIONS
    end
    local blocked = by_count + by_min_difference + by_block
    local recorded = (blocked == 0 or (count_blocked and by_block == 0)) and cost or 0
    local starts_block = has_blocks and blocked ~= 0 and by_block == 0
    if starts_block then start_block(at) end
    local time_left = blocked == 0 and 0 or wait_for(cost, at, recorded)
    if is_full then
      describe(first, blocked, time_left, at, recorded)
    else
      reply[first] = time_left
    end
    if is_attempt then
      if has_blocks then retain() end
      if recorded == 0 and starts_block then
        write_block()
      elseif recorded == 0 then
        repair_ttl(i)
      elseif not record(at, blocked ~= 0) then
        reply[first] = -1
      end
    end
  else
    for place = first, first + reply_length - 1 do reply[place] = -1 end
  end
end
return reply
