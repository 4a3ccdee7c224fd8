// Servers that die, freeze, forget and hang up: every call settles in time, and service resumes.
'use strict';

const RateLimiter = require('../..');
const { outcomeOf } = require('../support/outcome');
const { EACH_CLIENT, openings } = require('../support/redis-clients');
const { callsOf, startRedis } = require('../support/redis-server');
const { waitUntil } = require('../support/wait-until');

const LOST = /^ERR_ROLLGATE_REDIS_(TIMEOUT|UNREACHABLE)$/;

let server;
let namespaces = 0;

beforeAll(async () => {
  server = await startRedis();
});

describe.each(EACH_CLIENT)('through %s', (_name, open) => {
  const { using, closeAll } = openings();
  afterEach(closeAll);

  async function connected(commandTimeout = 300) {
    const redis = { ...using(open(server.url)), commandTimeout };
    namespaces += 1;
    const namespace = `outage-${namespaces}`;
    const limiter = RateLimiter({ redis, interval: 60_000, maxInInterval: 1000, namespace });
    await answers(limiter);
    return limiter;
  }

  const answers = (limiter) => waitUntil('Redis answers', async () => (await limiter('a')) === 0);

  test('a server that dies and comes back', async () => {
    const limiter = await connected();
    await server.stop();
    const calls = Array.from({ length: 20 }, () => limiter('a'));
    calls.push(limiter.attempt('a'), limiter.clear('a'), limiter.clearAll());
    const outcomes = await Promise.all(calls.map((call) => outcomeOf(call)));
    for (const outcome of outcomes) expect(outcome).toMatch(LOST);
    expect(limiter.stats().errors).toBeGreaterThanOrEqual(23);
    await server.restart();
    await answers(limiter);
  });

  test('a server that is frozen', async () => {
    const limiter = await connected();
    await server.freeze();
    const calls = Array.from({ length: 20 }, () => limiter('a'));
    calls.push(limiter.attemptMany(['a', 'b']), limiter.clearAll());
    const outcomes = await Promise.all(calls.map((call) => outcomeOf(call)));
    server.thaw();
    expect([...new Set(outcomes)]).toEqual(['ERR_ROLLGATE_REDIS_TIMEOUT']);
    await answers(limiter);
  });

  test('a server that forgets its scripts', async () => {
    const limiter = await connected();
    await server.command('SCRIPT', 'FLUSH');
    const calls = Array.from({ length: 5 }, (_, i) => limiter(`flush ${i}`));
    expect(await Promise.all(calls)).toEqual([0, 0, 0, 0, 0]);
    await server.command('SCRIPT', 'FLUSH');
    expect((await limiter.attemptMany(['x', 'x']))[1].limits[0].used).toBe(2);
  });

  test('a server that forgets its scripts under many calls is sent one of them once', async () => {
    const limiter = await connected(5000);
    await server.command('CONFIG', 'RESETSTAT');
    const flushed = server.command('SCRIPT', 'FLUSH');
    const calls = Array.from({ length: 500 }, (_, i) => outcomeOf(limiter(`many ${i}`)));
    await flushed;
    calls.push(...Array.from({ length: 500 }, (_, i) => outcomeOf(limiter(`many ${i}`))));
    expect(new Set(await Promise.all(calls))).toEqual(new Set([0]));
    expect(await callsOf(server, 'eval')).toBe(1);
    for (const i of [0, 250, 499]) expect((await limiter.peek(`many ${i}`)).limits[0].used).toBe(3);
  });

  test('a server that forgets its scripts and may not be sent any fails every call, and says why', async () => {
    const limiter = await connected(5000);
    await server.command('ACL', 'SETUSER', 'default', '-eval');
    await server.command('SCRIPT', 'FLUSH');
    const calls = Array.from({ length: 300 }, (_, i) => outcomeOf(limiter(`refused ${i}`)));
    const outcomes = await Promise.all(calls);
    await server.command('ACL', 'SETUSER', 'default', '+eval');
    expect([...new Set(outcomes)]).toEqual(['ERR_ROLLGATE_REDIS_AUTH']);
    await answers(limiter);
  });

  test('a server that hangs up', async () => {
    const limiter = await connected();
    for (let i = 0; i < 3; i++) {
      await server.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      const outcome = await outcomeOf(limiter('a'));
      if (outcome !== 0) expect(outcome).toMatch(LOST);
      await answers(limiter);
    }
  });

  test('a call is sent once: what was lost on the way is not tried again', async () => {
    const limiter = await connected();
    await server.command('CONFIG', 'RESETSTAT');
    for (let i = 0; i < 10; i++) await limiter('once');
    expect(await callsOf(server, 'evalsha')).toBe(10);
    expect((await limiter.peek('once')).limits[0].used).toBe(11);
  });
});
