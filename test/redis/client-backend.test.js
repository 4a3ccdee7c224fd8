// What the backend over a client promises whatever the client does: fakes that no server could play.
'use strict';

const RateLimiter = require('../..');
const { Deadlines } = require('../../lib/remote/deadlines');
const { outcomeOf } = require('../support/outcome');
const { waitUntil } = require('../support/wait-until');

const GOOD = { interval: 1000, maxInInterval: 1 };

/** Looks like node-redis; `answer(args)` is what its sendCommand does. */
const fakeClient = (answer, more) => ({ isOpen: true, sendCommand: answer, ...more });

const limiterOver = (client, more) =>
  RateLimiter({ ...GOOD, redis: { client, commandTimeout: 50, ...more } });

const timersOf = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

test('a client that never settles', async () => {
  const limiter = limiterOver(fakeClient(() => new Promise(() => {})));
  const calls = [
    limiter('a'),
    limiter.attempt('a'),
    limiter.attemptMany(['a']),
    limiter.clear('a'),
    limiter.clearAll(),
  ];
  for (const outcome of await Promise.all(calls.map((call) => outcomeOf(call)))) {
    expect(outcome).toBe('ERR_ROLLGATE_REDIS_TIMEOUT');
  }
  expect(limiter.stats()).toMatchObject({ errors: 5, connection: { pending: 0, unanswered: 5 } });
});

test('no more than maxQueue calls wait, those given up included until the client lets go of them', async () => {
  const held = [];
  const limiter = limiterOver(
    fakeClient(() => new Promise((resolve) => held.push(resolve))),
    { maxQueue: 3 },
  );
  const outcomes = await Promise.all([1, 2, 3, 4, 5].map((id) => outcomeOf(limiter(id))));
  const TIMEOUT = 'ERR_ROLLGATE_REDIS_TIMEOUT';
  const FULL = 'ERR_ROLLGATE_REDIS_QUEUE_FULL';
  expect(outcomes).toEqual([TIMEOUT, TIMEOUT, TIMEOUT, FULL, FULL]);
  expect(await outcomeOf(limiter('a'))).toBe(FULL);
  for (const resolve of held) resolve([0]);
  await waitUntil('the answers that came too late were dropped', () => {
    return limiter.stats().connection.unanswered === 0;
  });
  expect(limiter.stats()).toMatchObject({ allowed: 0, errors: 6 });
});

test.each([
  [
    'throws',
    () => {
      throw new Error('sync');
    },
    'UNREACHABLE',
  ],
  ['rejects with nothing', () => Promise.reject(), 'UNREACHABLE'],
  ['rejects with a text', () => Promise.reject('no'), 'UNREACHABLE'],
  ['gives undefined', async () => undefined, 'REPLY'],
  ['gives a fraction', async () => [0.5], 'REPLY'],
  ['gives NaN', async () => [Number.NaN], 'REPLY'],
  ['gives less than nothing', async () => [-5], 'REPLY'],
  [
    'says that its queue is full',
    async () => {
      throw new Error('The queue is full');
    },
    'QUEUE_FULL',
  ],
  [
    'says that it waited too long',
    async () => {
      throw new Error('Command timed out');
    },
    'TIMEOUT',
  ],
])('a client that %s', async (_what, answer, kind) => {
  const limiter = limiterOver(fakeClient(answer));
  expect(await outcomeOf(limiter('a'))).toBe(`ERR_ROLLGATE_REDIS_${kind}`);
  const error = await new Promise((resolve) => limiter('a', resolve));
  expect(error.code).toBe(`ERR_ROLLGATE_REDIS_${kind}`);
});

test('NOSCRIPT is answered with the source, once', async () => {
  const sent = [];
  const refusal = Object.assign(new Error('NOSCRIPT No matching script'), { name: 'ReplyError' });
  const limiter = limiterOver(
    fakeClient(async (args) => {
      sent.push(args);
      throw refusal;
    }),
  );
  expect(await outcomeOf(limiter('a'))).toBe('ERR_ROLLGATE_REDIS_REPLY');
  expect(sent.map(([name]) => name)).toEqual(['evalsha', 'eval']);
  expect(sent[1].slice(2)).toEqual(sent[0].slice(2));
});

test('a client of node-redis that was never connected', async () => {
  for (const name of ['redis', 'redis-5', 'redis-4']) {
    const client = require(name).createClient({ url: 'redis://127.0.0.1:1' });
    const error = await RateLimiter({ ...GOOD, redis: client })('a').catch((thrown) => thrown);
    expect(error.code).toBe('ERR_ROLLGATE_REDIS_UNREACHABLE');
    expect(error.message).toContain('call its connect() first');
    expect(error.cause).toBeInstanceOf(Error);
  }
});

test('a client that was closed', async () => {
  const client = fakeClient(async () => {
    if (!client.isOpen) throw new Error('The client is closed');
    return [0];
  });
  const limiter = limiterOver(client);
  expect(await limiter('a')).toBe(0);
  client.isOpen = false;
  expect(await outcomeOf(limiter('a'))).toBe('ERR_ROLLGATE_REDIS_CLOSED');
});

test('an exception that a callback throws is an uncaught exception', async () => {
  const { askProgram } = require('../support/run-program');
  const found = await askProgram(`
    const RateLimiter = require('rollgate');
    const client = { isOpen: true, sendCommand: async () => [0, 0, 0, 0, 0, 0, 0, 0, 0] };
    process.on('uncaughtException', (error, origin) => {
      console.log(JSON.stringify([error.message, origin]));
    });
    RateLimiter({ interval: 1, maxInInterval: 1, redis: client })('a', () => { throw new Error('mine'); });
  `);
  expect(found).toEqual(['mine', 'uncaughtException']);
});

test('there is a timer while a call is pending, and none otherwise', async () => {
  const before = timersOf();
  let answer;
  const limiter = limiterOver(
    fakeClient(
      () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
    ),
    { commandTimeout: 60_000 },
  );
  expect(timersOf()).toBe(before);
  const call = limiter('a');
  expect(timersOf()).toBe(before + 1);
  answer([0]);
  expect(await call).toBe(0);
  expect(timersOf()).toBe(before);
});

test('deadlines pass in order, for those that still wait', async () => {
  const expired = [];
  const deadlines = new Deadlines(30, (call) => expired.push(call.name));
  const calls = Array.from({ length: 5000 }, (_, name) => ({ name }));
  for (const call of calls) deadlines.begin(call);
  for (const call of calls.slice(0, 4990)) expect(deadlines.end(call)).toBe(true);
  expect(deadlines.end(calls[0])).toBe(false);
  deadlines.end(calls[4995]);
  await waitUntil('the rest has expired', () => deadlines.pending === 0);
  expect(expired).toEqual([4990, 4991, 4992, 4993, 4994, 4996, 4997, 4998, 4999]);
  expect(deadlines.end(calls[4999])).toBe(false);
  deadlines.begin({ name: 'later' });
  await waitUntil('a later one has expired', () => expired.at(-1) === 'later');
});

test('calls that are due have all ended before the first of them is told', () => {
  jest.useFakeTimers();
  try {
    const seen = [];
    const calls = [{}, {}, {}];
    const deadlines = new Deadlines(30, () => seen.push(calls.map(({ isPending }) => isPending)));
    for (const call of calls) deadlines.begin(call);
    jest.advanceTimersByTime(30);
    expect(seen).toEqual(Array(3).fill([false, false, false]));
  } finally {
    jest.useRealTimers();
  }
});
