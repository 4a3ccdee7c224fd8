-- Writes a log of stamps with its `recorded` new actions: without what `last` does not need, and
-- with no more actions than the policy has room for, or than the longest window had before. A stamp
-- is dropped before it could be taken for a later one.
local dropped, unneeded = 0, max_of(last - retention, newest - policy_range)
if last ~= NONE and last <= unneeded then
  dropped = count + 1
elseif nth(size) <= unneeded then
  local few = is_long and min(count, FEW_STAMPS) or count
  while dropped < few and nth(size - dropped) <= unneeded do dropped = dropped + 1 end
  if dropped == few and dropped < count and nth(size - dropped) <= unneeded then
    local outside, inside = dropped, count
    while inside - outside > 1 do
      local middle = floor((outside + inside) / 2)
      if nth(size - middle) <= unneeded then outside = middle else inside = middle end
    end
    dropped = inside
  end
end
if dropped > 0 then size, displaced = size - dropped, 0 end
local kept, most = size - recorded, most_kept
if size > most then
  -- What was in the longest window stays: a call with a higher max may follow.
  local inside, outside = 0, kept + dropped + 1
  if last - nth(recorded + kept + dropped) < longest_window then inside = outside - 1 end
  while outside - inside > 1 do
    local middle = floor((inside + outside) / 2)
    if last - nth(recorded + middle) < longest_window then inside = middle else outside = middle end
  end
  most = min(max_of(most, inside), MOST_STAMPS)
end
local stamps = size - 1
if size > most and kept > 0 then
  -- Actions that an allowed attempt pushes out are outside of every window. Others may be missing
  -- when an attempt is settled.
  displaced = (blocked ~= 0 or not asks)
    and newest - nth(size - min(size - most, kept) + 1) < retention and 1 or 0
end
if size > most then size, stamps = most, most - 1 end

-- A state that this call may read again must be written whole.
local is_read_again = read and has_repeats
local stays_in_ring = is_long and not is_read_again and kept > 0
  and width == policy_width and bytes_before == #blocks
  and stamps <= room and stamps >= room / 4 and stamps > MOST_OF_SHORT / 2
local form = policy_form + displaced * DISPLACED
if stays_in_ring or stamps > MOST_OF_SHORT then form = form + LONG end
local header = header_of(form, newest) .. pack_bytes('<I4', expires)

if stays_in_ring then
  if recorded > 0 then
    local added = sub(pack_bytes('<i8', last), 1, width)
    if recorded > 1 then
      local same = sub(pack_bytes('<i8', newest), 1, width)
      added = sub(added .. string.rep(same, min(recorded - 1, room)), -room * width)
    end
    local first = (head + count + recorded - #added / width) % room
    local up_to_end = (room - first) * width
    call('SETRANGE', key, format('%d', stamps_at - 1 + first * width), sub(added, 1, up_to_end))
    if up_to_end < #added then
      call('SETRANGE', key, format('%d', stamps_at - 1), sub(added, up_to_end + 1))
    end
  end
  local next_head = (head + count + recorded - stamps) % room
  call('SETRANGE', key, '0', header .. pack_bytes(RING, stamps, next_head, room))
  if not keeps_end then
    call('PEXPIREAT', key, format('%d', base_of_ends + ceil(lifetime / 1000)))
  end
elseif size == 0 and not is_blocked then
  call('DEL', key)
else
  local older, added = '', ''
  if kept > 0 and stamps > 0 then
    local skipped = min(count - stamps + recorded, count)
    -- INCLUDE: older_stamps
    if width ~= policy_width then
      local others = {}
      for place = 1, #older / width do
        local stamp = unpack_bytes(stamp_layout, older, (place - 1) * width + 1)
        others[place] = sub(pack_bytes('<i8', last - (last - stamp) % range), 1, policy_width)
      end
      older = table.concat(others)
    end
    if recorded > 0 then added = sub(pack_bytes('<i8', last), 1, policy_width) end
  end
  if recorded > 1 and stamps > 0 then
    local same = sub(pack_bytes('<i8', newest), 1, policy_width)
    added = added .. string.rep(same, min(recorded - 1, stamps))
    older, added = sub(older .. added, -stamps * policy_width), ''
  end
  if stamps > MOST_OF_SHORT then
    header = header .. pack_bytes(RING, stamps, 0, min(most - 1, 2 * stamps))
  end
  after = header .. older .. added
  keeps_end = keeps_end and not is_long -- of a long log, `bytes` may have only the beginning
end
