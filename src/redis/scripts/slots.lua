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
local reply = {}

local function is_foreign(answer)
  return type(answer) == 'table' and answer.err and string.find(answer.err, '^WRONGTYPE')
end

local function remove(key, tokens)
  local units = 0
  for i = 1, #tokens do units = units + byte(tokens[i], 15) + 256 * byte(tokens[i], 16) end
  call('ZREM', key, unpack(tokens)) -- first, because a server without memory permits it
  if tonumber(call('ZINCRBY', key, units, UNITS)) >= 0 then call('DEL', key) end
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

local first_key = 1
for w = 2, #words do
  local word = words[w]
  local key_count, high, low, time, ttl = unpack_bytes(GROUP, word)
  local now = time == SERVER_TIME and server_time or math.floor(time / 1000)
  for i = 0, key_count - 1 do
    local key = keys[first_key + i]
    local operation, number, cost, max = -- luacheck: ignore 421
      unpack_bytes(CALL, word, 1 + GROUP_BYTES + i * CALL_BYTES)
    local token = pack_bytes(TOKEN, high, low, number, cost)
    local answer
    if operation == RELEASE then
      local was_there = try('ZSCORE', key, token)
      if type(was_there) == 'table' and not is_foreign(was_there) then return was_there end
      answer = type(was_there) == 'string' and 1 or 0
      if answer == 1 then remove(key, { token }) end
    else
      -- The units, and the tokens that have ended; more of those if they are in the way.
      local units, ended = 0, try('ZRANGEBYSCORE', key, '-inf', now, 'WITHSCORES', 'LIMIT', 0,
        MOST_DROPPED + 1)
      if ended.err and not is_foreign(ended) then return ended end
      local is_state = not ended.err and ended[1] == UNITS
      if is_state then
        units = -ended[2]
        local tokens = {}
        for place = 3, #ended, 2 do tokens[#tokens + 1] = ended[place] end
        while #tokens > 0 do
          units = units - remove(key, tokens)
          if #tokens < MOST_DROPPED or operation == ACQUIRE and units + cost <= max then break end
          tokens = call('ZRANGEBYSCORE', key, 0, now, 'LIMIT', 0, MOST_DROPPED)
        end
      elseif not ended.err and #ended == 0 then
        is_state = call('EXISTS', key) == 0
      end
      if not is_state then
        answer = -1
      elseif operation ~= ACQUIRE then
        answer = units
      elseif units > 0 and call('ZSCORE', key, token) then
        answer = 2 * units + 1
      elseif units + cost <= max then
        answer = 2 * (units + cost) + 1
        call('ZADD', key, now + ttl + GUARD, token, -units - cost, UNITS)
        local lifetime = ttl + GUARD + KEPT
        if call('PTTL', key) < lifetime then call('PEXPIREAT', key, server_time + lifetime) end
      else
        answer = 2 * units
      end
    end
    reply[#reply + 1] = answer
  end
  first_key = first_key + key_count
end
return reply
