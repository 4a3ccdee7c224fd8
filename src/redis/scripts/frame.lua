-- The frame of every script. scripts/embed-scripts.mjs puts a script together: it replaces a line
-- INCLUDE by another file, and a line PLACE by the part of that name in the algorithm's own file,
-- or by nothing. They are inline code: each call of a script creates its functions again, which
-- takes the longer the more outer variables these use.
--
-- KEYS     one state each, all under one policy, judged in their order. An attempt must say whether
--          keys repeat: otherwise it may judge a key by a state that it has overwritten.
-- ARGV[1]  'attempt', 'peek' or 'refund'; 'attempt, keys repeat'
-- ARGV[2]  attempt, peek: 'brief' or 'full', the size of the reply
--          refund: the moment and the generation that the attempt got, separated by a comma
-- ARGV[3]  the time in us; '' for the server's own
-- ARGV[4]  cost, an integer from 1 to the smallest max. A peek with 0 reports what is used, and how
--          long the next action has to wait
-- ARGV[5]  '1' if blocked attempts count as actions, else '0'
-- ARGV[6]  minDifference in us
-- ARGV[7]  blockFor: the lengths of the first block, the second and so on in us, separated by
--          commas; '' for no blocks
-- ARGV[8]  interval of the first window in us, ARGV[9] its max; likewise for each further window
-- last     a log may get 'keep' and a number: it has room for at least so many actions, and one
--          that has grown longer stays as long as it is
--
-- Reply    integers, the same number of them for each key; durations in us from the given time on
--   brief   time left: 0 when allowed
--   full    why it is blocked (bits: 1 count, 2 minDifference, 4 block), time left, actions left,
--           reset in, wait until a next action, the moment of the action, generation; then for
--           each window how much of it is used and its own reset in
--   refund  1 if there was anything to take back, else 0
--   If a key holds something that is no state, its first integer is -1 and nothing is changed.
--
-- A state is one string. Its first byte is the form, which no UTF-8 text begins with.
--   bytes    form, generation, and the newest action's moment; with blockFor, the end of the newest
--            block and which offence it was for; then what the algorithm keeps
--   integer  the simplest case of some algorithms by the server's clock: '-' and 19 digits. Redis
--            stores it in place of a pointer, so the value needs no memory of its own.
-- The generation changes when an id starts from zero, so a refund after that takes nothing.

local HEADER, HEADER_BYTES = '<BI4i8', 13 -- form, generation, newest
local BLOCK, BLOCK_BYTES = '<i8B', 9 -- block until, offences
local WITH_BLOCK = 8 -- in the form
local FIRST_FORM, END_OF_FORMS = 0x80, 0xB0
local GENERATIONS = 2 ^ 32
local NONE = -2 ^ 62 -- in place of a moment that does not exist; before all others
local LATEST = 2 ^ 53 -- given times are exact numbers: -LATEST to LATEST

local ceil, floor, min, max_of = math.ceil, math.floor, math.min, math.max
local pack_bytes, unpack_bytes = struct.pack, struct.unpack
local sub = string.sub -- luacheck: ignore 211
local call, format = redis.call, string.format

-- `interval` and `max` are those of the first window.
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

-- Somebody may have removed a key's time to live. A write sets it. If nothing is written, one key
-- of each call is checked, each in its turn.
local looked_after = server_time and server_time % key_count + 1

-- The algorithm's constants. May set where reading ends at first in states of a form from `parted`
-- on; otherwise states are read whole. May set is_common to false, where one_window would not do.
local last_of_first, parted = nil, END_OF_FORMS -- luacheck: ignore 311
local is_common = is_attempt and min_difference == '0' and block_lengths == '' and not further
-- PLACE: FIRST

-- A key lives a second longer than its state matters. Redis has to turn a length of life into an
-- end for its replicas, so an end is cheaper.
local base_of_ends = server_time and server_time / 1000 + 1000 -- in ms; '%d' rounds down
local ends_at, of_lifetime

-- The states of an attempt are read at once; if keys repeat, `written` has what was written since.
local read, written = nil, {}
if is_attempt and not last_of_first then
  read = key_count == 1 and { redis.pcall('GET', keys[1]) } or call('MGET', unpack(keys))
end
-- Brief answers replace what was read, because another table would have to grow several times.
local reply = not is_full and read or {}
local done = 0 -- how many keys are judged
local unjudged -- the bytes of the next one, if they were read

-- INCLUDE: one_window
-- INCLUDE: any_policy
return reply
