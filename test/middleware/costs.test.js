// The option cost and req.rateLimit.settle: what a request uses, what can never pass, and what it came to.
'use strict';

const RateLimiter = require('../..');
const { createPlainKv } = require('../support/kv-stores');
const { catchError } = require('../support/set-up');
const { FAILING, HOUR_MS, appWith, get, inTurn, newLogger, setUp } = require('./apps');

const { rateLimit } = RateLimiter;
const clock = () => 1_000_000;
const KEY = { keyGenerator: () => 'ada' };
const LIMIT = { limit: 10, windowMs: 90_000 };

const TERMS = { interval: 1000, maxInInterval: 3, clock };
function ofUser() {
  const own = RateLimiter(TERMS);
  return { attempt: (...args) => own.attempt(...args), peek: (id) => own.peek(id) };
}

const queryOf = (req) => new URL(req.url, 'http://x').searchParams;
const costOf = (req) => Number(queryOf(req).get('cost'));

/** Responses are req.rateLimit, whatever the decision. A query that is a number is a cost. */
function appOf(options) {
  const handler = (req, res) => res.status(429).json(req.rateLimit);
  const headers = { standardHeaders: 'draft-8', handler };
  const { ask } = setUp(undefined, { clock, ...KEY, ...headers, ...options });
  return (query) => ask(typeof query === 'number' ? `/?cost=${query}` : `/?${query}`);
}

const summaryOf = ({ status, body, headers }) => {
  return [status, body.used, body.remaining, headers['retry-after']];
};

// Kills: an attempt at cost 1; a RangeError for the client; a record, or a block, of what never fits.
test.each([
  ['a function', { ...LIMIT, cost: costOf }],
  ['an async function', { ...LIMIT, cost: async (req) => costOf(req), limit: () => 10 }],
  ['a function of a rule', { rules: [{ path: '/', ...LIMIT, cost: costOf }] }],
])('cost as %s is what the request uses, unless it can never pass', async (_what, options) => {
  const policy = { countBlocked: true, blockFor: HOUR_MS };
  const { rules } = options;
  const ask = appOf(rules ? { rules: [{ ...rules[0], ...policy }] } : { ...options, ...policy });
  const answers = await inTurn([11, 4, 2 ** 53 - 1, 6, 1], ask);
  expect(answers.map(summaryOf)).toEqual([
    [429, 0, 10, undefined],
    [200, 4, 6, undefined],
    [429, 4, 6, undefined],
    [200, 10, 0, undefined],
    [429, 10, 0, '3600'],
  ]);
});

// Kills: an attempt before the cost is checked; passOnStoreError that lets it pass.
test.each([
  [0, 'RangeError'],
  [1.5, 'RangeError'],
  [undefined, 'TypeError'],
  ['1', 'TypeError'],
  [{}, 'TypeError'],
])('cost %p is a %s of the request, which counts nothing', async (cost, name) => {
  const costs = [];
  const policy = { ...LIMIT, cost: () => costs.shift() };
  for (const options of [policy, { rules: [{ path: '/', ...policy }] }]) {
    const ask = appOf({ ...options, passOnStoreError: true });
    costs.push(cost, 1);
    const { status, body } = await ask();
    expect([status, body]).toMatchObject([500, { code: 'ERR_ROLLGATE_COST', name }]);
    expect((await ask()).body.used).toBe(1);
  }
});

describe('a cost that can never pass', () => {
  // Kills: a store that is asked first; a wait in place of none.
  test.each([
    ['throw', 500, 'ERR_ROLLGATE_COST'],
    ['allow', 429, undefined],
  ])('is told apart while the store is away, with onError %s', async (onError, status, code) => {
    const fail = () => Promise.reject(new Error('away'));
    const store = { kv: { get: fail, set: fail }, onError, namespace: 'n', clock: undefined };
    const answer = await appOf({ ...LIMIT, ...store, passOnStoreError: true, cost: costOf })(11);
    expect([answer.status, answer.body.code]).toEqual([status, code]);
    expect(answer.headers).not.toHaveProperty('retry-after');
  });

  class Counted extends RateLimiter {
    attempts = 0;
    attempt(...args) {
      this.attempts += 1;
      return super.attempt(...args);
    }
  }

  // Kills: a way around the methods of a given limiter.
  test.each([
    ['of a class of the user', () => new Counted(TERMS)],
    ['of a key-value store', () => RateLimiter({ ...TERMS, kv: createPlainKv(), namespace: 'n' })],
    ['of the user', ofUser],
  ])('is refused by a limiter %s', async (_what, createLimiter) => {
    const limiter = createLimiter();
    const answers = await inTurn([2, 4, 1], appOf({ limiter, cost: costOf, clock: undefined }));
    expect(answers.map(summaryOf)).toEqual([
      [200, 2, 1, undefined],
      [429, 2, 1, undefined],
      [200, 3, 0, undefined],
    ]);
    if (limiter instanceof Counted) expect(limiter.attempts).toBe(3);
  });

  // Kills: passOnStoreError for a cost that is known to be wrong, because only the numbers to show are missing.
  test('does not pass if the store fails that knows what to show', async () => {
    const [[, peek]] = FAILING(new Error('no answer'));
    const limiter = { ...ofUser(), peek };
    const common = { limiter, ...KEY, passOnStoreError: true, logger: newLogger() };
    const app = appWith(rateLimit({ ...common, cost: 4 }));
    expect((await get(app)).body.code).toBe('ERR_ROLLGATE_COST');
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

const costsOf = (req) =>
  Object.fromEntries([...queryOf(req)].map(([name, value]) => [name, Number(value)]));

const NAMED = {
  limits: [
    { name: 'requests', windowMs: 1000, limit: 3 },
    { name: 'tokens', windowMs: 60_000, limit: 100 },
  ],
  countBlocked: false,
};

const stateOf = ({ status, headers }) => [status, headers.ratelimit, headers['retry-after']];

describe.each([
  ['of a middleware', (own) => ({ ...NAMED, ...own })],
  ['of a rule', (own) => ({ rules: [{ path: '/', ...NAMED, ...own }] })],
  [
    'with an existing limiter',
    ({ cost }) => ({ limiter: RateLimiter({ ...NAMED, clock }), clock: undefined, cost }),
  ],
])('costs by name of a limit, %s', (_what, optionsOf) => {
  // Kills: costs that are refused or ignored; one policy for all windows; a violated policy by cost 1 or by the largest
  // cost; resets later than no Retry-After; the window with the least left, which has room, on a refusal by another one.
  test('count in their windows, and those without room are violated', async () => {
    const own = optionsOf({ cost: costsOf });
    const ask = appOf({ ...own, handler: undefined, problemDetails: true });
    const answers = await inTurn(
      ['tokens=70', 'tokens=101', 'tokens=70', 'requests=3&tokens=50', 'requests=2&tokens=0', ''],
      ask,
    );
    const left = (requests, tokens) =>
      `"requests"; r=${requests}; t=1, "tokens"; r=${tokens}; t=60`;
    expect(answers.map(stateOf)).toEqual([
      [200, left(2, 30), undefined],
      [429, left(2, 30), undefined],
      [429, left(2, 30), '60'],
      [429, left(2, 30), '60'],
      [200, left(0, 30), undefined],
      [429, '"requests"; r=0; t=1, "tokens"; r=30', '1'],
    ]);
    const violated = answers.map(({ body }) => body['violated-policies']?.join());
    expect(violated.filter(Boolean)).toEqual(['tokens', 'tokens', 'requests,tokens', 'requests']);
    const shown = answers.map(({ headers }) => headers['x-ratelimit-limit']);
    expect(shown).toEqual(['3', '100', '100', '3', '3', '3']);
  });

  // Kills: a refusal of what is no cost; a name that is not known until the store answers.
  test.each([
    ['token=5&tokens=101', 'TypeError'],
    ['tokens=1.5', 'RangeError', '"tokens"'],
    ['tokens=0&requests=0', 'RangeError'],
  ])('%s is an error of the request, which counts nothing', async (query, name, what = '') => {
    const ask = appOf({ ...optionsOf({ cost: costsOf }), passOnStoreError: true });
    const { status, body } = await ask(query);
    expect([status, body]).toMatchObject([500, { code: 'ERR_ROLLGATE_COST', name }]);
    expect(body.message).toContain(what);
    expect((await ask('')).headers.ratelimit).toBe('"requests"; r=2; t=1, "tokens"; r=99; t=60');
  });

  // Kills: an option that fails with each request.
  test('are also an option without a function, whose names are checked at once', async () => {
    const ask = appOf(optionsOf({ cost: { tokens: 70 } }));
    expect((await inTurn(['', ''], ask)).map(({ status }) => status)).toEqual([200, 429]);
    const { message, code } = catchError(() => appOf(optionsOf({ cost: { token: 5 } })));
    expect(code).toBe('ERR_ROLLGATE_OPTION');
    expect(message).toContain(
      `option 'cost': expected names of limits (requests, tokens), got "token" (string); did you mean 'tokens'?`,
    );
  });
});

test.each([{ limit: 5 }, { limit: () => 5 }, { rules: [{ path: '/', limit: 5 }] }])(
  'an object as cost needs limits with names: %p',
  ({ rules, ...options }) => {
    const cost = { tokens: 5 };
    const own = rules ? { rules: [{ ...rules[0], cost }] } : { ...options, cost };
    expect(catchError(() => rateLimit(own))).toMatchObject({
      name: 'TypeError',
      code: 'ERR_ROLLGATE_OPTION',
      message: expect.stringContaining("option 'cost': expected an integer from 1 to "),
    });
  },
);

describe('req.rateLimit.settle', () => {
  const COST = { ...LIMIT, cost: 4 };
  const FULL = { interval: 10, maxInInterval: 1, used: 1, remaining: 0, resetIn: 5 };
  const REFUSAL = { allowed: false, timeLeft: 5, resetIn: 5, limits: [FULL] };

  /** Settles at these amounts, one after the other, before it answers with this status; what that gives, and the count. */
  async function settled(options, amounts, status = 200) {
    const results = [];
    const middleware = rateLimit({ clock, ...KEY, ...options });
    const app = appWith(middleware, async (req, res) => {
      for (const actual of amounts) results.push(await req.rateLimit.settle(actual));
      res.status(status).json(req.rateLimit);
    });
    const { body } = await get(app);
    const count = await middleware.getKey('ada');
    return { results, used: count?.totalHits ?? 0, body };
  }

  // Kills: a refund of what the request reserved, after it was settled.
  test.each([
    ['with a limit by request', { limit: () => 10, cost: 4 }],
    ['of a rule', { rules: [{ path: '/', ...COST }] }],
    ['later', { ...COST, keyGenerator: async () => 'ada' }],
    ['that skipFailedRequests would take back', { ...COST, skipFailedRequests: true }],
  ])('settles the count once, %s', async (_what, options) => {
    expect(await settled(options, [7, 2], 500)).toMatchObject({ results: [true, false], used: 7 });
  });

  test.each([
    ['by the limit', { ...COST, limit: 0 }],
    ['by a cost that can never pass', { ...COST, cost: 11 }],
    ['by a limiter without settle', { limiter: { attempt: () => REFUSAL }, clock: undefined }],
  ])('of a refusal %s is false', async (_what, options) => {
    const handler = (req, res) => res.json({ settled: req.rateLimit.settle(1) });
    const app = appWith(rateLimit({ clock, ...KEY, ...options, handler }));
    expect((await get(app)).body).toEqual({ settled: false });
  });

  // Kills: settling all counts of a request.
  test('settles the rule that decided, and no shadow rule', async () => {
    const rule = { path: '/', limit: 50, cost: 5 };
    const rules = [{ ...rule, shadow: true }, rule];
    const { results, used, body } = await settled({ rules }, [1]);
    expect([results, used, body.shadow[0].used]).toEqual([[true], 1, 5]);
  });

  test('needs a limiter with settle', async () => {
    expect((await settled({ limiter: ofUser(), clock: undefined }, [1])).body).toMatchObject({
      code: 'ERR_ROLLGATE_UNSUPPORTED',
      message: "settle: the middleware's limiter has no method settle",
    });
  });
});
