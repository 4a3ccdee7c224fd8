-- Sets `moment` and `rest`, the two parts of the integer in `bytes`; moment is nil if the integer
-- is not the algorithm's. It is beyond 2^53, so its last 4 digits are read from the string.
local moment, rest
if #bytes == 20 and string.find(bytes, '^%-%d*$') then
  local last_digits = sub(bytes, 17) + 0
  rest = last_digits % RESTS
  local before = floor((-bytes - last_digits) / 10000 + 0.5)
  moment = before * (10000 / RESTS) + (last_digits - rest) / RESTS
  if moment >= FIRST_OF_INTEGERS and moment < END_OF_INTEGERS then
    moment = moment - FIRST_OF_INTEGERS + EARLIEST
  else
    moment = nil
  end
end
