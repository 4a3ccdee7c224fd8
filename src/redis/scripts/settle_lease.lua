-- Settles the lease that ends in a call about leases. Sets was_known and is_changed.
local settled = asked[4]
if settled > 0 then
  local lease, place = nil, nil
  if leases then lease, place = leasing.find(settled) end
  if lease then
    table.remove(leases, place)
    permits_in, was_known, is_changed = {}, 1, true
  end
  -- The uses of a lease that is not known count all the same: its state was lost.
  local latest = lease and lease.ends + GUARD or at
  local uses, total = {}, 0
  for a = COST_OF_LEASE + 1, amount_count, 2 do
    local use_at = min(at - asked[a], latest)
    local use_cost = min(asked[a + 1], LATEST - 1 - total) -- sums are exact
    if at - use_at < longest_window and use_cost > 0 then
      uses[#uses + 1] = { moment = use_at, cost = use_cost }
      total = total + use_cost
    end
  end
  if total > 0 then
    leases, is_changed = leases or {}, true
    if not is_weighted then weighted.convert(key) end
    weighted.insert(uses, total)
  end
end
