-- Sets `moment` and `rest`, both parts of an integer in `bytes`; nil if it is none of the
-- algorithm's. As a whole it is beyond 2^53: Lua has its first 15 digits, and the last 4 apart.
local moment, rest -- luacheck: ignore 411
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
