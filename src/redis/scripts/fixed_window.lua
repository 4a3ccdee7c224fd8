-- The parts of fixed windows: one after the other, aligned to the epoch, with a count in each.
--
-- Integer: the moment of the first attempt in the window, and the count. The generation is the low
-- bits of that moment.
-- Bytes: the second since the epoch up to which the key lives at least (4), and a count for each
-- window, of 3 bytes, or of 7 if a max needs them. Under a single window and nothing else, the
-- moment in the header may be that of any attempt in the window.

local FIRST_OF_INTEGERS, END_OF_INTEGERS = 10 ^ 15, 28 * 10 ^ 14 -- 2001 to 2058
local EARLIEST, RESTS, INTEGER = FIRST_OF_INTEGERS, 1000, '-%d%03d'

local FORM, WIDE = 0xA0, 1
local STATE, STATE_BYTES = '<BI4i8I4I3', 20 -- the header, the second and the count
local NARROW = 2 ^ 24 - 1 -- the most that three bytes can count
if max >= NARROW then is_common = false end

-- PART: ONE WINDOW
    at = now
    local begun_at, count
    local lives_until = 0
    if bytes then
      if #bytes == STATE_BYTES and string.byte(bytes) == FORM then
        local _
        _, generation, begun_at, lives_until, count = unpack_bytes(STATE, bytes)
        if begun_at > LATEST or begun_at < -LATEST then break end
      else
        -- INCLUDE: read_integer
        if not moment then break end
        begun_at, count, generation = moment, rest, moment % GENERATIONS
      end
    end
    if not begun_at or begun_at < now - now % interval then
      begun_at, count, generation = now, 0, server_time % GENERATIONS
    elseif begun_at > now then
      at = begun_at
    end
    reset = interval - at % interval + (at - now)
    lifetime = interval + (at - now)
    local is_refused = count + own > max
    time_left = is_refused and reset or 0
    if not is_refused or count_blocked then
      count = min(count + own, NARROW)
      if count < RESTS and generation == begun_at % GENERATIONS
        and begun_at >= FIRST_OF_INTEGERS and begun_at < END_OF_INTEGERS then
        after = format(INTEGER, begun_at, count)
      else
        keeps_end = lives_until * 1000000 >= server_time + reset and i ~= looked_after
        if not keeps_end then lives_until = floor((server_time + lifetime) / 1000000) end
        after = pack_bytes(STATE, FORM, generation, begun_at, lives_until, count)
      end
    end
    used = hides_overdraft and min(count, max) or count
    wait = count >= max and reset or 0

-- PART: A WINDOW
  windows[w] = { max = most, interval = length, current = 0 }

-- PART: ANY POLICY
local CLAMPS = true
local cap = largest_max >= NARROW and LATEST - 1 or NARROW -- attempts raise no count above it

local function used(window, at)
  local length = window.interval
  return floor(at / length) == floor(newest / length) and window.current or 0
end

local function below(window, n, at)
  return used(window, at) < n and 0 or window.interval - at % window.interval
end

-- PART: READ
        is_own = form == FORM or form == FORM + WIDE
        if is_own then
          local bytes_per_count = form == FORM and 3 or 7
          from = from + 4
          local known = (#bytes - from + 1) / bytes_per_count
          is_state = known >= 1 and known % 1 == 0
          for w = 1, is_state and window_count or 0 do
            local place = w <= known and from + (w - 1) * bytes_per_count
            local count = place and unpack_bytes('<I' .. bytes_per_count, bytes, place) or 0
            windows[w].current = min(count, LATEST - 1)
          end
        end

-- PART: READ INTEGER
      -- INCLUDE: read_integer
      if moment then
        for w = 1, window_count do windows[w].current = w == 1 and rest or 0 end
        is_own, generation, newest = true, moment % GENERATIONS, moment
      end

-- PART: READ NOTHING
    for w = 1, window_count do windows[w].current = 0 end

-- PART: SETTLE
    -- INCLUDE: settle_counts

-- PART: RECORD
      for w = 1, window_count do
        local window = windows[w]
        local before = used(window, at)
        window.current = max_of(before, min(before + window.cost, cap))
      end

-- PART: LIFETIME
    lifetime = newest + longest_window - now

-- PART: WRITE
      if is_plain and blocks == '' and windows[1].current < RESTS
        and generation == newest % GENERATIONS
        and newest >= FIRST_OF_INTEGERS and newest < END_OF_INTEGERS then
        after = format(INTEGER, newest, windows[1].current)
      else
        local is_wide = largest_max >= NARROW
        for w = 1, window_count do is_wide = is_wide or windows[w].current > NARROW end
        after = header_of(is_wide and FORM + WIDE or FORM, newest)
          .. pack_bytes('<I4', floor((server_time + lifetime) / 1000000))
        for w = 1, window_count do
          after = after .. pack_bytes(is_wide and '<I7' or '<I3', windows[w].current)
        end
      end
