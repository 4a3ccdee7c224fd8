-- Grants the lease that is wanted in a call about leases: half of the room stays for others, and
-- holders get equal parts of the rest. Sets `granted` and is_changed.
local length, wanted, most = asked[3], asked[5], asked[6]
local is_unblocked = at >= block_until and at >= blocked_by_call
local is_new = not leases or (#leases < MOST_LEASES and not leasing.find(wanted))
if wanted > 0 and is_unblocked and is_new then
  local holders, left = 1, NARROW
  for l = 1, leases and #leases or 0 do
    if leases[l].ends > at then holders = holders + 1 end
  end
  for w = 1, window_count do left = min(left, windows[w].max - used(windows[w], at)) end
  local permits = min(most, floor(left / (2 * holders)))
  if permits >= FEWEST_PERMITS then
    leases = leases or {}
    if not is_weighted then weighted.convert(key) end
    leases[#leases + 1] =
      { high = asked[1], low = asked[2], number = wanted, permits = permits, ends = at + length }
    granted, permits_in, is_changed = permits, {}, true
  end
end
