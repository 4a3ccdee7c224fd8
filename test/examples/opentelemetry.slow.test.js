// The example for OpenTelemetry exports what the diagnostics channels say.
'use strict';

const {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} = require('@opentelemetry/sdk-metrics');
const RateLimiter = require('../..');
const { observeLimiters } = require('../../examples/observability/opentelemetry');
const { callDirectly } = require('../middleware/apps');
const { startRedis } = require('../support/redis-server');
const { runExample } = require('../support/run-program');

let stop;
let exported;

/** Observes limiters; `exported()` gives what is exported now by name: attributes and values. */
function observe(limiters) {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter });
  const provider = new MeterProvider({ readers: [reader] });
  const unobserve = observeLimiters(provider.getMeter('test'), limiters);
  stop = async () => {
    unobserve();
    await provider.shutdown();
  };
  exported = async () => {
    exporter.reset();
    await provider.forceFlush();
    const metrics = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics[0].metrics);
    const valuesOf = ({ attributes, value }) => ({ ...attributes, value });
    return Object.fromEntries(
      metrics.map(({ descriptor, dataPoints }) => [descriptor.name, dataPoints.map(valuesOf)]),
    );
  };
  return unobserve;
}

afterEach(() => stop());

test('decisions, waits, ids and dropped ids of named limiters, and decisions of others', async () => {
  const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const options = { interval: 60_000, maxInInterval: 2, clock: () => 0 };
  const api = RateLimiter(options);
  const small = RateLimiter({ ...options, maxKeys: 2 });
  observe({ api, small });
  for (const id of ['ada', 'ada', 'ada', 'bob']) api(id);
  RateLimiter(options)('ada');
  for (const id of ['a', 'b', 'c']) small(id);
  small.attemptMany(['d', 'e']);
  expect(await exported()).toMatchObject({
    'rollgate.decisions': [
      { limiter: 'api', outcome: 'allowed', value: 3 },
      { limiter: 'api', outcome: 'blocked', value: 1 },
      { limiter: 'other', outcome: 'allowed', value: 1 },
      { limiter: 'small', outcome: 'allowed', value: 5 },
    ],
    'rollgate.refusal.time_left': [
      { limiter: 'api', value: expect.objectContaining({ count: 1, sum: 60 }) },
    ],
    'rollgate.evictions': [{ limiter: 'small', value: 3 }],
    'rollgate.keys': [
      { limiter: 'api', value: 2 },
      { limiter: 'small', value: 2 },
    ],
  });
  warn.mockRestore();
});

test('nothing after its end', async () => {
  const api = RateLimiter({ interval: 60_000, maxInInterval: 2 });
  const unobserve = observe({ api });
  api('ada');
  unobserve();
  api('ada');
  const numbers = await exported();
  expect(numbers['rollgate.decisions']).toEqual([{ limiter: 'api', outcome: 'allowed', value: 1 }]);
  expect(numbers['rollgate.keys']).toBeUndefined();
});

test('what shadow rules say', async () => {
  const limit = RateLimiter.rateLimit({
    validate: false,
    rules: [
      { path: '/', limit: 1, shadow: true },
      { path: '/', limit: 5 },
    ],
  });
  observe();
  for (let i = 0; i < 3; i++) {
    callDirectly(limit, { ip: '192.0.2.1', method: 'GET', url: '/', headers: {} });
  }
  expect((await exported())['rollgate.shadow.decisions']).toEqual([
    { rule: 0, outcome: 'allowed', value: 1 },
    { rule: 0, outcome: 'blocked', value: 2 },
  ]);
});

test('calls to Redis', async () => {
  const server = await startRedis();
  const login = RateLimiter({ redis: server.url, interval: 60_000, maxInInterval: 5 });
  observe({ login });
  try {
    await login('ada');
    await login.peek('ada');
    await login('ada');
    await server.stop();
    await expect(login('ada')).rejects.toThrow();
    const numbers = await exported();
    const counted = (command, outcome, count) => ({
      ...{ limiter: 'login', command, outcome },
      value: expect.objectContaining({ count }),
    });
    expect(numbers['rollgate.redis.call.duration']).toEqual([
      counted('attempt', 'ok', 2),
      counted('peek', 'ok', 1),
      counted('attempt', 'error', 1),
    ]);
    expect(numbers['rollgate.keys']).toBeUndefined();
  } finally {
    await login.close();
  }
});

test('the example prints its metrics, and ends by itself', async () => {
  observe();
  const { code, stdout, stderr } = await runExample('observability/opentelemetry.js');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  for (const name of ['decisions', 'refusal.time_left', 'keys']) {
    expect(stdout).toContain(`name: 'rollgate.${name}'`);
  }
  expect(stdout).toMatch(
    /attributes: \{ limiter: 'api', outcome: 'allowed' \},\s.*\s.*\s+value: 4/,
  );
});
