-- In frame.lua: aligned windows, and of the previous one the share that a sliding window still has.
--
-- How much is used is the count of the current window, and that of the previous one times the share
-- of it that is left, rounded down.
--
-- Compact form: the moment of the newest attempt, the counts of its window and of the one before.

-- form, incarnation, newest, current, previous
local FORM, COMPACT, COMPACT_BYTES = COMPACT_FORMS + 1, '<BI4i8I3I3', 19
local INCARNATIONS = 2 ^ 32
local floor = math.floor

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
      if #bytes ~= COMPACT_BYTES then break end
      local form, last
      form, life, last, current, previous = unpack_bytes(COMPACT, bytes)
      if form ~= FORM or last > LATEST or last < -LATEST then break end
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
      life = server_time % INCARNATIONS
    end
    local left = interval - at % interval
    local late = at - now
    local carried = previous > 0 and multiply_divide(previous, left, interval) or 0
    local is_refused = current + carried + cost > max
    if not is_refused or count_blocked then
      current = min(current + cost, NARROW)
      after = pack_bytes(COMPACT, FORM, life, at, current, previous)
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
    local _, life, last, current, previous
    if form == FORM and #bytes == COMPACT_BYTES then
      _, life, last, current, previous = unpack_bytes(COMPACT, bytes)
    end
    if last and last <= LATEST and last >= -LATEST then
      incarnation, newest = life, last
      windows[1].current, windows[1].previous = current, previous
    elseif server_time then
      incarnation = server_time % INCARNATIONS
    end

-- PART: REFUND
    for w = 1, window_count do
      local window = windows[w]
      local since = floor(at / window.interval) - floor(newest / window.interval)
      local counted = since == 0 and 'current' or since == -1 and 'previous'
      if of == incarnation and counted and window[counted] > 0 then
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
          after = pack_bytes(COMPACT, FORM, incarnation, newest, min(windows[1].current, NARROW),
            min(windows[1].previous, NARROW))
        end

-- PART: WRITE WINDOW
          after = after .. pack_bytes(WINDOW, window.current, window.previous)
