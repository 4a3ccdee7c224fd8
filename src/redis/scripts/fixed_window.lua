-- In frame.lua: windows one after the other, aligned to the clock's epoch, and a count in each.
--
-- Integer: the first attempt in the window, and the count. A generation is there that of a
-- window: the low bits of the moment.
--
-- Compact form: a moment in the window of the newest attempt, in ticks, and the count. The moment
-- is the first tick of the window: whatever the limits are later, it tells when that was.

local BEGIN_OF_INTEGERS, MOST_OF_INTEGERS = 0, 999
-- form, generation, count, ticks
local FORM, COMPACT, COMPACT_BYTES = COMPACT_FORMS, '<BI3I3I5', 12
local GENERATIONS = 2 ^ 24
local TICK = 4096 -- in us; a window has at least one
local END_OF_TICKS = TICK * (2 ^ 40 - 1)

-- PART: ONE WINDOW
    if max >= NARROW or interval < TICK or now < 0 or now >= END_OF_TICKS then break end
    at = now
    local moment, count
    if bytes then
      if #bytes == COMPACT_BYTES then
        local form, ticks
        form, life, count, ticks = unpack_bytes(COMPACT, bytes)
        if form ~= FORM then break end
        moment = ticks * TICK
      else
        moment, count = parts_of_integer(bytes, BEGIN_OF_INTEGERS)
        if not moment then break end
        life = moment % GENERATIONS
      end
    end
    if not moment or moment < now - now % interval then
      moment, count, life = now, 0, server_time % GENERATIONS
    elseif moment > now then
      at = moment
    end
    local since_start = at % interval
    reset = interval - since_start + (at - now)
    lifetime = interval + (at - now)
    local is_refused = count + cost > max
    time_left = is_refused and reset or 0
    if not is_refused or count_blocked then
      count = min(count + cost, NARROW)
      if count <= MOST_OF_INTEGERS and life == moment % GENERATIONS
        and moment >= EARLIEST_OF_INTEGERS and moment < END_OF_INTEGERS then
        after = format(INTEGER, moment + BEGIN_OF_INTEGERS, count)
      else
        after = pack_bytes(COMPACT, FORM, life, count, ceil((at - since_start) / TICK))
      end
    end
    used = min(count, max)
    wait = count >= max and reset or 0

-- PART: A WINDOW
  windows[w] = { max = most, interval = length, count = 0 }

-- PART: ANY POLICY
local GENERAL_FORM, WINDOW, WINDOW_BYTES, CLAMPS = GENERAL_FORMS, '<I7', 7, true
local floor = math.floor
local cap = largest_max >= NARROW and LATEST - 1 or NARROW

local function used(window, at)
  local length = window.interval
  return floor(at / length) == floor(newest / length) and window.count or 0
end

local function below(window, n, at)
  return used(window, at) < n and 0 or window.interval - at % window.interval
end

-- PART: READ WINDOW
    window.count = from and unpack_bytes(WINDOW, bytes, from) or 0

-- PART: READ COMPACT
    local moment, count
    if form then moment, count = parts_of_integer(bytes, BEGIN_OF_INTEGERS) end
    if moment then
      generation, newest, windows[1].count = moment % GENERATIONS, moment, count
    elseif form == FORM and #bytes == COMPACT_BYTES then
      local _, life, counted, ticks = unpack_bytes(COMPACT, bytes)
      generation, newest, windows[1].count = life, ticks * TICK, counted
    elseif server_time then
      generation = server_time % GENERATIONS
    end

-- PART: REFUND
    for w = 1, window_count do
      local window = windows[w]
      if of == generation and used(window, at) > 0 then
        window.count, is_changed = max_of(0, window.count - cost), true
      end
    end

-- PART: RECORD
      for w = 1, window_count do
        local window = windows[w]
        window.count = min(used(window, at) + cost, cap)
      end

-- PART: LIFETIME
    lifetime = newest + longest_window - now

-- PART: WRITE COMPACT
        if cap == NARROW and interval >= TICK and newest >= 0 and newest < END_OF_TICKS then
          local start = newest - newest % interval
          local count = min(windows[1].count, NARROW)
          if count <= MOST_OF_INTEGERS and generation == newest % GENERATIONS
            and newest >= EARLIEST_OF_INTEGERS and newest < END_OF_INTEGERS then
            after = format(INTEGER, newest + BEGIN_OF_INTEGERS, count)
          else
            after = pack_bytes(COMPACT, FORM, generation, count, ceil(start / TICK))
          end
        end

-- PART: WRITE WINDOW
          after = after .. pack_bytes(WINDOW, window.count)
