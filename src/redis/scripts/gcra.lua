-- In frame.lua: the generic cell rate algorithm, one theoretical arrival time for each window.
--
-- Actions are to come `emission` apart; each moves the theoretical arrival time on by that, and an
-- attempt passes unless a burst, max of them, would be exceeded. A window whose theoretical arrival
-- time has passed restarts with the next action. Durations are counted in units, `scale` of them to
-- a us: of 1/max us up to a max of 1000, so that interval / max is exact; else of 1/1000 us, and
-- the emission is rounded up. A theoretical arrival time is kept as whole us and the units beyond.
--
-- A refund gives back what has not leaked of an action yet. Where in the bucket that is follows
-- from what was recorded later, so the incarnation is a number that grows with all costs, and gets
-- less where the newest is taken back; it begins where numbers of earlier lives are unlikely to be.
-- Source: ATM Forum, Traffic Management 4.0, virtual scheduling.
--
-- Compact form: the theoretical arrival time alone, its us above 64 apart from the rest.

-- form, number, the low 6 bits of the us and 10 of units, the high bits of the us
local FORM, COMPACT, COMPACT_BYTES = COMPACT_FORMS + 2, '<BI3I2i6', 12
local NUMBERS = 2 ^ 24
local SPREAD = 8191 -- between the first numbers of lives that begin in subsequent us
local MOST_NUMBERED = 2 ^ 16 -- the largest max for which these are enough
local MOST_EXACT = 1000 -- max up to which interval / max is exact
local LONGEST = 2 ^ 52

now = max_of(-LONGEST, min(now, LONGEST))

-- PART: ONE WINDOW
    -- A burst has to fit into a number.
    if interval > LONGEST / MOST_EXACT or max > MOST_NUMBERED then break end
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
      life = server_time % NUMBERS * SPREAD % NUMBERS
    end
    local room = (max - cost) * emission
    time_left = 0
    if backlog > room then
      time_left = ceil((backlog - room) / scale)
    else
      backlog = max_of(0, backlog) + cost * emission
      life = (life + cost) % NUMBERS
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
for i = 1, window_count do
  local length = min(intervals[i], LONGEST)
  scales[i], emissions[i] = maxes[i], length
  if maxes[i] > MOST_EXACT then
    local whole, remainder = multiply_divide(1000, length, maxes[i])
    scales[i], emissions[i] = 1000, max_of(1, remainder > 0 and whole + 1 or whole)
  end
end
local is_numbered_short = is_plain and max <= MOST_NUMBERED
local numbers = is_numbered_short and NUMBERS or 2 ^ 53

-- Of other limits' units, as many as there can be of these.
local function take(i, micros, units)
  arrivals[i], arrival_units[i] = micros, min(units, scales[i] - 1)
end

local function has_passed(i, at)
  local ahead = arrivals[i] and arrivals[i] - at or -1
  return ahead < 0 or (ahead == 0 and arrival_units[i] == 0)
end

-- How long `actions` of them take: us and units.
local function duration_of(i, actions)
  return multiply_divide(actions, emissions[i], scales[i])
end

local function count_ahead(i, at)
  if has_passed(i, at) then return 0 end
  local whole, remainder = multiply_divide(arrivals[i] - at, scales[i], emissions[i])
  return whole + ceil((remainder + arrival_units[i]) / emissions[i])
end

local function move_back(i, micros, units)
  units = arrival_units[i] - units
  local borrowed = units < 0 and 1 or 0
  arrivals[i], arrival_units[i] = arrivals[i] - micros - borrowed, units + borrowed * scales[i]
end

-- Gives window i back what has not leaked at `now` of `cost` actions recorded at `at`, with `later`
-- recorded after them; whether there was anything.
local function give_back(i, at, later)
  local full_micros, full_units = duration_of(i, maxes[i])
  local since = now - at
  if since > full_micros or (since == full_micros and full_units == 0) then return false end
  if later >= count_ahead(i, now) then return false end
  local micros, units = duration_of(i, cost)
  local later_micros, later_units = duration_of(i, later)
  local left_micros, left_units = arrivals[i] - now - later_micros, arrival_units[i] - later_units
  if left_units < 0 then
    left_micros, left_units = left_micros - 1, left_units + scales[i]
  end
  if left_micros < micros or (left_micros == micros and left_units < units) then
    micros, units = left_micros, left_units
  end
  move_back(i, micros, units)
  return true
end

local algorithm = {
  general_form = GENERAL_FORMS + 2,
  window_format = 'i8I2',
  clamps = false,

  new_incarnation = function()
    if is_numbered_short then return server_time % NUMBERS * SPREAD % NUMBERS end
    return tonumber(string.sub(redis.sha1hex(format('%d', server_time)), 1, 13), 16)
  end,

  open_compact = function(bytes)
    if #bytes ~= COMPACT_BYTES or string.byte(bytes) ~= FORM then return false end
    local _, number, low, high = unpack_bytes(COMPACT, bytes)
    local units = low % 1024
    if units >= MOST_EXACT then return false end
    incarnation = number
    take(1, high * 64 + (low - units) / 1024, units)
    return true
  end,

  compact = function()
    local micros = arrivals[1]
    if not is_numbered_short or micros >= LATEST then return nil end
    local low = micros % 64
    local word = low * 1024 + arrival_units[1]
    return pack_bytes(COMPACT, FORM, incarnation % NUMBERS, word, (micros - low) / 64)
  end,

  new_window = function(i) arrivals[i], arrival_units[i] = nil, 0 end,
  take_window = function(i, micros, units)
    if micros ~= NONE then take(i, micros, units) end
  end,
  window_numbers = function(i) return arrivals[i] or NONE, arrival_units[i] end,

  used = count_ahead,

  below = function(i, n, at)
    if not arrivals[i] then return 0 end
    local micros, units = duration_of(i, n - 1)
    return arrivals[i] - at - micros + (arrival_units[i] > units and 1 or 0)
  end,

  record = function(at)
    for i = 1, window_count do
      if has_passed(i, at) then arrivals[i], arrival_units[i] = at, 0 end
      local micros, units = duration_of(i, cost)
      units = arrival_units[i] + units
      local carried = units >= scales[i] and 1 or 0
      arrivals[i] = arrivals[i] + micros + carried
      arrival_units[i] = units - carried * scales[i]
    end
    -- In this order, for a sum beyond 2^53 would not be exact.
    incarnation = (incarnation - (numbers - cost)) % numbers
  end,

  refund = function(at, of)
    -- Where the newest attempt is known, time is taken as no earlier.
    if not is_plain and newest and newest > now then now = newest end
    local later = (incarnation - of) % numbers
    local found = false
    for i = 1, window_count do
      if arrivals[i] and give_back(i, at, later) then found = true end
    end
    -- The newest makes its place in the bucket free for good.
    if found and later == 0 then incarnation = (incarnation - cost) % numbers end
    return found
  end,

  lifetime = function()
    local lifetime = 0
    for i = 1, window_count do
      if arrivals[i] then
        lifetime = max_of(lifetime, arrivals[i] + min(arrival_units[i], 1) - now)
      end
    end
    return lifetime
  end,
}
