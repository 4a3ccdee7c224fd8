// Every way to connect to Redis: clearing, messages, limits of each call, shared counts.
'use strict';

const diagnostics = require('node:diagnostics_channel');
const { Registry } = require('prom-client');
const RateLimiter = require('../..');
const { registerMetrics } = require('../../lib/adapters/metrics');
const { ALGORITHMS } = require('../../lib/options/algorithms');
const { EACH_CLIENT, ONE_CLIENT, openings, scriptRuns } = require('../support/redis-clients');
const { startRedis } = require('../support/redis-server');
const { handClock } = require('../support/set-up');
const { patient } = require('../support/tiers');
const { randomFrom } = require('../support/traces');

const START_MS = 1_700_000_000_000;
const HOUR = 3_600_000;
const { using, closeAll } = openings();
const connections = {};
let server;
let namespaces = 0;

const newNamespace = () => `clients-${++namespaces}`;

/** Two in a minute, refusals not counted, unless `options` say otherwise. */
function limiterOver(client, options) {
  return RateLimiter({
    redis: { ...connections[client], commandTimeout: patient(15_000) },
    namespace: newNamespace(),
    interval: 60_000,
    maxInInterval: 2,
    countBlocked: false,
    ...options,
  });
}

beforeAll(async () => {
  server = await startRedis();
  for (const [name, open] of EACH_CLIENT) connections[name] = using(open(server.url));
});

describe('clients', () => {
  afterAll(closeAll);

  describe.each(EACH_CLIENT)('%s', (client) => {
    const make = (options) => limiterOver(client, options);

    test('a refund whose clock fails takes nothing', async () => {
      const time = handClock(START_MS);
      const limiter = make({ clock: time.clock });
      const [first, second] = await limiter.attemptMany(['a', 'a']);
      time.set(Number.NaN);
      await expect(limiter.refund(first)).rejects.toMatchObject({ code: 'ERR_ROLLGATE_CLOCK' });
      time.set(START_MS);
      expect((await limiter.peek('a')).allowed).toBe(false);
      expect([await limiter.refund(second), await limiter.refund(second)]).toEqual([true, false]);
    });

    test('attemptMany decides one behind the other, more ids than one call takes', async () => {
      const limiter = make({ interval: HOUR });
      const ids = Array.from({ length: 2500 }, (_, i) => i % 1250);
      const decisions = await limiter.attemptMany([...ids, 7]);
      expect(decisions.map(({ actionsLeft }) => actionsLeft)).toEqual([
        ...Array(1250).fill(1),
        ...Array(1251).fill(0),
      ]);
      expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(2500);
      expect(decisions[2500].allowed).toBe(false);
    });

    test('clear forgets one id, clearAll all of one namespace, whatever its characters', async () => {
      const limits = { interval: HOUR, maxInInterval: 1 };
      const first = make({ ...limits, namespace: `${client}*[all]?\\` });
      const second = make({ ...limits, namespace: `${client}*[all]?\\2` });
      for (let i = 0; i < 2; i++) await Promise.all([first('a'), first('b'), second('a')]);
      await first.clear('a');
      expect([await first('a'), (await first('b')) > 0]).toEqual([0, true]);
      await first.attemptMany(Array.from({ length: 700 }, (_, i) => i));
      await first.clearAll();
      expect([await first('a'), await first('b'), await first(699)]).toEqual([0, 0, 0]);
      expect(await second('a')).toBeGreaterThan(0);
    });

    test('each call is published and measured, and so is the connection', async () => {
      const limiter = make();
      const register = new Registry();
      const metrics = registerMetrics({ limiters: { api: limiter }, register });
      const messages = [];
      const listener = (message) => messages.push(message);
      diagnostics.subscribe('rollgate:redis', listener);
      try {
        const decision = await limiter.attempt('a');
        await limiter('a');
        await limiter.peek('a');
        await limiter.attemptMany(['a', 'b']);
        await limiter.refund(decision);
        await limiter.clear('a');
        await new Promise((resolve) => setImmediate(resolve));
      } finally {
        diagnostics.unsubscribe('rollgate:redis', listener);
      }
      const calls = messages.filter(({ type }) => type === 'call');
      const told = ['attempt', 'attempt', 'peek', 'attempt', 'refund', 'clear'];
      expect(calls.map(({ command }) => command)).toEqual(told);
      expect(calls.map(({ ids }) => ids)).toEqual([1, 1, 1, 2, 1, 1]);
      for (const call of calls) {
        expect([call.limiter, call.error]).toEqual([limiter, null]);
        expect(call.durationMs).toBeGreaterThan(0);
      }
      const lines = await register.metrics();
      for (const line of [
        'rollgate_redis_call_duration_seconds_count{limiter="api",outcome="ok"} 6',
        'rollgate_redis_up{limiter="api"} 1',
        'rollgate_pending_calls{limiter="api"} 0',
      ]) {
        expect(lines).toContain(line);
      }
      expect(metrics.remove('api')).toBe(true);
      expect(await register.metrics()).not.toContain('api');
      metrics.unregister();
    });
  });

  // The clients of users share one backend.
  const BACKENDS = [...new Set([ONE_CLIENT, 'node-redis 6'])];
  describe.each(BACKENDS)('%s with limits of each call', (client) => {
    const make = (options) => limiterOver(client, { interval: HOUR, maxInInterval: 1, ...options });

    test.each(ALGORITHMS)('%s: the same as in memory', async (algorithm) => {
      const random = randomFrom(11);
      const time = handClock(START_MS);
      const policy = { algorithm, clock: time.clock, interval: HOUR, maxInInterval: 20 };
      const options = { ...policy, blockFor: 180_000, countBlocked: algorithm !== 'gcra' };
      const [limiter, memory] = [make(options), RateLimiter(options)];
      for (let step = 0; step < 150; step++) {
        time.advance(3600 * random.between(0, 400));
        const how = random.chance(20) ? 'peek' : 'attempt';
        const limits = random.chance(5) ? 2 ** 40 : random.between(0, 8);
        const cost = random.between(1, 3);
        const expected = memory[how]('a', { limits, cost });
        expect(await limiter[how]('a', { limits, cost })).toEqual(expected);
      }
    });

    // Kills: a log that is cut to a lower limit, where it is short and where it is a ring.
    test('a low limit forgets nothing that a high one has allowed', async () => {
      const common = { clock: handClock(0).clock, namespace: newNamespace(), countBlocked: true };
      const [limiter, other] = [make(common), make(common)];
      for (const limits of [100, 400]) {
        await Promise.all(Array.from({ length: limits }, () => limiter.attempt('a', { limits })));
        for (let i = 0; i < 3; i++) {
          expect((await other.attempt('a', { limits: 5 })).allowed).toBe(false);
          expect((await limiter.attempt('a', { limits })).allowed).toBe(false);
        }
      }
    });

    // Kills: a log that counted refusals make longer than the limits need.
    test('a log under small limits stays small', async () => {
      const namespace = newNamespace();
      const limiter = make({ namespace, countBlocked: true, maxInInterval: 3 });
      const calls = Array.from({ length: 500 }, () => limiter.attempt('a', { limits: 5 }));
      await Promise.all(calls);
      expect(await server.command('STRLEN', `${namespace}{a}`)).toBe(17 + 4 * 4);
    });

    test('calls at once are each judged by their own, in one run', async () => {
      const limiter = make();
      await limiter.attempt('b'); // so that the server has the script
      const maxima = [2, 1, 3, 2, 9];
      const runs = await scriptRuns(server);
      const decisions = await Promise.all(maxima.map((limits) => limiter.attempt('a', { limits })));
      expect((await scriptRuns(server)) - runs).toBe(1);
      expect(decisions.map(({ allowed }) => allowed)).toEqual([true, false, true, false, true]);
      expect(decisions.map(({ limits }) => limits[0].maxInInterval)).toEqual(maxima);
    });
  });

  test('on one namespace, each sees and takes back what others recorded', async () => {
    const options = { namespace: newNamespace(), interval: HOUR, maxInInterval: 100 };
    const limiters = EACH_CLIENT.map(([name]) => limiterOver(name, options));
    for (const [i, limiter] of limiters.entries()) {
      const decision = await limiter.attempt('a', { cost: 2 });
      expect(decision.limits[0].used).toBe(i + 2);
      await limiter.refund(decision);
      await limiter('a');
    }
    await limiters[0].clear('a');
    for (const limiter of limiters) expect((await limiter.peek('a')).limits[0].used).toBe(1);
  });
});
