// wait() on a real Redis: how often it asks, what comes of a server that does not answer, and races.
'use strict';

const { Redis } = require('ioredis');
const { scriptRuns, nativeLimiter } = require('../support/native-redis');
const { errorOf, outcomeOf } = require('../support/outcome');
const { startRedis } = require('../support/redis-server');
const { askProgram } = require('../support/run-program');
const { waitUntil } = require('../support/wait-until');

let server;
let limiter;

beforeAll(async () => {
  server = await startRedis();
});
afterEach(() => limiter?.close());

const make = (options, connection) => {
  limiter = nativeLimiter({ url: server.url, commandTimeout: 15_000, ...connection }, options);
  return limiter;
};

test('hundreds who wait for one id ask for each action a few times, not once for each of them', async () => {
  make({ interval: 30, maxInInterval: 20 });
  const before = await scriptRuns(server);
  const waiting = Array.from({ length: 300 }, () => limiter.wait('a'));
  const decisions = await Promise.all(waiting);
  expect(decisions.every(({ allowed }) => allowed)).toBe(true);
  expect((await scriptRuns(server)) - before).toBeLessThanOrEqual(3 * 300);
  expect(limiter.stats()).toMatchObject({ allowed: 300, blocked: 0 });
});

test('a signal and a deadline end the wait for a server that does not answer', async () => {
  make();
  await limiter.wait('a');
  await server.freeze();
  try {
    const giveUp = new AbortController();
    const waiting = [
      limiter.wait('a', { signal: giveUp.signal }),
      limiter.wait('a', { deadline: 20 }),
      limiter.wait('b', { deadline: 20 }),
    ];
    giveUp.abort();
    expect((await errorOf(waiting[0])).name).toBe('AbortError');
    for (const late of waiting.slice(1)) {
      expect(await errorOf(late)).toMatchObject({
        code: 'ERR_ROLLGATE_WAIT_DEADLINE',
        message: 'the action was not allowed within 20 ms',
      });
    }
  } finally {
    server.thaw();
  }
  expect(await limiter.wait('b')).toMatchObject({ allowed: true, actionsLeft: 1 });
});

test('what Redis fails at is told to the first, and the next has its turn', async () => {
  const connection = { commandTimeout: 1000, retry: { min: 5, max: 20 } };
  make({ maxInInterval: 1, countBlocked: false }, connection);
  await limiter.wait('a');
  const waiting = [limiter.wait('a'), limiter.wait('a')];
  const ends = Promise.allSettled(waiting);
  await limiter.peek('a');
  await server.stop();
  await waitUntil('the connection is lost', () => !limiter.stats().connection.isUp);
  const newcomers = [limiter.wait('b'), limiter.wait('b')].map((promise) => outcomeOf(promise));
  expect(await Promise.all(newcomers)).toEqual(Array(2).fill('ERR_ROLLGATE_REDIS_UNREACHABLE'));
  await server.restart();
  await waitUntil('the server answers', () => limiter.peek('b'));
  // They had no reason to ask in the meantime.
  await limiter.clear('a');
  expect(await waiting[0]).toMatchObject({ allowed: true });
  await limiter.close();
  expect((await ends)[1].reason).toMatchObject({ code: 'ERR_ROLLGATE_CLOSED' });
});

test('a clear is not overlooked whose answer comes before that of an earlier question', async () => {
  const client = new Redis(server.url);
  try {
    limiter = nativeLimiter(client, { maxInInterval: 1 });
    await limiter.attempt('a');
    const { sendCommand } = client;
    let answerNow;
    const isAnswered = new Promise((tellAnswered) => {
      client.sendCommand = async (command) => {
        client.sendCommand = sendCommand;
        const reply = await client.sendCommand(command);
        tellAnswered();
        await new Promise((resolve) => {
          answerNow = resolve;
        });
        return reply;
      };
    });
    const waiting = limiter.wait('a');
    await isAnswered;
    await limiter.clear('a');
    answerNow();
    expect(await waiting).toMatchObject({ allowed: true });
  } finally {
    client.disconnect();
  }
});

test.each([
  ['allow', (decision) => expect(decision).toMatchObject({ allowed: true })],
  ['memory', (decision) => expect(decision).toMatchObject({ allowed: true })],
  ['block', (code) => expect(code).toBe('ERR_ROLLGATE_WAIT_DEADLINE')],
])("with onError: '%s', that decides who waits", async (onError, check) => {
  limiter = nativeLimiter('redis://127.0.0.1:1', { onError });
  check(await outcomeOf(limiter.wait('a', { deadline: 900 })));
});

test('close ends waiting while a call is under way', async () => {
  make();
  await limiter.peek('a');
  await server.freeze();
  try {
    const waiting = [limiter.wait('a'), limiter.wait('a')].map((promise) => outcomeOf(promise));
    limiter.close();
    expect(await Promise.all(waiting)).toEqual(['ERR_ROLLGATE_CLOSED', 'ERR_ROLLGATE_CLOSED']);
  } finally {
    server.thaw();
  }
});

const waiter = (count) => `
  const RateLimiter = require('rollgate');
  const limiter = RateLimiter({
    redis: { url: '${server.url}', commandTimeout: 15_000 },
    namespace: 'racers',
    interval: 50,
    maxInInterval: 5,
  });
  (async () => {
    const waiting = Array.from({ length: ${count} }, (_, i) => limiter.wait('a').then(() => i));
    const order = [];
    for (const one of waiting) one.then((i) => order.push(i));
    await Promise.all(waiting);
    const { allowed, blocked } = limiter.stats();
    console.log(JSON.stringify({ allowed, blocked, inOrder: order.every((i, at) => i === at) }));
  })();
`;

test('processes that race for one id are all let in, each in its order, and end by themselves', async () => {
  const results = await Promise.all(Array.from({ length: 3 }, () => askProgram(waiter(12))));
  for (const { allowed, blocked, inOrder } of results) {
    expect({ allowed, inOrder }).toEqual({ allowed: 12, inOrder: true });
    // Each refusal is a race lost to an action of another process.
    expect(blocked).toBeLessThanOrEqual(24);
  }
});
