// Which slot of a cluster a key belongs to.
'use strict';

/** Source of slots and hash: the Redis Cluster specification. */
const SLOTS = 16_384;

/** CRC-16/XMODEM, a byte at a time. */
const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc;
});

/** The part of a key that is hashed: what the first braces contain, or the whole key if that is empty. */
function hashedPart(key) {
  const open = key.indexOf('{');
  const close = key.indexOf('}', open + 1);
  return open === -1 || close <= open + 1 ? key : key.slice(open + 1, close);
}

function keySlot(key) {
  let crc = 0;
  for (const byte of Buffer.from(hashedPart(key))) {
    crc = ((crc << 8) & 0xffff) ^ TABLE[(crc >> 8) ^ byte];
  }
  return crc % SLOTS;
}

module.exports = { keySlot };
