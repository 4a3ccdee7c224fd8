// Checks the plain JavaScript limiters, and rollgate beside them, against a brute-force oracle on seeded random traces.

const { createMapLimiter, createSlabLimiter } = require('./plain-js');

/** Keeps every attempt for ever and counts them anew each time. */
function createOracle({ interval, maxInInterval, now }) {
  const attempts = new Map();
  return (id) => {
    const times = attempts.get(id) ?? [];
    attempts.set(id, times);
    const time = Math.max(now(), times.at(-1) ?? 0);
    const blocked = times.filter((t) => t > time - interval).length >= maxInInterval;
    times.push(time);
    return blocked ? Math.ceil(times.at(-maxInInterval) + interval - time) : 0;
  };
}

/** The same call on rollgate, whose clock has another name; undefined while the library is not built. */
function rollgateCreator() {
  try {
    const { RateLimiter } = require('../../lib');
    return ({ now, ...limits }) => RateLimiter({ ...limits, clock: now, maxKeys: 1000 });
  } catch {
    return undefined;
  }
}

function xorshift32(seed) {
  let state = seed;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

/** Throws at the first answer that differs from the oracle's; returns the number of answers compared. */
function checkAgainstOracle(create, { traces, attempts, stepsBack }) {
  for (let seed = 1; seed <= traces; seed++) {
    const random = xorshift32(seed * 2654435761);
    let time = 0;
    const options = {
      interval: [1, 7.5, 50, 1000][random(4)],
      maxInInterval: [1, 2, 3, 5, 8, 9, 20, 100][random(8)],
      now: () => time,
    };
    const limiter = create(options);
    const oracle = createOracle(options);
    const longestStep = 1 + random(Math.ceil((4 * options.interval) / options.maxInInterval));
    for (let i = 0; i < attempts; i++) {
      // Steps of half a millisecond, many of them 0 (ties), a few back, a few past the whole window.
      const kind = random(20);
      if (kind === 0 && stepsBack) time = Math.max(0, time - random(longestStep + 1));
      else if (kind === 1) time += options.interval;
      else time += random(2 * longestStep) / 2;
      const id = `id-${random(3)}`;
      const expected = oracle(id);
      const answer = limiter(id);
      if (answer !== expected) {
        throw new Error(
          `trace ${seed}, attempt ${i}, ${JSON.stringify(options)}, time ${time}, ${id}: expected ${expected}, got ${answer}`,
        );
      }
    }
  }
  return traces * attempts;
}

/** Checks every candidate; returns one line of words for each. */
function checkAll({ traces = 300, attempts = 300 } = {}) {
  const candidates = [
    { name: 'plain JS, Map and rings', create: createMapLimiter, stepsBack: true },
    { name: 'plain JS, Map and slab', create: createSlabLimiter, stepsBack: true },
    // When the clock has stepped back, rollgate tells waits in its readings, the oracle from the newest action on.
    { name: 'rollgate', create: rollgateCreator(), stepsBack: false },
  ];
  return candidates.map(({ name, create, stepsBack }) => {
    if (!create) return `${name}: not checked, it does not load`;
    const count = checkAgainstOracle(create, { traces, attempts, stepsBack });
    return `${name}: ${count} answers agree with the oracle`;
  });
}

if (require.main === module) for (const line of checkAll()) console.log(line);

module.exports = { checkAll };
