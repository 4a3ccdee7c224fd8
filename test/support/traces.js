// Random numbers and walks of time, from a seed.
'use strict';

/** Numbers from a seed (mulberry32). */
function randomFrom(seed) {
  let state = seed >>> 0;
  function unit() {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
  const between = (low, high) => low + Math.floor(unit() * (high - low + 1));
  return {
    between,
    chance: (percent) => between(1, 100) <= percent,
    pick: (list) => list[between(0, list.length - 1)],
  };
}

/** How far a clock goes that stands still, walks and jumps; in whole microseconds. */
function randomStep(random, unit) {
  if (random.chance(30)) return 0;
  if (random.chance(20)) return random.between(5, 60) * unit;
  return random.chance(70) ? random.between(1, 5) * unit : random.between(1, 5 * unit);
}

module.exports = { randomFrom, randomStep };
