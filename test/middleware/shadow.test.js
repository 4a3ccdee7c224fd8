// Shadow rules: they are tried out, reported and counted, and decide nothing.
'use strict';

const diagnostics = require('node:diagnostics_channel');
const { Registry } = require('prom-client');
const { registerMetrics } = require('../../lib/adapters/metrics');
const { SHADOW } = require('../../lib/base/channels');
const { inTurn, newLogger, setUp } = require('./apps');

const MINUTE_MS = 60_000;

describe('a shadow rule', () => {
  const reportOf = (rule, limit, used) => {
    return {
      rule,
      allowed: used <= limit,
      limit,
      used: Math.min(used, limit),
      remaining: Math.max(limit - used, 0),
    };
  };

  // Kills: ending the search at it; asking only those in front of a refusal.
  test.each([
    ['allows', 3, 200],
    ['refuses', 1, 429],
  ])('is tried out next to the rule that decides, which %s', async (_what, limit, last) => {
    const { ask } = setUp(
      [
        { path: '/', limit: 1, shadow: true },
        { path: /^\/a/, limit: 9, shadow: true },
        { path: '/b', limit: 9, shadow: true },
        { path: '/a', limit },
        { path: /^\/a\/never/, limit: 9, shadow: true },
      ],
      { handler: (req, res) => res.status(429).json(req.rateLimit) },
    );
    const first = await ask('/a/never');
    expect(first.body).toMatchObject({
      limit,
      used: 1,
      shadow: [reportOf(0, 1, 1), reportOf(1, 9, 1)],
    });
    const { status, body } = await ask('/a');
    expect([status, body.limit]).toEqual([last, limit]);
    expect(body.shadow).toEqual([reportOf(0, 1, 2), reportOf(1, 9, 2)]);
  });

  // Kills: headers of the trial; a request property that hides the lack of a decision; a trial that is published as a
  // decision.
  // Kills: req.rateLimit without the numbers of a rule that decides, which applications may read.
  test('without a rule that decides is on a channel of its own and in the metrics, and the client sees nothing', async () => {
    const handler = jest.fn();
    const published = [];
    const note = (message, name) => published.push([name, message]);
    const names = ['rollgate:shadow', 'rollgate:decision'];
    for (const name of names) diagnostics.subscribe(name, note);
    const register = new Registry();
    const metrics = registerMetrics({ register });
    const shadow = { path: '/', limit: 1, shadow: true };
    for (const rules of [[shadow], [shadow, { path: '/' }]]) {
      const { ask } = setUp(rules, { standardHeaders: true, handler });
      await ask('/');
      const { status, body, headers } = await ask('/');
      expect([status, body]).toEqual([200, null]);
      expect(published.splice(0)).toEqual(
        [1, 2].map((used) => ['rollgate:shadow', { id: 'ada', ...reportOf(0, 1, used) }]),
      );
      expect(Object.keys(headers).filter((name) => /ratelimit|retry-after/.test(name))).toEqual([]);
    }
    for (const name of names) diagnostics.unsubscribe(name, note);
    expect(handler).not.toHaveBeenCalled();
    const text = await register.metrics();
    expect(text).toContain('rollgate_shadow_decisions_total{rule="0",outcome="allowed"} 2\n');
    expect(text).toContain('rollgate_shadow_decisions_total{rule="0",outcome="blocked"} 2\n');
    metrics.unregister();
    expect(SHADOW.channel.hasSubscribers).toBe(false);
    const decided = await setUp([{ path: '/', limit: 1 }]).ask('/');
    expect(Object.keys(decided.body).join()).toBe('limit,used,remaining,resetTime,key');
  });

  // Kills: one limiter for all shadow rules of a pattern.
  test('counts apart from another of the same path, so that limits can be compared', async () => {
    const { ask } = setUp([
      { path: '/', limit: 1, shadow: true },
      { path: '/', limit: 5, shadow: true },
      { path: '/', limit: 9 },
    ]);
    await ask('/');
    const { body } = await ask('/');
    expect(body).toMatchObject({ used: 2, shadow: [reportOf(0, 1, 2), reportOf(1, 5, 2)] });
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
    const { hand, ask, statuses } = setUp(
      [
        { path: '/new', shadow: true, zone: 'z', ...block },
        { path: '/all', shadow: true, limit: 9 },
        { path: '/', zone: 'z', ...block, limit: 3 },
      ],
      { handler: (req, res) => res.status(429).json(req.rateLimit) },
    );
    expect(await statuses('/new', '/new', '/')).toEqual([200, 200, 200]);
    hand.now += MINUTE_MS - 1;
    expect((await ask('/new')).body.shadow).toMatchObject([{ allowed: false }]);
    expect(await statuses('/', '/', '/', '/')).toEqual([200, 200, 429, 429]);
    const { status, body } = await ask('/all');
    expect([status, body.shadow]).toEqual([429, [reportOf(1, 9, 1)]]);
  });

  // Kills: an error of a trial in next(); a trial that makes callers known.
  test.each([
    [
      'its limit throws',
      [
        { path: '/', limit: () => 'many', shadow: true },
        { path: '/', limit: 5 },
      ],
      {},
    ],
    [
      'nobody knows the caller',
      [{ path: '/', limit: 5, shadow: true }],
      { authenticate: () => ({}) },
    ],
    [
      'there is no key',
      [{ path: '/', limit: 5, shadow: true }],
      {
        keyGenerator: () => {
          throw new Error('no key');
        },
      },
    ],
  ])('fails no request: %s', async (_what, rules, options) => {
    const logger = newLogger();
    const { ask } = setUp(rules, { ...options, logger });
    expect((await ask('/')).status).toBe(200);
    const message = expect.stringContaining('#rollgate_shadow_failed');
    expect(logger.error.mock.calls).toEqual([[expect.any(Error), message]]);
  });

  test('is taken back with skipFailedRequests', async () => {
    const rules = [
      { path: '/', limit: 5, shadow: true },
      { path: '/', limit: 9 },
    ];
    const requestWasSuccessful = (req) => !req.url.endsWith('bad');
    const { ask } = setUp(rules, { skipFailedRequests: true, requestWasSuccessful });
    const used = await inTurn(
      ['/?bad', '/?bad', '/'],
      async (path) => (await ask(path)).body.shadow[0].used,
    );
    expect(used).toEqual([1, 1, 1]);
  });
});
