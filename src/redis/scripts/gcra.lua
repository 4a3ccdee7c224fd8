-- The parts of the generic cell rate algorithm: one theoretical arrival time for each window.
--
-- Each action moves the theoretical arrival time on by one `emission`, which is interval / max. An
-- attempt is allowed if the theoretical arrival time is then at most max emissions ahead of now.
-- Once it has passed, the next action restarts it at its own time.
-- Source: ATM Forum, Traffic Management 4.0, virtual scheduling.
--
-- Durations are in units, of which a us has `scale`: max if it is up to 1000, so the emission is an
-- integer; otherwise 1000, and the emission is rounded up. A theoretical arrival time is kept as
-- whole us, and the units beyond.
--
-- Another limit changes the emission, not how many emissions the theoretical arrival time was ahead
-- of the newest action. So a state has the limit that its arrival time was recorded under, and only
-- what is recorded changes that. Under a max of 0, which has no emission, it stays as it is.
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
-- Bytes: the high bits of the number are in place of the generation. Then the low bits (3), and for
-- each window the theoretical arrival time (8) and its units (2), and the interval (7) and the max
-- (7) that it was recorded under.
-- Earlier releases wrote neither the limits nor, with PLAIN and in integers, the newest moment.
-- These are read as if they had been recorded under the limits of the call, and without units.

-- INCLUDE: multiply_divide

-- Of integers: arrival times from 2023 to 2043.
local FIRST_OF_INTEGERS, END_OF_INTEGERS = 28 * 10 ^ 13, 9 * 10 ^ 14
local EARLIEST, RESTS = 17 * 10 ^ 14, 10000
local WITHOUT_LIMITS, PLAIN = 0xA4, 0xA5

-- Generations are multiplied by it. So the numbers of ids that begin within a few us are far apart,
-- and large costs do not add up to the difference. 2^21 divided by the golden ratio, made odd.
local FAR_APART = 1296127
local FORM = 0xB1
local STATE, STATE_BYTES = '<BI4i8I3i8I2I7I7', 40 -- of a single window, without blocks
local WINDOW, WINDOW_BYTES = '<i8I2I7I7', 24
local LOW, NUMBERS = 2 ^ 21, 2 ^ 53 -- how many values the low bits and the number have
local MOST_EXACT = 1000 -- the largest max with an exact emission
local LONGEST = 2 ^ 52 -- longer intervals and later times are taken as this

now = max_of(-LONGEST, min(now, LONGEST))

-- ONE WINDOW counts a burst in units, which must be an exact number.
if interval > LONGEST / MOST_EXACT or max > 2 ^ 32 then is_common = false end
local scale, emission
if is_common then
  local length, most = interval, max
  -- INCLUDE: emission
  scale, emission = per_micro, in_emission
end

-- PART: ONE WINDOW
    local backlog, newest = 0, now -- backlog: the units from `now` to the arrival time
    local high, low
    if not bytes then
      high, low = server_time % GENERATIONS * FAR_APART % GENERATIONS, 0
    else
      if #bytes ~= STATE_BYTES then break end
      local form, arrival, units, its_interval, its_max
      form, high, newest, low, arrival, units, its_interval, its_max = unpack_bytes(STATE, bytes)
      if form ~= FORM or its_interval ~= interval or its_max ~= max
        or newest > LATEST or newest < -LATEST then break end
      backlog = (arrival - now) * scale + units
      if backlog >= LATEST or backlog <= -LATEST then break end
    end
    local room = (max - own) * emission
    time_left = 0
    if backlog > room then
      time_left = ceil((backlog - room) / scale)
    else
      backlog = max_of(0, backlog) + own * emission
      newest, low = max_of(newest, now), low + own
      if low >= LOW then high, low = (high + floor(low / LOW)) % GENERATIONS, low % LOW end
      local units = backlog % scale
      after = pack_bytes(STATE, FORM, high, newest, low, now + (backlog - units) / scale, units,
        interval, max)
    end
    lifetime = backlog / scale
    if keep > 0 then lifetime = max_of(lifetime, newest + interval - now) end
    if is_full then
      at, generation, used = now, high * LOW + low, ceil(backlog / emission)
      reset = ceil((backlog - (min(used, max) - 1) * emission) / scale)
      wait = used < max and 0 or ceil((backlog - (max - 1) * emission) / scale)
    end

-- PART: A WINDOW
  -- `arrival` us and `units` are the theoretical arrival time, in units of of_max in of_interval.
  windows[w] = { max = most, interval = min(length, LONGEST), arrival = NONE, units = 0 }

-- PART: ANY POLICY
local CLAMPS = false
local number -- of the newest action

-- The units of an arrival time are those of this limit from now on.
local function set_limit(window, length, most)
  -- INCLUDE: emission
  window.of_interval, window.of_max, window.scale, window.emission =
    length, most, per_micro, in_emission
end

-- Moves an arrival time on; it stops where times do.
local function add(window, actions, units)
  local per_micro = window.scale
  local micros, more = multiply_divide(actions, window.emission, per_micro)
  units = window.units + more + units
  local carried = floor(units / per_micro)
  window.arrival, window.units = window.arrival + micros + carried, units - carried * per_micro
  if window.arrival >= LATEST then window.arrival, window.units = LATEST, 0 end
end

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

-- Sets an arrival time without a limit of its own.
local function set_arrival(window, arrival)
  window.arrival, window.units = arrival, 0
  set_limit(window, window.interval, max_of(1, window.max))
end

-- PART: READ
        is_own = form == FORM or form == WITHOUT_LIMITS or form == PLAIN
        if is_own then
          local known = 1
          if form == PLAIN then
            newest, is_state = NONE, #bytes == from + 4
          else
            known = (#bytes - from - 2) / (form == FORM and WINDOW_BYTES or 10)
            is_state = known >= 1 and known % 1 == 0
          end
          if is_state then
            local low = unpack_bytes('<I3', bytes, form == PLAIN and from + 2 or from)
            number = (its_generation * LOW + low) % NUMBERS
          end
          for w = 1, is_state and window_count or 0 do
            local window = windows[w]
            local arrival, units, its_interval, its_max = NONE, 0, nil, nil
            if w <= known and form == FORM then
              arrival, units, its_interval, its_max =
                unpack_bytes(WINDOW, bytes, from + 3 + (w - 1) * WINDOW_BYTES)
            elseif w <= known and form == WITHOUT_LIMITS then
              arrival, units = unpack_bytes('<i8I2', bytes, from + 10 * w - 7)
            elseif w <= known then
              arrival, units = last_moment, unpack_bytes('<I2', bytes, from)
            end
            if its_max and newest ~= NONE then
              window.arrival, window.units = arrival, units
              if its_max ~= window.of_max or its_interval ~= window.of_interval then
                set_limit(window, its_interval, its_max)
              end
            else
              set_arrival(window, units > 0 and arrival + 1 or arrival)
            end
          end
        end

-- PART: READ INTEGER
      -- INCLUDE: read_integer
      if moment then
        for w = 1, window_count do set_arrival(windows[w], NONE) end
        set_arrival(windows[1], rest > 0 and moment + 1 or moment)
        is_own, number = true, generation * FAR_APART % GENERATIONS * LOW
      end

-- PART: READ NOTHING
    number = generation * FAR_APART % GENERATIONS * LOW
    for w = 1, window_count do set_arrival(windows[w], NONE) end

-- PART: STATE
    -- As many actions as the arrival time was ahead of the newest, under the limit of the call.
    -- `kept`: the window in the state, for a write that records nothing.
    for w = 1, operation ~= SETTLE and operation ~= SET_BLOCK and window_count or 0 do
      local window = windows[w]
      local length, most, per_action = window.of_interval, window.of_max, window.emission
      window.kept = nil
      if window.max > 0 and (window.max ~= most or window.interval ~= length) then
        local ahead, units = window.arrival - newest, window.units
        window.kept = pack_bytes(WINDOW, window.arrival, units, length, most)
        local actions, rest = 0, 0
        if ahead >= 0 then
          actions, rest = multiply_divide(ahead, window.scale, per_action)
          rest = rest + units
          local whole = floor(rest / per_action)
          actions, rest = actions + whole, rest - whole * per_action
        end
        set_arrival(window, newest)
        local in_units, remainder = multiply_divide(rest, window.emission, per_action)
        add(window, actions, remainder > 0 and in_units + 1 or in_units)
      end
    end

-- PART: SETTLE
    local present = max_of(now, newest)
    local later = (number - settled_of) % NUMBERS -- how much was recorded after the attempt
    local since = present - at
    local is_known = not has_names or later < LOW
    for w = 1, window_count do
      local window = windows[w]
      local per_micro, in_emission = window.scale, window.emission
      local full_micros, full_units = multiply_divide(window.of_max, in_emission, per_micro)
      local is_leaked = since > full_micros or (since == full_micros and full_units == 0)
      -- What has not leaked of the attempt.
      local left_micros, left_units = window.arrival - present, window.units
      if has_names then
        local micros, units = multiply_divide(window.cost, in_emission, per_micro)
        if later > 0 then micros = micros - max_of(0, since) end
        if micros < left_micros or (micros == left_micros and units < left_units) then
          left_micros, left_units = micros, units
        end
      elseif later >= used(window, present) then
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
        if change >= 0 then
          add(window, change, 0)
        else
          local micros, units = multiply_divide(-change, in_emission, per_micro)
          if left_micros < micros or (left_micros == micros and left_units < units) then
            micros, units = left_micros, left_units
          end
          local borrowed = units > window.units and 1 or 0
          window.arrival = window.arrival - micros - borrowed
          window.units = window.units - units + borrowed * per_micro
        end
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
    end

-- PART: RECORD
      for w = 1, window_count do
        local window = windows[w]
        if window.arrival < at then window.arrival, window.units = at, 0 end
        add(window, window.cost, 0)
      end
      -- In this order, because a sum beyond 2^53 would not be exact.
      number = (number - (NUMBERS - (has_names and 1 or cost))) % NUMBERS

-- PART: LIFETIME
    lifetime = 0
    -- The limits of the next call may need it for longer than those of this one, and what has names
    -- can be settled for longer. A call that settles or blocks does not know limits of others.
    local is_kept = has_names or keep > 0 or operation == SETTLE or operation == SET_BLOCK
    for w = 1, window_count do
      local window = windows[w]
      lifetime = max_of(lifetime, window.arrival + min(window.units, 1) - now)
      if is_kept then
        local full_micros = multiply_divide(window.of_max, window.emission, window.scale)
        lifetime = max_of(lifetime, newest + max_of(full_micros + 1, window.interval) - now)
      end
    end

-- PART: WRITE
      generation = floor(number / LOW)
      after = header_of(FORM, newest) .. pack_bytes('<I3', number % LOW)
      for w = 1, window_count do
        local window = windows[w]
        local kept = asks and blocked ~= 0 and window.kept
        after = after .. (kept or pack_bytes(WINDOW, window.arrival, window.units,
          window.of_interval, window.of_max))
      end

-- PART: RECEIPT
    generation = number
