-- Adds the answer for the i-th key under one window to the reply: one integer behind `answers`, or
-- 9 if is_full. It is -1 if the key was not written.
if not is_full then
  reply[answers + i] = is_written and time_left or -1
elseif not is_written then
  for place = answers + 9 * i - 8, answers + 9 * i do reply[place] = -1 end
else
  local start, is_blocked = answers + 9 * i - 8, time_left > 0
  reply[start], reply[start + 1] = is_blocked and 1 or 0, time_left
  reply[start + 2] = used < max and max - used or 0
  reply[start + 3] = is_blocked and time_left or reset
  reply[start + 4], reply[start + 5], reply[start + 6] = wait, at, generation
  reply[start + 7], reply[start + 8] = used, reset
end
