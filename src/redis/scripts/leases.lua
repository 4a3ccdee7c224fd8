-- Sets `leasing` to the functions for a log of which permits are leased; settle_lease.lua and
-- grant_lease.lua use them, and the parts of sliding_window_log.lua read and write leases.
--
-- A lease is some permits that a process has taken ahead; in every window, each of them is one unit
-- of cost. docs/design/leases.md has the protocol and why it is exact.
--
-- A call about leases settles one of them, makes an attempt, then grants another lease. Amounts of
-- its key:
--   holder, holder         64 bits, the high ones first
--   length                 of the lease to grant, in us
--   settled                the number of the lease that ends; 0: none
--   wanted, most           the number of the lease to grant, and its most permits; 0, 0: none
--   cost                   of the attempt; 0: none
--   age, cost              of each use of the lease that ends, oldest first: how long ago, in us
-- Its reply is a full one to the attempt, in which the permits that it grants are not used; then
-- how many these are, and whether the lease that ends was known (1 or 0).
--
-- Bytes: LEASED, the number of leases (4), the latest moment that a call about leases had (8); each
-- lease; then the state of a weighted log.

-- How long from `at` until one of the leases, which all count, may count no more.
local function until_fewer(window, at)
  local first_end, first_over = nil, nil
  for l = 1, #leases do
    local ends = leases[l].ends
    local over = ends + GUARD + window.interval
    if ends > at then
      first_end = min(first_end or ends, ends)
    elseif over > at then
      first_over = min(first_over or over, over)
    end
  end
  return (first_end or first_over) - at
end

leasing = {}

-- How many permits count in a window.
function leasing.permits(window, at)
  if permits_in[window] then return permits_in[window] end
  local permits = 0
  for l = 1, #leases do
    if at < leases[l].ends + GUARD + window.interval then permits = permits + leases[l].permits end
  end
  permits_in[window] = permits
  return permits
end

-- As `below`, where recorded_below knows only what is recorded. Permits may come back at the end of
-- their lease; those of a holder that has died do when they count no more.
function leasing.below(window, n, at, recorded_below)
  local permits = leasing.permits(window, at)
  if permits == 0 then return recorded_below(window, n, at) end
  local until_left = n > permits and recorded_below(window, n - permits, at)
  if until_left and until_left <= 0 then return until_left end
  local fewer = until_fewer(window, at)
  return until_left and min(until_left, fewer) or fewer
end

-- Returns the lease of the holder in the call, and its place.
function leasing.find(number)
  for l = 1, #leases do
    local lease = leases[l]
    if lease.number == number and lease.high == asked[1] and lease.low == asked[2] then
      return lease, l
    end
  end
end
