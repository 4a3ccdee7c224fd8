// Every way to connect to Redis: clearing, messages, shared counts.
'use strict';

const diagnostics = require('node:diagnostics_channel');
const { Registry } = require('prom-client');
const RateLimiter = require('../..');
const { registerMetrics } = require('../../lib/adapters/metrics');
const { EACH_CLIENT, openings } = require('../support/redis-clients');
const { startRedis } = require('../support/redis-server');
const { handClock } = require('../support/set-up');
const { patient } = require('../support/tiers');

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
