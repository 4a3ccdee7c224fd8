-- Opens a long log. `bytes` may have only the beginning of it.
stamps_at = stamps_at + RING_BYTES
is_state = #bytes >= stamps_at - 1
if is_state then
  count, head, room = unpack_bytes(RING, bytes, stamps_at - RING_BYTES)
  is_state = count <= room and head < room
end
-- `known` is the stamp that GETRANGE read last; it begins at known_from.
key_of_log, known_from = key, nil
stamp_in_ring = stamp_in_ring or function(n)
  local first = stamps_at + (head + count + 1 - n) % room * width
  if first + width - 1 <= #log then return unpack_bytes(stamp_layout, log, first) end
  if first ~= known_from then
    known_from, known = first, unpack_bytes(stamp_layout, call('GETRANGE', key_of_log,
      format('%d', first - 1), format('%d', first + width - 2)))
  end
  return known
end
