// record: what it takes, what it gives, and how it differs from an attempt.
'use strict';

const { channel } = require('node:diagnostics_channel');
const RateLimiter = require('../..');
const { errorOf } = require('../support/outcome');
const { createPlainKv } = require('../support/kv-stores');
const { catchError, handClock, setUp } = require('../support/set-up');

const NAMED = [
  { name: 'requests', interval: 1000, maxInInterval: 5 },
  { name: 'tokens', interval: 10_000, maxInInterval: 100 },
];
const MOST = 2 ** 31 - 1;

// Kills: the bound of an attempt, or none.
test.each([
  [{}, 0, RangeError],
  [{}, -1, RangeError],
  [{}, 1.5, RangeError],
  [{}, MOST + 1, RangeError],
  [{}, '1', TypeError],
  [{}, { tokens: 1 }, TypeError],
  [{ limits: NAMED }, { tokens: -1 }, RangeError],
  [{ limits: NAMED }, { tokens: MOST + 1 }, RangeError],
  [{ limits: NAMED }, { tokens: 0, requests: 0 }, RangeError],
  [{ limits: NAMED }, { token: 1 }, TypeError],
  [{ limits: NAMED }, { tokens: undefined }, TypeError],
])('of %j: a cost of %p is an error, and nothing is counted', (options, cost, Class) => {
  const { limiter } = setUp(options);
  const error = catchError(() => limiter.record('a', { cost }));
  expect(Object.getPrototypeOf(error)).toBe(Class.prototype);
  expect(error.code).toBe('ERR_ROLLGATE_COST');
  expect(limiter.usage('a').used).toBe(0);
});

// Kills: a record that is refused, counts once, or shows another id.
test('counts whatever the limits say, and gives what usage gives', () => {
  const { limiter } = setUp({ limits: NAMED });
  limiter.record('b');
  expect(limiter.record('a').limits.map(({ used }) => used)).toEqual([1, 1]);
  const usage = limiter.record('a', { cost: { tokens: MOST } });
  expect(usage).toEqual(limiter.usage('a'));
  expect(usage.limits.map(({ used }) => used)).toEqual([2, MOST + 1]);
  expect(limiter.record('a', { cost: 7 })).toMatchObject({ allowed: false, remaining: 0 });
  expect(limiter.attempt('a').blockedBy).toBe('count');
});

test('counts for the id that all calls without an id share', () => {
  const { limiter } = setUp();
  limiter.record();
  expect(limiter.usage('').used).toBe(1);
});

// Kills: a record in `allowed` or `blocked`, or one that nothing counts; a message like that of an attempt, or of a refusal.
test.each([
  ['memory', {}],
  ['kv', { kv: createPlainKv(), namespace: 'n' }],
])('in stats() and the channel it is no attempt: %s', async (_store, options) => {
  const { clock } = handClock();
  const limiter = RateLimiter({ interval: 1000, maxInInterval: 1, clock, ...options });
  const messages = [];
  const note = (message) => messages.push(message);
  const decisions = channel('rollgate:decision');
  decisions.subscribe(note);
  try {
    await limiter.record('a', { cost: 3 });
    await limiter.attempt('a');
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    decisions.unsubscribe(note);
  }
  expect(limiter.stats()).toMatchObject({ allowed: 0, blocked: 1, recorded: 1 });
  expect(messages).toMatchObject([
    { kind: 'record', limiter, id: 'a', cost: 3, allowed: true, timeLeft: 0 },
    { id: 'a', cost: 1, allowed: false },
  ]);
  expect(messages[1].kind).toBe(undefined);
});

// Kills: an answer that is a promise, or none on a store outside of the process; a closed limiter that counts.
test('answers as usage does', async () => {
  const { limiter } = setUp();
  expect(limiter.record('a').used).toBe(1);
  const kv = RateLimiter({ interval: 9, maxInInterval: 1, kv: createPlainKv(), namespace: 'n' });
  const answer = kv.record('a');
  expect(answer).toBeInstanceOf(Promise);
  expect(await answer).toMatchObject({ used: 1 });
  expect((await errorOf(kv.record(Number.NaN))).code).toBe('ERR_ROLLGATE_ID');
  await limiter.close();
  await kv.close();
  expect(catchError(() => limiter.record('a')).code).toBe('ERR_ROLLGATE_CLOSED');
  expect((await errorOf(kv.record('a'))).code).toBe('ERR_ROLLGATE_CLOSED');
});
