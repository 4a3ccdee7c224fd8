// registerMetrics of rollgate/metrics: what is registered in prom-client and read; wrong options of topBlocked, too.
'use strict';

const diagnostics = require('node:diagnostics_channel');
const { Gauge, Registry, register: globalRegister } = require('prom-client');
const RateLimiter = require('../..');
const { registerMetrics, topBlocked } = require('../../lib/adapters/metrics');
const { whereAddon } = require('../support/bindings');
const { createPlainKv } = require('../support/kv-stores');
const { askProgram } = require('../support/run-program');
const { catchError, setUp } = require('../support/set-up');

let register;
let metrics;

beforeEach(() => {
  register = new Registry();
});
afterEach(() => metrics?.unregister());

/** By name and labels: the values that a scrape reads. */
async function scrape(from = register) {
  const text = await from.metrics();
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return Object.fromEntries(lines.map((line) => line.split(/ (?=\S+$)/)).map(([k, v]) => [k, +v]));
}

const decisions = (name, outcome) =>
  `rollgate_decisions_total{limiter="${name}",outcome="${outcome}"}`;

test('what a limiter has decided and holds is read when it is asked for', async () => {
  const { limiter } = setUp({ maxKeys: 2 });
  const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
  metrics = registerMetrics({ limiters: { api: limiter }, register });
  limiter('a');
  limiter('a');
  limiter('a');
  limiter.attemptMany(['b', 'c']);
  const expected = {
    [decisions('api', 'allowed')]: 4,
    [decisions('api', 'blocked')]: 1,
    'rollgate_errors_total{limiter="api"}': 0,
    'rollgate_evictions_total{limiter="api"}': 1,
    'rollgate_keys{limiter="api"}': 2,
    'rollgate_memory_bytes{limiter="api"}': limiter.stats().bytes,
    'rollgate_records_total{limiter="api"}': 0,
  };
  expect(await scrape()).toEqual(expected);
  expect(await scrape()).toEqual(expected);
  limiter('b');
  expect(await scrape()).toMatchObject({ [decisions('api', 'allowed')]: 5 });
  warn.mockRestore();
});

test('counters are counters and the others gauges, each with a help text', async () => {
  registerMetrics({ register }).unregister();
  metrics = registerMetrics({ register, prefix: 'app_' });
  const kinds = (await register.getMetricsAsJSON()).map(({ name, type, help }) => {
    expect(help).not.toBe('');
    return `${name} ${type}`;
  });
  expect(kinds).toEqual([
    'app_decisions_total counter',
    'app_records_total counter',
    'app_errors_total counter',
    'app_evictions_total counter',
    'app_fallbacks_total counter',
    'app_keys gauge',
    'app_memory_bytes gauge',
    'app_leased_permits_total counter',
    'app_leases gauge',
    'app_local_decisions_total counter',
    'app_pending_calls gauge',
    'app_returned_permits_total counter',
    'app_slots_held gauge',
    'app_slots_leaked_total counter',
    'app_slots_oldest_seconds gauge',
    'app_slots_waiting gauge',
    'app_redis_up gauge',
    'app_redis_call_duration_seconds histogram',
    'app_shadow_decisions_total counter',
  ]);
  metrics.unregister();
  expect(await register.getMetricsAsJSON()).toEqual([]);
});

test('a limiter whose store is elsewhere has its own: fallbacks, pending calls, no keys', async () => {
  const kv = createPlainKv();
  const options = { interval: 60_000, maxInInterval: 1, namespace: 'n', onError: 'allow' };
  const limiter = RateLimiter({ kv, ...options });
  metrics = registerMetrics({ register });
  metrics.add('elsewhere', limiter);
  await limiter('a');
  await limiter('a');
  await limiter.record('a');
  kv.get = () => {
    throw new Error('broken');
  };
  await limiter('a');
  expect(await scrape()).toEqual({
    [decisions('elsewhere', 'allowed')]: 2,
    [decisions('elsewhere', 'blocked')]: 1,
    'rollgate_errors_total{limiter="elsewhere"}': 1,
    'rollgate_evictions_total{limiter="elsewhere"}': 0,
    'rollgate_fallbacks_total{limiter="elsewhere"}': 1,
    'rollgate_pending_calls{limiter="elsewhere"}': 0,
    'rollgate_records_total{limiter="elsewhere"}': 1,
  });
});

test('a limiter with leases has its permits and local decisions, any other has none', async () => {
  const { limiter } = setUp();
  const counts = { leases: 2, leased: 900, returned: 30, local: 700 };
  const leasing = Object.assign(() => 0, { stats: () => ({ ...limiter.stats(), ...counts }) });
  metrics = registerMetrics({ limiters: { leasing, limiter }, register });
  const found = Object.entries(await scrape()).filter(([name]) =>
    /lease|returned|local/.test(name),
  );
  expect(Object.fromEntries(found)).toEqual({
    'rollgate_leased_permits_total{limiter="leasing"}': 900,
    'rollgate_leases{limiter="leasing"}': 2,
    'rollgate_local_decisions_total{limiter="leasing"}': 700,
    'rollgate_returned_permits_total{limiter="leasing"}': 30,
  });
});

test('limiters come and go', async () => {
  const one = setUp().limiter;
  const other = setUp().limiter;
  metrics = registerMetrics({ limiters: { one }, register });
  metrics.add('other', other);
  one('a');
  other('a');
  const allowed = (name) => decisions(name, 'allowed');
  expect(await scrape()).toMatchObject({ [allowed('one')]: 1, [allowed('other')]: 1 });
  expect([metrics.remove('one'), metrics.remove('one')]).toEqual([true, false]);
  await other.close();
  expect(await scrape()).toEqual({});
  metrics.add('one', one);
  expect(await scrape()).toMatchObject({ [allowed('one')]: 1 });
});

whereAddon.test(
  'a limiter whose shared memory cannot be had has none, and the others have theirs',
  async () => {
    const { limiter } = setUp();
    const shared = { name: 'x', directory: '/nonexistent' };
    const bad = RateLimiter({ shared, interval: 1000, maxInInterval: 1 });
    metrics = registerMetrics({ limiters: { good: limiter, bad }, register });
    limiter('a');
    const scraped = await scrape();
    expect(scraped[decisions('good', 'allowed')]).toBe(1);
    expect(Object.keys(scraped).filter((name) => name.includes('bad'))).toEqual([]);
  },
);

test('the histogram has the buckets that it is given', async () => {
  const { limiter } = setUp();
  metrics = registerMetrics({ limiters: { api: limiter }, register, buckets: [0.25, 4] });
  diagnostics
    .channel('rollgate:redis')
    .publish({ type: 'call', limiter, durationMs: 1000, error: null });
  const bounds = (await register.metrics()).matchAll(/_bucket\{le="([^"]+)"/g);
  expect(Array.from(bounds, ([, bound]) => bound)).toEqual(['0.25', '4', '+Inf']);
});

test("without a registry they are in prom-client's own", async () => {
  const { limiter } = setUp();
  metrics = registerMetrics({ limiters: { mine: limiter } });
  expect(await scrape(globalRegister)).toMatchObject({ 'rollgate_keys{limiter="mine"}': 0 });
  metrics.unregister();
  expect(await scrape(globalRegister)).toEqual({});
});

const channel = diagnostics.channel('rollgate:decision');
const same = RateLimiter({ interval: 1000, maxInInterval: 1 });
const OF_BOTH = [
  [{ limiter: 5 }, TypeError, /^unknown option "limiter"; did you mean 'limiters'\?$/],
  [{ limiters: { api: 5 } }, TypeError, /^option 'limiters.api': expected a limiter, got 5$/],
  [{ limiters: [] }, TypeError, /^option 'limiters'/],
  [{ limiters: { a: same, b: same } }, TypeError, /^'b': there is this limiter as 'a' already/],
  [5, TypeError, /^option 'options': expected an object, got 5$/],
];
test.each([
  ...OF_BOTH.flatMap((row) => [
    [registerMetrics, ...row],
    [topBlocked, ...row],
  ]),
  ...[
    [{ limiters: { a: RateLimiter.rateLimit() } }, TypeError, /a middleware; .*\(\{ limiter \}\)$/],
    [{ register: {} }, TypeError, /^option 'register': expected a Registry of prom-client/],
    [{ prefix: 'my-' }, RangeError, /^option 'prefix'/],
    [{ buckets: [1, 0.5] }, TypeError, /^option 'buckets'/],
  ].map((row) => [registerMetrics, ...row]),
  ...[
    [{ capacity: '5' }, TypeError, /^option 'capacity': expected an integer from 1 to 1000000/],
    [{ capacity: 1_000_001 }, RangeError, /^option 'capacity'/],
  ].map((row) => [topBlocked, ...row]),
])('%p: %p are refused, and nothing is registered', async (make, options, kind, message) => {
  const own = make === registerMetrics && { register };
  const given = typeof options === 'object' ? { ...own, ...options } : options;
  const error = catchError(() => make(given));
  expect(error).toBeInstanceOf(kind);
  expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
  expect(error.message).toMatch(message);
  expect(await register.getMetricsAsJSON()).toEqual([]);
  expect(channel.hasSubscribers).toBe(false);
});

test('a name stands for one limiter, and a limiter has one name', async () => {
  const { limiter } = setUp();
  metrics = registerMetrics({ limiters: { api: limiter }, register });
  for (const [name, added, message] of [
    ['api', setUp().limiter, "'api': there is another limiter already; remove('api') comes first"],
    ['b', limiter, "'b': there is this limiter as 'api' already; remove('api') comes first"],
    [5, limiter, "option 'name': expected a string, got 5"],
    ['x', {}, "option 'limiter': expected a limiter, got an object"],
  ]) {
    const error = catchError(() => metrics.add(name, added));
    expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION', message });
  }
  metrics.unregister();
  expect(catchError(() => metrics.add('late', limiter))).toMatchObject({
    code: 'ERR_ROLLGATE_CLOSED',
  });
  expect(await register.getMetricsAsJSON()).toEqual([]);
});

test('metrics whose names are taken are refused, and those that are there stay', async () => {
  const { limiter } = setUp();
  const first = registerMetrics({ limiters: { api: limiter }, register });
  const before = (await register.getMetricsAsJSON()).length;
  const again = catchError(() => registerMetrics({ register }));
  expect(again).toMatchObject({ code: 'ERR_ROLLGATE_OPTION', name: 'TypeError' });
  expect(again.message).toMatch(/^there is a metric 'rollgate_decisions_total' already: add\(\)/);
  expect(await register.getMetricsAsJSON()).toHaveLength(before);
  first.unregister();
  first.unregister();

  new Gauge({ name: 'rollgate_keys', help: 'of somebody else', registers: [register] });
  expect(catchError(() => registerMetrics({ register })).message).toContain("'rollgate_keys'");
  expect(await register.getMetricsAsJSON()).toHaveLength(1);
  first.unregister();
  expect(await register.getMetricsAsJSON()).toHaveLength(1);
});

test('only registerMetrics needs prom-client, and says so; neither keeps a program alive', async () => {
  const found = await askProgram(`
    const Module = require('node:module');
    const load = Module._load;
    Module._load = (name, ...rest) => {
      if (name === 'prom-client') throw Object.assign(new Error(name), { code: 'MODULE_NOT_FOUND' });
      return load(name, ...rest);
    };
    const { registerMetrics, topBlocked } = require('rollgate/metrics');
    const told = [topBlocked().top().length];
    try {
      registerMetrics();
    } catch (error) {
      told.push(error.code, error.message, error.cause.code);
    }
    console.log(JSON.stringify(told));
  `);
  const message = "rollgate/metrics needs prom-client: run 'npm install prom-client'";
  expect(found).toEqual([0, 'ERR_ROLLGATE_UNSUPPORTED', message, 'MODULE_NOT_FOUND']);
});
