-- The frame of every script. scripts/embed-scripts.mjs puts a script together: it replaces a line
-- INCLUDE by another file, and a line PLACE by the part of that name in the algorithm's own file,
-- or by nothing. They are inline code: each call of a script creates its functions again, which
-- takes the longer the more outer variables these use.
--
-- KEYS     one state each, judged in their order
-- ARGV[1]  how they are read: 'together' if they differ; 'together, keys repeat'; 'apart', as
--          peeks, what settles, and logs that may be long must be
-- ARGV[2]  and each further one: a group of keys under one policy, as little-endian doubles. They
--          are one word, because Redis takes longer to receive a word than the script to read it:
--   keys            how many of them
--   operation       0 peek, 1 attempt, 2 attempt whose refusal leaves no trace, 3 settle: replace
--                   the cost of an attempt by what it came to, which is 0 without amounts; 4 block
--                   the id, whatever the policy
--   is_full         1 for a full reply, 0 for a brief one
--   time            in us; -2^62 for the server's own
--   cost            an integer from 1 to the smallest max; a larger one, which fitted earlier
--                   limits, is refused. A peek with 0 reports what is used, and
--                   how long the next action has to wait. -1 if each key has an amount: a cost;
--                   -2 if it has amounts, of a limiter with named windows: a cost for each window.
--                   To settle, then what it came to, or each of them. A window with cost 0 is not
--                   asked. 0 to block
--   settled_at      settle: the moment and the generation that the attempt got. Block: for how long
--   settled_of      from now on, in us, where the later end counts; 0 ends a block. Else 0
--   count_blocked   1 if blocked attempts count as actions, else 0
--   min_difference  in us
--   keep            not 0 if the max differs between calls: for how many actions a log has room at
--                   least, and one that has grown longer stays as long as it is. 0: for its largest
--                   max
--   blocks          how many lengths of blocks there are
--   interval, max   of the first window, in us
--   further         interval and max of each further window; the lengths of the first block, the
--                   second and so on in us; the amounts of the first key, the second and so on
--
-- Reply    integers, in a group the same number of them for each key; durations in us from the
--          given time on
--   brief   time left: 0 when allowed
--   full    why it is blocked (bits: 1 count, 2 minDifference, 4 block), time left, actions left,
--           reset in, wait until a next action, the moment of the action, generation; then for
--           each window how much of it is used and its own reset in. What is used may be above
--           the max
--   settle  1 if anything was left of the attempt, else 0
--   block   1
--   If a key holds something that is no state, its first integer is -1 and nothing is changed.
--
-- A state is one string. Its first byte is the form, which no UTF-8 text begins with.
--   bytes    form, generation, and the newest action's moment; with blockFor, or while the id is
--            blocked, the end of the newest block and which offence it was for, 0 if a call blocks
--            the id; then what the algorithm keeps. Where there are both, TWO_BLOCKS and 0 stand
--            before that of blockFor, and the end of the other after it
--   integer  the simplest case of some algorithms by the server's clock: '-' and 19 digits. Redis
--            stores it in place of a pointer, so the value needs no memory of its own.
-- The generation changes when an id starts from zero: no attempt from before can be settled.

local HEADER, HEADER_BYTES = '<BI4i8', 13 -- form, generation, newest
local BLOCK, BLOCK_BYTES = '<i8B', 9 -- block until, offences
local WITH_BLOCK = 8 -- in the form
local TWO_BLOCKS, TWO_LAYOUT, TWO_BYTES = -2 ^ 61, '<i8Bi8Bi8', 26
local FIRST_FORM, END_OF_FORMS = 0x80, 0xB0
local GENERATIONS = 2 ^ 32
local NONE = -2 ^ 62 -- in place of a moment that does not exist; before all others
local LATEST = 2 ^ 53 -- given times are exact numbers: -LATEST to LATEST

local ceil, floor, min, max_of = math.ceil, math.floor, math.min, math.max
local pack_bytes, unpack_bytes = struct.pack, struct.unpack
local sub = string.sub -- luacheck: ignore 211
local call, try, format = redis.call, redis.pcall, string.format
local keys, words = KEYS, ARGV

local GROUP, GROUP_BYTES = '<ddddddddddddd', 13 * 8
local ATTEMPT, ATTEMPT_IF_ALLOWED, SETTLE, SET_BLOCK = 1, 2, 3, 4
local ONE_AMOUNT, AMOUNTS = -1, -2 -- in place of a cost

local has_repeats = words[1] == 'together, keys repeat'
local server_time
local reply = {}

-- If keys repeat, `written` has what was written since they were read.
local read_together, written = nil, {}
if words[1] ~= 'apart' then
  read_together = keys[2] and call('MGET', unpack(keys)) or { try('GET', keys[1]) }
end

-- Judges the keys from `first_key` on that belong to the group `word`. Adds to the `replied`
-- integers of the reply, and returns how many they are then and the next key, or nil and an error
-- reply.
local function judge(first_key, word, replied)
  -- `interval` and `max` are those of the first window.
  local key_count, operation, is_full, time, cost, settled_at, settled_of, count_blocked,
    min_difference, keep, block_count, interval, max = -- luacheck: ignore 211
    unpack_bytes(GROUP, word)
  local last_key = first_key + key_count - 1
  local is_attempt = operation == ATTEMPT or operation == ATTEMPT_IF_ALLOWED
  is_full = is_full == 1
  local counts_refusals = count_blocked == 1
  count_blocked = counts_refusals and operation ~= ATTEMPT_IF_ALLOWED
  -- What another max allowed is no overdraft.
  local hides_overdraft = keep > 0 -- luacheck: ignore 211
  local has_own_time = time == NONE
  if not server_time and (operation > 0 or has_own_time) then
    local seconds_and_micros = call('TIME')
    server_time = seconds_and_micros[1] * 1000000 + seconds_and_micros[2]
  end
  local now = has_own_time and server_time or time

  local window_count, further, amount_count = 1, nil, 0
  if #word > GROUP_BYTES then
    local further_count = (#word - GROUP_BYTES) / 8
    if cost == ONE_AMOUNT then
      amount_count = operation == SETTLE and 2 or 1
      further_count = further_count - key_count * amount_count
    elseif cost == AMOUNTS then
      local of_window = operation == SETTLE and 2 or 1
      amount_count = of_window * (further_count - block_count + 2) / (of_window * key_count + 2)
      further_count = further_count - key_count * amount_count
    end
    window_count = 1 + (further_count - block_count) / 2
    if further_count > 0 then
      further = { unpack_bytes('<' .. string.rep('d', further_count), word, GROUP_BYTES + 1) }
    end
  end

  -- Somebody may have removed a key's time to live. A write sets it. If nothing is written, one key
  -- of each call is checked, each in its turn.
  local looked_after = server_time and server_time % #keys + 1

  -- The algorithm's constants. May set where reading ends at first in states of a form from
  -- `parted` on; otherwise states are read whole. May set is_common to false, where one_window
  -- would not do.
  local last_of_first, parted = nil, END_OF_FORMS -- luacheck: ignore 311
  local is_common = is_attempt and min_difference == 0 and not further
    and (cost == ONE_AMOUNT or cost > 0 and cost <= max)
  -- PLACE: FIRST
  local end_of_first = last_of_first and format('%d', last_of_first) -- luacheck: ignore 211

  -- A key lives a second longer than its state matters. Redis has to turn a length of life into an
  -- end for its replicas, so an end is cheaper.
  local base_of_ends = server_time and server_time / 1000 + 1000 -- in ms; '%d' rounds down
  local ends_at, of_lifetime

  local read = not last_of_first and read_together
  local is_only = first_key == 1 and last_key == #keys
  -- Brief answers replace what was read, because another table would have to grow several times.
  if read and not is_full and is_only then reply = read end
  local done = first_key - 1 -- the last key that is judged
  local unjudged -- the bytes of the next one, if they were read

  -- INCLUDE: one_window
  -- PLACE: COMMON WITH COSTS
  -- INCLUDE: any_policy
end

local replied, key = 0, 1
for i = 2, #words do
  local next_key
  replied, next_key = judge(key, words[i], replied)
  if not replied then return next_key end
  key = next_key
end
return reply
