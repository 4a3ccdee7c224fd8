// The headers and bodies of answers, beyond what beside-express-rate-limit.test.js compares: several windows, names,
// draft 10, large numbers, problem details.
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
  ['draft-10', (max) => `"${max}-in-1min";q=${max};w=60`],
])(
  'headers of %s and req.rateLimit have the limits of each request',
  (standardHeaders, policyOf) => {
    const limits = (maxInInterval) => [{ interval: 60_000, maxInInterval }];
    const limiter = RateLimiter({ limits: limits(2), clock: time.clock });
    const middleware = rateLimit({ limiter, standardHeaders });
    for (const max of [2, 5, 3, 5]) {
      limiter.setLimits(limits(max));
      const { headers, req } = callDirectly(middleware);
      expect(String(headers['RateLimit-Policy'])).toContain(policyOf(max));
      expect(headers['X-RateLimit-Limit']).toBe(String(max));
      expect(req.rateLimit.limit).toBe(max);
    }
  },
);

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

test('times below a second are rounded up, and the time of day down', async () => {
  const options = { windowMs: 1400, limit: 1, legacyHeaders: true, standardHeaders: 'draft-10' };
  const app = appOf(options);
  await get(app);
  time.advance(1000); // 400 ms are left
  expect((await get(app)).headers).toMatchObject({
    'x-ratelimit-reset': String(Math.ceil((START_MS + 1400) / 1000)), // 5.678 s + 1.4 s
    date: 'Tue, 02 Jan 2024 03:04:06 GMT',
    'ratelimit-policy': `"1-in-1.4sec";q=1;w=2;pk=${PK}`,
    ratelimit: `"1-in-1.4sec";r=0;t=1;pk=${PK}`,
    'retry-after': '1',
  });
});

const MOST = '999999999999999';
test.each([
  ['draft-6', `${MOST};w=${MOST}`, undefined],
  ['draft-7', `${MOST};w=${MOST}`, expect.stringMatching(`^limit=${MOST}, remaining=${MOST}, `)],
  [
    'draft-10',
    expect.stringContaining(`;q=${MOST};w=${MOST};pk=`),
    expect.stringContaining(`;r=${MOST};t=`),
  ],
])('%s has no integers of more than 15 digits', (standardHeaders, policy, state) => {
  const common = { windowMs: 1e300, clock: () => 0, validate: false, standardHeaders };
  const { headers } = callDirectly(rateLimit({ ...common, limit: 2 ** 53 - 1 }));
  expect([headers['RateLimit-Policy'], headers.RateLimit]).toEqual([policy, state]);
  if (standardHeaders === 'draft-6')
    expect([headers['RateLimit-Limit'], headers['RateLimit-Remaining']]).toEqual([MOST, MOST]);
  const refused = callDirectly(rateLimit({ ...common, limit: 0 })).headers;
  expect([refused['Retry-After'], refused['X-RateLimit-Reset']]).toEqual([MOST, MOST]);
  expect(refused['RateLimit-Reset'] ?? refused.RateLimit).toMatch(
    new RegExp(`(^|reset=|t=)${MOST}\\b`),
  );
});

// Kills: a header that no client can read; two names that become one.
test('a policy has the name of its limit, encoded where headers need that, or its window', async () => {
  const named = (...names) => names.map((name) => ({ name, windowMs: 1000, limit: 2 }));
  const namesOf = async (limits, identifier) => {
    const { headers } = await get(appOf({ standardHeaders: 'draft-8', limits, identifier }));
    return headers.ratelimit.replaceAll('; r=1; t=1', '');
  };
  expect(await namesOf(named('a "b" \\', 'été', '%C3%A9', '100%'))).toBe(
    '"a \\"b\\" \\\\", "%C3%A9t%C3%A9", "%25C3%25A9", "100%25"',
  );
  const two = named('tokens', undefined);
  expect(await namesOf(two)).toBe('"tokens", "2-in-1sec"');
  expect(await namesOf(two, 'api')).toBe('"api-tokens", "api-2-in-1sec"');
  expect(await namesOf(named('tokens'), 'api')).toBe('"api"');
  expect(await namesOf(named('tokens'))).toBe('"tokens"');
});

test.each([
  ['a number', () => 5],
  ['a line break', () => 'a\r\nSet-Cookie: b'],
  ['nothing, later', async () => {}],
])('identifier that returns %s is an error of that request', async (_what, identifier) => {
  const { status, body } = await get(appOf({ standardHeaders: 'draft-8', identifier }));
  expect([status, body.code]).toEqual([500, 'ERR_ROLLGATE_OPTION']);
});

describe('the partition key', () => {
  test('differs where the keys of the limiter differ', () => {
    for (const same of [1, 1n]) expect(partitionKey(same)).toBe(partitionKey('1'));
    expect(partitionKey(undefined)).toBe(partitionKey(''));
    expect(partitionKey('1')).not.toBe(partitionKey('2'));
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
  async function refusal(options, passes = 0) {
    const app = appOf({ legacyHeaders: true, problemDetails: true, ...options });
    const answers = await getTimes(app, passes + 1);
    const refused = answers.pop();
    expect(answers.map(({ status }) => status)).toEqual(Array(passes).fill(200));
    return refused;
  }

  test('are of the type that the draft defines', async () => {
    const { status, headers, body } = await refusal({ windowMs: 60_000, limit: 2 }, 2);
    expect([status, headers['content-type']]).toEqual([429, 'application/problem+json']);
    expect(headers['retry-after']).toBe('60');
    expect(body).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'Request cannot be satisfied as assigned quota has been exceeded',
      status: 429,
      detail: 'Too many requests, please try again later.',
      'violated-policies': ['2-in-1min'],
    });
  });

  test('name the windows that are exceeded, as headers do, and no minDifference', async () => {
    expect((await refusal({ limits: LIMITS }, 2)).body['violated-policies']).toEqual(['2-in-1sec']);
    const apart = await refusal({ limit: 5, minDifference: 100 }, 1);
    expect(apart.body['violated-policies']).toEqual([]);
    const options = { limit: 1, standardHeaders: 'draft-10', identifier: async () => 'a "b" \\c' };
    const { headers, body } = await refusal(options, 1);
    expect(body['violated-policies']).toEqual(['a "b" \\c']);
    expect(headers.ratelimit).toMatch(/^"a \\"b\\" \\\\c";r=0/); // as RFC 9651 quotes
  });

  test('ask identifier for refusals only where no header has the name', async () => {
    const identifier = jest.fn(() => 'mine');
    const { body } = await refusal({ limit: 2, identifier }, 2);
    expect(body['violated-policies']).toEqual(['mine']);
    expect(identifier).toHaveBeenCalledTimes(1);
  });

  test.each([
    ['a string', 'slow down', { detail: 'slow down' }],
    ['an object', { instance: '/me', type: 'urn:own' }, { type: 'urn:own', instance: '/me' }],
    ['an async function', async () => ({ tries: 3 }), { tries: 3 }],
  ])('contain the message that is %s', async (_what, message, expected) => {
    const { status, body } = await refusal({ limit: 0, message, statusCode: 503 });
    expect([status, body]).toEqual([503, expect.objectContaining({ status: 503, ...expected })]);
  });

  test('leave an answer of the message function alone', async () => {
    const message = (_req, res) => void res.status(418).end('teapot');
    const { status, text } = await refusal({ limit: 0, message });
    expect([status, text]).toEqual([418, 'teapot']);
  });
});
