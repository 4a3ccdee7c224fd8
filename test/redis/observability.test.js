// What is told of Redis while somebody listens: how long calls take, whether there is a connection.
'use strict';

const diagnostics = require('node:diagnostics_channel');
const { Registry } = require('prom-client');
const RateLimiter = require('../..');
const { registerMetrics } = require('../../lib/metrics');
const { nativeLimiter } = require('../support/native-redis');
const { errorOf } = require('../support/outcome');
const { EACH_CLIENT, openings } = require('../support/redis-clients');
const { startRedis } = require('../support/redis-server');
const { waitUntil } = require('../support/wait-until');

const { using, closeAll } = openings();
const connection = { commandTimeout: 15_000, retry: { min: 5, max: 20 } };
let server;
let stops;

beforeAll(async () => {
  server = await startRedis();
});
beforeEach(() => {
  stops = [];
});
afterEach(async () => {
  for (const stop of stops) await stop();
  await closeAll();
  if (server.pid === undefined) await server.restart();
});

function listen(name) {
  const messages = [];
  const listener = (message) => messages.push(message);
  diagnostics.subscribe(name, listener);
  stops.push(() => diagnostics.unsubscribe(name, listener));
  return messages;
}

describe.each(EACH_CLIENT)('%s', (_, open) => {
  function make(options) {
    const limiter = RateLimiter({
      redis: { ...using(open(server.url)), commandTimeout: 15_000 },
      interval: 60_000,
      maxInInterval: 2,
      ...options,
    });
    stops.push(() => limiter.close());
    return limiter;
  }

  test('each call is told with its time', async () => {
    const limiter = make({ countBlocked: false });
    await limiter('before');
    const messages = listen('rollgate:redis');
    const decisions = listen('rollgate:decision');
    await limiter('a');
    const decision = await limiter.attempt('a');
    await limiter.peek('a');
    await limiter.attemptMany(['a', 'b']);
    await limiter.refund(decision);
    await limiter.clear('a');
    await new Promise((resolve) => setImmediate(resolve));
    const calls = messages.filter(({ type }) => type === 'call');
    expect(calls.map(({ command, ids }) => [command, ids])).toEqual([
      ['attempt', 1],
      ['attempt', 1],
      ['peek', 1],
      ['attempt', 2],
      ['refund', 1],
      ['clear', 1],
    ]);
    for (const call of calls) {
      expect(call).toMatchObject({ error: null, durationMs: expect.any(Number) });
      expect(call.durationMs).toBeGreaterThan(0);
      expect(call.limiter).toBe(limiter);
    }
    expect(decisions.map(({ id, allowed }) => [id, allowed])).toEqual([
      ['a', true],
      ['a', true],
      ['a', false],
      ['b', true],
    ]);
  });

  test('metrics have the time of calls, and what the client says of its connection', async () => {
    const limiter = make();
    const register = new Registry();
    const metrics = registerMetrics({ limiters: { api: limiter }, register });
    stops.push(() => metrics.unregister());
    await limiter('a');
    await limiter.attempt('a');
    await limiter.peek('a');
    const text = await register.metrics();
    const count = 'rollgate_redis_call_duration_seconds_count{limiter="api",outcome="ok"} 3';
    expect(text).toContain(count);
    expect(text).toContain('rollgate_redis_up{limiter="api"} 1');
    expect(text).toContain('rollgate_pending_calls{limiter="api"} 0');
    expect(text).toContain('rollgate_decisions_total{limiter="api",outcome="allowed"} 2');
    expect(metrics.remove('api')).toBe(true);
    expect(await register.metrics()).not.toContain('api');
  });
});

test('a call that fails is told with its error', async () => {
  const limiter = nativeLimiter({ url: server.url, ...connection, commandTimeout: 300 });
  stops.push(() => limiter.close());
  const decision = await limiter.attempt('a');
  await server.stop();
  const messages = listen('rollgate:redis');
  const errors = [];
  for (const call of [
    () => limiter.attempt('a'),
    () => limiter.attemptMany(['a', 'b']),
    () => limiter.refund(decision),
    () => limiter.clear('a'),
  ]) {
    errors.push(await errorOf(call()));
  }
  const calls = messages.filter((message) => message.type === 'call');
  expect(calls.map(({ command }) => command)).toEqual(['attempt', 'attempt', 'refund', 'clear']);
  for (const [i, { error }] of calls.entries()) expect(error).toBe(errors[i]);
});

test('the native client tells when it has a connection, and when it has none any more', async () => {
  const messages = listen('rollgate:redis');
  const limiter = nativeLimiter({ url: server.url, ...connection });
  stops.push(() => limiter.close());
  // Those of earlier tests lose theirs, too, if they have not been collected yet.
  const isOwn = (message) => message.type === 'connection' && message.limiter === limiter;
  const states = () => messages.filter(isOwn);
  await limiter('a');
  expect(states()).toEqual([{ type: 'connection', limiter, isUp: true }]);
  expect(states()[0].limiter).toBe(limiter);
  await server.stop();
  // A server that is stopping may take a new connection for a moment.
  await waitUntil('it is told', () => states().at(-1).isUp === false);
  expect(states()[1]).toEqual({ type: 'connection', limiter, isUp: false });
  const error = await errorOf(limiter('a'));
  expect(messages.at(-1)).toMatchObject({ type: 'call', command: 'attempt', error });
  await server.restart();
  await waitUntil('it answers', () => limiter('a').then(() => true));
  expect(states().at(-1).isUp).toBe(true);
  expect(states().every(({ isUp }, i) => isUp === (i % 2 === 0))).toBe(true);
});

test('calls that fail are timed, too, as errors', async () => {
  const limiter = nativeLimiter('redis://127.0.0.1:1', { onError: 'allow' });
  stops.push(() => limiter.close());
  const register = new Registry();
  const metrics = registerMetrics({ limiters: { api: limiter }, register });
  stops.push(() => metrics.unregister());
  await limiter('a');
  const text = await register.metrics();
  const count = 'rollgate_redis_call_duration_seconds_count{limiter="api",outcome="error"} 1';
  expect(text).toContain(count);
  expect(text).toContain('rollgate_redis_up{limiter="api"} 0');
  expect(text).toContain('rollgate_fallbacks_total{limiter="api"} 1');
});
