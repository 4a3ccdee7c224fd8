-- In frame.lua: the generic cell rate algorithm, one theoretical arrival time for each window.
--
-- Actions are to come `emission` apart; each moves the theoretical arrival time on by that, and an
-- attempt passes unless a burst, max of them, would be exceeded. A window whose theoretical arrival
-- time has passed restarts with the next action. Durations are counted in units, `scale` of them to
-- a us: of 1/max us up to a max of 1000, so that interval / max is exact; else of 1/1000 us, and
-- the emission is rounded up. A theoretical arrival time is kept as whole us and the units beyond.
--
-- The incarnation changes with each restart, so a refund knows what belongs to the windows as they
-- are. Source: ATM Forum, Traffic Management 4.0, virtual scheduling.
--
-- Compact form: the theoretical arrival time alone, its us above 64 apart from the rest.

-- form, incarnation, the low 6 bits of the us and 10 of units, the high bits of the us
local FORM, COMPACT, COMPACT_BYTES = COMPACT_FORMS + 2, '<BI3I2i6', 12
local INCARNATIONS = 2 ^ 24
local MOST_EXACT = 1000 -- max up to which interval / max is exact
local LONGEST = 2 ^ 52

now = max_of(-LONGEST, min(now, LONGEST))

-- PART: ONE WINDOW
    -- A burst has to fit into a number.
    if interval > LONGEST / MOST_EXACT or max > LONGEST / 1000 then break end
    local scale, emission = max, interval
    if max > MOST_EXACT then scale, emission = 1000, max_of(1, ceil(interval * 1000 / max)) end
    local backlog = 0 -- in units, ahead of `now`
    if bytes then
      if #bytes ~= COMPACT_BYTES then break end
      local form, low, high
      form, life, low, high = unpack_bytes(COMPACT, bytes)
      local units = low % 1024
      if form ~= FORM or units >= scale then break end
      backlog = (high * 64 + (low - units) / 1024 - now) * scale + units
      if backlog >= LATEST then break end
    else
      life = server_time % INCARNATIONS
    end
    local room = (max - cost) * emission
    time_left = 0
    if backlog > room then
      time_left = ceil((backlog - room) / scale)
    else
      if backlog <= 0 then
        backlog = 0
        if bytes then life = (life + 1) % INCARNATIONS end
      end
      backlog = backlog + cost * emission
      local units = backlog % scale
      local micros = now + (backlog - units) / scale
      local low = micros % 64
      after = pack_bytes(COMPACT, FORM, life, low * 1024 + units, (micros - low) / 64)
    end
    lifetime = backlog / scale
    if is_full then
      at, used = now, min(max, ceil(backlog / emission))
      reset = ceil((backlog - (used - 1) * emission) / scale)
      wait = used < max and 0 or reset
    end

-- PART: ANY POLICY
local scales, emissions = {}, {}
local arrivals, arrival_units = {}, {} -- none in a window that has not begun
local restarts = {} -- which incarnation each window's last restart began
local longest_burst = 0
for i = 1, window_count do
  local length = min(intervals[i], LONGEST)
  scales[i], emissions[i] = maxes[i], length
  if maxes[i] > MOST_EXACT then
    local whole, remainder = multiply_divide(1000, length, maxes[i])
    scales[i], emissions[i] = 1000, max_of(1, remainder > 0 and whole + 1 or whole)
  end
  local burst = multiply_divide(maxes[i], emissions[i], scales[i])
  longest_burst = max_of(longest_burst, burst + 1)
end

-- Of other limits' units, as many as there can be of these.
local function take(i, micros, units, restart)
  arrivals[i], arrival_units[i], restarts[i] = micros, min(units, scales[i] - 1), restart
end

local function has_passed(i)
  local ahead = arrivals[i] and arrivals[i] - now or -1
  return ahead < 0 or (ahead == 0 and arrival_units[i] == 0)
end

-- How long `actions` of them take: us and units.
local function duration_of(i, actions)
  return multiply_divide(actions, emissions[i], scales[i])
end

local algorithm = {
  general_form = GENERAL_FORMS + 2,
  window_format = 'i8I2I3',
  incarnations = INCARNATIONS,
  clamps = false,
  longest_life = longest_burst,

  open_compact = function(bytes)
    if #bytes ~= COMPACT_BYTES or string.byte(bytes) ~= FORM then return false end
    local _, life, low, high = unpack_bytes(COMPACT, bytes)
    local units = low % 1024
    if units >= MOST_EXACT then return false end
    incarnation = life
    take(1, high * 64 + (low - units) / 1024, units, life)
    return true
  end,

  compact = function()
    local micros = arrivals[1]
    if micros >= LATEST then return nil end
    local low = micros % 64
    local word = low * 1024 + arrival_units[1]
    return pack_bytes(COMPACT, FORM, incarnation, word, (micros - low) / 64)
  end,

  new_window = function(i) arrivals[i], arrival_units[i], restarts[i] = nil, 0, 0 end,
  take_window = function(i, micros, units, restart)
    if micros ~= NONE then take(i, micros, units, restart) end
  end,
  window_numbers = function(i) return arrivals[i] or NONE, arrival_units[i], restarts[i] end,

  used = function(i)
    if has_passed(i) then return 0 end
    local whole, remainder = multiply_divide(arrivals[i] - now, scales[i], emissions[i])
    return whole + ceil((remainder + arrival_units[i]) / emissions[i])
  end,

  below = function(i, n)
    if not arrivals[i] then return 0 end
    local micros, units = duration_of(i, n - 1)
    return arrivals[i] - now - micros + (arrival_units[i] > units and 1 or 0)
  end,

  record = function(at)
    local next_incarnation = (incarnation + 1) % INCARNATIONS
    local life = incarnation
    for i = 1, window_count do
      if has_passed(i) then
        arrivals[i], arrival_units[i], restarts[i] = at, 0, next_incarnation
        life = next_incarnation
      end
      local micros, units = duration_of(i, cost)
      units = arrival_units[i] + units
      local carried = units >= scales[i] and 1 or 0
      arrivals[i] = arrivals[i] + micros + carried
      arrival_units[i] = units - carried * scales[i]
    end
    incarnation = life
  end,

  -- What incarnations from a window's restart on have recorded is in its arrival time.
  refund = function(_, of)
    local found = false
    for i = 1, window_count do
      local since = (of - restarts[i]) % INCARNATIONS
      if arrivals[i] and since <= (incarnation - restarts[i]) % INCARNATIONS then
        local micros, units = duration_of(i, cost)
        units = arrival_units[i] - units
        local borrowed = units < 0 and 1 or 0
        arrivals[i] = arrivals[i] - micros - borrowed
        arrival_units[i], found = units + borrowed * scales[i], true
      end
    end
    return found
  end,

  lifetime = function()
    local lifetime = 0
    for i = 1, window_count do
      if arrivals[i] then lifetime = max_of(lifetime, arrivals[i] + 1 - now) end
    end
    return lifetime
  end,
}
