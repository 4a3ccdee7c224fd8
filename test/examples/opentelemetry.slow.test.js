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

let provider;
let exporter;
let stop;

function observe(limiters) {
  exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  provider = new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter })] });
  stop = observeLimiters(provider.getMeter('test'), limiters);
}

afterEach(async () => {
  stop();
  await provider.shutdown();
});

/** What is exported now, by name: a list of attributes and values. */
async function exported() {
  exporter.reset();
  await provider.forceFlush();
  const metrics = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics[0].metrics);
  return Object.fromEntries(
    metrics.map(({ descriptor, dataPoints }) => [
      descriptor.name,
      dataPoints.map(({ attributes, value }) => ({ ...attributes, value })),
    ]),
  );
}

test('decisions, waits and ids of named limiters, and of others', async () => {
  const options = { interval: 60_000, maxInInterval: 2, clock: () => 0 };
  const api = RateLimiter(options);
  observe({ api });
  for (const id of ['ada', 'ada', 'ada', 'bob']) api(id);
  RateLimiter(options)('ada');
  const numbers = await exported();
  expect(numbers['rollgate.decisions']).toEqual([
    { limiter: 'api', outcome: 'allowed', value: 3 },
    { limiter: 'api', outcome: 'blocked', value: 1 },
    { limiter: 'other', outcome: 'allowed', value: 1 },
  ]);
  expect(numbers['rollgate.refusal.time_left']).toEqual([
    { limiter: 'api', value: expect.objectContaining({ count: 1, sum: 60 }) },
  ]);
  expect(numbers['rollgate.keys']).toEqual([{ limiter: 'api', value: 2 }]);
});

test('ids that were dropped', async () => {
  const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const small = RateLimiter({ interval: 60_000, maxInInterval: 2, maxKeys: 2 });
  observe({ small });
  for (let i = 0; i < 5; i++) small(`user ${i}`);
  small.attemptMany(['user 5', 'user 6']);
  expect((await exported())['rollgate.evictions']).toEqual([{ limiter: 'small', value: 5 }]);
  warn.mockRestore();
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
    const calls = numbers['rollgate.redis.call.duration'].map(({ value, ...attributes }) => ({
      ...attributes,
      count: value.count,
    }));
    expect(calls).toEqual([
      { limiter: 'login', command: 'attempt', outcome: 'ok', count: 2 },
      { limiter: 'login', command: 'peek', outcome: 'ok', count: 1 },
      { limiter: 'login', command: 'attempt', outcome: 'error', count: 1 },
    ]);
    expect(numbers['rollgate.keys']).toBeUndefined();
  } finally {
    await login.close();
  }
});

test('nothing after its end', async () => {
  const api = RateLimiter({ interval: 60_000, maxInInterval: 2 });
  observe({ api });
  api('ada');
  stop();
  api('ada');
  const numbers = await exported();
  expect(numbers['rollgate.decisions']).toEqual([{ limiter: 'api', outcome: 'allowed', value: 1 }]);
  expect(numbers['rollgate.keys']).toBeUndefined();
});

test('the example prints its metrics, and ends by itself', async () => {
  observe();
  const { code, stdout, stderr } = await runExample('observability/opentelemetry.js');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  for (const name of ['rollgate.decisions', 'rollgate.refusal.time_left', 'rollgate.keys']) {
    expect(stdout).toContain(`name: '${name}'`);
  }
  expect(stdout).toMatch(
    /attributes: \{ limiter: 'api', outcome: 'allowed' \},\s.*\s.*\s+value: 4/,
  );
});
