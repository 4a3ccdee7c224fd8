// req.rateLimit.settle: the count of a request becomes what it came to, once, and only where it was counted.
'use strict';

const RateLimiter = require('../..');
const { createPlainKv } = require('../support/kv-stores');
const { appWith, get } = require('./apps');

const LIMIT = { limit: 10, windowMs: 90_000 };
const clock = () => 0;

/** An app whose requests pass to `answer`. */
function appOf(options, answer = (_req, res) => res.end()) {
  const middleware = RateLimiter.rateLimit({ clock, keyGenerator: () => 'ada', ...options });
  const app = appWith(middleware, answer);
  return { middleware, ask: (query) => get(app, `/?${query}`) };
}

describe('req.rateLimit.settle', () => {
  /** Settles at the query's `actual`, and responds with what that gives. */
  const settleApp = (options) =>
    appOf(options, async (req, res) => {
      const actual = new URL(req.url, 'http://x').searchParams.get('actual');
      res.json({ settled: await req.rateLimit.settle(JSON.parse(actual)) });
    });

  const REFUSAL = {
    allowed: false,
    timeLeft: 5,
    resetIn: 5,
    limits: [{ interval: 10, maxInInterval: 1, used: 1, remaining: 0, resetIn: 5 }],
  };

  const usedIn = async ({ getKey }) => (await getKey('ada'))?.totalHits;

  test.each([
    ['with a limit by request', { limit: () => 10, cost: 4 }],
    ['of a rule', { rules: [{ path: '/', ...LIMIT, cost: 4 }] }],
    ['in a key-value store', { ...LIMIT, cost: 4, kv: createPlainKv(), namespace: 'n' }],
  ])('settles the count %s', async (_what, options) => {
    const { ask, middleware } = settleApp(options);
    expect((await ask('actual=1')).body).toEqual({ settled: true });
    expect(await usedIn(middleware)).toBe(1);
    await ask('actual=0');
    await ask('actual=7');
    expect(await usedIn(middleware)).toBe(8);
  });

  test('takes an object where the cost was one', async () => {
    const limits = [
      { name: 'requests', windowMs: 1000, limit: 3 },
      { name: 'tokens', windowMs: 60_000, limit: 100 },
    ];
    const { ask } = settleApp({ limits, standardHeaders: 'draft-8', cost: { tokens: 5 } });
    const json = encodeURIComponent('{"tokens":90}');
    expect((await ask(`actual=${json}`)).body).toEqual({ settled: true });
    expect((await ask('actual={}')).headers.ratelimit).toContain('"tokens"; r=5;');
    expect((await ask('actual=5')).body.code).toBe('ERR_ROLLGATE_COST');
  });

  // Kills: a refund of what the request reserved, after it was settled.
  test('works once, and is not undone by skipFailedRequests', async () => {
    const results = [];
    const { ask, middleware } = appOf(
      { ...LIMIT, cost: 4, skipFailedRequests: true },
      (req, res) => {
        results.push(req.rateLimit.settle(3), req.rateLimit.settle(2));
        res.sendStatus(500);
      },
    );
    await ask('');
    expect(results).toEqual([true, false]);
    expect(await usedIn(middleware)).toBe(3);
  });

  test('of a refusal is false, also of one that can never pass', async () => {
    for (const options of [
      { ...LIMIT, limit: 0 },
      { ...LIMIT, cost: 11 },
      { limiter: { attempt: () => REFUSAL }, clock: undefined },
    ]) {
      const handler = (req, res) => res.json({ settled: req.rateLimit.settle(1) });
      const { ask } = appOf({ ...options, handler });
      expect((await ask('')).body).toEqual({ settled: false });
    }
  });

  // Kills: settling all counts of a request.
  test('settles the rule that decided, and no shadow rule', async () => {
    const used = [];
    const rules = [
      { path: '/', limit: 50, cost: 5, shadow: true },
      { path: '/', limit: 50, cost: 5 },
    ];
    const { ask } = appOf({ rules }, (req, res) => {
      used.push(req.rateLimit.settle(1));
      res.json(req.rateLimit);
    });
    await ask('');
    expect(used).toEqual([true]);
    const { body } = await ask('');
    expect([body.used, body.shadow[0].used]).toEqual([6, 10]);
  });

  test('needs a limiter with settle', async () => {
    const own = RateLimiter({ interval: 1000, maxInInterval: 3 });
    const limiter = { attempt: (id) => own.attempt(id) };
    const { body } = await settleApp({ limiter, clock: undefined }).ask('actual=1');
    expect(body).toMatchObject({
      code: 'ERR_ROLLGATE_UNSUPPORTED',
      message: "settle: the middleware's limiter has no method settle",
    });
  });
});
