// The option cost: what a request uses, what can never pass, what is no cost; in the middleware, in rules and Fastify.
'use strict';

const RateLimiter = require('../..');
const { createPlainKv } = require('../support/kv-stores');
const { catchError } = require('../support/set-up');
const apps = require('./apps');

const { HOUR_MS, appWith, fetchText, get, inTurn, setUp, useFastify } = apps;
const { rateLimit } = RateLimiter;
const clock = () => 1_000_000;

const costOf = (req) => Number(new URL(req.url, 'http://x').searchParams.get('cost'));
const KEY = { keyGenerator: () => 'ada' };

/** Responses are req.rateLimit, whatever the decision. A query that is a number is a cost. */
function appOf(options) {
  const handler = (req, res) => res.status(429).json(req.rateLimit);
  const headers = { standardHeaders: 'draft-8', handler };
  const { ask } = setUp(undefined, { clock, ...KEY, ...headers, ...options });
  return (query) => ask(typeof query === 'number' ? `/?cost=${query}` : `/?${query}`);
}

/** The status, what is used and left, and Retry-After. */
const summaryOf = ({ status, body, headers }) => {
  return [status, body.used, body.remaining, headers['retry-after']];
};

const LIMIT = { limit: 10, windowMs: 90_000 };

// Kills: an attempt at cost 1; a RangeError for the client; a record, or a block, of what never fits.
test.each([
  ['a function', { ...LIMIT, cost: costOf }],
  [
    'an async function, as the limit is',
    { ...LIMIT, cost: async (req) => costOf(req), limit: () => 10 },
  ],
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
  expect(answers[2].headers).toMatchObject({
    'x-ratelimit-limit': '10',
    'x-ratelimit-remaining': '6',
  });
});

// Kills: an attempt before the cost is checked; passOnStoreError that lets it pass.
test.each([0, -1, 1.5, Number.NaN, 2 ** 53, undefined, null, '1', 1n, {}])(
  'cost %p is an error of the request, which counts nothing',
  async (cost) => {
    const costs = [];
    const policy = { ...LIMIT, cost: () => costs.shift() };
    for (const options of [policy, { rules: [{ path: '/', ...policy }] }]) {
      const ask = appOf({ ...options, passOnStoreError: true });
      costs.push(cost, 1);
      const { status, body } = await ask();
      const name = typeof cost === 'number' ? 'RangeError' : 'TypeError';
      expect([status, body]).toMatchObject([500, { code: 'ERR_ROLLGATE_COST', name }]);
      expect((await ask()).body.used).toBe(1);
    }
  },
);

// Kills: a refund of 1.
test('the whole cost is taken back, in rules, too', async () => {
  const requestWasSuccessful = (req) => !req.url.includes('bad');
  const options = { skipFailedRequests: true, requestWasSuccessful };
  const policy = { ...LIMIT, cost: 4 };
  for (const own of [policy, { rules: [{ path: '/', ...policy }] }]) {
    const ask = appOf({ ...options, ...own });
    const used = await inTurn(['bad', 'bad', 1], async (query) => (await ask(query)).body.used);
    expect(used).toEqual([4, 4, 4]);
  }
});

describe('a cost that can never pass', () => {
  // Kills: a store that is asked first; a wait in place of none.
  test.each([
    ['throw', 500, 'ERR_ROLLGATE_COST'],
    ['block', 429, undefined],
    ['allow', 429, undefined],
  ])('is told apart while the store is away, with onError %s', async (onError, status, code) => {
    const fail = () => Promise.reject(new Error('away'));
    const own = {
      kv: { get: fail, set: fail },
      onError,
      namespace: 'n',
      clock: undefined,
      passOnStoreError: true,
      ...LIMIT,
    };
    const ask = appOf({ ...own, cost: costOf });
    const answer = await ask(11);
    expect(answer.status).toBe(status);
    expect(answer.body.code).toBe(code);
    expect(answer.headers).not.toHaveProperty('retry-after');
  });

  // Kills: a way around the methods of a given limiter.
  test('is attempted by the method of a given limiter, as is any cost', async () => {
    class Tiered extends RateLimiter {
      attempt(id, options) {
        return super.attempt(`tier:${id}`, options);
      }
    }
    const limiter = new Tiered({ interval: 1000, maxInInterval: 5, clock });
    const ask = appOf({ limiter, cost: costOf, clock: undefined });
    expect((await inTurn([2, 6], ask)).map(({ status }) => status)).toEqual([200, 429]);
    expect(limiter.usage('tier:ada').used).toBe(2);
    expect(limiter.usage('ada').used).toBe(0);
  });

  test.each([
    ['a key-value store', { kv: createPlainKv(), namespace: 'n' }, (limiter) => limiter],
    ['the user', {}, ({ attempt, peek }) => ({ attempt, peek })],
  ])('is refused by a limiter of %s', async (_what, store, limiterOf) => {
    const own = RateLimiter({ ...store, interval: 1000, maxInInterval: 3, clock });
    const bound = (name) => (id, options) => own[name](id, options);
    const limiter = limiterOf(store.kv ? own : { attempt: bound('attempt'), peek: bound('peek') });
    const ask = appOf({ limiter, cost: costOf, clock: undefined });
    const answers = await inTurn([2, 4, 1], ask);
    expect(answers.map(summaryOf)).toEqual([
      [200, 2, 1, undefined],
      [429, 2, 1, undefined],
      [200, 3, 0, undefined],
    ]);
  });

  // Kills: what is left of another limit, and room below 0.
  test('is shown by the limit of the request', async () => {
    const ask = appOf({ limit: (req) => (costOf(req) === 7 ? 10 : 3), cost: costOf });
    const answers = await inTurn([7, 4], ask);
    expect(answers.map(summaryOf)).toEqual([
      [200, 7, 3, undefined],
      [429, 7, 0, undefined],
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
    expect((await get(app, '/?cost=2')).status).toBe(200);
    expect((await get(app, '/?cost=4')).status).toBe(500);
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

/** Costs by name, from the query. */
const costsOf = (req) => {
  const query = new URL(req.url, 'http://x').searchParams;
  return Object.fromEntries([...query].map(([name, value]) => [name, Number(value)]));
};

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
    ({ cost }) => ({
      limiter: RateLimiter({ ...NAMED, clock }),
      clock: undefined,
      cost,
    }),
  ],
])('costs by name of a limit, %s', (_what, optionsOf) => {
  // Kills: costs that are refused or ignored; one policy for all windows; names that are not the limits'.
  test('count in their windows, and headers have a policy for each', async () => {
    const ask = appOf(optionsOf({ cost: costsOf }));
    const first = await ask('tokens=40');
    expect(stateOf(first)).toEqual([200, '"requests"; r=2; t=1, "tokens"; r=60; t=60', undefined]);
    expect(first.headers['ratelimit-policy']).toMatch(
      /^"requests"; q=3; w=1; pk=:\S+:, "tokens"; q=100; w=60; pk=:\S+:$/,
    );
    const answers = await inTurn(['tokens=61', 'tokens=0&requests=2', 'tokens=60', ''], ask);
    expect(answers.map(stateOf)).toEqual([
      [429, '"requests"; r=2; t=1, "tokens"; r=60; t=60', '60'],
      [200, '"requests"; r=0; t=1, "tokens"; r=60; t=60', undefined],
      [429, '"requests"; r=0; t=1, "tokens"; r=60', '1'],
      [429, '"requests"; r=0; t=1, "tokens"; r=60', '1'],
    ]);
  });

  // Kills: an error of the limiter that reaches the client; a violated policy by cost 1 or by the largest cost; resets
  // later than no Retry-After; the window with the least left, which has room, on a refusal by another one.
  test('that can never pass are refused without Retry-After, and violate their windows', async () => {
    const own = optionsOf({ cost: costsOf });
    const ask = appOf({ ...own, handler: undefined, problemDetails: true });
    expect((await ask('tokens=70')).headers['x-ratelimit-limit']).toBe('3');
    const never = await ask('tokens=101');
    expect(stateOf(never)).toEqual([429, '"requests"; r=2; t=1, "tokens"; r=30; t=60', undefined]);
    expect(never.body['violated-policies']).toEqual(['tokens']);
    const refused = await ask('tokens=70');
    expect(refused.body['violated-policies']).toEqual(['tokens']);
    expect(refused.headers).toMatchObject({
      'x-ratelimit-limit': '100',
      'x-ratelimit-remaining': '30',
    });
    const both = await ask('requests=3&tokens=50');
    expect(both.body['violated-policies']).toEqual(['requests', 'tokens']);
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
  (options) => {
    const cost = { tokens: 5 };
    const [rule] = options.rules ?? [];
    const own = rule ? { rules: [{ ...rule, cost }] } : { ...options, cost };
    expect(catchError(() => rateLimit(own))).toMatchObject({
      name: 'TypeError',
      code: 'ERR_ROLLGATE_OPTION',
      message: expect.stringContaining("option 'cost': expected an integer from 1 to "),
    });
  },
);

describe('in Fastify', () => {
  const { newApp, rollgate, serve, start } = useFastify();
  const at = (cost) => `/?cost=${cost}`;

  // Kills: a cost by name that is a number to Fastify; a settle that does not reach the limiter.
  test('costs by name of a limit count, and are settled', async () => {
    const app = newApp();
    const cost = (request) => ({ tokens: costOf(request) });
    const headers = { clock, standardHeaders: 'draft-8' };
    await app.register(rollgate, { rules: [{ path: '/', ...NAMED, cost }], ...KEY, ...headers });
    app.get('/', (request) => ({ settled: request.rateLimit.settle({ tokens: 10 }) }));
    const url = await serve(app);
    const first = await fetchText(url + at(70));
    expect(first.text).toBe('{"settled":true}');
    expect(first.headers.get('ratelimit')).toContain('"tokens"; r=30;');
    const second = await fetchText(url + at(90));
    expect(second.headers.get('ratelimit')).toContain('"requests"; r=1; t=1, "tokens"; r=0;');
  });

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
