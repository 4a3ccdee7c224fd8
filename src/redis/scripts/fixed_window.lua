-- In frame.lua: windows one after the other, aligned to the clock's epoch, and a count in each.
--
-- An algorithm of the frame defines two functions. attempt_one(bytes) is an attempt under a single
-- window, without minDifference and blockFor; `bytes` are what the key holds, or false. It returns
-- nothing where the general way has to be gone, else
--   time left, how long the state matters, the new state if there is one; and for a full reply
--   the moment, the incarnation, how much is used, reset in, wait until a next action.
-- define() returns what the general way needs:
--   general_form, window_format   its form, and the numbers of a window for struct.pack
--   incarnations                  how many of them can be told apart
--   clamps                        whether time is taken as no earlier than `newest`
--   longest_life                  the most that lifetime() can be, while the clock goes on
--   open_compact(bytes)           takes the compact form, sets newest and incarnation; or false
--   compact()                     the compact form of the state at hand, where there is one
--   new_window(i), take_window(i, ...), window_numbers(i)   a window's numbers
--   used(i, at)                   how much of window i is used
--   below(i, n, at)               how long after `at` less than n is used; 0 or less: it is already
--   record(at)                    records the cost
--   refund(at, incarnation)       takes the cost back; whether there was anything
--   lifetime()                    how long from `now` on the windows matter
--
-- Compact form: a moment in the window of the newest attempt, in ticks, and the count. The moment
-- is the first tick of the window: whatever the limits are later, it tells when that was.

-- form, incarnation, count, ticks
local FORM, COMPACT, COMPACT_BYTES = COMPACT_FORMS, '<BI3I3I5', 12
local INCARNATIONS = 2 ^ 24
local TICK = 4096 -- in us; a window has at least one
local END_OF_TICKS = TICK * (2 ^ 40 - 1)

local function attempt_one(bytes)
  if max >= NARROW or interval < TICK or now < 0 or now >= END_OF_TICKS then return nil end
  local at, count, life = now, 0
  if bytes then
    if #bytes ~= COMPACT_BYTES then return nil end
    local form, ticks
    form, life, count, ticks = unpack_bytes(COMPACT, bytes)
    if form ~= FORM then return nil end
    local moment = ticks * TICK
    if moment > now then
      at = moment
    elseif moment < now - now % interval then
      count = 0
    end
  else
    life = server_time % INCARNATIONS
  end
  local since_start = at % interval
  local reset = interval - since_start + (at - now)
  local is_blocked = count + cost > max
  local after
  if not is_blocked or count_blocked then
    count = min(count + cost, NARROW)
    after = pack_bytes(COMPACT, FORM, life, count, ceil((at - since_start) / TICK))
  end
  return is_blocked and reset or 0, interval + (at - now), after, at, life, min(count, max), reset,
    count >= max and reset or 0
end

local function define()
  local counts = {}
  local cap, longest = NARROW, 0
  for i = 1, window_count do
    if maxes[i] >= NARROW then cap = LATEST - 1 end
    longest = max_of(longest, intervals[i])
  end

  local function count_at(i, at)
    local is_same = newest and floor(at / intervals[i]) == floor(newest / intervals[i])
    return is_same and counts[i] or 0
  end

  return {
    general_form = GENERAL_FORMS,
    window_format = 'I7',
    incarnations = INCARNATIONS,
    clamps = true,
    longest_life = longest,

    open_compact = function(bytes)
      if #bytes ~= COMPACT_BYTES or string.byte(bytes) ~= FORM then return false end
      local _, ticks
      _, incarnation, counts[1], ticks = unpack_bytes(COMPACT, bytes)
      newest = ticks * TICK
      return true
    end,

    compact = function()
      if cap > NARROW or interval < TICK or newest < 0 or newest >= END_OF_TICKS then return nil end
      local start = newest - newest % interval
      return pack_bytes(COMPACT, FORM, incarnation, min(counts[1], NARROW), ceil(start / TICK))
    end,

    new_window = function(i) counts[i] = 0 end,
    take_window = function(i, count) counts[i] = count end,
    window_numbers = function(i) return counts[i] end,

    used = count_at,

    below = function(i, n, at)
      return count_at(i, at) < n and 0 or intervals[i] - at % intervals[i]
    end,

    record = function(at)
      for i = 1, window_count do counts[i] = min(count_at(i, at) + cost, cap) end
    end,

    refund = function(at, of)
      if of ~= incarnation then return false end
      local found = false
      for i = 1, window_count do
        if count_at(i, at) > 0 then
          counts[i], found = max_of(0, counts[i] - cost), true
        end
      end
      return found
    end,

    lifetime = function() return newest and newest + longest - now or 0 end,
  }
end
