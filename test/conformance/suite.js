// The behaviours of every store and every algorithm, and what they take.
'use strict';

const { errorOf } = require('../support/outcome');
const { handClock } = require('../support/set-up');
const { RULES } = require('./oracle');

/**
 * A behaviour is a sentence and a function that takes a suite. Behaviours of one algorithm are grouped under its
 * name, those of algorithms that can count refusals under 'where refusals can count'.
 */
const TOPICS = {
  windows: require('./behaviours/windows'),
  calls: require('./behaviours/calls'),
  errors: require('./behaviours/errors'),
  'no trace': require('./behaviours/no-trace'),
  together: require('./behaviours/together'),
  refunds: require('./behaviours/refunds'),
  costs: require('./behaviours/costs'),
  blocks: require('./behaviours/blocks'),
  plans: require('./behaviours/plans'),
  'limits that change': require('./behaviours/limits-that-change'),
  quotas: require('./behaviours/quotas'),
  records: require('./behaviours/recording'),
  waiting: require('./behaviours/waiting'),
};

function behavioursOf(topic, algorithm) {
  const { countsBlocked } = RULES[algorithm];
  const groups = [topic, topic[algorithm], countsBlocked && topic['where refusals can count']];
  const all = groups.flatMap((group) => Object.entries(group || {}));
  return all.filter(([, behaviour]) => typeof behaviour === 'function');
}

/** Aligned windows of a minute and of ten begin here. */
const START_MS = 1_700_000_400_000;
const MINUTE_MS = 60_000;

let namespaces = 0;

/**
 * - `make(options)` creates a limiter: two in a minute unless they say otherwise, refusals not counted
 * - `makeTogether(...options)` creates limiters that count together; none where they cannot
 * - `time` is the clock; `at(us)` sets it to so many us after the beginning of a minute, `startMs`
 * - `fullFor(max)`: for how many us a minute stays full that is filled as it begins, by `max` actions at once
 * - `countBlocked`: whether a refusal can count
 * - `stateOf(id)`: what the store holds for an id of the newest limiter
 * - `failureOf(call)`: the error that a call throws or rejects with; `codeOf(call)`: its code
 * - `expectExactWait(ask)`: `ask()`, a peek, is refused now and until its timeLeft, and allowed exactly then
 */
function suiteFor(store, place, algorithm) {
  const time = handClock(START_MS);
  const limiters = [];
  const rule = RULES[algorithm];
  const failureOf = (call) => errorOf(Promise.resolve().then(call));
  let namespace;
  const canShare = () => Object.keys(place.together('any')).length > 0;
  function makeAll(all) {
    namespaces += 1;
    namespace = `behaviour-${process.pid}-${namespaces}`;
    const made = all.map((options) =>
      place.open({
        interval: MINUTE_MS,
        maxInInterval: 2,
        countBlocked: false,
        algorithm,
        clock: time.clock,
        ...place.together(namespace),
        ...options,
      }),
    );
    limiters.push(...made);
    return made;
  }
  return {
    store,
    algorithm,
    countBlocked: rule.countsBlocked,
    fullFor: (max) => rule.fullFor(MINUTE_MS * 1000, max),
    time,
    startMs: START_MS,
    at: (micros) => time.set(START_MS + micros / 1000),
    make: (options) => makeAll([options])[0],
    makeTogether: (...all) => (canShare() ? makeAll(all) : []),
    stateOf: (id) => place.stateOf(namespace, id),
    async expectExactWait(ask) {
      const { allowed, timeLeft } = await ask();
      expect(allowed).toBe(false);
      time.advance(timeLeft - 1);
      expect(await ask()).toMatchObject({ allowed: false, timeLeft: 1 });
      time.advance(1);
      expect(await ask()).toMatchObject({ allowed: true });
    },
    failureOf,
    codeOf: async (call) => (await failureOf(call)).code,
    closeAll: () => Promise.all(limiters.map((limiter) => limiter.close())),
  };
}

/** Runs a behaviour; `place` is as the stores have it. */
async function runBehaviour(behaviour, ...place) {
  const suite = suiteFor(...place);
  try {
    await behaviour(suite);
  } finally {
    await suite.closeAll();
  }
}

module.exports = { TOPICS: Object.entries(TOPICS), behavioursOf, runBehaviour };
