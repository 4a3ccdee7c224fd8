-- In frame.lua: windows one after the other, aligned to the clock's epoch, and a count in each.
--
-- Compact form: a moment in the window of the newest attempt, in ticks, and the count. The moment
-- is the first tick of the window: whatever the limits are later, it tells when that was.

-- form, incarnation, count, ticks
local FORM, COMPACT, COMPACT_BYTES = COMPACT_FORMS, '<BI3I3I5', 12
local INCARNATIONS = 2 ^ 24
local TICK = 4096 -- in us; a window has at least one
local END_OF_TICKS = TICK * (2 ^ 40 - 1)

-- PART: ONE WINDOW
    if max >= NARROW or interval < TICK or now < 0 or now >= END_OF_TICKS then break end
    at = now
    local count = 0
    if bytes then
      if #bytes ~= COMPACT_BYTES then break end
      local form, ticks
      form, life, count, ticks = unpack_bytes(COMPACT, bytes)
      if form ~= FORM then break end
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
    reset = interval - since_start + (at - now)
    lifetime = interval + (at - now)
    local is_refused = count + cost > max
    time_left = is_refused and reset or 0
    if not is_refused or count_blocked then
      count = min(count + cost, NARROW)
      after = pack_bytes(COMPACT, FORM, life, count, ceil((at - since_start) / TICK))
    end
    used = min(count, max)
    wait = count >= max and reset or 0

-- PART: ANY POLICY
local floor = math.floor
local counts = {}
local cap = NARROW
for i = 1, window_count do
  if maxes[i] >= NARROW then cap = LATEST - 1 end
end

local function count_at(i, at)
  local is_same = newest and floor(at / intervals[i]) == floor(newest / intervals[i])
  return is_same and counts[i] or 0
end

local algorithm = {
  general_form = GENERAL_FORMS,
  window_format = 'I7',
  new_incarnation = function() return server_time % INCARNATIONS end,
  clamps = true,

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

  lifetime = function() return newest and newest + longest_window - now or 0 end,
}
