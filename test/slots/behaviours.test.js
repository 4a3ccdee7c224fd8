// The behaviours of slots on each store.
'use strict';

const { ConcurrencyLimiter } = require('../..');
const { errorOf } = require('../support/outcome');
const { handClock } = require('../support/set-up');
const { hasShared, newName } = require('../support/shared-regions');
const TOPICS = require('./behaviours');

const STORES = {
  memory: () => ({}),
  ...(hasShared && { shared: () => ({ shared: newName() }) }),
};

const failureOf = (call) => errorOf(Promise.resolve().then(call));

describe.each(Object.entries(STORES))('%s', (_, placeOf) => {
  const limiters = [];
  let time;
  let place;
  beforeEach(() => {
    time = handClock();
    place = placeOf();
  });
  afterEach(() => Promise.all(limiters.splice(0).map((limiter) => limiter.close())));

  function make(options) {
    const limiter = ConcurrencyLimiter({ max: 1, clock: time.clock, ...place, ...options });
    limiters.push(limiter);
    return limiter;
  }

  describe.each(Object.entries(TOPICS))('%s', (_topic, behaviours) => {
    test.each(Object.entries(behaviours))('%s', (_sentence, behaviour) =>
      behaviour({ make, failureOf, advance: (ms) => time.advance(ms) }),
    );
  });
});
