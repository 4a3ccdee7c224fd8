// Shadow rules: they are tried out, reported and counted, and decide nothing.
'use strict';

const diagnostics = require('node:diagnostics_channel');
const { Registry } = require('prom-client');
const { registerMetrics } = require('../../lib/adapters/metrics');
const { SHADOW } = require('../../lib/base/channels');
const { FAILING, newLogger, setUp } = require('./apps');

const MINUTE_MS = 60_000;

const RULE = { path: '/', limit: 1, shadow: true };
const handler = (req, res) => res.status(429).json(req.rateLimit);

const reportOf = (rule, limit, used) => {
  const [allowed, remaining] = [used <= limit, Math.max(limit - used, 0)];
  return { rule, allowed, limit, used: Math.min(used, limit), remaining };
};

// Kills: ending the search at it; asking only those in front of a refusal; one limiter for all of a pattern; a trial
// whose count is kept although skipFailedRequests takes it back.
test.each([
  ['allows', 3, 200],
  ['refuses', 1, 429],
])('is tried out next to the rule that decides, which %s', async (_what, limit, last) => {
  const rules = [
    RULE,
    { ...RULE, limit: 9 },
    { path: /^\/a/, limit: 8, shadow: true },
    { path: '/b', limit: 9, shadow: true },
    { path: '/a', limit },
    { path: /^\/a\/never/, limit: 9, shadow: true },
  ];
  const requestWasSuccessful = (req) => !req.url.endsWith('bad');
  const { ask } = setUp(rules, { handler, skipFailedRequests: true, requestWasSuccessful });
  await ask('/a?bad');
  const first = [reportOf(0, 1, 1), reportOf(1, 9, 1), reportOf(2, 8, 1)];
  expect((await ask('/a/never')).body).toMatchObject({ limit, used: 1, shadow: first });
  const { status, body } = await ask('/a');
  expect([status, body.limit]).toEqual([last, limit]);
  expect(body.shadow).toEqual([reportOf(0, 1, 2), reportOf(1, 9, 2), reportOf(2, 8, 2)]);
});

// Kills: headers of the trial; a request property that hides the lack of a decision; a trial that is published as a
// decision; req.rateLimit without the numbers of a rule that decides, which applications may read.
test('without a rule that decides is on a channel and in the metrics, and the client sees nothing', async () => {
  const published = [];
  const note = (message, name) => published.push([name, message]);
  const names = ['rollgate:shadow', 'rollgate:decision'];
  for (const name of names) diagnostics.subscribe(name, note);
  const register = new Registry();
  const metrics = registerMetrics({ register });
  for (const rules of [[RULE], [RULE, { path: '/' }]]) {
    const { ask } = setUp(rules, { standardHeaders: true });
    await ask('/');
    const { status, body, headers } = await ask('/');
    expect([status, body]).toEqual([200, null]);
    expect(published.splice(0)).toEqual(
      [1, 2].map((used) => ['rollgate:shadow', { id: 'ada', ...reportOf(0, 1, used) }]),
    );
    expect(Object.keys(headers).filter((name) => /ratelimit|retry-after/.test(name))).toEqual([]);
  }
  for (const name of names) diagnostics.unsubscribe(name, note);
  const text = await register.metrics();
  expect(text).toContain('rollgate_shadow_decisions_total{rule="0",outcome="allowed"} 2\n');
  expect(text).toContain('rollgate_shadow_decisions_total{rule="0",outcome="blocked"} 2\n');
  metrics.unregister();
  expect(SHADOW.channel.hasSubscribers).toBe(false);
  const decided = await setUp([{ path: '/', limit: 1 }]).ask('/');
  expect(Object.keys(decided.body).join()).toBe('limit,used,remaining,resetTime,key');
});

// Kills: one count for the shadow rules and the others of a zone; getKey of what refuses nothing.
test('counts apart in a zone, once for its shadow rules, with limits of its own', async () => {
  const { ask, middleware } = setUp([
    { path: '/a', limit: 5, zone: 'z', shadow: true },
    { path: '/a/b', limit: 5, zone: 'z', shadow: true },
    { path: '/', limit: 9, zone: 'z' },
  ]);
  await ask('/');
  const { body } = await ask('/a/b');
  expect([body.used, body.shadow]).toEqual([2, [reportOf(0, 5, 1)]]);
  expect(await middleware.getKey('ada')).toMatchObject({ totalHits: 2 });
  await middleware.resetKey('ada');
  expect((await ask('/a')).body.shadow).toEqual([reportOf(0, 5, 1)]);
});

// Kills: a block of a trial that holds elsewhere; a block on every rule that the trial counts as its own.
test('blocks nobody, and blocks on every rule do not keep it from counting', async () => {
  const block = { limit: 1, windowMs: 1000, blockFor: MINUTE_MS, blockEverywhere: true };
  const rules = [
    { path: '/new', shadow: true, zone: 'z', ...block },
    { path: '/all', shadow: true, limit: 9 },
    { path: '/', zone: 'z', ...block, limit: 3 },
  ];
  const { hand, ask, statuses } = setUp(rules, { handler });
  expect(await statuses('/new', '/new', '/')).toEqual([200, 200, 200]);
  hand.now += MINUTE_MS - 1;
  expect((await ask('/new')).body.shadow).toMatchObject([{ allowed: false }]);
  expect(await statuses('/', '/', '/', '/')).toEqual([200, 200, 429, 429]);
  const { status, body } = await ask('/all');
  expect([status, body.shadow]).toEqual([429, [reportOf(1, 9, 1)]]);
});

// Kills: an error of a trial in next(); a trial that makes callers known.
const noKey = FAILING(new Error('no key'))[0][1];
test.each([
  [
    'its limit throws',
    [
      { ...RULE, limit: () => 'many' },
      { path: '/', limit: 5 },
    ],
    {},
  ],
  ['nobody knows the caller', [RULE], { authenticate: () => ({}), onAuthError: () => {} }],
  ['there is no key', [RULE], { keyGenerator: noKey }],
])('fails no request: %s', async (_what, rules, options) => {
  const logger = newLogger();
  const { ask } = setUp(rules, { ...options, logger });
  expect((await ask('/')).status).toBe(200);
  const message = expect.stringContaining('#rollgate_shadow_failed');
  expect(logger.error.mock.calls).toEqual([[expect.any(Error), message]]);
});
