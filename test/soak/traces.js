// Limiters that come and go, each following a random trace beside the conformance suite's oracle.
'use strict';

const RateLimiter = require('../..');
const { ALGORITHM_NAMES } = require('../conformance/oracle');
const { SHORT_UNITS, randomPolicy, randomTrace } = require('../conformance/random-operations');
const { expectTrace } = require('../conformance/replay');
const { randomFrom } = require('../support/traces');

/** The oracle looks at all that was before at each step, so traces are short and many. */
const STEPS = 80;

function followTraces(soak) {
  let seed = soak.seed;
  return soak.repeat(async () => {
    seed += 1;
    const random = randomFrom(seed);
    const algorithm = random.pick(ALGORITHM_NAMES);
    const policy = randomPolicy(random, { algorithm, units: SHORT_UNITS });
    const trace = randomTrace(random, { policy, steps: STEPS });
    try {
      await expectTrace(trace, (options) => RateLimiter(options), { algorithm, seed });
    } catch (error) {
      soak.violate(error.message);
    }
    soak.count('operations beside the oracle', trace.operations.length);
  });
}

module.exports = { followTraces };
