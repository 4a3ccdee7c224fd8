// One list of behaviours for every store and every algorithm, on a clock moved by hand.
'use strict';

const { handClock } = require('../support/hand-clock');
const { START_MS } = require('./behaviours/support');
const { ALGORITHM_NAMES } = require('./oracle');
const { EACH_STORE } = require('./stores');

/** By topic; a behaviour is a sentence and a function of what `suiteFor` makes. */
const TOPICS = {
  boundaries: require('./behaviours/boundaries'),
  decisions: require('./behaviours/decisions'),
  ids: require('./behaviours/ids'),
  'taking back': require('./behaviours/taking-back'),
  'several windows': require('./behaviours/several-windows'),
  blocks: require('./behaviours/blocks'),
  waiting: require('./behaviours/waiting'),
  observation: require('./behaviours/observation'),
  clocks: require('./behaviours/clocks'),
  options: require('./behaviours/options'),
};

let namespaces = 0;

/**
 * - `make(options)`: a limiter of two in a minute unless they say otherwise, refusals not counted
 * - `time`: the hand-moved clock; `at(us)` moves it to so many us after the beginning of a minute
 * - `stateOf(id)`: what the store itself knows of an id of the limiter made last
 */
function suiteFor(store, place, algorithm) {
  const time = handClock(START_MS);
  const limiters = [];
  let namespace;
  return {
    store,
    algorithm,
    time,
    at: (micros) => time.set(START_MS + micros / 1000),
    make(options) {
      namespaces += 1;
      namespace = `behaviour-${process.pid}-${namespaces}`;
      const limiter = place.open({
        interval: 60_000,
        maxInInterval: 2,
        countBlocked: false,
        algorithm,
        clock: time.clock,
        ...place.together(namespace),
        ...options,
      });
      limiters.push(limiter);
      return limiter;
    },
    stateOf: (id) => place.stateOf(namespace, id),
    closeAll: () => Promise.all(limiters.map((limiter) => limiter.close())),
  };
}

describe.each(EACH_STORE)('%s', (_, store) => {
  let place;
  beforeAll(async () => {
    place = await store.open();
  });
  afterAll(() => place.close());

  describe.each(ALGORITHM_NAMES)('%s', (algorithm) => {
    describe.each(Object.entries(TOPICS))('%s', (_topic, behaviours) => {
      test.each(Object.entries(behaviours))('%s', async (_sentence, behaviour) => {
        const suite = suiteFor(store, place, algorithm);
        try {
          await behaviour(suite);
        } finally {
          await suite.closeAll();
        }
      });
    });
  });
});
