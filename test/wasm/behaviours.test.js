// The behaviours of every store on the module, for the fast tier. In the other, the conformance suite has the module.
'use strict';

const diagnostics = require('node:diagnostics_channel');
const { ALGORITHM_NAMES } = require('../conformance/oracle');
const { TOPICS, behavioursOf, runBehaviour } = require('../conformance/suite');
const { packageOn } = require('../support/bindings');
const { all } = require('../support/tiers');

const RateLimiter = packageOn('wasm');
const place = { open: RateLimiter, together: () => ({}), stateOf() {} };
const store = { name: 'module', isSync: true, pace: 4000, largestLimit: () => 3000 };

(all ? describe.skip : describe).each(ALGORITHM_NAMES)('%s', (algorithm) => {
  test.each(TOPICS)('every behaviour of %s', async (_topic, topic) => {
    for (const [, behaviour] of behavioursOf(topic, algorithm)) {
      await runBehaviour(behaviour, store, place, algorithm);
    }
  });
});

test('a call that drops another id is answered as any, and reports it', () => {
  const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const limiter = RateLimiter({ interval: 1000, maxInInterval: 1, maxKeys: 2, clock: () => 0 });
  const evicted = [];
  const listener = (message) => evicted.push(message.evicted);
  diagnostics.subscribe('rollgate:evicted', listener);
  const waits = [1, 2, 3, 3].map((id) => limiter(id));
  const many = limiter.attemptMany([4, 5]);
  diagnostics.unsubscribe('rollgate:evicted', listener);
  warn.mockRestore();
  expect(waits).toEqual([0, 0, 0, 1000]);
  expect(many.map(({ allowed }) => allowed)).toEqual([true, true]);
  expect(evicted).toEqual([1, 3]);
});
