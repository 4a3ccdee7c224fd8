-- In frame.lua: the generic cell rate algorithm, one theoretical arrival time for each window.
--
-- Actions are to come `emission` apart; each moves the theoretical arrival time on by that, and an
-- attempt passes unless a burst, max of them, would be exceeded. A window whose theoretical arrival
-- time has passed restarts with the next action. Durations are counted in units, `scale` of them to
-- a us: as few as make interval / max a whole number of units, where max is up to 1000; else up to
-- 1000, and the emission is rounded up. A theoretical arrival time is kept as whole us and the
-- units beyond.
--
-- A refund gives back what has not leaked of an action yet. Where in the bucket that is follows
-- from what was recorded later, so the generation is a number that grows with all costs, and gets
-- less where the newest is taken back; it begins where numbers of earlier lives are unlikely to be.
-- Source: ATM Forum, Traffic Management 4.0, virtual scheduling.
--
-- Integer: the theoretical arrival time; its units, and what was drawn by lot when the life began.
-- The generation follows from these (see number_and_phase). It does no longer once an action has
-- been taken back that was not the newest; then there is no integer until the bucket was empty.
--
-- Compact form: the generation and the theoretical arrival time, its us above 64 apart.

local BEGIN_OF_INTEGERS, MOST_OF_INTEGERS = 4 * 10 ^ 15, 999
-- form, generation, the low 6 bits of the us and 10 of units, the high bits of the us
local FORM, COMPACT, COMPACT_BYTES = COMPACT_FORMS + 2, '<BI3I2i6', 12
local NUMBERS = 2 ^ 24
local SPREAD = 10368889 -- times 1, 2, 3 ... these are far apart: NUMBERS by the golden ratio, odd
local PHASES = 2 ^ 29 -- that can be told apart
local MOST_NUMBERED = 2 ^ 16 -- the largest max for which these are enough
local MOST_EXACT = 1000 -- max up to which interval / max is exact
local LONGEST = 2 ^ 52
local floor = math.floor

now = max_of(-LONGEST, min(now, LONGEST))

-- How many units there are to a us, and in an emission interval; without a common divisor.
local function units_of(length, most)
  local per_micro, in_emission = most, min(length, LONGEST)
  if most > MOST_EXACT then
    local whole, remainder = multiply_divide(1000, in_emission, most)
    per_micro, in_emission = 1000, max_of(1, remainder > 0 and whole + 1 or whole)
  end
  local divisor, rest = in_emission, per_micro
  while rest > 0 do divisor, rest = rest, divisor % rest end
  return per_micro / divisor, in_emission / divisor
end

local scale, emission = units_of(interval, max)
-- Lots there are so few that lives have to differ in their phases, too (see number_and_phase).
local has_integers = emission >= 1000 * scale and interval <= LONGEST / MOST_EXACT

-- The number of the newest action, from what an integer state keeps: how many emission
-- intervals there were until then, from a beginning that the lot and the phase say. And its phase
-- within the emission interval: it is one as long as the bucket is not empty, and another life has
-- another. The generation has both; what is no integer any more has only the first.
local function number_and_phase(arrival, units, lot)
  local turns = floor(arrival / emission) -- in each of them `scale` emission intervals
  local beyond = (arrival - turns * emission) * scale + units
  local phase = beyond % emission
  local begin = (lot + phase) % NUMBERS * SPREAD
  return (begin + turns * scale + (beyond - phase) / emission) % NUMBERS, phase % PHASES
end

-- PART: ONE WINDOW
    -- A burst has to fit into a number.
    if interval > LONGEST / MOST_EXACT or max > MOST_NUMBERED then break end
    local backlog, lot = 0, nil -- `backlog` in units, ahead of `now`
    if not bytes then
      life = server_time % NUMBERS * SPREAD % NUMBERS
    else
      local arrival, units
      if #bytes == COMPACT_BYTES then
        local form, low, high
        form, life, low, high = unpack_bytes(COMPACT, bytes)
        if form ~= FORM then break end
        units = low % 1024
        arrival = high * 64 + (low - units) / 1024
        if units >= scale then break end
      else
        local rest
        arrival, rest = parts_of_integer(bytes, BEGIN_OF_INTEGERS)
        if not arrival then break end
        units = rest % scale
        lot = (rest - units) / scale
      end
      backlog = (arrival - now) * scale + units
      if backlog >= LATEST then break end
    end
    local room = (max - cost) * emission
    time_left, life = 0, life or 0
    if backlog > room then
      time_left = ceil((backlog - room) / scale)
    else
      if backlog <= 0 and has_own_time and has_integers and not lot then
        lot = floor(server_time % NUMBERS * SPREAD % NUMBERS / NUMBERS * floor(1000 / scale))
      end
      backlog = max_of(0, backlog) + cost * emission
      local units = backlog % scale
      local arrival = now + (backlog - units) / scale
      -- A lot that was drawn under other limits may be too large.
      local is_integer = lot and has_integers and lot * scale + units <= MOST_OF_INTEGERS
        and arrival >= EARLIEST_OF_INTEGERS and arrival < END_OF_INTEGERS
      if not lot then
        life = (life + cost) % NUMBERS
      elseif is_full or not is_integer then
        local phase
        life, phase = number_and_phase(arrival, units, lot)
        if is_integer then life = life + phase * NUMBERS end
      end
      if is_integer then
        after = format(INTEGER, arrival + BEGIN_OF_INTEGERS, lot * scale + units)
      else
        local low = arrival % 64
        after = pack_bytes(COMPACT, FORM, life, low * 1024 + units, (arrival - low) / 64)
      end
    end
    lifetime = backlog / scale
    if is_full then
      at, used = now, min(max, ceil(backlog / emission))
      reset = ceil((backlog - (used - 1) * emission) / scale)
      wait = used < max and 0 or reset
    end

-- PART: A WINDOW
  local per_micro, in_emission = units_of(length, most)
  -- `arrival` is in us, `units` are those beyond.
  windows[w] =
    { max = most, scale = per_micro, emission = in_emission, arrival = NONE, units = 0 }

-- PART: ANY POLICY
local GENERAL_FORM, WINDOW, WINDOW_BYTES, CLAMPS = GENERAL_FORMS + 2, '<i8I2', 10, false
local is_numbered_short = is_plain and max <= MOST_NUMBERED
local numbers = is_numbered_short and NUMBERS or 2 ^ 53
local lot, phase -- of a state that was an integer

local function used(window, at)
  local ahead, units = window.arrival - at, window.units
  if ahead < 0 or (ahead == 0 and units == 0) then return 0 end
  local whole, remainder = multiply_divide(ahead, window.scale, window.emission)
  return whole + ceil((remainder + units) / window.emission)
end

local function below(window, n, at)
  local micros, units = multiply_divide(n - 1, window.emission, window.scale)
  return window.arrival - at - micros + (window.units > units and 1 or 0)
end

-- PART: READ WINDOW
    lot = nil
    local arrival, units = NONE, 0
    if from then arrival, units = unpack_bytes(WINDOW, bytes, from) end
    -- Other limits' units, where there cannot be as many of these, are rounded up.
    if units >= window.scale then arrival, units = arrival + 1, 0 end
    window.arrival, window.units = arrival, units

-- PART: READ COMPACT
    local arrival, rest
    if form then arrival, rest = parts_of_integer(bytes, BEGIN_OF_INTEGERS) end
    local _, number, low, high, units
    if form == FORM and #bytes == COMPACT_BYTES then
      _, number, low, high = unpack_bytes(COMPACT, bytes)
      units = low % 1024
    end
    if arrival then
      local window = windows[1]
      window.arrival, window.units = arrival, rest % scale
      lot = (rest - window.units) / scale
      generation, phase = number_and_phase(arrival, window.units, lot)
    elseif units and units < MOST_EXACT then
      local window = windows[1]
      generation = number
      window.arrival, window.units = high * 64 + (low - units) / 1024, units
      if units >= window.scale then window.arrival, window.units = window.arrival + 1, 0 end
    elseif is_numbered_short and server_time then
      generation = server_time % NUMBERS * SPREAD % NUMBERS
    elseif server_time then
      generation = tonumber(string.sub(redis.sha1hex(format('%d', server_time)), 1, 13), 16)
    end

-- PART: REFUND
    -- Where the newest attempt is known, time is taken as no earlier.
    if not is_plain and newest > now then now = newest end
    local later = (generation - of) % numbers -- recorded after it
    if lot and floor(of / NUMBERS) ~= phase then
      later = LATEST -- it was in another life, or has leaked before the bucket was empty
    end
    for w = 1, window_count do
      local window = windows[w]
      local per_micro, in_emission = window.scale, window.emission
      local full_micros, full_units = multiply_divide(window.max, in_emission, per_micro)
      local since = now - at
      local is_leaked = since > full_micros or (since == full_micros and full_units == 0)
      if not is_leaked and later < used(window, now) then
        -- What has not leaked of it.
        local micros, units = multiply_divide(cost, in_emission, per_micro)
        local later_micros, later_units = multiply_divide(later, in_emission, per_micro)
        local left_micros = window.arrival - now - later_micros
        local left_units = window.units - later_units
        if left_units < 0 then
          left_micros, left_units = left_micros - 1, left_units + per_micro
        end
        if left_micros < micros or (left_micros == micros and left_units < units) then
          micros, units = left_micros, left_units
        end
        units = window.units - units
        local borrowed = units < 0 and 1 or 0
        window.arrival = window.arrival - micros - borrowed
        window.units = units + borrowed * per_micro
        is_changed = true
      end
    end
    -- The newest makes its place in the bucket free for good.
    if is_changed and later == 0 then generation = (generation - cost) % numbers end

-- PART: RECORD
      for w = 1, window_count do
        local window = windows[w]
        local arrival, units, per_micro = window.arrival, window.units, window.scale
        if arrival < at then arrival, units = at, 0 end
        local micros, more = multiply_divide(cost, window.emission, per_micro)
        units = units + more
        local carried = units >= per_micro and 1 or 0
        window.arrival, window.units = arrival + micros + carried, units - carried * per_micro
      end
      -- In this order, for a sum beyond 2^53 would not be exact.
      generation = (generation - (numbers - cost)) % numbers

-- PART: LIFETIME
    lifetime = 0
    for w = 1, window_count do
      local window = windows[w]
      lifetime = max_of(lifetime, window.arrival + min(window.units, 1) - now)
    end

-- PART: WRITE COMPACT
        local arrival = windows[1].arrival
        if is_numbered_short and arrival < LATEST then
          local units = windows[1].units
          local number, phase_now
          if lot and has_integers and lot * scale + units <= MOST_OF_INTEGERS then
            number, phase_now = number_and_phase(arrival, units, lot)
          end
          if number == generation % NUMBERS and phase_now == phase
            and arrival >= EARLIEST_OF_INTEGERS and arrival < END_OF_INTEGERS then
            generation = number + phase * NUMBERS
            after = format(INTEGER, arrival + BEGIN_OF_INTEGERS, lot * scale + units)
          else
            local low = arrival % 64
            local word = low * 1024 + units
            after = pack_bytes(COMPACT, FORM, generation % NUMBERS, word, (arrival - low) / 64)
          end
        end

-- PART: WRITE WINDOW
          after = after .. pack_bytes(WINDOW, window.arrival, window.units)
