-- The parts of the generic cell rate algorithm: one theoretical arrival time for each window.
--
-- Each action moves the theoretical arrival time on by one `emission`, which is interval / max. An
-- attempt is allowed if the theoretical arrival time is then at most max emissions ahead of now.
-- Once it has passed, the next action restarts it at its own time.
-- Source: ATM Forum, Traffic Management 4.0, virtual scheduling.
--
-- Durations are in units, of which a us has `scale`: the fewest that make the emission an integer
-- if max is up to 1000, otherwise 1000, and the emission is rounded up. A theoretical arrival time
-- is kept as whole us, and the units beyond.
--
-- Refunds: to settle an attempt at less than it cost gives back what has not leaked of it yet. How
-- much that is follows from how much was recorded later. So each action has a number of 53 bits,
-- which a reply has in place of the generation: its high 32 bits are the generation at first, and
-- it grows by the cost of each attempt.
-- With named windows, the number grows by 1 with each attempt and each one that is settled, and
-- does not tell how much was recorded later. If other attempts followed, at least the cost minus
-- what can have leaked since is refundable. An attempt that has leaked can be settled, too, while
-- the window lasts: the id is known that long.
--
-- Integer: the theoretical arrival time; then one number for its units and the turn (see `turns`).
-- The number of the newest action follows from these (see number_of_integer), unless an earlier
-- action was settled at less: then no integer is written until the bucket was empty.
-- Bytes: the high bits of the number are in place of the generation. Then the low bits (3), and for
-- each window the theoretical arrival time (8) and its units (2). Under a single window and nothing
-- else, the theoretical arrival time is in place of the newest moment, and units (2) and low bits
-- (3) follow.

-- INCLUDE: multiply_divide

local FIRST_OF_INTEGERS, END_OF_INTEGERS = 28 * 10 ^ 13, 9 * 10 ^ 14
local EARLIEST, RESTS, INTEGER = 17 * 10 ^ 14, 10000, '-%d%04d' -- 2023 to 2043

-- Generations are multiplied by it. So the numbers of ids that begin within a few us are far apart,
-- and large costs do not add up to the difference. 2^21 divided by the golden ratio, made odd.
local FAR_APART = 1296127
local FORM, PLAIN = 0xA4, 1
local PLAIN_STATE, PLAIN_BYTES = '<BI4i8I2I3', 18
local LOW, NUMBERS = 2 ^ 21, 2 ^ 53 -- how many values the low bits and the number have
local MOST_EXACT = 1000 -- the largest max with an exact emission
local LONGEST = 2 ^ 52 -- longer intervals and later times are taken as this

now = max_of(-LONGEST, min(now, LONGEST))

local scale, emission
do
  local length, most = interval, max
  -- INCLUDE: emission
  scale, emission = per_micro, in_emission
end

-- Restarts have different phases within `emission` us, or different turns: how many such periods
-- were before, modulo `turns`. There are integers if both together have the 32 bits of a
-- generation.
local turns = floor(RESTS / scale)
-- ONE WINDOW counts a burst in units, which must be an exact number.
if interval > LONGEST / MOST_EXACT or max > 2 ^ 32 then is_common = false end
local has_integers = emission * turns >= GENERATIONS and emission * turns < LATEST

-- The number of the newest action of an integer. The phase of the arrival time within an emission
-- stays the same until the bucket is empty, so it is part of the generation. Below it is the count
-- of emissions from the epoch to the arrival time, which grows by the cost of each attempt.
local function number_of_integer(arrival, units, turn)
  local whole = floor(arrival / emission) -- `emission` us are `scale` emissions
  local beyond = (arrival - whole * emission) * scale + units
  local phase = beyond % emission
  local generation = (turn * emission + phase) % GENERATIONS
  local actions = whole * scale + (beyond - phase) / emission
  -- In this order, because a sum beyond 2^53 would not be exact.
  return (generation * LOW - NUMBERS + actions) % NUMBERS
end

-- PART: ONE WINDOW
    local backlog, turn, number = 0, nil, nil -- backlog: the units from `now` to the arrival time
    if not bytes then
      number = server_time % GENERATIONS * FAR_APART % GENERATIONS * LOW
    else
      local arrival, units
      if #bytes == PLAIN_BYTES then
        local form, high, low
        form, high, arrival, units, low = unpack_bytes(PLAIN_STATE, bytes)
        if form ~= FORM + PLAIN or units >= scale then break end
        number = high * LOW + low
      else
        -- INCLUDE: read_integer
        if not moment then break end
        arrival, units = moment, rest % scale
        turn = (rest - units) / scale
      end
      backlog = (arrival - now) * scale + units
      if backlog >= LATEST or backlog <= -LATEST then break end
    end
    local room = (max - own) * emission
    time_left = 0
    if backlog > room then
      time_left = ceil((backlog - room) / scale)
    else
      if backlog <= 0 and has_own_time and has_integers then
        turn = floor(now / emission) % turns
      end
      backlog = max_of(0, backlog) + own * emission
      local units = backlog % scale
      local arrival = now + (backlog - units) / scale
      local rest = turn and turn * scale + units
      local since = arrival - EARLIEST + FIRST_OF_INTEGERS
      -- A turn that was read may be too large under these limits.
      if rest and has_integers and rest < RESTS
        and since >= FIRST_OF_INTEGERS and since < END_OF_INTEGERS then
        after = format(INTEGER, since, rest)
      end
      if not turn then
        number = (number - (NUMBERS - own)) % NUMBERS
      elseif is_full or not after then
        number = number_of_integer(arrival, units, turn)
      end
      if not after then
        after = pack_bytes(PLAIN_STATE, FORM + PLAIN, floor(number / LOW), arrival, units,
          number % LOW)
      end
    end
    lifetime = backlog / scale
    if is_full then
      at, used = now, ceil(backlog / emission)
      generation = number or 0 -- a refusal's is never asked for
      reset = ceil((backlog - (min(used, max) - 1) * emission) / scale)
      wait = used < max and 0 or ceil((backlog - (max - 1) * emission) / scale)
    end

-- PART: A WINDOW
  -- INCLUDE: emission
  -- The theoretical arrival time is `arrival` us and `units` beyond.
  windows[w] =
    { max = most, scale = per_micro, emission = in_emission, arrival = NONE, units = 0 }

-- PART: ANY POLICY
local CLAMPS = false
local number, turn -- of the newest action; `turn` is nil if the state was no integer
local has_hole -- whether the number does not follow from arrival time and turn

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

local function set_arrival(window, arrival, units)
  -- Of other limits, there may be more units than a us has here.
  if units >= window.scale then arrival, units = arrival + 1, 0 end
  window.arrival, window.units = arrival, units
end

-- PART: READ
        is_own = form == FORM or form == FORM + PLAIN
        if is_own then
          turn, has_hole = nil, true
          local known
          if form == FORM then
            known = (#bytes - from - 2) / 10
            is_state = known >= 1 and known % 1 == 0
          else
            known, newest, is_state = 0, NONE, #bytes == from + 4
          end
          if is_state then
            local low = unpack_bytes('<I3', bytes, form == FORM and from or from + 2)
            number = (its_generation * LOW + low) % NUMBERS
          end
          for w = 1, is_state and window_count or 0 do
            local arrival, units = NONE, 0
            if w <= known then
              arrival, units = unpack_bytes('<i8I2', bytes, from + 10 * w - 7)
            elseif w == 1 then
              arrival, units = last_moment, unpack_bytes('<I2', bytes, from)
            end
            set_arrival(windows[w], arrival, units)
          end
        end

-- PART: READ INTEGER
      -- INCLUDE: read_integer
      if moment then
        for w = 1, window_count do set_arrival(windows[w], NONE, 0) end
        local units = rest % scale
        turn, has_hole = (rest - units) / scale, false
        set_arrival(windows[1], moment, units)
        is_own = true
        number = number_of_integer(moment, units, turn)
      end

-- PART: READ NOTHING
    turn, has_hole, number = nil, true, generation * FAR_APART % GENERATIONS * LOW
    for w = 1, window_count do set_arrival(windows[w], NONE, 0) end

-- PART: SETTLE
    -- If the state has the newest moment, time is taken as no earlier.
    if not is_plain and newest > now then now = newest end
    local later = (number - settled_of) % NUMBERS -- how much was recorded after the attempt
    local since = now - at
    local is_known = not has_names or later < LOW
    for w = 1, window_count do
      local window = windows[w]
      local per_micro, in_emission = window.scale, window.emission
      local full_micros, full_units = multiply_divide(window.max, in_emission, per_micro)
      local is_leaked = since > full_micros or (since == full_micros and full_units == 0)
      -- What has not leaked of the attempt.
      local left_micros, left_units = window.arrival - now, window.units
      if has_names then
        local micros, units = multiply_divide(window.cost, in_emission, per_micro)
        if later > 0 then micros = micros - max_of(0, since) end
        if micros < left_micros or (micros == left_micros and units < left_units) then
          left_micros, left_units = micros, units
        end
      elseif later >= used(window, now) then
        left_micros = -1
      else
        local micros, units = multiply_divide(later, in_emission, per_micro)
        left_micros, left_units = left_micros - micros, left_units - units
        if left_units < 0 then left_micros, left_units = left_micros - 1, left_units + per_micro end
      end
      local is_left = left_micros > 0 or (left_micros == 0 and left_units > 0)
      if not is_left then left_micros, left_units = 0, 0 end
      if is_known and not is_leaked and (is_left or has_names) then
        is_changed = true
        local change = window.actual - window.cost
        local sign = change < 0 and -1 or 1
        local micros, units = multiply_divide(sign * change, in_emission, per_micro)
        if change < 0 and (left_micros < micros or (left_micros == micros and left_units < units))
        then
          micros, units, has_hole = left_micros, left_units, true
        end
        units = window.units + sign * units
        local carried = floor(units / per_micro)
        window.arrival = min(window.arrival + sign * micros + carried, LATEST)
        window.units = units - carried * per_micro
      end
    end
    local change = windows[1].actual - cost
    if has_names then
      number = (number - (NUMBERS - 1)) % NUMBERS
    elseif change > 0 then
      -- The surplus comes on top of all.
      number = (number - (NUMBERS - change)) % NUMBERS
    elseif later == 0 then
      -- The newest gives its place in the bucket back, so the number steps back.
      number = (number + change) % NUMBERS
    else
      has_hole = true
    end

-- PART: RECORD
      for w = 1, window_count do
        local window = windows[w]
        local arrival, units, per_micro = window.arrival, window.units, window.scale
        if arrival < at then
          arrival, units = at, 0
          if is_plain and has_own_time then
            turn, has_hole = floor(now / emission) % turns, false
          end
        end
        local micros, more = multiply_divide(window.cost, window.emission, per_micro)
        units = units + more
        local carried = units >= per_micro and 1 or 0
        window.arrival, window.units = arrival + micros + carried, units - carried * per_micro
      end
      -- In this order, because a sum beyond 2^53 would not be exact.
      number = (number - (NUMBERS - (has_names and 1 or cost))) % NUMBERS

-- PART: LIFETIME
    lifetime = 0
    for w = 1, window_count do
      local window = windows[w]
      lifetime = max_of(lifetime, window.arrival + min(window.units, 1) - now)
      -- A call that blocks has no amounts, so it does not say whether windows have names.
      if has_names or operation == SET_BLOCK then
        local full_micros = multiply_divide(window.max, window.emission, window.scale)
        lifetime = max_of(lifetime, newest + full_micros + 1 - now)
      end
    end

-- PART: WRITE
      if is_plain and not has_names and blocks == '' then
        local arrival, units = windows[1].arrival, windows[1].units
        local rest = turn and turn * scale + units
        local since = arrival - EARLIEST + FIRST_OF_INTEGERS
        if rest and not has_hole and has_integers and rest < RESTS
          and since >= FIRST_OF_INTEGERS and since < END_OF_INTEGERS then
          after = format(INTEGER, since, rest)
          number = number_of_integer(arrival, units, turn)
        else
          generation = floor(number / LOW)
          after = header_of(FORM + PLAIN, arrival) .. pack_bytes('<I2I3', units, number % LOW)
        end
      else
        generation = floor(number / LOW)
        after = header_of(FORM, newest) .. pack_bytes('<I3', number % LOW)
        for w = 1, window_count do
          after = after .. pack_bytes('<i8I2', windows[w].arrival, windows[w].units)
        end
      end

-- PART: RECEIPT
    generation = number
