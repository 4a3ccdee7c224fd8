-- Sets `bytes` to the state at `key`, the i-th; false if there is none, a table if it cannot be
-- read, for example because the key holds another type.
if read then
  bytes = has_repeats and written[key] or read[i]
elseif not last_of_first then
  bytes = try('GET', key)
else
  bytes = try('GETRANGE', key, '0', end_of_first)
  if bytes == '' then
    bytes = false
  elseif #bytes > last_of_first and string.byte(bytes) < parted then
    bytes = try('GET', key)
  end
end
