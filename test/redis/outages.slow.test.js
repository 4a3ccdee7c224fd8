// Servers that die, freeze, forget and hang up: every call settles in time, and service resumes.
'use strict';

const diagnostics = require('node:diagnostics_channel');
const RateLimiter = require('../..');
const { errorOf, outcomeOf, waitUntil } = require('../support/outcome');
const { EACH_CLIENT, clientsNamed, nativeLimiter, openings } = require('../support/redis-clients');
const { callsOf, startRedis } = require('../support/redis-server');
const peers = require('../support/tcp-peers');
const { patient } = require('../support/tiers');

const LOST = /^ERR_ROLLGATE_REDIS_(TIMEOUT|UNREACHABLE)$/;
const TIMEOUT = 'ERR_ROLLGATE_REDIS_TIMEOUT';
const UNREACHABLE = 'ERR_ROLLGATE_REDIS_UNREACHABLE';
const QUEUE_FULL = 'ERR_ROLLGATE_REDIS_QUEUE_FULL';
const LONG = patient(15_000);
/** Long enough for a server that lives, and waited for in full where it is frozen. */
const SHORT = patient(1000);

let server;
let namespaces = 0;

beforeAll(async () => {
  server = await startRedis();
});

describe.each(EACH_CLIENT)('through %s', (_name, open) => {
  const { using, closeAll } = openings();
  afterEach(closeAll);

  async function connected(commandTimeout = LONG) {
    const redis = { ...using(open(server.url)), commandTimeout };
    namespaces += 1;
    const namespace = `outage-${namespaces}`;
    const limiter = RateLimiter({ redis, interval: 60_000, maxInInterval: 1000, namespace });
    await answers(limiter);
    return limiter;
  }

  const answers = (limiter) => waitUntil('Redis answers', async () => (await limiter('a')) === 0);

  test('a server that dies and comes back', async () => {
    const limiter = await connected(SHORT);
    await server.stop();
    const calls = Array.from({ length: 20 }, () => limiter('a'));
    calls.push(limiter.attempt('a'), limiter.clear('a'), limiter.clearAll());
    const outcomes = await Promise.all(calls.map((call) => outcomeOf(call)));
    for (const outcome of outcomes) expect(outcome).toMatch(LOST);
    expect(limiter.stats().errors).toBeGreaterThanOrEqual(23);
    await server.restart();
    await answers(limiter);
  });

  test('a server that is frozen is waited for as long as commandTimeout says', async () => {
    const limiter = await connected(SHORT);
    await server.freeze();
    const began = performance.now();
    const calls = Array.from({ length: 20 }, () => limiter('a'));
    calls.push(limiter.attempt('a'), limiter.attemptMany(['a', 'b']), limiter.peek('a'));
    const errors = await Promise.all(
      [...calls, limiter.clear('a'), limiter.clearAll()].map(errorOf),
    );
    expect(performance.now() - began).toBeGreaterThanOrEqual(SHORT - 1);
    server.thaw();
    expect(errors.map(({ code }) => code)).toEqual(errors.map(() => TIMEOUT));
    expect(errors[0].message).toContain(`${SHORT} ms`);
    expect(limiter.stats().connection.pending).toBe(0);
    await answers(limiter);
  });

  test('a server that forgets its scripts under many calls is sent one of them once', async () => {
    const limiter = await connected();
    await server.command('CONFIG', 'RESETSTAT');
    for (let i = 0; i < 10; i++) await limiter('once');
    expect(await callsOf(server, 'evalsha')).toBe(10);
    const flushed = server.command('SCRIPT', 'FLUSH');
    const calls = Array.from({ length: 500 }, (_, i) => outcomeOf(limiter(`many ${i}`)));
    await flushed;
    calls.push(...Array.from({ length: 500 }, (_, i) => outcomeOf(limiter(`many ${i}`))));
    expect(new Set(await Promise.all(calls))).toEqual(new Set([0]));
    expect(await callsOf(server, 'eval')).toBe(1);
    for (const i of [0, 250, 499]) expect((await limiter.peek(`many ${i}`)).limits[0].used).toBe(3);
    await server.command('SCRIPT', 'FLUSH');
    expect((await limiter.attemptMany(['x', 'x']))[1].limits[0].used).toBe(2);
  });

  test('a server that forgets its scripts and may not be sent any fails every call, and says why', async () => {
    const limiter = await connected();
    await server.command('ACL', 'SETUSER', 'default', '-eval');
    await server.command('SCRIPT', 'FLUSH');
    const calls = Array.from({ length: 300 }, (_, i) => outcomeOf(limiter(`refused ${i}`)));
    const outcomes = await Promise.all(calls);
    await server.command('ACL', 'SETUSER', 'default', '+eval');
    expect([...new Set(outcomes)]).toEqual(['ERR_ROLLGATE_REDIS_AUTH']);
    await answers(limiter);
  });

  test('a server that hangs up', async () => {
    const limiter = await connected(SHORT);
    for (let i = 0; i < 3; i++) {
      await server.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      const outcome = await outcomeOf(limiter('a'));
      if (outcome !== 0) expect(outcome).toMatch(LOST);
      await answers(limiter);
    }
  });
});

describe('the native client', () => {
  const retry = { min: 20, max: 100 };
  const maxQueue = 50;
  const times = (count, make) => Array.from({ length: count }, (_, i) => make(i));

  afterEach(async () => {
    if (server.frozen) server.thaw();
    if (server.pid === undefined) await server.restart();
  });

  function limiterAt(redis, options) {
    const own = { url: server.url, retry, ...redis };
    return nativeLimiter(own, { maxInInterval: 1000, ...options });
  }

  test('connects again at once after the server has hung up', async () => {
    const limiter = limiterAt({ connectionName: 'hung-up' });
    await limiter('a');
    for (let round = 1; round <= 5; round++) {
      const [{ id }] = await clientsNamed(server, 'hung-up');
      await server.command('CLIENT', 'KILL', 'ID', id);
      await waitUntil('it is connected again', () => {
        return limiter.stats().connection.connections === 1 + round;
      });
      expect(await limiter('a')).toBe(0);
    }
    expect((await limiter.peek('a')).limits[0].used).toBe(7); // with the one peeked at
  });

  test('comes back by itself after an outage: no call fails from then on, as many as maxQueue', async () => {
    const limiter = limiterAt({ maxQueue });
    for (let round = 0; round < 3; round++) {
      expect(await limiter(`a${round}`)).toBe(0);
      await server.stop();
      const outcomes = await Promise.all(times(2 * maxQueue, () => outcomeOf(limiter('a'))));
      expect(outcomes.filter((outcome) => outcome === QUEUE_FULL)).toHaveLength(maxQueue);
      expect(outcomes.filter((outcome) => outcome === UNREACHABLE)).toHaveLength(maxQueue);
      await server.restart();
      const timesLeft = await Promise.all(times(maxQueue, (i) => limiter(`${round} ${i}`)));
      expect(new Set(timesLeft)).toEqual(new Set([0]));
    }
  });

  test('tries again after pauses that grow', async () => {
    const peer = await peers.closingPeer();
    const limiter = limiterAt({
      url: peer.url,
      commandTimeout: 200,
      retry: { min: 20, max: 2000 },
    });
    const began = performance.now();
    await waitUntil('it has tried eight times', async () => {
      expect(await outcomeOf(limiter('a'))).toMatch(LOST);
      return peer.connections >= 8;
    });
    // With equal pauses seven of them would take 140 ms.
    expect(performance.now() - began).toBeGreaterThan(600);
  });

  test('leaves a server that never answers for a new connection', async () => {
    const peer = await peers.silentPeer();
    const limiter = limiterAt({ url: peer.url, commandTimeout: 50, connectTimeout: 100 });
    expect(await outcomeOf(limiter('a'))).toBe(TIMEOUT);
    await waitUntil('it has a new connection', async () => {
      await outcomeOf(limiter('a'));
      return peer.connections >= 2 && peer.openConnections === 1;
    });
  });

  test('hands nobody the late answer to another call', async () => {
    const limiter = limiterAt({ commandTimeout: SHORT }, { countBlocked: false });
    // Each id has used another number, by which answers differ.
    const ids = times(50, (i) => `id ${i}`);
    await Promise.all(ids.map((id, i) => limiter.attempt(id, { cost: 10 * (i + 1) })));
    await server.freeze();
    const late = await Promise.all(ids.map((id) => outcomeOf(limiter.peek(id))));
    expect(new Set(late)).toEqual(new Set([TIMEOUT]));
    const calls = [...ids].reverse().map((id) => limiter.peek(id));
    server.thaw();
    const used = (await Promise.all(calls)).map(({ limits }) => limits[0].used);
    expect(used).toEqual(times(50, (i) => 10 * (50 - i) + 1));
    const again = await limiter.attemptMany(ids);
    expect(again.map(({ limits }) => limits[0].used)).toEqual(times(50, (i) => 10 * (i + 1) + 1));
  });

  test('counts in maxQueue what a frozen server still has, and each late call once', async () => {
    const limiter = limiterAt({ maxQueue, commandTimeout: SHORT });
    await limiter('a');
    for (let round = 1; round <= 2; round++) {
      await server.freeze();
      const first = await Promise.all(times(maxQueue, () => outcomeOf(limiter('a'))));
      expect(new Set(first)).toEqual(new Set([TIMEOUT]));
      expect(await outcomeOf(limiter('a'))).toBe(QUEUE_FULL);
      server.thaw();
      await waitUntil('it answers', async () => (await limiter('b')) === 0);
      const timesLeft = await Promise.all(times(maxQueue, () => limiter('c')));
      expect(new Set(timesLeft)).toEqual(new Set([0]));
      expect((await limiter.peek('a')).limits[0].used).toBe(1 + round * maxQueue + 1);
    }
  });

  test('fails the first of those who wait, and the next has its turn', async () => {
    const limiter = limiterAt({}, { maxInInterval: 1, countBlocked: false });
    await limiter.wait('a');
    const waiting = [limiter.wait('a'), limiter.wait('a')];
    const ends = Promise.allSettled(waiting);
    await limiter.peek('a');
    await server.stop();
    await waitUntil('the connection is lost', () => !limiter.stats().connection.isUp);
    const newcomers = [limiter.wait('b'), limiter.wait('b')].map((promise) => outcomeOf(promise));
    expect(await Promise.all(newcomers)).toEqual([UNREACHABLE, UNREACHABLE]);
    await server.restart();
    await waitUntil('the server answers', () => limiter.peek('b'));
    // They had no reason to ask in the meantime.
    await limiter.clear('a');
    expect(await waiting[0]).toMatchObject({ allowed: true });
    await limiter.close();
    expect((await ends)[1].reason).toMatchObject({ code: 'ERR_ROLLGATE_CLOSED' });
  });

  test('publishes the loss of its connection, failed calls with their errors, and its return', async () => {
    const limiter = limiterAt();
    const messages = [];
    const listener = (message) => message.limiter === limiter && messages.push(message);
    diagnostics.subscribe('rollgate:redis', listener);
    try {
      const states = () => messages.filter(({ type }) => type === 'connection');
      const decision = await limiter.attempt('a');
      expect(states()).toEqual([{ type: 'connection', limiter, isUp: true }]);
      await server.stop();
      await waitUntil('the loss is published', () => states().at(-1).isUp === false);
      const before = messages.length;
      const errors = [];
      for (const call of [
        () => limiter.attempt('a'),
        () => limiter.attemptMany(['a', 'b']),
        () => limiter.refund(decision),
        () => limiter.clear('a'),
      ]) {
        errors.push(await errorOf(call()));
      }
      const calls = messages.slice(before).filter(({ type }) => type === 'call');
      expect(calls.map(({ command }) => command)).toEqual([
        'attempt',
        'attempt',
        'refund',
        'clear',
      ]);
      for (const [i, { error }] of calls.entries()) expect(error).toBe(errors[i]);
      await server.restart();
      await waitUntil('it answers', () => limiter('a').then(() => true));
      expect(states().at(-1).isUp).toBe(true);
      expect(states().every(({ isUp }, i) => isUp === (i % 2 === 0))).toBe(true);
    } finally {
      diagnostics.unsubscribe('rollgate:redis', listener);
    }
  });
});
