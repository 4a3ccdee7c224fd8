-- A state up to what the algorithm keeps.
local function header_of(form, moment)
  if blocks == '' then return pack_bytes(HEADER, form, generation, moment) end
  return pack_bytes(HEADER, form + WITH_BLOCK, generation, moment) .. blocks
end
