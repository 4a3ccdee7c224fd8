-- Slots: at most so many holders of an id at once. docs/design/remote-stores.md has the protocol.
--
-- KEYS     the keys of the ids
-- ARGV[1]  'renew' or 'release', for many tokens of one process; else, for a call about each key,
--          as in frame.lua
--
-- Calls about a key:
-- ARGV[2]  and each further one: a group of keys, as little-endian doubles, in this order
--   key_count      how many keys it has: those that follow the keys of the group before
--   high, low      of the process: 32 bits each
--   time           in us; -2^62 for the server's own
--   ttl            in ms
--   calls          of each key
--     operation    0 usage; 1 acquire; 2 release
--     number       of the token, 48 bits
--     cost, max    in units
-- Reply    for each key an integer; -1 if it holds something that is no state
--   usage    how many units are held
--   acquire  twice that, plus 1 if this token is one of them. It is once it is acquired, however
--            often that is asked for
--   release  1 if the token was there, else 0
--
-- Many tokens:
-- ARGV[2]  high and low of the process, a space between
-- ARGV[3]  ttl in ms
-- ARGV[4]  and each further one, for a key each: number and cost of its tokens, spaces between
-- Reply    the places of the tokens that were not there, from 0 on
--   renew    those that are there end later. No token is created
--   release  those that are there are removed
--
-- A state is a sorted set: the tokens that hold, with the ms since the epoch at which they end; and
-- an empty member, whose score is the number of their units, negative. So it comes first.

local TOKEN = '<I4I4I6I2' -- high, low, number, cost
local GROUP, CALL, CALL_BYTES = '<ddddd', '<dddd', 32
local GROUP_BYTES = 40
local ACQUIRE, RELEASE = 1, 2
local SERVER_TIME = -2 ^ 62
local GUARD = 1000 -- in ms: a holder stops to believe so much earlier
local KEPT = 1000 -- in ms: a key outlives its last token
local MOST_DROPPED = 1000 -- tokens at once
local UNITS = ''

local call, try = redis.call, redis.pcall
local keys, words = KEYS, ARGV
local pack_bytes, unpack_bytes, byte = struct.pack, struct.unpack, string.byte

local seconds_and_micros = call('TIME')
local server_time = seconds_and_micros[1] * 1000 + math.floor(seconds_and_micros[2] / 1000)
local reply, first_error = {}, nil

local function is_foreign(answer)
  return type(answer) == 'table' and answer.err and string.find(answer.err, '^WRONGTYPE')
end

local function take(key, units)
  if tonumber(call('ZINCRBY', key, units, UNITS)) >= 0 then call('DEL', key) end
end

-- Returns how many units they had.
local function remove(key, tokens)
  local units = 0
  for i = 1, #tokens do units = units + byte(tokens[i], 15) + 256 * byte(tokens[i], 16) end
  call('ZREM', key, unpack(tokens)) -- first, because a server without memory permits it
  take(key, units)
  return units
end

local operation = words[1]
if operation == 'renew' or operation == 'release' then
  local high, low = string.match(words[2], '(%d+) (%d+)')
  local lifetime = words[3] + GUARD
  local place = 0
  for i = 1, #keys do
    local key, tokens, known = keys[i], {}, {}
    for number, cost in string.gmatch(words[3 + i], '(%d+) (%d+)') do
      tokens[#tokens + 1] = pack_bytes(TOKEN, high, low, number, cost)
    end
    local ends = try('ZMSCORE', key, unpack(tokens))
    if ends.err and not is_foreign(ends) then return ends end
    for t = 1, #tokens do
      if not ends[t] then
        reply[#reply + 1] = place
      elseif operation == 'release' then
        known[#known + 1] = tokens[t]
      else
        known[#known + 1] = server_time + lifetime
        known[#known + 1] = tokens[t]
      end
      place = place + 1
    end
    if #known > 0 and operation == 'release' then
      remove(key, known)
    elseif #known > 0 then
      -- First, because a server without memory permits it.
      call('PEXPIREAT', key, server_time + math.max(lifetime + KEPT, call('PTTL', key)))
      call('ZADD', key, 'XX', 'GT', unpack(known))
    end
  end
  return reply
end

-- Calls of one kind about one key share reads and writes. `units` are those of the current key,
-- once they are read. Those that were `added` or `removed` are not written yet, but their tokens
-- are. Tokens are added by the command that writes units, so no error can come between.
local current, current_operation, units
local added, removed, lifetime = 0, 0, 0

local function write_units()
  if removed > 0 then
    take(current, removed)
  elseif added > 0 then
    call('ZADD', current, -units, UNITS)
    if call('PTTL', current) < lifetime then
      call('PEXPIREAT', current, server_time + lifetime)
    end
  end
  added, removed, lifetime = 0, 0, 0
end

-- Reads units; drops tokens that have ended: all, or so many that `cost` units fit under `max`.
-- Leaves them nil if the key holds something else; returns an error of another kind.
local function read_units(now, cost, max)
  local found = try('ZRANGEBYSCORE', current, '-inf', now, 'WITHSCORES', 'LIMIT', 0,
    MOST_DROPPED + 1)
  if found.err then return not is_foreign(found) and found end
  if found[1] ~= UNITS or tonumber(found[2]) >= 0 then
    if #found == 0 and call('EXISTS', current) == 0 then units = 0 end
    return
  end
  units = -found[2]
  local ended = {}
  for place = 3, #found, 2 do ended[#ended + 1] = found[place] end
  while #ended > 0 do
    units = units - remove(current, ended)
    if #ended < MOST_DROPPED or units + cost <= max then return end
    ended = call('ZRANGEBYSCORE', current, 0, now, 'LIMIT', 0, MOST_DROPPED)
  end
end

local first_key = 1
for w = 2, #words do
  local word = words[w]
  local key_count, high, low, time, ttl = unpack_bytes(GROUP, word)
  local now = time == SERVER_TIME and server_time or math.floor(time / 1000)
  for i = 0, key_count - 1 do
    local operation, number, cost, max = -- luacheck: ignore 421
      unpack_bytes(CALL, word, 1 + GROUP_BYTES + i * CALL_BYTES)
    local token = pack_bytes(TOKEN, high, low, number, cost)
    if keys[first_key + i] ~= current or operation ~= current_operation then
      write_units()
      current, current_operation, units = keys[first_key + i], operation, nil
    end
    local answer
    if operation == RELEASE then
      answer = try('ZREM', current, token)
      if is_foreign(answer) then
        answer = 0
      elseif answer == 1 then
        removed = removed + cost
      elseif answer ~= 0 then
        write_units()
        return answer
      end
    else
      if not units or units + cost > max then
        write_units()
        local failed = read_units(now, cost, max)
        if failed then return failed end
      end
      if not units or first_error then
        answer = -1
      elseif operation ~= ACQUIRE then
        answer = units
      elseif units + cost <= max then
        local count = try('ZADD', current, 'NX', now + ttl + GUARD, token)
        if count == 1 then
          units, added = units + cost, added + cost
          lifetime = math.max(lifetime, ttl + GUARD + KEPT)
        end
        -- A server without memory: what follows is still released, and nothing more acquired.
        if type(count) == 'table' then first_error = count end
        answer = 2 * units + 1
      else
        answer = 2 * units + (units > 0 and call('ZSCORE', current, token) and 1 or 0)
      end
    end
    reply[#reply + 1] = answer
  end
  first_key = first_key + key_count
end
write_units()
return first_error or reply
