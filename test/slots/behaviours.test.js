// The behaviours of slots on each store.
'use strict';

const { ConcurrencyLimiter, unlinkShared } = require('../..');
const { errorOf } = require('../support/outcome');
const { handClock } = require('../support/set-up');
const TOPICS = require('./behaviours');

const isWasm = process.env.ROLLGATE_BINDING === 'wasm';
const region = `slots-${process.pid}`;

const STORES = {
  memory: {},
  ...(process.platform === 'linux' && !isWasm && { shared: { shared: region } }),
};

const failureOf = (call) => errorOf(Promise.resolve().then(call));

describe.each(Object.entries(STORES))('%s', (_, place) => {
  const limiters = [];
  let time;
  beforeEach(() => {
    time = handClock();
  });
  afterEach(async () => {
    await Promise.all(limiters.splice(0).map((limiter) => limiter.close()));
    if (place.shared) unlinkShared(region);
  });

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
