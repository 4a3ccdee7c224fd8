// Every store and algorithm against the oracle on random traces. A failure prints its seed and a short
// trace; ROLLGATE_SEED=<seed> runs that one alone.
'use strict';

const { randomFrom } = require('../support/traces');
const { ALGORITHM_NAMES } = require('./oracle');
const { LONG_UNITS, SHORT_UNITS, randomPolicy, randomTrace } = require('./random-operations');
const { expectTrace } = require('./replay');
const { EACH_STORE } = require('./stores');

const STEPS = 50;
const AT_ONCE = 20;
const ONLY_SEED = process.env.ROLLGATE_SEED;
const SHARE = process.env.ROLLGATE_SANITIZED ? 0.1 : 1;

function seedsFor({ pace }) {
  if (ONLY_SEED !== undefined) return [Number(ONLY_SEED)];
  return Array.from({ length: Math.ceil((SHARE * pace) / STEPS) }, (_, i) => i + 1);
}

describe.each(EACH_STORE)('%s', (_, store) => {
  let place;
  beforeAll(async () => {
    place = await store.open();
  });
  afterAll(() => place.close());

  test.each(ALGORITHM_NAMES)('answers as the oracle: %s', async (algorithm) => {
    const seeds = seedsFor(store);
    const units = store.expires ? LONG_UNITS : SHORT_UNITS;
    while (seeds.length > 0) {
      const together = seeds.splice(0, store.isSync ? 1 : AT_ONCE).map((seed) => {
        const random = randomFrom(seed);
        const policy = randomPolicy(random, { algorithm, units });
        const trace = randomTrace(random, { policy, steps: STEPS });
        return expectTrace(trace, place.open, { store: store.name, algorithm, seed });
      });
      await Promise.all(together);
    }
  });
});
