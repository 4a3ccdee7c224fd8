-- A state up to what the algorithm keeps.
local function header_of(form, moment)
  if not with_block then return pack_bytes(HEADER, form, generation, moment) end
  return pack_bytes(HEADER, form + WITH_BLOCK, generation, moment)
    .. pack_bytes(BLOCK, block_until, offences)
end
