-- In frame.lua: aligned windows, and of the previous one the share that a sliding window still has.
--
-- How much is used is the count of the current window, and that of the previous one times the share
-- of it that is left, rounded down.
--
-- Compact form: the moment of the newest attempt, the counts of its window and of the one before,
-- and the generation. Where counts are below COUNTS and the moment is within SPAN of SINCE, as
-- two numbers; else each on its own.

-- form, the moment's us above 4, all else
local FORM, SHORT, SHORT_BYTES = COMPACT_FORMS + 1, '<BI6I5', 12
local COUNTS, GENERATIONS = 2 ^ 10, 2 ^ 18
local SINCE, SPAN = 16 * 10 ^ 14, 2 ^ 50 -- 2020 to 2056
-- form, generation, newest, current, previous
local WIDE, WIDE_BYTES = '<BI4i8I3I3', 19
local floor = math.floor

local function pack_compact(life, newest, current, previous)
  local since = newest - SINCE
  if current >= COUNTS or previous >= COUNTS or since < 0 or since >= SPAN then
    return pack_bytes(WIDE, FORM, life, newest, current, previous)
  end
  local low = since % 4
  local rest = ((low * GENERATIONS + life % GENERATIONS) * COUNTS + current) * COUNTS + previous
  return pack_bytes(SHORT, FORM, (since - low) / 4, rest)
end

-- What was packed; nothing if it is none.
local function unpack_compact(bytes)
  local form, life, newest, current, previous, high, rest
  if #bytes == SHORT_BYTES then
    form, high, rest = unpack_bytes(SHORT, bytes)
    previous = rest % COUNTS
    rest = (rest - previous) / COUNTS
    current = rest % COUNTS
    rest = (rest - current) / COUNTS
    life = rest % GENERATIONS
    newest = SINCE + high * 4 + (rest - life) / GENERATIONS
  elseif #bytes == WIDE_BYTES then
    form, life, newest, current, previous = unpack_bytes(WIDE, bytes)
  end
  if form ~= FORM or newest > LATEST or newest < -LATEST then return nil end
  return life, newest, current, previous
end

-- How long it takes until less than n is used, with `left` of the current window's `length` to go.
local function below_of(n, previous, current, length, left)
  if n > current then
    if previous < n - current then return 0 end
    -- The share of `previous` has to go below n - current.
    local before_end, remainder = multiply_divide(n - current, length, previous)
    if remainder == 0 then before_end = before_end - 1 end
    return before_end >= 1 and left - before_end or left
  end
  local before_end, remainder = multiply_divide(n, length, current)
  if remainder == 0 then before_end = before_end - 1 end
  return left + length - before_end
end

-- PART: ONE WINDOW
    if max >= NARROW then break end
    at = now
    local current, previous = 0, 0
    if bytes then
      local last
      life, last, current, previous = unpack_compact(bytes)
      if not life then break end
      if last >= now then
        at = last
      else
        local windows = floor(now / interval) - floor(last / interval)
        if windows == 1 then
          current, previous = 0, current
        elseif windows > 1 then
          current, previous = 0, 0
        end
      end
    else
      life = server_time % GENERATIONS
    end
    local left = interval - at % interval
    local late = at - now
    local carried = previous > 0 and multiply_divide(previous, left, interval) or 0
    local is_refused = current + carried + cost > max
    if not is_refused or count_blocked then
      current = min(current + cost, NARROW)
      after = pack_compact(life, at, current, previous)
    end
    time_left = 0
    if is_refused then
      time_left = below_of(max - cost + 1, previous, current, interval, left) + late
    end
    lifetime = 2 * interval + late
    if is_full then
      used = min(current + carried, max)
      reset = below_of(used, previous, current, interval, left) + late
      wait = used < max and 0 or reset
    end

-- PART: A WINDOW
  windows[w] = { max = most, interval = length, current = 0, previous = 0 }

-- PART: ANY POLICY
local GENERAL_FORM, WINDOW, WINDOW_BYTES, CLAMPS = GENERAL_FORMS + 1, '<I7I7', 14, true
local cap = largest_max >= NARROW and LATEST - 1 or NARROW

-- The counts of the window of `at` and of the one before.
local function counts_at(window, at)
  local length = window.interval
  local since = floor(at / length) - floor(newest / length)
  if since == 0 then return window.current, window.previous end
  return 0, since == 1 and window.current or 0
end

local function used(window, at)
  local current, previous = counts_at(window, at)
  local length = window.interval
  return current + multiply_divide(previous, length - at % length, length)
end

local function below(window, n, at)
  local current, previous = counts_at(window, at)
  local length = window.interval
  return below_of(n, previous, current, length, length - at % length)
end

-- PART: READ WINDOW
    window.current, window.previous = 0, 0
    if from then window.current, window.previous = unpack_bytes(WINDOW, bytes, from) end

-- PART: READ COMPACT
    local life, last, current, previous
    if form == FORM then life, last, current, previous = unpack_compact(bytes) end
    if life then
      generation, newest = life, last
      windows[1].current, windows[1].previous = current, previous
    elseif server_time then
      generation = server_time % GENERATIONS
    end

-- PART: REFUND
    for w = 1, window_count do
      local window = windows[w]
      local since = floor(at / window.interval) - floor(newest / window.interval)
      local counted = since == 0 and 'current' or since == -1 and 'previous'
      if of == generation and counted and window[counted] > 0 then
        window[counted], is_changed = max_of(0, window[counted] - cost), true
      end
    end

-- PART: RECORD
      for w = 1, window_count do
        local window = windows[w]
        local current, previous = counts_at(window, at)
        window.current, window.previous = min(current + cost, cap), previous
      end

-- PART: LIFETIME
    lifetime = newest + 2 * longest_window - now

-- PART: WRITE COMPACT
        if cap == NARROW then
          local window = windows[1]
          after = pack_compact(generation, newest, min(window.current, NARROW),
            min(window.previous, NARROW))
        end

-- PART: WRITE WINDOW
          after = after .. pack_bytes(WINDOW, window.current, window.previous)
