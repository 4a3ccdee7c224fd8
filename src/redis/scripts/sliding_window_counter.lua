-- The parts of the sliding window counter: aligned windows; the previous one counts in part.
--
-- What is used is the count of the current window, plus the count of the previous one times the
-- share of it that the sliding window still covers, rounded down.
-- Bytes: for each window the count of the aligned window of the newest moment, and of the one
-- before; 3 bytes each, or 7 if one needs them.

-- INCLUDE: multiply_divide

local FORM, WIDE = 0xA2, 1
local STATE, STATE_BYTES = '<BI4i8I3I3', 19 -- the header and the counts
local NARROW = 2 ^ 24 - 1 -- the most that three bytes can count

-- How long until fewer than n are used, if `left` us of the current window's `length` are left.
local function below_of(n, previous, current, length, left)
  if n > current then
    if previous < n - current then return 0 end
    -- The share of `previous` has to fall below n - current.
    local before_end, remainder = multiply_divide(n - current, length, previous)
    if remainder == 0 then before_end = before_end - 1 end
    return before_end >= 1 and left - before_end or left
  end
  local before_end, remainder = multiply_divide(n, length, current)
  if remainder == 0 then before_end = before_end - 1 end
  return left + length - before_end
end

-- PART: ONE WINDOW
    at = now
    local current, previous = 0, 0
    if bytes then
      if #bytes ~= STATE_BYTES then break end
      local form, newest
      form, generation, newest, current, previous = unpack_bytes(STATE, bytes)
      if form ~= FORM or newest > LATEST or newest < -LATEST then break end
      if newest >= now then
        at = newest
      else
        local windows = floor(now / interval) - floor(newest / interval)
        if windows > 0 then current, previous = 0, windows == 1 and current or 0 end
      end
    else
      generation = server_time % GENERATIONS
    end
    local left = interval - at % interval
    local late = at - now
    local carried = previous > 0 and multiply_divide(previous, left, interval) or 0
    local is_refused = current + carried + own > max
    if not is_refused or count_blocked then
      current = current + own
      if current > NARROW then break end
      after = pack_bytes(STATE, FORM, generation, at, current, previous)
    end
    time_left = 0
    if is_refused then
      time_left = below_of(max - own + 1, previous, current, interval, left) + late
    end
    lifetime = 2 * interval + late
    if is_full then
      used = current + carried
      reset = below_of(min(used, max), previous, current, interval, left) + late
      wait = used < max and 0 or below_of(max, previous, current, interval, left) + late
    end

-- PART: A WINDOW
  windows[w] = { max = most, interval = length, current = 0, previous = 0 }

-- PART: ANY POLICY
local CLAMPS = true

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

-- PART: READ
        is_own = form == FORM or form == FORM + WIDE
        if is_own then
          local layout, size = '<I3I3', 6
          if form ~= FORM then layout, size = '<I7I7', 14 end
          local known = (#bytes - from + 1) / size
          is_state = known >= 1 and known % 1 == 0
          for w = 1, is_state and window_count or 0 do
            local current, previous = 0, 0
            if w <= known then
              current, previous = unpack_bytes(layout, bytes, from + (w - 1) * size)
            end
            windows[w].current = min(current, LATEST - 1)
            windows[w].previous = min(previous, LATEST - 1)
          end
        end

-- PART: READ NOTHING
    for w = 1, window_count do windows[w].current, windows[w].previous = 0, 0 end

-- PART: SETTLE
    for w = 1, window_count do
      local window = windows[w]
      local since = floor(at / window.interval) - floor(newest / window.interval)
      local counted = since == 0 and 'current' or since == -1 and 'previous'
      local count, change = window[counted], window.actual - window.cost
      if settled_of == generation and count and (count > 0 or window.cost == 0) then
        window[counted], is_changed = max_of(0, min(count + change, LATEST - 1)), true
      end
    end

-- PART: RECORD
      for w = 1, window_count do
        local window = windows[w]
        local current, previous = counts_at(window, at)
        window.current = min(current + window.cost, LATEST - 1)
        window.previous = previous
      end

-- PART: LIFETIME
    lifetime = newest + 2 * longest_window - now

-- PART: WRITE
      local is_wide = false
      for w = 1, window_count do
        is_wide = is_wide or max_of(windows[w].current, windows[w].previous) > NARROW
      end
      after = header_of(is_wide and FORM + WIDE or FORM, newest)
      for w = 1, window_count do
        local window = windows[w]
        after = after .. pack_bytes(is_wide and '<I7I7' or '<I3I3', window.current, window.previous)
      end
