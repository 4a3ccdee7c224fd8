// The headers and bodies of answers: every draft, several windows, names, rounding, problem details.
'use strict';

const { createHash } = require('node:crypto');
const RateLimiter = require('../..');
const { flatCopy } = require('../../lib/base/ids');
const { partitionKey } = require('../../lib/adapters/middleware/header-cache');
const { START_MS, appWith, callDirectly, get, getTimes, useHandMovedClock } = require('./apps');

const { rateLimit } = RateLimiter;
const time = useHandMovedClock();
const LIMITS = [
  { interval: 1000, maxInInterval: 2 },
  { interval: 90_000, maxInInterval: 3 },
];
const pkOf = (key) => btoa(createHash('sha256').update(key).digest('hex').slice(0, 12));
const PK = `:${pkOf('127.0.0.1')}:`;

function appOf(options) {
  const settings = { legacyHeaders: false, countBlocked: false, clock: time.clock, ...options };
  return appWith(rateLimit(settings));
}

const shown = ({ status, headers }) => [
  status,
  headers.ratelimit,
  headers['ratelimit-policy'],
  headers['retry-after'],
];

test('draft 7 has every policy and the state of the tightest window', async () => {
  const app = appOf({ standardHeaders: 'draft-7', limits: LIMITS });
  const policy = '2;w=1, 3;w=90';
  expect((await getTimes(app, 3)).map(shown)).toEqual([
    [200, 'limit=2, remaining=1, reset=1', policy, undefined],
    [200, 'limit=2, remaining=0, reset=1', policy, undefined],
    [429, 'limit=2, remaining=0, reset=1', policy, '1'],
  ]);
  time.advance(1000);
  expect(shown(await get(app))[1]).toBe('limit=3, remaining=0, reset=89');
  const other = appOf({ standardHeaders: 'draft-7', limits: LIMITS });
  await get(other);
  time.advance(1000);
  // Each window has one left: the one that resets last counts.
  expect(shown(await get(other))[1]).toBe('limit=3, remaining=1, reset=89');
});

test('draft 7 has the numbers of each request, whatever was sent before', () => {
  const numbers = [0, 1, 7, 8, 31, 256, 1e6, 2 ** 31, 1e15 - 1];
  const states = numbers.flatMap((maxInInterval) =>
    numbers.flatMap((remaining) => numbers.map((reset) => ({ maxInInterval, remaining, reset }))),
  );
  let decision;
  const limiter = { attempt: () => decision };
  const middleware = rateLimit({ limiter, legacyHeaders: false, standardHeaders: 'draft-7' });
  for (const { maxInInterval, remaining, reset } of [...states, ...states.reverse()]) {
    const window = { interval: 1000, maxInInterval, used: 0, remaining, resetIn: reset * 1000 };
    decision = { allowed: true, timeLeft: 0, resetIn: reset * 1000, limits: [window] };
    const state = `limit=${maxInInterval}, remaining=${remaining}, reset=${reset}`;
    expect(callDirectly(middleware).headers.RateLimit).toBe(state);
  }
});

// Kills: headers that are remembered from the request before.
test.each([
  ['draft-6', (max) => `${max};w=60`],
  ['draft-7', (max) => `${max};w=60`],
  ['draft-8', (max) => `"${max}-in-1min"; q=${max}; w=60`],
  ['draft-10', (max) => `"${max}-in-1min";q=${max};w=60`],
])('headers of %s, req.rateLimit and getKey have the limits of each request', async (...row) => {
  const [standardHeaders, policyOf] = row;
  const limits = (maxInInterval) => [{ interval: 60_000, maxInInterval }];
  const limiter = RateLimiter({ limits: limits(2), clock: time.clock });
  const middleware = rateLimit({ limiter, standardHeaders, keyGenerator: () => 'a' });
  const app = appWith(middleware, (req, res) => res.json(req.rateLimit));
  for (const [i, max] of [2, 5, 3, 5].entries()) {
    limiter.setLimits(limits(max));
    const { headers, body } = await get(app);
    expect(headers['ratelimit-policy']).toContain(policyOf(max));
    expect(headers['x-ratelimit-limit']).toBe(String(max));
    expect(body).toMatchObject({ limit: max, remaining: max - i - 1 });
    expect(await middleware.getKey('a')).toMatchObject({ totalHits: i + 1 });
  }
});

test.each([
  [
    'draft-8',
    '"2-in-1sec"; r=1; t=1, "3-in-1.5min"; r=2; t=90',
    `"2-in-1sec"; q=2; w=1; pk=${PK}, "3-in-1.5min"; q=3; w=90; pk=${PK}`,
    '"2-in-1sec"; r=0; t=1, "3-in-1.5min"; r=1',
  ],
  [
    'draft-10',
    `"2-in-1sec";r=1;t=1;pk=${PK}, "3-in-1.5min";r=2;t=90;pk=${PK}`,
    `"2-in-1sec";q=2;w=1;pk=${PK}, "3-in-1.5min";q=3;w=90;pk=${PK}`,
    `"2-in-1sec";r=0;t=1;pk=${PK}, "3-in-1.5min";r=1;pk=${PK}`,
  ],
])('%s has an item for each window, and no reset after Retry-After', async (...expected) => {
  const [standardHeaders, state, policies, refused] = expected;
  const answers = await getTimes(appOf({ standardHeaders, limits: LIMITS }), 3);
  expect(shown(answers[0])).toEqual([200, state, policies, undefined]);
  expect(shown(answers[2])).toEqual([429, refused, policies, '1']);
});

test('draft 10 with one window: t is when quota grows, and Retry-After is no earlier', async () => {
  const app = appOf({ standardHeaders: 'draft-10', windowMs: 60_000, limit: 2 });
  const item = (r, t) => `"2-in-1min";r=${r};t=${t};pk=${PK}`;
  const policy = `"2-in-1min";q=2;w=60;pk=${PK}`;
  for (const [ms, ...expected] of [
    [0, 200, item(1, 60), policy, undefined],
    [20_500, 200, item(0, 40), policy, undefined],
    [500, 429, item(0, 39), policy, '39'],
    [38_999, 429, item(0, 1), policy, '1'],
    [1, 200, item(0, 21), policy, undefined],
  ]) {
    time.advance(ms);
    expect(shown(await get(app))).toEqual(expected);
  }
});

describe('times below a second are rounded up', () => {
  /** Headers of a refusal, a second after the only action in a window of 1.4 s: 400 ms are left. */
  async function refused(options) {
    const app = appOf({ windowMs: 1400, limit: 1, ...options });
    await get(app);
    time.advance(1000);
    const { status, headers } = await get(app);
    expect(status).toBe(429);
    expect(headers['retry-after']).toBe('1');
    return headers;
  }

  test('in the legacy headers, where the reset is a time of day', async () => {
    const headers = await refused({ legacyHeaders: true });
    const reset = String(Math.ceil((START_MS + 1400) / 1000)); // 5.678 s + 1.4 s
    expect(headers['x-ratelimit-reset']).toBe(reset);
    expect(headers.date).toBe('Tue, 02 Jan 2024 03:04:06 GMT'); // a time that has come: rounded down
  });

  // The other drafts are compared with express-rate-limit.
  test('in draft-10', async () => {
    expect(await refused({ standardHeaders: 'draft-10' })).toMatchObject({
      'ratelimit-policy': `"1-in-1.4sec";q=1;w=2;pk=${PK}`,
      ratelimit: `"1-in-1.4sec";r=0;t=1;pk=${PK}`,
    });
  });

  test.each(['draft-8', 'draft-10'])('in %s of several windows', async (standardHeaders) => {
    const limits = [
      { interval: 1400, maxInInterval: 2 },
      { interval: 2300, maxInInterval: 3 },
    ];
    const app = appOf({ standardHeaders, limits });
    await get(app);
    time.advance(1000);
    const { ratelimit } = (await get(app)).headers;
    expect(ratelimit.match(/t=\d+/g)).toEqual(['t=1', 't=2']); // 400 ms and 1300 ms
  });

  test('down to a window of 50 ms, whose length is a second', async () => {
    const { headers } = await get(appOf({ standardHeaders: 'draft-10', windowMs: 50, limit: 1 }));
    expect(headers['ratelimit-policy']).toBe(`"1-in-0.05sec";q=1;w=1;pk=${PK}`);
  });
});

const MOST = '999999999999999';
const HUGE = { windowMs: 1e300, clock: () => 0, validate: false };
test.each([
  ['draft-6', `${MOST};w=${MOST}`, undefined],
  ['draft-7', `${MOST};w=${MOST}`, expect.stringMatching(`^limit=${MOST}, remaining=${MOST}, `)],
  [
    'draft-8',
    expect.stringContaining(`; q=${MOST}; w=${MOST}; pk=`),
    expect.stringMatching(`; r=${MOST}; t=\\d+$`),
  ],
  [
    'draft-10',
    expect.stringContaining(`;q=${MOST};w=${MOST};pk=`),
    expect.stringContaining(`;r=${MOST};t=`),
  ],
])('%s has no integers of more than 15 digits', (standardHeaders, policy, state) => {
  const { headers } = callDirectly(rateLimit({ ...HUGE, limit: 2 ** 53 - 1, standardHeaders }));
  expect(headers['RateLimit-Policy']).toEqual(policy);
  expect(headers.RateLimit).toEqual(state);
  if (standardHeaders !== 'draft-6') return;
  expect([headers['RateLimit-Limit'], headers['RateLimit-Remaining']]).toEqual([MOST, MOST]);
});

test.each(['draft-6', 'draft-7', 'draft-8', 'draft-10'])(
  '%s has no longer times',
  (standardHeaders) => {
    const { headers } = callDirectly(rateLimit({ ...HUGE, limit: 0, standardHeaders }));
    expect([headers['Retry-After'], headers['X-RateLimit-Reset']]).toEqual([MOST, MOST]);
    expect(headers['RateLimit-Reset'] ?? headers.RateLimit).toMatch(
      new RegExp(`(^|reset=|t=)${MOST}\\b`),
    );
  },
);

test('limit 0 has a quota of 0', async () => {
  const app = appOf({ standardHeaders: 'draft-10', limit: 0, countBlocked: undefined });
  const [state, policy] = [`"0-in-1min";r=0;t=60;pk=${PK}`, `"0-in-1min";q=0;w=60;pk=${PK}`];
  expect(shown(await get(app))).toEqual([429, state, policy, '60']);
});

test('draft 10 of several limiters and of the application is joined', async () => {
  const options = { standardHeaders: 'draft-10', legacyHeaders: false, clock: time.clock };
  const app = appWith(
    (_req, res, next) => {
      res.setHeader('RateLimit-Policy', '"own";q=1;w=1');
      next();
    },
    rateLimit({ ...options, windowMs: 1000, identifier: 'one' }),
    rateLimit({ ...options, windowMs: 60_000, identifier: 'two' }),
  );
  const { headers } = await get(app);
  expect(headers['ratelimit-policy'].match(/"\w+"/g)).toEqual(['"own"', '"one"', '"two"']);
  expect(headers.ratelimit.match(/"\w+"/g)).toEqual(['"one"', '"two"']);
});

describe('policy names', () => {
  const headersOf = async (limits, options) => {
    const { headers } = await get(appOf({ standardHeaders: 'draft-8', limits, ...options }));
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

describe('identifier', () => {
  test.each([
    ['a number', () => 5],
    ['a line break', () => 'a\r\nSet-Cookie: b'],
    ['nothing, later', async () => {}],
  ])('that returns %s is an error of that request', async (_what, identifier) => {
    const { status, body } = await get(appOf({ standardHeaders: 'draft-8', identifier }));
    expect([status, body.code]).toEqual([500, 'ERR_ROLLGATE_OPTION']);
  });
});

describe('the partition key', () => {
  test('differs where the keys of the limiter differ', async () => {
    const pk = async (key) => {
      const app = appOf({ standardHeaders: 'draft-10', keyGenerator: () => key });
      return (await get(app)).headers.ratelimit.split('pk=')[1];
    };
    for (const same of [1, 1n]) expect(await pk(same)).toBe(await pk('1'));
    expect(await pk(undefined)).toBe(await pk(''));
    expect(await pk('1')).not.toBe(await pk('2'));
  });

  test('is right for each key, however many others came since', () => {
    const wrong = [];
    for (let i = 0; i < 40_000; i++) {
      const key = `key ${i % 20_000}`;
      if (partitionKey(key) !== pkOf(key)) wrong.push(key);
      partitionKey('a frequent one');
    }
    expect(wrong).toEqual([]);
    expect(partitionKey('a frequent one')).toBe(pkOf('a frequent one'));
    expect(partitionKey('key 5,rest'.slice(0, 5))).toBe(pkOf('key 5'));
  });

  test('is remembered by a copy that equals the key', () => {
    const emoji = '\u{1f600}';
    for (const key of ['', 'a', 'größe', emoji, '\ud800', 'x\udc00y', '\0', 'é'.repeat(2000)]) {
      expect(flatCopy(key)).toBe(key);
    }
  });
});

describe('problem details', () => {
  const TYPE = 'https://iana.org/assignments/http-problem-types#quota-exceeded';
  const problemsOf = (options) => appOf({ legacyHeaders: true, problemDetails: true, ...options });

  async function refusal(options, passes = 0) {
    const answers = await getTimes(problemsOf(options), passes + 1);
    const refused = answers.pop();
    expect(answers.map(({ status }) => status)).toEqual(Array(passes).fill(200));
    return refused;
  }

  test('are of the type that the draft defines', async () => {
    const { status, headers, body } = await refusal({ windowMs: 60_000, limit: 2 }, 2);
    expect([status, headers['content-type']]).toEqual([429, 'application/problem+json']);
    expect(headers['retry-after']).toBe('60');
    expect(body).toEqual({
      type: TYPE,
      title: 'Request cannot be satisfied as assigned quota has been exceeded',
      status: 429,
      detail: 'Too many requests, please try again later.',
      'violated-policies': ['2-in-1min'],
    });
  });

  test('name the windows that are exceeded, and no minDifference', async () => {
    const app = problemsOf({ limits: LIMITS });
    const violated = async () => (await get(app)).body['violated-policies'];
    await getTimes(app, 2);
    expect(await violated()).toEqual(['2-in-1sec']);
    time.advance(1000);
    await get(app);
    expect(await violated()).toEqual(['3-in-1.5min']);
    const { body } = await refusal({ limit: 5, minDifference: 100 }, 1);
    expect(body['violated-policies']).toEqual([]);
  });

  test('use the names of the headers, and without these ask identifier for refusals only', async () => {
    const options = { limit: 1, standardHeaders: 'draft-10', identifier: async () => 'a "b" \\c' };
    const { headers, body } = await refusal(options, 1);
    expect(body['violated-policies']).toEqual(['a "b" \\c']);
    expect(headers.ratelimit).toMatch(/^"a \\"b\\" \\\\c";r=0/); // as RFC 9651 quotes
    const identifier = jest.fn(() => 'mine');
    const own = await refusal({ limit: 2, identifier }, 2);
    expect(own.body['violated-policies']).toEqual(['mine']);
    expect(identifier).toHaveBeenCalledTimes(1);
  });

  test.each([
    ['a string', 'slow down', { detail: 'slow down' }],
    ['an object', { instance: '/me', type: 'urn:own' }, { type: 'urn:own', instance: '/me' }],
    ['a function', (req) => `not ${req.method}`, { detail: 'not GET' }],
    ['an async function', async () => ({ tries: 3 }), { tries: 3 }],
  ])('contain the message that is %s', async (_what, message, expected) => {
    const { status, body } = await refusal({ limit: 0, message, statusCode: 503 });
    expect([status, body]).toEqual([503, expect.objectContaining({ status: 503, ...expected })]);
    expect(body['violated-policies']).toEqual(['0-in-1min']);
  });

  test('leave an answer of the message function alone', async () => {
    const message = (_req, res) => void res.status(418).end('teapot');
    const { status, text } = await get(problemsOf({ limit: 0, message }));
    expect([status, text]).toEqual([418, 'teapot']);
  });
});
