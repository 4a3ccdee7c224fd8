-- Sets `older` to the bytes of all stamps but the `skipped` oldest ones, oldest first.
if not is_long then
  older = sub(log, stamps_at + skipped * width)
else
  log = call('GET', key)
  local first, rest = (head + skipped) % room, count - skipped
  local up_to_end = min(rest, room - first)
  older = sub(log, stamps_at + first * width, stamps_at + (first + up_to_end) * width - 1)
    .. sub(log, stamps_at, stamps_at + (rest - up_to_end) * width - 1)
end
