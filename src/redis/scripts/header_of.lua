-- The bytes of a state before what the algorithm keeps: header and blocks.
local function header_of(form, moment)
  if blocks == '' then return pack_bytes(HEADER, form, generation, moment) end
  return pack_bytes(HEADER, form + WITH_BLOCK, generation, moment) .. blocks
end
