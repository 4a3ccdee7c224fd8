-- Returns x * y / z rounded down, and the remainder. Exact for integers up to 2^53, if the quotient
-- is up to 2^53, too.
local function multiply_divide(x, y, z)
  local product = x * y
  if product < 2 ^ 53 then
    local quotient = floor(product / z)
    return quotient, product - quotient * z
  end
  -- The product bit by bit of x. The remainder stays below z.
  local whole = floor(y / z)
  local rest = y - whole * z
  local quotient, remainder = 0, 0
  for power = 53, 0, -1 do
    quotient = 2 * quotient
    if remainder >= z - remainder then
      quotient, remainder = quotient + 1, remainder - (z - remainder)
    else
      remainder = 2 * remainder
    end
    if x >= 2 ^ power then
      x, quotient = x - 2 ^ power, quotient + whole
      if remainder >= z - rest then
        quotient, remainder = quotient + 1, remainder - (z - rest)
      else
        remainder = remainder + rest
      end
    end
  end
  return quotient, remainder
end
