// Calls of the native client: wait() and outages.
'use strict';

const diagnostics = require('node:diagnostics_channel');
const { errorOf, outcomeOf, waitUntil } = require('../support/outcome');
const { clientsNamed, nativeLimiter } = require('../support/redis-clients');
const { redisForTests } = require('../support/redis-server');
const peers = require('../support/tcp-peers');
const { patient, slow } = require('../support/tiers');

const QUEUE_FULL = 'ERR_ROLLGATE_REDIS_QUEUE_FULL';
const TIMEOUT = 'ERR_ROLLGATE_REDIS_TIMEOUT';
const UNREACHABLE = 'ERR_ROLLGATE_REDIS_UNREACHABLE';
/** Long enough for a server that lives, and waited for in full where it is frozen. */
const WAIT = patient(1000);

const server = redisForTests();

const limiterWith = (options, connection) =>
  nativeLimiter({ url: server.url, ...connection }, { maxInInterval: 1000, ...options });

const times = (count, make) => Array.from({ length: count }, (_, i) => make(i));

describe('wait', () => {
  test('a signal, a deadline and close end the wait for a server that does not answer', async () => {
    const [limiter, closing] = [limiterWith({ maxInInterval: 2 }), limiterWith()];
    await Promise.all([limiter.wait('a'), closing.peek('a')]);
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
      const closed = [closing.wait('a'), closing.wait('a')].map((promise) => outcomeOf(promise));
      closing.close();
      expect(await Promise.all(closed)).toEqual(Array(2).fill('ERR_ROLLGATE_CLOSED'));
    } finally {
      server.thaw();
    }
    expect(await limiter.wait('b')).toMatchObject({ allowed: true, actionsLeft: 1 });
  });

  test.each([
    ['allow', patient(15_000), { allowed: true }],
    ['memory', patient(15_000), { allowed: true }],
    ['block', 900, 'ERR_ROLLGATE_WAIT_DEADLINE'], // it blocks for 1000 ms
  ])("with onError: '%s', that decides who waits", async (onError, deadline, expected) => {
    const limiter = limiterWith({ onError }, { url: 'redis://127.0.0.1:1' });
    const outcome = await outcomeOf(limiter.wait('a', { deadline }));
    if (onError === 'block') expect(outcome).toBe(expected);
    else expect(outcome).toMatchObject(expected);
  });
});

slow.describe('a server that dies, freezes or hangs up', () => {
  const maxQueue = 50;

  afterEach(async () => {
    if (server.frozen) server.thaw();
    if (server.pid === undefined) await server.restart();
  });

  const limiterAt = (redis, options) =>
    limiterWith(options, { retry: { min: 20, max: 100 }, ...redis });

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

  test('hands nobody the late answer to another call', async () => {
    const limiter = limiterAt({ commandTimeout: WAIT }, { countBlocked: false });
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

  test('counts in maxQueue what a server still has after the calls have timed out', async () => {
    const held = [];
    let isHeld = true;
    const peer = await peers.scriptedPeer((words, socket) => {
      // The calls are sent so late that they time out long before their connection is given up.
      if (words[0] === 'AUTH') setTimeout(() => socket.write('+OK\r\n'), 0.75 * WAIT);
      if (words[0] === 'AUTH') return undefined;
      const keys = Number(words[2]);
      const answer = `*${keys}\r\n${':0\r\n'.repeat(keys)}`;
      return isHeld ? void held.push(() => socket.write(answer)) : answer;
    });
    const timeouts = { commandTimeout: WAIT, connectTimeout: 2 * WAIT };
    const limiter = nativeLimiter({ url: peer.url, password: 'p', maxQueue, ...timeouts });
    const first = await Promise.all(times(maxQueue, () => outcomeOf(limiter('a'))));
    expect(new Set(first)).toEqual(new Set([TIMEOUT]));
    expect(await outcomeOf(limiter('a'))).toBe(QUEUE_FULL);
    isHeld = false;
    for (const answer of held) answer();
    await waitUntil('it answers', async () => (await limiter('b')) === 0);
    const timesLeft = await Promise.all(times(maxQueue, () => limiter('c')));
    expect(new Set(timesLeft)).toEqual(new Set([0]));
    expect(peer.connections).toBe(1);
  });

  test('gives up what a frozen server has, which counts each late call once', async () => {
    const limiter = limiterAt({ maxQueue, commandTimeout: WAIT });
    await limiter('a');
    for (let round = 1; round <= 2; round++) {
      await server.freeze();
      const first = await Promise.all(times(maxQueue, () => outcomeOf(limiter('a'))));
      expect(new Set(first)).toEqual(new Set([TIMEOUT]));
      server.thaw();
      await waitUntil('it answers', async () => (await limiter('b')) === 0);
      const timesLeft = await Promise.all(times(maxQueue, () => limiter('c')));
      expect(new Set(timesLeft)).toEqual(new Set([0]));
      expect((await limiter.peek('a')).limits[0].used).toBe(1 + round * maxQueue + 1);
    }
  });

  test('publishes the loss of its connection, and its return', async () => {
    const limiter = limiterAt();
    const states = [];
    const listener = ({ type, limiter: of, isUp }) => {
      if (of === limiter && type === 'connection') states.push(isUp);
    };
    diagnostics.subscribe('rollgate:redis', listener);
    try {
      await limiter('a');
      expect(states).toEqual([true]);
      await server.stop();
      await waitUntil('the loss is published', () => states.at(-1) === false);
      await server.restart();
      await waitUntil('it answers', () => limiter('a').then(() => true));
      expect(states.at(-1)).toBe(true);
      expect(states.every((isUp, i) => isUp === (i % 2 === 0))).toBe(true);
    } finally {
      diagnostics.unsubscribe('rollgate:redis', listener);
    }
  });
});
