-- The parts of fixed windows: one after the other, aligned to the epoch or to a calendar, with a
-- count in each.
--
-- Integer: the moment of the first attempt in the window, and the count. The generation is the low
-- bits of that moment.
-- Bytes: the second since the epoch up to which the key lives at least (4), and a count for each
-- window, of 3 bytes, or of 7 if one needs them. Under a single window and nothing else, the
-- moment in the header may be that of any attempt in the window.
-- Bytes if a window follows a calendar: for each window the moment of its first attempt (8), its
-- end (8), its ordinal (4) and the count (7). A calendar window that lasts does so whatever the
-- calendar of the call says. One that has ended goes on if the window of the call has the same
-- ordinal and began before that: then another host knew another end.

local FIRST_OF_INTEGERS, END_OF_INTEGERS = 10 ^ 15, 28 * 10 ^ 14 -- 2001 to 2058
local EARLIEST, RESTS, INTEGER = FIRST_OF_INTEGERS, 1000, '-%d%03d'

local FORM, WIDE = 0xA0, 1
local STATE, STATE_BYTES = '<BI4i8I4I3', 20 -- the header, the second and the count
local NARROW = 2 ^ 24 - 1 -- the most that three bytes can count
local OF_CALENDAR, WINDOW, WINDOW_BYTES = 0xB0, '<i8i8i4I7', 27
local WRONG_TIME = -2
local NO_ORDINAL = -2 ^ 31 -- of a window with an interval
local calendars = 0 -- how many windows follow one

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
      count = count + own
      if count > NARROW then break end
      if count < RESTS and generation == begun_at % GENERATIONS
        and begun_at >= FIRST_OF_INTEGERS and begun_at < END_OF_INTEGERS then
        after = format(INTEGER, begun_at, count)
      else
        keeps_end = lives_until * 1000000 >= server_time + reset and i ~= looked_after
        if not keeps_end then lives_until = floor((server_time + lifetime) / 1000000) end
        after = pack_bytes(STATE, FORM, generation, begun_at, lives_until, count)
      end
    end
    used = count
    wait = count >= max and reset or 0

-- PART: A WINDOW
  -- Of an id: the first attempt in the window, its end, its ordinal and its count. `around` is the
  -- place before the numbers of its calendar.
  windows[w] =
    { max = most, interval = length, begun_at = NONE, ends = NONE, ordinal = 0, count = 0 }
  if length < 0 then
    windows[w].around, calendars = 2 * window_count - 2 + block_count + 7 * calendars, calendars + 1
  end

-- PART: ANY POLICY
local CLAMPS = true

-- Of a calendar window that has ended by `at`, or has not begun: the count then, and the end,
-- ordinal and first attempt with which it goes on.
local next_of
if calendars > 0 then
  -- Settling and blocking ask no calendar.
  for w = 1, operation ~= SETTLE and operation ~= SET_BLOCK and window_count or 0 do
    local around = windows[w].around
    if around and (now < further[around + 2] or now >= further[around + 7]) then
      local last = replied + key_count * (is_full and 7 + 2 * window_count or 1)
      for place = replied + 1, last do reply[place] = WRONG_TIME end
      return last, last_key + 1
    end
  end

  function next_of(window, at)
    local around = window.around
    local place = at < further[around + 4] and 1 or at < further[around + 6] and 3 or 5
    local ordinal, ends = further[around + place], further[around + min(place + 3, 7)]
    if ordinal == window.ordinal and further[around + place + 1] < window.ends then
      return window.count, ends, ordinal, window.begun_at
    end
    return 0, ends, ordinal, at
  end
end

local function used(window, at)
  if at < window.ends then return window.count end
  return window.around and next_of(window, at) or 0
end

local function below(window, n, at)
  local count, ends = window.count, window.ends
  if window.around then
    -- One that lasts may go on when it ends.
    local later, its_end = next_of(window, max_of(at, ends))
    if at >= ends then
      count, ends = later, its_end
    elseif later > 0 then
      ends = max_of(ends, its_end)
    end
  elseif at >= ends then
    return 0
  end
  return count < n and 0 or ends - at
end

-- PART: READ
        is_own = form == FORM or form == FORM + WIDE or form == OF_CALENDAR
        if is_own then
          local size = form == OF_CALENDAR and WINDOW_BYTES or form == FORM and 3 or 7
          if form ~= OF_CALENDAR then from = from + 4 end
          local known = (#bytes - from + 1) / size
          is_state = known >= 1 and known % 1 == 0
          for w = 1, is_state and window_count or 0 do
            local window, place = windows[w], from + (w - 1) * size
            local count = 0
            window.ends = NONE
            if w > known then -- luacheck: ignore 542
            elseif form == OF_CALENDAR then
              window.begun_at, window.ends, window.ordinal, count =
                unpack_bytes(WINDOW, bytes, place)
              -- What a window of the other kind counted means nothing.
              if (window.ordinal == NO_ORDINAL) == (window.around ~= nil) then
                window.ends, count = NONE, 0
              end
            elseif not window.around then
              count = unpack_bytes('<I' .. size, bytes, place)
              window.begun_at = newest - newest % window.interval
              window.ends = window.begun_at + window.interval
            end
            window.count = min(count, LATEST - 1)
          end
        end

-- PART: READ INTEGER
      -- INCLUDE: read_integer
      if moment then
        for w = 1, window_count do windows[w].count, windows[w].ends = 0, NONE end
        is_own, generation, newest = true, moment % GENERATIONS, moment
        if not windows[1].around then
          local length = windows[1].interval
          windows[1].count, windows[1].begun_at = rest, moment - moment % length
          windows[1].ends = windows[1].begun_at + length
        end
      end

-- PART: READ NOTHING
    for w = 1, window_count do windows[w].count, windows[w].ends = 0, NONE end

-- PART: SETTLE
    for w = 1, window_count do
      local window = windows[w]
      local count, change = window.count, window.actual - window.cost
      if settled_of == generation and at >= window.begun_at and at < window.ends
        and (count > 0 or window.cost == 0) then
        window.count, is_changed = max_of(0, min(count + change, LATEST - 1)), true
      end
    end

-- PART: RECORD
      for w = 1, window_count do
        local window = windows[w]
        if at >= window.ends and window.around then
          window.count, window.ends, window.ordinal, window.begun_at = next_of(window, at)
        elseif at >= window.ends then
          local length = window.interval
          window.count, window.ends, window.begun_at = 0, at - at % length + length, at
        end
        window.count = min(window.count + window.cost, LATEST - 1)
      end

-- PART: LIFETIME
    lifetime = newest + longest_window - now -- also of a window that goes on in another zone

-- PART: WRITE
      if calendars > 0 then
        after = header_of(OF_CALENDAR, newest)
        for w = 1, window_count do
          local window = windows[w]
          after = after
            .. pack_bytes(WINDOW, window.begun_at, window.ends,
              window.around and window.ordinal or NO_ORDINAL, window.count)
        end
      elseif is_plain and blocks == '' and windows[1].count < RESTS
        and generation == newest % GENERATIONS
        and newest >= FIRST_OF_INTEGERS and newest < END_OF_INTEGERS then
        after = format(INTEGER, newest, windows[1].count)
      else
        local is_wide = false
        for w = 1, window_count do is_wide = is_wide or windows[w].count > NARROW end
        after = header_of(is_wide and FORM + WIDE or FORM, newest)
          .. pack_bytes('<I4', floor((server_time + lifetime) / 1000000))
        for w = 1, window_count do
          after = after .. pack_bytes(is_wide and '<I7' or '<I3', windows[w].count)
        end
      end
