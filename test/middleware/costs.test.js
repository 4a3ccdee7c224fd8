// The option cost: what a request uses, what can never pass, what is no cost; in the middleware, in rules and Fastify.
'use strict';

const RateLimiter = require('../..');
const { createPlainKv } = require('../support/kv-stores');
const apps = require('./apps');

const { FAILING, HOUR_MS, START_MS, appWith, fetchText, get, inTurn } = apps;
const { setUp, useFastify, useHandMovedClock } = apps;
const { rateLimit } = RateLimiter;
const time = useHandMovedClock();

const costOf = (req) => Number(new URL(req.url, 'http://x').searchParams.get('cost'));
const KEY = { keyGenerator: () => 'ada' };
const at = (cost) => `/?cost=${cost}`;

/** An app whose responses are req.rateLimit, whatever the decision. */
function appOf(options) {
  const handler = (req, res) => res.status(429).json(req.rateLimit);
  const middleware = rateLimit({ clock: time.clock, ...KEY, handler, ...options });
  const app = appWith(middleware, (req, res) => res.json(req.rateLimit ?? null));
  return { middleware, ask: (cost) => get(app, at(cost)) };
}

/** The status, what is used and left, and Retry-After. */
const summaryOf = ({ status, body, headers }) => {
  return [status, body.used, body.remaining, headers['retry-after']];
};

const LIMIT = { limit: 10, windowMs: 90_000 };

describe.each([
  ['a function', { ...LIMIT, cost: costOf }],
  ['an async function', { ...LIMIT, cost: async (req) => costOf(req) }],
  ['a function, as the limit is', { ...LIMIT, cost: costOf, limit: () => 10 }],
  ['a function of a rule', { rules: [{ path: '/', ...LIMIT, cost: costOf }] }],
])('cost as %s', (_what, { rules, ...options }) => {
  const appWithPolicy = (policy) => {
    return appOf(rules ? { rules: [{ ...rules[0], ...policy }] } : { ...options, ...policy });
  };

  // Kills: an attempt at cost 1; a Retry-After that is missing for every refusal.
  test('is what the request uses', async () => {
    const { ask } = appWithPolicy({ countBlocked: false });
    const answers = [await ask(7)];
    time.advance(30_000);
    for (const cost of [4, 3]) answers.push(await ask(cost));
    time.advance(60_000 - 1);
    answers.push(await ask(1));
    time.advance(1);
    answers.push(await ask(7));
    expect(answers.map(summaryOf)).toEqual([
      [200, 7, 3, undefined],
      [429, 7, 3, '60'],
      [200, 10, 0, undefined],
      [429, 10, 0, '1'],
      [200, 10, 0, undefined],
    ]);
  });

  // Kills: a RangeError for the client; a record, or a block, of what never fits.
  test('that can never pass is refused without Retry-After, and leaves no trace', async () => {
    const { ask } = appWithPolicy({ countBlocked: true, blockFor: HOUR_MS });
    const answers = await inTurn([11, 4, 2 ** 53 - 1, 6], ask);
    expect(answers.map(summaryOf)).toEqual([
      [429, 0, 10, undefined],
      [200, 4, 6, undefined],
      [429, 4, 6, undefined],
      [200, 10, 0, undefined],
    ]);
    expect(answers[2].headers).toMatchObject({
      'x-ratelimit-limit': '10',
      'x-ratelimit-remaining': '6',
      'x-ratelimit-reset': String(Math.ceil((START_MS + 90_000) / 1000)),
    });
  });
});

// Kills: an attempt before the cost is checked; passOnStoreError that lets it pass.
test.each([0, -1, 1.5, Number.NaN, 2 ** 53, undefined, null, '1', 1n, {}])(
  'cost %p is an error of the request, which counts nothing',
  async (cost) => {
    const costs = [];
    const policy = { ...LIMIT, cost: () => costs.shift() };
    for (const options of [policy, { rules: [{ path: '/', ...policy }] }]) {
      const { ask } = appOf({ ...options, passOnStoreError: true });
      costs.push(cost, 1);
      const { status, body } = await ask();
      const name = typeof cost === 'number' ? 'RangeError' : 'TypeError';
      expect([status, body]).toMatchObject([500, { code: 'ERR_ROLLGATE_COST', name }]);
      expect((await ask()).body.used).toBe(1);
    }
  },
);

test.each(FAILING(new Error('no cost')))(
  'the error of a function that %s goes to next',
  async (_what, cost) => {
    const { ask } = appOf({ ...LIMIT, cost });
    expect((await ask()).body.message).toBe('no cost');
  },
);

// Kills: a refund of 1.
test('the whole cost is taken back, in rules, too', async () => {
  const options = {
    skipFailedRequests: true,
    requestWasSuccessful: (req) => !req.url.includes('bad'),
  };
  const policy = { ...LIMIT, cost: 4 };
  for (const own of [
    policy,
    { ...policy, limit: () => 10 },
    { rules: [{ path: '/', ...policy }] },
  ]) {
    const { ask } = appOf({ ...options, ...own });
    const used = await inTurn(
      ['bad', 'bad', 'bad', '1'],
      async (cost) => (await ask(cost)).body.used,
    );
    expect(used).toEqual([4, 4, 4, 4]);
  }
});

describe('a cost that can never pass', () => {
  // Kills: a policy that is violated only once it is empty; resets later than no Retry-After.
  test('violates the windows that are too small for it', async () => {
    const limits = [
      { interval: 1000, maxInInterval: 5 },
      { interval: 60_000, maxInInterval: 20 },
    ];
    const options = {
      limits,
      cost: costOf,
      standardHeaders: 'draft-8',
      problemDetails: true,
      handler: undefined,
    };
    const { ask } = appOf(options);
    await ask(2);
    const { headers, body } = await ask(6);
    expect(body['violated-policies']).toEqual(['5-in-1sec']);
    expect(headers.ratelimit).toBe('"5-in-1sec"; r=3; t=1, "20-in-1min"; r=18; t=60');
    expect(headers).not.toHaveProperty('retry-after');
    expect((await ask(4)).body['violated-policies']).toEqual(['5-in-1sec']);
  });

  test.each([
    [
      'an existing limiter',
      () => RateLimiter({ interval: 1000, maxInInterval: 3, clock: time.clock }),
    ],
    [
      'a key-value store',
      () => {
        const kv = createPlainKv();
        return RateLimiter({
          kv,
          namespace: 'n',
          interval: 1000,
          maxInInterval: 3,
          clock: time.clock,
        });
      },
    ],
    [
      'a limiter of the user',
      () => {
        const own = RateLimiter({ interval: 1000, maxInInterval: 3, clock: time.clock });
        return { attempt: (id, options) => own.attempt(id, options), peek: (id) => own.peek(id) };
      },
    ],
  ])('is refused by %s', async (_what, limiterOf) => {
    const { ask } = appOf({ limiter: limiterOf(), cost: costOf, clock: undefined });
    const answers = await inTurn([2, 4, 1], ask);
    expect(answers.map(summaryOf)).toEqual([
      [200, 2, 1, undefined],
      [429, 2, 1, undefined],
      [200, 3, 0, undefined],
    ]);
  });

  // Kills: a count above the limit, and room below 0.
  test('is shown by the limit of the request', async () => {
    const { ask } = appOf({ limit: (req) => (costOf(req) === 7 ? 10 : 3), cost: costOf });
    const answers = await inTurn([7, 4], ask);
    expect(answers.map(summaryOf)).toEqual([
      [200, 7, 3, undefined],
      [429, 3, 0, undefined],
    ]);
  });

  // Kills: passOnStoreError for a cost that is known to be wrong, because only the numbers to show are missing.
  test('does not pass if the store fails that knows what to show', async () => {
    const own = RateLimiter({ interval: 1000, maxInInterval: 3 });
    const limiter = {
      attempt: (key, options) => own.attempt(key, options),
      peek() {
        throw new Error('no answer');
      },
      refund: () => false,
      clear: async () => {},
    };
    const logger = { error() {}, warn() {} };
    const middleware = rateLimit({ limiter, ...KEY, cost: costOf, passOnStoreError: true, logger });
    const app = appWith(middleware, (_req, res) => res.end());
    expect((await get(app, at(2))).status).toBe(200);
    expect((await get(app, at(4))).status).toBe(500);
  });

  // Kills: a block on every rule by it; a trial at cost 1.
  test('blocks on no rule, and is what shadow rules report', async () => {
    const block = { blockFor: HOUR_MS, blockEverywhere: true };
    const { ask } = setUp([
      { path: '/', limit: 5, cost: costOf, shadow: true },
      { path: '/a', limit: 5, cost: costOf, ...block },
      { path: '/', limit: 9 },
    ]);
    const { status, headers } = await ask('/a?cost=6');
    expect([status, headers['retry-after']]).toEqual([429, undefined]);
    const { body } = await ask('/?cost=3');
    const trial = { rule: 0, allowed: true, limit: 5, used: 3, remaining: 2 };
    expect(body).toMatchObject({ used: 1, shadow: [trial] });
  });
});

describe('in Fastify', () => {
  const { start } = useFastify();

  // Kills: a cost that gets (request, response), and one that a route does not replace.
  test('is a function of (request, reply), or a number, also of rules and routes', async () => {
    const cost = (request, reply) => (reply.request === request ? costOf(request) : undefined);
    const url = await start({ limit: 5, cost, ...KEY }, { '/': undefined, '/own': { cost: 3 } });
    const rules = await start({ rules: [{ path: '/', limit: 5, cost }], ...KEY });
    const ask = async (target) => {
      const { status, headers } = await fetchText(target);
      return [status, headers.get('x-ratelimit-remaining'), headers.has('retry-after')];
    };
    for (const base of [url, rules]) {
      expect(await ask(base + at(6))).toEqual([429, '5', false]);
      expect(await ask(base + at(4))).toEqual([200, '1', false]);
      expect((await fetchText(base + at(0))).text).toContain('ERR_ROLLGATE_COST');
    }
    expect(await ask(`${url}/own`)).toEqual([200, '2', false]);
  });
});
