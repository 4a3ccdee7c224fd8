// SHA-256 at once, where the host only has one that returns a promise. Source: FIPS 180-4.
'use strict';

/** The first 32 bits of the fractional part of a root of each of the first primes. */
function rootsOfPrimes(count, root) {
  const primes = [];
  for (let candidate = 2; primes.length < count; candidate++) {
    if (primes.every((prime) => candidate % prime !== 0)) primes.push(candidate);
  }
  return Uint32Array.from(primes, (prime) => (prime ** (1 / root) % 1) * 2 ** 32);
}

const ROUNDS = rootsOfPrimes(64, 3);
const INITIAL = rootsOfPrimes(8, 2);

const rotate = (word, by) => (word >>> by) | (word << (32 - by));

/** The message in whole blocks of 64 bytes: with a one bit, zeros, and its length in bits. */
function padded(bytes) {
  const blocks = new DataView(new ArrayBuffer(Math.ceil((bytes.length + 9) / 64) * 64));
  new Uint8Array(blocks.buffer).set(bytes);
  blocks.setUint8(bytes.length, 0x80);
  blocks.setBigUint64(blocks.byteLength - 8, BigInt(bytes.length) * 8n);
  return blocks;
}

function compress(state, blocks, offset) {
  const words = new Uint32Array(64);
  for (let i = 0; i < 16; i++) words[i] = blocks.getUint32(offset + 4 * i);
  for (let i = 16; i < 64; i++) {
    const early = words[i - 15];
    const late = words[i - 2];
    const low = rotate(early, 7) ^ rotate(early, 18) ^ (early >>> 3);
    const high = rotate(late, 17) ^ rotate(late, 19) ^ (late >>> 10);
    words[i] = words[i - 16] + low + words[i - 7] + high;
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let i = 0; i < 64; i++) {
    const choice = (e & f) ^ (~e & g);
    const majority = (a & b) ^ (a & c) ^ (b & c);
    const high = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const low = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const first = (h + high + choice + ROUNDS[i] + words[i]) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + low + majority) | 0];
  }
  for (const [i, word] of [a, b, c, d, e, f, g, h].entries()) state[i] += word;
}

/** The digest of bytes. */
function sha256(bytes) {
  const state = INITIAL.slice();
  const blocks = padded(bytes);
  for (let offset = 0; offset < blocks.byteLength; offset += 64) compress(state, blocks, offset);
  const digest = new DataView(new ArrayBuffer(4 * state.length));
  for (const [i, word] of state.entries()) digest.setUint32(4 * i, word);
  return new Uint8Array(digest.buffer);
}

module.exports = { sha256 };
