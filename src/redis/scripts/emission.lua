-- Sets per_micro and in_emission: how many units are in a us, and in an emission interval of the
-- window with the interval `length` and the max `most`; without a common divisor.
local per_micro, in_emission = most, min(length, LONGEST)
if most > MOST_EXACT then
  local whole, remainder = multiply_divide(1000, in_emission, most)
  per_micro, in_emission = 1000, max_of(1, remainder > 0 and whole + 1 or whole)
end
local divisor, rest = in_emission, per_micro
while rest > 0 do divisor, rest = rest, divisor % rest end
per_micro, in_emission = per_micro / divisor, in_emission / divisor
