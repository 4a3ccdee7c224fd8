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

-- PART: A WINDOW
  local scale, emission = most, min(length, LONGEST)
  if most > MOST_EXACT then
    local whole, remainder = multiply_divide(1000, emission, most)
    scale, emission = 1000, max_of(1, remainder > 0 and whole + 1 or whole)
  end
  -- `arrival` is in us, `units` are those beyond.
  windows[w] = { max = most, scale = scale, emission = emission, arrival = NONE, units = 0 }

-- PART: ANY POLICY
local GENERAL_FORM, WINDOW, WINDOW_BYTES, CLAMPS = GENERAL_FORMS + 2, '<i8I2', 10, false
local is_numbered_short = is_plain and max <= MOST_NUMBERED
local numbers = is_numbered_short and NUMBERS or 2 ^ 53

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
    local arrival, units = NONE, 0
    if from then arrival, units = unpack_bytes(WINDOW, bytes, from) end
    -- Of other limits' units, as many as there can be of these.
    window.arrival, window.units = arrival, min(units, window.scale - 1)

-- PART: READ COMPACT
    local _, number, low, high, units
    if form == FORM and #bytes == COMPACT_BYTES then
      _, number, low, high = unpack_bytes(COMPACT, bytes)
      units = low % 1024
    end
    if units and units < MOST_EXACT then
      local window = windows[1]
      incarnation = number
      window.arrival = high * 64 + (low - units) / 1024
      window.units = min(units, window.scale - 1)
    elseif is_numbered_short and server_time then
      incarnation = server_time % NUMBERS * SPREAD % NUMBERS
    elseif server_time then
      incarnation = tonumber(string.sub(redis.sha1hex(format('%d', server_time)), 1, 13), 16)
    end

-- PART: REFUND
    -- Where the newest attempt is known, time is taken as no earlier.
    if not is_plain and newest > now then now = newest end
    local later = (incarnation - of) % numbers -- recorded after it
    for w = 1, window_count do
      local window = windows[w]
      local scale, emission = window.scale, window.emission
      local full_micros, full_units = multiply_divide(window.max, emission, scale)
      local since = now - at
      local is_leaked = since > full_micros or (since == full_micros and full_units == 0)
      if not is_leaked and later < used(window, now) then
        -- What has not leaked of it.
        local micros, units = multiply_divide(cost, emission, scale)
        local later_micros, later_units = multiply_divide(later, emission, scale)
        local left_micros = window.arrival - now - later_micros
        local left_units = window.units - later_units
        if left_units < 0 then left_micros, left_units = left_micros - 1, left_units + scale end
        if left_micros < micros or (left_micros == micros and left_units < units) then
          micros, units = left_micros, left_units
        end
        units = window.units - units
        local borrowed = units < 0 and 1 or 0
        window.arrival = window.arrival - micros - borrowed
        window.units = units + borrowed * scale
        is_changed = true
      end
    end
    -- The newest makes its place in the bucket free for good.
    if is_changed and later == 0 then incarnation = (incarnation - cost) % numbers end

-- PART: RECORD
      for w = 1, window_count do
        local window = windows[w]
        local arrival, units, scale = window.arrival, window.units, window.scale
        if arrival < at then arrival, units = at, 0 end
        local micros, more = multiply_divide(cost, window.emission, scale)
        units = units + more
        local carried = units >= scale and 1 or 0
        window.arrival, window.units = arrival + micros + carried, units - carried * scale
      end
      -- In this order, for a sum beyond 2^53 would not be exact.
      incarnation = (incarnation - (numbers - cost)) % numbers

-- PART: LIFETIME
    lifetime = 0
    for w = 1, window_count do
      local window = windows[w]
      lifetime = max_of(lifetime, window.arrival + min(window.units, 1) - now)
    end

-- PART: WRITE COMPACT
        local arrival = windows[1].arrival
        if is_numbered_short and arrival < LATEST then
          local low = arrival % 64
          local word = low * 1024 + windows[1].units
          after = pack_bytes(COMPACT, FORM, incarnation % NUMBERS, word, (arrival - low) / 64)
        end

-- PART: WRITE WINDOW
          after = after .. pack_bytes(WINDOW, window.arrival, window.units)
