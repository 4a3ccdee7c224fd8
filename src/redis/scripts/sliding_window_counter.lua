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

-- PART: ANY POLICY
local currents, previouses = {}, {}
local cap = NARROW
for i = 1, window_count do
  if maxes[i] >= NARROW then cap = LATEST - 1 end
end

-- How many windows after that of the newest attempt the one of `at` is.
local function windows_since(i, at)
  return floor(at / intervals[i]) - floor(newest / intervals[i])
end

-- The counts of the window of `at` and of the one before.
local function counts_at(i, at)
  local windows = newest and windows_since(i, at) or 2
  if windows == 0 then return currents[i], previouses[i] end
  return 0, windows == 1 and currents[i] or 0
end

local algorithm = {
  general_form = GENERAL_FORMS + 1,
  window_format = 'I7I7',
  new_incarnation = function() return server_time % INCARNATIONS end,
  clamps = true,

  open_compact = function(bytes)
    if #bytes ~= COMPACT_BYTES then return false end
    local form, life, last, current, previous = unpack_bytes(COMPACT, bytes)
    if form ~= FORM or last > LATEST or last < -LATEST then return false end
    incarnation, newest, currents[1], previouses[1] = life, last, current, previous
    return true
  end,

  compact = function()
    if cap > NARROW then return nil end
    return pack_bytes(COMPACT, FORM, incarnation, newest, min(currents[1], NARROW),
      min(previouses[1], NARROW))
  end,

  new_window = function(i) currents[i], previouses[i] = 0, 0 end,
  take_window = function(i, current, previous)
    currents[i], previouses[i] = current, previous
  end,
  window_numbers = function(i) return currents[i], previouses[i] end,

  used = function(i, at)
    local current, previous = counts_at(i, at)
    local left = intervals[i] - at % intervals[i]
    return current + multiply_divide(previous, left, intervals[i])
  end,

  below = function(i, n, at)
    local current, previous = counts_at(i, at)
    return below_of(n, previous, current, intervals[i], intervals[i] - at % intervals[i])
  end,

  record = function(at)
    for i = 1, window_count do
      local current, previous = counts_at(i, at)
      currents[i], previouses[i] = min(current + cost, cap), previous
    end
  end,

  refund = function(at, of)
    if not newest or of ~= incarnation then return false end
    local found = false
    for i = 1, window_count do
      local windows = windows_since(i, at)
      local counts = windows == 0 and currents or windows == -1 and previouses
      if counts and counts[i] > 0 then
        counts[i], found = max_of(0, counts[i] - cost), true
      end
    end
    return found
  end,

  lifetime = function() return newest and newest + 2 * longest_window - now or 0 end,
}
