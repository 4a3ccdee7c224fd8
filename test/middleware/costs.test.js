// The option cost: what a request uses, what can never pass, what is no cost; in the middleware, in rules and Fastify.
'use strict';

const RateLimiter = require('../..');
const { createPlainKv } = require('../support/kv-stores');
const { catchError } = require('../support/set-up');
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
    const { ask } = appOf({ ...own, cost: costOf });
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
    const limiter = new Tiered({ interval: 1000, maxInInterval: 5, clock: time.clock });
    const { ask } = appOf({ limiter, cost: costOf, clock: undefined });
    expect((await inTurn([2, 6], ask)).map(({ status }) => status)).toEqual([200, 429]);
    expect(limiter.usage('tier:ada').used).toBe(2);
    expect(limiter.usage('ada').used).toBe(0);
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

  // Kills: what is left of another limit, and room below 0.
  test('is shown by the limit of the request', async () => {
    const { ask } = appOf({ limit: (req) => (costOf(req) === 7 ? 10 : 3), cost: costOf });
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

/** Answers with the headers of draft 8, and with what is used. */
function namedApp(options, answer = (req, res) => res.json(req.rateLimit)) {
  const middleware = rateLimit({
    clock: time.clock,
    ...KEY,
    handler: (req, res) => res.status(429).json(req.rateLimit),
    standardHeaders: 'draft-8',
    ...options,
  });
  const app = appWith(middleware, answer);
  return { middleware, ask: (query) => get(app, `/?${query}`) };
}

const stateOf = ({ status, headers }) => [status, headers.ratelimit, headers['retry-after']];

describe.each([
  ['of a middleware', (own) => ({ ...NAMED, ...own })],
  ['of a rule', (own) => ({ rules: [{ path: '/', ...NAMED, ...own }] })],
  [
    'with an existing limiter',
    ({ cost }) => ({
      limiter: RateLimiter({ ...NAMED, clock: time.clock }),
      clock: undefined,
      cost,
    }),
  ],
])('costs by name of a limit, %s', (_what, optionsOf) => {
  // Kills: costs that are refused or ignored; one policy for all windows; names that are not the limits'.
  test('count in their windows, and headers have a policy for each', async () => {
    const { ask } = namedApp(optionsOf({ cost: costsOf }));
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

  // Kills: an error of the limiter that reaches the client; a violated policy by cost 1 or by the largest cost.
  test('that can never pass are refused without Retry-After, and violate their windows', async () => {
    const own = optionsOf({ cost: costsOf });
    const { ask } = namedApp({ ...own, handler: undefined, problemDetails: true });
    const { status, headers, body } = await ask('tokens=101');
    expect([status, headers['retry-after']]).toEqual([429, undefined]);
    expect(headers.ratelimit).toBe('"requests"; r=3; t=0, "tokens"; r=100; t=0');
    expect(body['violated-policies']).toEqual(['tokens']);
    await ask('tokens=70');
    expect((await ask('tokens=70')).body['violated-policies']).toEqual(['tokens']);
    expect((await ask('requests=3&tokens=5')).body['violated-policies']).toEqual(['requests']);
    expect((await ask('requests=3&tokens=50')).body['violated-policies']).toEqual([
      'requests',
      'tokens',
    ]);
  });

  // Kills: the window with the least left, which has room, on a refusal by another one.
  test('a refused request shows the window that refuses it', async () => {
    const { ask } = namedApp(optionsOf({ cost: costsOf }));
    expect((await ask('tokens=60')).headers['x-ratelimit-limit']).toBe('3');
    const refused = await ask('tokens=50');
    expect(refused.status).toBe(429);
    expect(refused.headers).toMatchObject({
      'x-ratelimit-limit': '100',
      'x-ratelimit-remaining': '40',
    });
  });

  // Kills: a refusal of what is no cost; a name that is not known until the store answers.
  test.each([
    ['token=5', 'TypeError'],
    ['token=5&tokens=101', 'TypeError'],
    ['tokens=-1', 'RangeError', '"tokens"'],
    ['tokens=1.5', 'RangeError', '"tokens"'],
    ['tokens=x', 'RangeError', '"tokens"'],
    ['tokens=0&requests=0', 'RangeError'],
  ])('%s is an error of the request, which counts nothing', async (query, name, what = '') => {
    const { ask } = namedApp({ ...optionsOf({ cost: costsOf }), passOnStoreError: true });
    const { status, body } = await ask(query);
    expect([status, body]).toMatchObject([500, { code: 'ERR_ROLLGATE_COST', name }]);
    expect(body.message).toContain(what);
    expect((await ask('')).headers.ratelimit).toBe('"requests"; r=2; t=1, "tokens"; r=99; t=60');
  });

  test('are also an option without a function', async () => {
    const { ask } = namedApp(optionsOf({ cost: { tokens: 70 } }));
    const answers = await inTurn(['', ''], ask);
    expect(answers.map(stateOf)).toEqual([
      [200, '"requests"; r=2; t=1, "tokens"; r=30; t=60', undefined],
      [429, '"requests"; r=2; t=1, "tokens"; r=30; t=60', '60'],
    ]);
    expect((await namedApp(optionsOf({ cost: { tokens: 101 } })).ask('')).status).toBe(429);
  });

  // Kills: an option that fails with each request.
  test('with a name that no limit has are an error when the middleware is created', () => {
    const { message, code } = catchError(() => namedApp(optionsOf({ cost: { token: 5 } })));
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

describe('req.rateLimit.settle', () => {
  /** Settles at the query's `actual`, and responds with what that gives. */
  const settleApp = (options) =>
    namedApp(options, async (req, res) => {
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
    ['of a middleware', { ...LIMIT, cost: 4 }],
    ['with a limit by request', { limit: () => 10, cost: 4 }],
    ['of a rule', { rules: [{ path: '/', ...LIMIT, cost: 4 }] }],
    ['in a key-value store', { ...LIMIT, cost: 4, kv: createPlainKv(), namespace: 'n' }],
    ['that passes on store errors', { ...LIMIT, cost: 4, passOnStoreError: true }],
  ])('settles the count %s', async (_what, options) => {
    const { ask, middleware } = settleApp(options);
    expect((await ask('actual=1')).body).toEqual({ settled: true });
    expect(await usedIn(middleware)).toBe(1);
    await ask('actual=0');
    await ask('actual=7');
    expect(await usedIn(middleware)).toBe(8);
  });

  test('takes an object where the cost was one', async () => {
    const { ask } = settleApp({ ...NAMED, cost: costsOf });
    const json = encodeURIComponent('{"tokens":90}');
    const { body } = await ask(`tokens=5&actual=${json}`);
    expect(body.code).toBe('ERR_ROLLGATE_COST'); // actual is no limit's name
    const app = settleApp({ ...NAMED, cost: { tokens: 5 } });
    expect((await app.ask(`actual=${json}`)).body).toEqual({ settled: true });
    expect((await app.ask('actual={}')).headers.ratelimit).toContain('"tokens"; r=5;');
    expect((await app.ask('actual=5')).body.code).toBe('ERR_ROLLGATE_COST');
  });

  // Kills: a refund of what the request reserved, after it was settled.
  test('works once, and is not undone by skipFailedRequests', async () => {
    const results = [];
    const { ask, middleware } = namedApp(
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
      const { ask } = namedApp({ ...options, handler });
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
    const { ask } = namedApp({ rules }, (req, res) => {
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
    const settle = (decision, actual) => own.settle(decision, actual);
    const answer = await settleApp({ limiter: { ...limiter, settle }, clock: undefined }).ask(
      'actual=0',
    );
    expect(answer.body).toEqual({ settled: true });
  });
});

describe('policy names', () => {
  const headersOf = async (limits, options) => {
    const { headers } = await namedApp({ limits, ...options }).ask('');
    return headers.ratelimit;
  };
  const named = (name) => ({ name, windowMs: 1000, limit: 2 });

  // Kills: a header that no client can read; two names that become one.
  test('are the names of limits, encoded where headers need that', async () => {
    expect(await headersOf([named('a "b" \\'), named('été'), named('%C3%A9'), named('100%')])).toBe(
      '"a \\"b\\" \\\\"; r=1; t=1, "%C3%A9t%C3%A9"; r=1; t=1, "%25C3%25A9"; r=1; t=1, "100%25"; r=1; t=1',
    );
  });

  test('have the identifier in front, and the window where there is no name', async () => {
    const limits = [named('tokens'), named(undefined)];
    expect(await headersOf(limits)).toBe('"tokens"; r=1; t=1, "2-in-1sec"; r=1; t=1');
    expect(await headersOf(limits, { identifier: 'api' })).toBe(
      '"api-tokens"; r=1; t=1, "api-2-in-1sec"; r=1; t=1',
    );
    expect(await headersOf([named('tokens')], { identifier: 'api' })).toBe('"api"; r=1; t=1');
    expect(await headersOf([named('tokens')])).toBe('"tokens"; r=1; t=1');
  });
});

describe('in Fastify', () => {
  const { newApp, rollgate, serve, start } = useFastify();

  // Kills: a cost by name that is a number to Fastify; a settle that does not reach the limiter.
  test('costs by name of a limit count, and are settled', async () => {
    for (const options of [NAMED, { rules: [{ path: '/', ...NAMED }] }]) {
      const app = newApp();
      const cost = (request) => ({ tokens: costOf(request) });
      const [rule] = options.rules ?? [];
      const own = rule ? { rules: [{ ...rule, cost }] } : { ...options, cost };
      await app.register(rollgate, {
        ...own,
        ...KEY,
        clock: time.clock,
        standardHeaders: 'draft-8',
      });
      app.get('/', (request) => ({ settled: request.rateLimit.settle({ tokens: 10 }) }));
      const url = await serve(app);
      const first = await fetchText(url + at(70));
      expect(first.text).toBe('{"settled":true}');
      expect(first.headers.get('ratelimit')).toContain('"tokens"; r=30;');
      const second = await fetchText(url + at(90));
      expect(second.headers.get('ratelimit')).toContain('"requests"; r=1; t=1, "tokens"; r=0;');
      expect((await fetchText(url + at(101))).status).toBe(429);
    }
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
