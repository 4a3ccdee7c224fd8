// Random limiters and calls, drawn from a seed: for tests that compare the addon and the module.
'use strict';

const { ALGORITHM_NAMES, RULES } = require('../conformance/oracle');

const UNITS = [1, 10, 1000, 60_000_000];
const LARGE_COUNTS = [8, 40, 255, 256, 257, 1000, 1023, 1024, 1025, 3000];
const HUGE_COUNTS = [2 ** 24, 2 ** 32 + 1, 2 ** 45, 2 ** 53 - 1];

/** Every kind, and different ways to write one id. */
const IDS = [
  ...['a', 'b', 'ü}{', '', undefined, null, '\0', 'a\0', '1', 1, 1n, -0, 0, '0', 1.5, '1.5'],
  ...[-7, 1e21, 1e-7, 5e-324, Number.MAX_VALUE, 2 ** 53, 2n ** 64n, -(2n ** 70n), '1e+21'],
  ...['fifteen letters', 'sixteen letters.', 'seventeen letters', 'ÿ'.repeat(16), 'ÿ'.repeat(17)],
  ...[
    'Ā',
    'ÿĀ',
    'Ā'.repeat(16),
    'Ā'.repeat(17),
    '日本語',
    '😀',
    '\ud83d',
    '\ude00',
    '\ude00\ud83d',
  ],
  ...['x'.repeat(5000), `${'x'.repeat(4999)}y`, 'Ā'.repeat(9000), '\ud83d'.repeat(20)],
];
const NO_IDS = [{}, [], true, Number.NaN, Infinity, Symbol('a'), Object('a')];

function randomMax(random, algorithm) {
  if (random.chance(80)) return random.between(1, 7);
  return random.pick(
    algorithm === 'sliding-window-log' || random.chance(50) ? LARGE_COUNTS : HUGE_COUNTS,
  );
}

function randomLimits(random, { algorithm, unit, names }) {
  const minDifference = random.chance(20) ? (random.between(1, 12) * unit) / 1000 : undefined;
  return names.map((name) => ({
    interval: (random.between(1, 40) * unit) / 1000,
    maxInInterval: randomMax(random, algorithm),
    minDifference,
    name,
  }));
}

/**
 * Limits for setLimits. With gcra, minDifference stays: the addon's form for one window does not know the newest
 * action, so a minDifference that comes later begins with the next one there.
 */
function otherLimits(random, { options, unit, names }) {
  const { algorithm, limits } = options;
  const drawn = randomLimits(random, { algorithm, unit, names });
  if (algorithm !== 'gcra') return drawn;
  return drawn.map((limit, i) => ({ ...limit, minDifference: limits[i].minDifference }));
}

/** Options of a limiter, without its clock, and its `unit` in us. */
function randomOptions(random) {
  const algorithm = random.pick(ALGORITHM_NAMES);
  const unit = random.pick(UNITS);
  const hasNames = random.chance(30);
  const count = random.chance(55) ? 1 : random.between(2, 4);
  // Some limits may have a name and others none.
  const names = Array.from({ length: count }, (_, i) =>
    hasNames && random.chance(80) ? `n${i}` : undefined,
  );
  const blocks = random.chance(70) ? 0 : random.between(1, 3);
  const options = {
    algorithm,
    limits: randomLimits(random, { algorithm, unit, names }),
    countBlocked: RULES[algorithm].countsBlocked && random.chance(50),
    ...(blocks > 0 && {
      blockFor: Array.from({ length: blocks }, () => (random.between(1, 60) * unit) / 1000),
    }),
  };
  return { options, unit, names };
}

/** A start before, at or after the epoch. */
function randomStart(random, unit) {
  return random.pick([
    1_700_000_000_000_000 + random.between(0, 100 * unit),
    random.between(-50, 50) * unit,
    0,
  ]);
}

/** The next moment: the same, later, earlier, or within one microsecond of the end of a wait. */
function nextMoment(random, now, { unit, waits, stepsBack }) {
  if (random.chance(25)) return now;
  if (stepsBack && random.chance(5)) return now - random.between(1, 10) * unit;
  if (waits.length > 0 && random.chance(30)) {
    return Math.max(now, now + random.pick(waits) * 1000 + random.pick([-1, 0, 0, 1]));
  }
  if (random.chance(10)) return now + random.between(5, 80) * unit;
  return now + (random.chance(60) ? random.between(1, 5) * unit : random.between(1, 5 * unit));
}

/** In the user's form: a number, or costs by name; now and then a wrong one. */
function randomCost(random, limits) {
  if (random.chance(4)) return random.pick([0, -1, 1.5, 2 ** 53, '1', { none: 1 }, null]);
  const named = limits.filter(({ name }) => name !== undefined);
  if (named.length > 0 && random.chance(60)) {
    return Object.fromEntries(
      named.map(({ name, maxInInterval }) => [
        name,
        random.between(0, Math.min(maxInInterval, random.pick([3, 3000]))),
      ]),
    );
  }
  if (random.chance(60)) return 1;
  const least = Math.min(...limits.map(({ maxInInterval }) => maxInInterval));
  return random.between(1, Math.min(least, random.pick([4, 1000, 2 ** 53 - 1])));
}

module.exports = { IDS, NO_IDS, nextMoment, otherLimits, randomCost, randomOptions, randomStart };
