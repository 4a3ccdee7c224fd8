-- The frame of every script. scripts/embed-scripts.mjs assembles a script: it replaces a line
-- INCLUDE by that file, and a line PLACE by the part of that name in the algorithm's file, or by
-- nothing. So all parts are inline code and share their locals: docs/design/scripts.md lists who
-- reads and sets which. They are no functions, because every call of a script creates its functions
-- again, and one takes longer to create the more outer locals it uses.
--
-- KEYS     the keys of the states, judged in this order
-- ARGV[1]  how states are read:
--   'together'               with one MGET: no key occurs twice
--   'together, keys repeat'  the same, and what the script has written is remembered
--   'apart'                  key by key: peeks, operations from 3 on, and logs that may be long
-- ARGV[2]  and each further one: a group of keys under one policy, as little-endian doubles. They
--          are one word, because Redis takes longer to receive a word than the script to read it.
--          A group has, in this order:
--   key_count       how many keys it has: those that follow the keys of the group before
--   operation       0 peek; 1 attempt; 2 attempt whose refusal leaves no trace; 3 settle: replace
--                   the cost of an attempt by its actual cost; 4 block the id, under any policy;
--                   5 record: like an attempt that nothing refuses; 6 lease: see leases.lua
--   is_full         1 for a full reply, 0 for a brief one
--   time            in us; -2^62 for the server's own
--   cost            see below
--   settled_at      settle: the moment of the attempt, from its reply. Block: for how long from now
--                   on, in us, where the later end counts; 0 ends a block. Lease: how many amounts
--                   each key has. Else 0
--   settled_of      settle: the generation, from the same reply. Else 0
--   count_blocked   1 if blocked attempts count as actions, else 0
--   min_difference  in us
--   keep            0 if the call has no limits of its own. Else the largest max of its limiter
--   window_count    how many windows there are
--   block_count     how many lengths of blocks there are
--   interval, max   of the first window, in us, with the limit of the call, which may be 0. Of a
--                   calendar window, `interval` is negative: how long it is at most
--   further         interval and max of each further window; then the lengths of blocks in us, that
--                   of the first offence first; then 7 numbers for each calendar window: ordinal
--                   and start of the window before that of the time of the call, of this one and
--                   of the next one, and the end of the next one, but not to settle or block; then
--                   the amounts of each key
--
-- Costs are integers of 0 or more. A group has one cost for all its keys, or amounts for each key:
--
--   cost           limiter           amounts of a key     amounts of a key
--                                    to peek, attempt     to settle
--   0 or more      without names     none                 none: the actual cost is 0
--   -1 ONE_AMOUNT  without names     cost                 cost, actual cost
--   -2 AMOUNTS     of named windows  a cost per window    a cost per window, then actual ones
--
--   A cost of 0 asks a window nothing: a peek with it reports what is used, and how long the next
--   action has to wait. A cost above max is refused and leaves no trace. A block has cost 0 and no
--   amounts. A reply to operation 5 is that of such a peek afterwards.
--
-- Reply    integers, the same number for each key of a group; durations in us from `time` on
--   brief   time left: 0 when allowed
--   full    why it is blocked (bits: 1 count, 2 minDifference, 4 block; 9: the cost is above a max,
--           so it never passes, and time left says nothing), time left, actions left,
--           reset in, wait until a next action, the moment of the action, generation; then for
--           each window how much of it is used and its own reset in. What is used may be above
--           the max
--   settle  1 if anything was left of the attempt, else 0
--   block   1
--   If a key holds something that is no state, its integers are -1, and it is not changed. They are
--   -2 if the time is outside of the windows of a calendar: nothing is recorded.
--
-- A state is one string. Its first byte is the form, which no UTF-8 text begins with.
--   bytes    the header: form, generation, moment of the newest action. Then the block, if the form
--            says so: its end, and the number of its offence, which is 0 for a block by a call. Of
--            two blocks: TWO_BLOCKS and 0, end and offence of the one by blockFor, the end of the
--            one by a call. A policy with blockFor always has a block there. Then what the
--            algorithm keeps
--   integer  the simplest case of fixed windows by the server's clock: '-' and 19 digits. Redis
--            stores it in place of a pointer, so the value needs no memory of its own. Earlier
--            releases wrote integers for gcra, too.
-- The generation changes when an id starts from zero: no attempt from before can be settled.

local HEADER, HEADER_BYTES = '<BI4i8', 13 -- form, generation, newest
local BLOCK, BLOCK_BYTES = '<i8B', 9 -- block until, offences
local WITH_BLOCK = 8 -- in the form
local TWO_BLOCKS, TWO_LAYOUT, TWO_BYTES = -2 ^ 61, '<i8Bi8Bi8', 26
local FIRST_FORM, END_OF_FORMS = 0x80, 0xC0
local GENERATIONS = 2 ^ 32
local NONE = -2 ^ 62 -- in place of a moment that does not exist; before all moments
local LATEST = 2 ^ 53 -- given times are exact numbers: -LATEST to LATEST

local ceil, floor, min, max_of = math.ceil, math.floor, math.min, math.max
local pack_bytes, unpack_bytes = struct.pack, struct.unpack
local sub = string.sub -- luacheck: ignore 211
local call, try, format = redis.call, redis.pcall, string.format
local keys, words = KEYS, ARGV

local GROUP, GROUP_BYTES = '<dddddddddddddd', 14 * 8
local ATTEMPT, ATTEMPT_IF_ALLOWED, SETTLE, SET_BLOCK, RECORD, LEASE = 1, 2, 3, 4, 5, 6
local ONE_AMOUNT, AMOUNTS = -1, -2 -- in place of a cost
local COST_OF_LEASE = 7 -- among the amounts of a call about leases
local NEVER = 9 -- why an attempt is blocked

local has_repeats = words[1] == 'together, keys repeat'
local server_time
local reply = {}

-- If keys repeat, `written` has the states that were written since `read_together`, by key.
local read_together, written = nil, {}
if words[1] ~= 'apart' then
  read_together = keys[2] and call('MGET', unpack(keys)) or { try('GET', keys[1]) }
end

-- Judges the group `word`, whose keys begin with the one at `first_key`. The reply has `replied`
-- integers and gets more. Returns how many it has then, and the place of the next key; or nil and
-- an error reply.
local function judge(first_key, word, replied)
  -- luacheck: ignore 211
  local key_count, operation, is_full, time, cost, settled_at, settled_of, count_blocked,
    min_difference, keep, window_count, block_count, interval, max =
    unpack_bytes(GROUP, word)
  local last_key = first_key + key_count - 1
  local is_attempt = operation == ATTEMPT or operation == ATTEMPT_IF_ALLOWED
  is_full = is_full == 1
  local counts_refusals = count_blocked == 1
  count_blocked = counts_refusals and operation ~= ATTEMPT_IF_ALLOWED
  local has_own_time = time == NONE
  if not server_time and (operation > 0 or has_own_time) then
    local seconds_and_micros = call('TIME')
    server_time = seconds_and_micros[1] * 1000000 + seconds_and_micros[2]
  end
  local now = has_own_time and server_time or time

  local further, amount_count = nil, 0
  if #word > GROUP_BYTES then
    if operation == LEASE then
      amount_count = settled_at
    elseif cost < 0 then
      amount_count = (operation == SETTLE and 2 or 1) * (cost == AMOUNTS and window_count or 1)
    end
    local further_count = (#word - GROUP_BYTES) / 8 - key_count * amount_count
    if further_count > 0 then
      further = { unpack_bytes('<' .. string.rep('d', further_count), word, GROUP_BYTES + 1) }
    end
  end

  -- A user may have removed a key's expiry (PERSIST). A write sets it again. One key of each call,
  -- another each time, gets its expiry checked even if nothing is written.
  local looked_after = server_time and server_time % #keys + 1

  local hides_overdraft -- luacheck: ignore 221 -- whether a use above max is reported as max
  -- Sets the algorithm's constants. May set last_of_first: of states of a form from `parted` on,
  -- only the bytes up to this offset are read at first; others are read whole. May change
  -- is_common: whether one_window.lua can judge the group.
  local last_of_first, parted = nil, END_OF_FORMS
  local is_common = is_attempt and min_difference == 0 and not further
    and (cost == ONE_AMOUNT or cost > 0 and cost <= max)
  -- PLACE: FIRST
  local end_of_first = last_of_first and format('%d', last_of_first)

  -- A key lives a second longer than its state matters. Its expiry is set as a moment (PXAT),
  -- because Redis would have to turn a duration into one for its replicas.
  local base_of_ends = server_time and server_time / 1000 + 1000 -- in ms; '%d' rounds down
  local ends_at, of_lifetime -- the last expiry that was written, and for which lifetime it was

  local read = not last_of_first and read_together
  local is_only = first_key == 1 and last_key == #keys
  -- Brief answers replace the states that were read: a new table would have to grow several times.
  if read and not is_full and is_only then reply = read end
  local done = first_key - 1 -- the last key that is judged
  local unjudged -- the bytes of the next one, if they were read

  -- INCLUDE: one_window
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
