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

/** When a calendar window starts; undefined for units that always start the same. */
function randomStartsOn(random, unit) {
  if (unit === 'week') return random.between(1, 7);
  if (unit === 'month') return random.pick([random.between(1, 31), 29, 30, 31]);
  if (unit !== 'year') return undefined;
  const [month, day] = [random.between(1, 12), random.between(1, 28)];
  const date = [month, day].map((part) => String(part).padStart(2, '0')).join('-');
  return random.pick(['02-29', '12-31', '01-31', date]);
}

module.exports = { randomFrom, randomStartsOn, randomStep };
