-- Sets the functions that read single entries of a weighted log, for weighted_window.lua: once for
-- all keys of a group.

-- How many entries a search reads at once, how many it begins before the guessed place, and after
-- how many steps it ends in any state.
local MOST_READ, GUESSED_BEFORE, MOST_TRIES = 16, 8, 1024

-- The bytes of the entries from the place `first` to the place `last`.
function entries_of(key, first, last)
  return call('GETRANGE', key, format('%d', HEAD_BYTES + first * ENTRY_BYTES),
    format('%d', HEAD_BYTES + (last + 1) * ENTRY_BYTES - 1))
end

-- The moment of the newest entry such that it and the later ones use n or more. The entries
-- behind the place `base` use `total`.
function moment_of(key, base, total, final, final_sum, newest, n)
  local low, high, high_use = base, final, 0 -- high_use: used by the entries behind `high`
  for tries = 1, MOST_TRIES do
    local first = floor((low + high) / 2) - GUESSED_BEFORE
    if low == base then -- not too far back yet: a guess by the mean use behind `high`
      -- At first by the mean of all; but where refusals are counted, merged entries are much
      -- larger.
      local back = (n - high_use) * (final - high) / max_of(1, high_use)
      if tries == 1 then back = total < 4 * max and n * (final - base) / total or 0 end
      first = high - max_of(MOST_READ, min(high, ceil(back) + GUESSED_BEFORE))
    end
    first = max_of(low, first)
    local last = min(first + MOST_READ, high)
    local part = entries_of(key, first, last)
    local enough, few = -1, last - first + 1 -- within the part
    while few - enough > 1 do
      local middle = floor((enough + few) / 2)
      local sum = unpack_bytes('<I4', part, middle * ENTRY_BYTES + 5)
      if (final_sum - sum) % NARROW >= n then enough = middle else few = middle end
    end
    if enough >= 0 and few <= last - first then
      local stamp = unpack_bytes('<I4', part, few * ENTRY_BYTES + 1)
      return newest - (newest - stamp) % NARROW
    end
    local place = enough < 0 and first or last
    local sum = unpack_bytes('<I4', part, (place - first) * ENTRY_BYTES + 5)
    if enough < 0 then high, high_use = place, (final_sum - sum) % NARROW else low = place end
  end
  return newest
end
