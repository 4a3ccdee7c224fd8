-- Sets per_micro and in_emission: how many units are in a us, and in an emission interval of a
-- window with the interval `length` and the max `most`.
local per_micro, in_emission = most, min(length, LONGEST)
if most > MOST_EXACT then
  local whole, remainder = multiply_divide(1000, in_emission, most)
  per_micro, in_emission = 1000, max_of(1, remainder > 0 and whole + 1 or whole)
end
