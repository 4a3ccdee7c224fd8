// The options of rateLimit() and of its rules: each wrong one is refused by name, beside the good one.
'use strict';

const RateLimiter = require('../..');
const { redisAt } = require('../support/redis-clients');
const { catchError } = require('../support/set-up');
const { callDirectly } = require('./apps');

const { rateLimit } = RateLimiter;
const limiter = RateLimiter({ interval: 1000, maxInInterval: 1 });
const authenticate = () => ({ id: 1 });
const LIMIT = { limit: 5 };

/** The error of wrong options; `name` of its class, because Jest gives each test file its own TypeError. */
function refusalOf(options, name = 'TypeError') {
  const error = catchError(() => rateLimit(options));
  expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION', name });
  return error.message;
}

const each = (table) =>
  table.flatMap(([name, ofType, ofRange = []]) => [
    ...ofType.map((value) => [name, value, 'TypeError']),
    ...ofRange.map((value) => [name, value, 'RangeError']),
  ]);

test.each([
  undefined,
  { windowMs: 0.5, limit: 0, skipFailedRequests: true, message: '', statusCode: 200 },
  { max: async () => 5, windowMs: 1000, skipSuccessfulRequests: true, countBlocked: true },
  { minDifference: 5, countBlocked: false, maxKeys: 10, clock: () => 0 },
  { limiter, skipFailedRequests: true, logger: console },
  { limiter: { attempt() {} }, statusCode: 503, problemDetails: false, handler: () => {} },
  { standardHeaders: 'draft-8', identifier: 'a "quoted" name \\' },
  { cost: () => 0, limits: [{ interval: 1000, maxInInterval: 1 }] },
  { validate: { ip: false, default: true, positiveHits: false, singleCount: undefined } },
  { rules: undefined, nonsense: undefined, limiter: undefined, windowMs: undefined },
  { rules: [{ path: '/' }], clock: () => 0, maxKeys: 5, statusCode: 503 },
])('%j is accepted', (options) => {
  expect(rateLimit(options)).toHaveLength(3);
});

const NO_BOOLEANS = ['yes', 1, null];
test.each(
  each([
    ['windowMs', ['1000'], [0]],
    ['interval', [], [0]],
    ['limit', ['5', null], [-1, 1.5, Number.NaN]],
    ['cost', ['5', {}], [0, 2 ** 53]],
    ['max', [], [-1]],
    ['maxInInterval', [], [-1]],
    ['clock', [5]],
    ['keyGenerator', ['ip', null, {}]],
    ['skip', [true, null]],
    ['handler', ['no', null]],
    ['message', [null, 5, true, Symbol('m')]],
    ['statusCode', ['429', null], [0, 199, 1000, 429.5, Number.NaN]],
    ['legacyHeaders', NO_BOOLEANS],
    ['standardHeaders', ['draft-5', 'draft-9', 'DRAFT-8', 'toString', 6, null]],
    ['identifier', [5, null, true, ['a']], ['', 'a\nb', 'größe', '\x7f']],
    ['ipv6Subnet', ['56', null, true, []], [129, 56.5, Number.NaN, Infinity, -1, 0]],
    ['trustProxy', [-1, 1.5, null, {}, [5], [], '', '1', 'nonsense', ['192.0.2.0/33']]],
    ['skipSuccessfulRequests', NO_BOOLEANS],
    ['skipFailedRequests', NO_BOOLEANS],
    ['requestWasSuccessful', [true, null]],
    ['passOnStoreError', NO_BOOLEANS],
    ['problemDetails', NO_BOOLEANS],
    ['validate', [...NO_BOOLEANS, []]],
    ['logger', [console.warn, null, {}, { warn() {} }, 'console']],
    ['requestPropertyName', [5, null, Symbol('p')], ['', '__proto__']],
    ['limiter', [null, 'memory', {}, () => {}]],
    ['rules', [null, 5, '/', {}, [], [null], ['/']]],
    ['authenticate', ['me']],
  ]),
)('%s: %p is a %s', (name, value, error) => {
  expect(refusalOf({ [name]: value }, error)).toContain(name);
});

const LIMITS = { interval: 1000, maxInInterval: 5 };

test.each([
  [null, /^rateLimit: option 'options'/],
  [{ standardHeader: true }, /"standardHeader".*did you mean 'standardHeaders'\?/],
  [{ lim: 5 }, /^rateLimit: unknown option "lim"; did you mean 'limiter', 'limit' or 'limits'\?$/],
  [{ validate: { trustPrxy: false } }, /did you mean 'trustProxy'\?/],
  [
    { validate: { everything: false } },
    /^rateLimit: unknown option "everything" in validate: expected one of .*, default$/,
  ],
  [{ validate: { ip: 'no' } }, /'validate\.ip'/],
  [{ ipv6Subnet: 48, keyGenerator: () => 'k' }, /'ipv6Subnet'/],
  [{ trustProxy: 1, keyGenerator: () => 'k' }, /'trustProxy': .*third parameter, clientKey/],
  [{ problemDetails: true, handler: () => {} }, /'problemDetails'/],
  [{ skipFailedRequests: true, countBlocked: true }, /'countBlocked'/],
  [{ skipFailedRequests: true, limiter: { attempt() {} } }, /'limiter'.*refund/],
  [{ skipSuccessfulRequests: true, limiter: { attempt() {} } }, /'limiter'.*refund/],
  [{ cost: 2, limiter: { attempt() {} } }, /'limiter'.*peek/],
  [{ cost: 2, rules: [{ path: '/' }] }, /'cost': conflicts with 'rules'/],
  [{ onAuthError: () => {} }, /'onAuthError'/],
  [{ authenticate, keyGenerator: () => 'k' }, /'keyGenerator'/],
  [{ authenticate, ipv6Subnet: 64 }, /'ipv6Subnet'/],
  [{ authenticate, onAuthError: 5 }, /'onAuthError'/],
  // Neither a limit of 0 nor a name that is not used hides a wrong option.
  [{ limit: 0, minDifference: '5' }, /'minDifference'/],
  [{ limits: [{ interval: 1, maxInInterval: 1 }], limit: 3, max: 'x' }, /'max'/],
])('%o is refused', (options, message) => {
  expect(refusalOf(options)).toMatch(message);
});

describe('with lease', () => {
  const store = { redis: redisAt('redis://127.0.0.1:1'), namespace: 'n', lease: 100 };
  const withLease = (options) => rateLimit({ ...store, ...options });

  test('a limit that each request brings is refused, also of a rule', () => {
    const limit = () => 5;
    const message = /'lease': conflicts with a 'limit' that each request brings/;
    for (const options of [
      { limit },
      { limit, limits: [{ ...LIMITS, name: 'calls' }] },
      { rules: [{ path: '/', limit }] },
    ]) {
      expect(refusalOf({ ...store, ...options })).toMatch(message);
    }
  });

  test.each([
    [0, []],
    [Number.POSITIVE_INFINITY, [[]]],
  ])('a limit of %p is accepted, and leases nothing', async (limit, expected) => {
    withLease({ rules: [{ path: '/', limit: 60 }] });
    withLease({ rules: [{ path: '/', limit }] });
    const { calls, returned } = callDirectly(withLease({ limit }));
    await returned;
    expect(calls).toEqual(expected);
  });
});

const COUNTING = 'windowMs interval limit max limits countBlocked blockFor algorithm';
test.each(COUNTING.split(' '))(
  '%s beside limiter or rules is refused, because it would have no effect',
  (name) => {
    refusalOf({ limiter, [name]: 5 });
    const message = refusalOf({ rules: [{ path: '/', ...LIMIT }], [name]: 5 });
    expect(message).toContain(`'${name}': conflicts with 'rules'`);
  },
);

test('the names of the middleware come before those of the limiter', () => {
  const infoOf = (options) => callDirectly(rateLimit({ clock: () => 0, ...options })).req.rateLimit;
  expect(infoOf({ limit: 2, max: 3, maxInInterval: 4 }).limit).toBe(2);
  expect(infoOf({ limit: undefined, max: 3, maxInInterval: 4 }).limit).toBe(3);
  expect(infoOf({ maxInInterval: 4 }).limit).toBe(4);
  const { resetTime } = infoOf({ windowMs: 3_600_000, interval: 5 });
  expect(resetTime.getTime() - Date.now()).toBeGreaterThan(1_800_000);
});

describe('a rule', () => {
  test.each([
    { path: '/größe/ä%20', windowMs: 1000, max: 3, minDifference: 5, countBlocked: false },
    { path: '/a:b/%3Ac/%2A%28%7B', ...LIMIT, algorithm: 'gcra', blockFor: [1, 2] },
    { path: /x/, interval: 1, maxInInterval: 0, blockFor: [1] },
    { path: '/', method: ['POST', 'M-SEARCH'], group: ['a', 'b'], zone: 'größe {x} :/', ...LIMIT },
    { path: '/', ...LIMIT, blockFor: 5, blockEverywhere: true, perPath: true, shadow: true },
    { path: '/', ...LIMIT, zone: undefined, method: undefined, nonsense: undefined },
  ])('%j is accepted', (rule) => {
    expect(rateLimit({ rules: [rule], authenticate })).toHaveLength(3);
  });

  const PATTERNS = ['/users/:id', '/api/*', '/a*b', '/files/(x)', '/a{/b}'];
  test.each(
    each([
      ['path', [undefined, 5, null], ['', 'api', '/api?x', '/api#x', ...PATTERNS]],
      ['method', [5, [5]], ['*', 'GTE', []]],
      ['group', [5, ['a', null]], ['', []]],
      ['zone', [5], ['', '\ud800']],
      ['perPath', [1]],
      ['shadow', ['yes']],
      ['blockEverywhere', [1]],
      ['limit', ['5']],
      ['cost', [], [0]],
      ['blockFor', [], [0]],
    ]),
  )('%s: %j is a %s that names its place', (name, value, error) => {
    const rules = [
      { path: '/ok', ...LIMIT },
      { path: '/', ...LIMIT, [name]: value },
    ];
    const message = refusalOf({ rules, authenticate }, error);
    expect(message).toContain('rules[1]');
    expect(message).toContain(`'${name}'`);
  });

  test.each([
    [{ path: '/users/:id', ...LIMIT }, /a plain path prefix.*use a RegExp/, 'RangeError'],
    [{ path: '/', limit: 0, blockFor: [1, 2] }, /'blockFor'/],
    [{ path: '/', ...LIMIT, blockEverywhere: true }, /'blockFor'/],
    [{ path: '/', ...LIMIT, perpath: true }, /"perpath".* in rules\[0\].*did you mean 'perPath'/],
    ...['redis', 'namespace', 'clock', 'maxKeys', 'standardHeaders', 'skip'].map((name) => {
      return [{ path: '/', ...LIMIT, [name]: 'x' }, new RegExp(`"${name}" in rules\\[0\\]`)];
    }),
    ...Object.entries({ zone: 'z', perPath: true, shadow: true, cost: 2, blockFor: 5 }).map(
      ([name, value]) => [{ path: '/', [name]: value }, new RegExp(`'rules\\[0\\].${name}'`)],
    ),
  ])('%j is refused', (...row) => {
    const [rule, message, error] = row; // the last one may be missing
    expect(refusalOf({ rules: [rule] }, error)).toMatch(message);
  });

  test('is refused that counts refusals beside skipFailedRequests, or has a group of nobody', () => {
    const rules = [{ path: '/', ...LIMIT, countBlocked: true }];
    expect(refusalOf({ rules, skipFailedRequests: true })).toContain('rules[0]');
    const groups = (group) => ({ rules: [{ path: '/', ...LIMIT, group }] });
    expect(refusalOf(groups('admin'))).toContain("without 'authenticate'");
    expect(rateLimit(groups(['admin', 'default']))).toHaveLength(3);
  });
});

describe('a rule that is never reached', () => {
  const of = (...rules) => rules.map((rule) => ({ path: '/', ...LIMIT, ...rule }));

  test.each([
    ['an equal one', of({ path: '/a' }, { path: '/a' })],
    ['another spelling', of({ path: '/a' }, { path: '/A/' })],
    ['a longer path', of({ path: '/a' }, { path: '/a/b' })],
    ['all paths', of({}, { path: /x/ })],
    ['an equal RegExp', of({ path: /x/i }, { path: /x/i })],
    ['a method of several', of({ method: ['GET', 'PUT'] }, { method: 'PUT' })],
    ['GET, which is HEAD as well', of({ method: 'GET' }, { method: 'HEAD' })],
    ['all groups', of({}, { group: 'a' })],
    ['one that lets pass', [{ path: '/' }, { path: '/a', limit: 1 }]],
    ['any, if it is a shadow rule', of({}, { shadow: true })],
  ])('is refused behind %s', (_name, rules) => {
    const message = refusalOf({ rules: [{ path: '/first' }, ...rules], authenticate });
    const expected = "'rules[2]': never reached: what it matches is taken by rules[1] before it";
    expect(message).toContain(expected);
  });

  test('is refused behind several together', () => {
    const methods = of({ method: 'GET' }, { method: 'PUT' }, { method: ['PUT', 'GET'] });
    expect(refusalOf({ rules: methods })).toContain('taken by rules[0] and rules[1] before');
    const [put, postA, both, postB] = of(
      { method: 'PUT', group: ['a', 'b'] },
      { method: 'POST', group: 'a' },
      { path: '/x', method: ['PUT', 'POST'], group: ['a', 'b'] },
      { method: 'POST', group: 'b' },
    );
    expect(rateLimit({ rules: [put, postA, both], authenticate })).toHaveLength(3);
    const rules = [put, postA, postB, both];
    expect(refusalOf({ rules, authenticate })).toContain("'rules[3]'");
  });

  test.each([
    ['a shorter path', of({ path: '/a/b' }, { path: '/a' })],
    ['no whole segment', of({ path: '/a' }, { path: '/ab' })],
    ['another RegExp', of({ path: /x/ }, { path: /x/i })],
    ['a RegExp behind a path', of({ path: '/a' }, { path: /^\/a/ })],
    ['one more method', of({ method: 'GET' }, { method: ['GET', 'PUT'] })],
    ['all methods', of({ method: 'GET' }, {})],
    ['GET behind HEAD', of({ method: 'HEAD' }, { method: 'GET' })],
    ['another group', of({ group: 'a' }, { group: 'b' })],
    ['an equal shadow rule', of({ shadow: true }, { shadow: true }, {})],
  ])('is not %s', (_name, rules) => {
    expect(rateLimit({ rules, authenticate })).toHaveLength(3);
  });
});

describe('rules of one zone', () => {
  const pair = (one, other) => [
    { path: '/a', zone: 'z', ...one },
    { path: '/b', zone: 'z', ...other },
  ];

  test('may say the same in other words', () => {
    const one = { limit: 5, windowMs: 1000, blockFor: 7, blockEverywhere: true };
    const limits = [{ interval: 1000, maxInInterval: 5 }];
    const rules = pair(one, { limits, blockFor: [7] });
    expect(rateLimit({ rules })).toHaveLength(3);
    const limit = () => 5;
    expect(rateLimit({ rules: pair({ limit }, { limit }) })).toHaveLength(3);
    const calendars = pair(fixed(), fixed({ startsOn: 1, timeZone: 'UTC' }));
    expect(rateLimit({ rules: calendars })).toHaveLength(3);
  });

  const MORE = [{ windowMs: 5 }, { minDifference: 1 }, { countBlocked: true }, { blockFor: 5 }];
  const month = { calendar: 'month', limit: 5 };
  const OTHERS = [{ calendar: 'year' }, { startsOn: 2 }, { timeZone: 'Asia/Tokyo' }];
  const fixed = (calendar) => ({ algorithm: 'fixed-window', limits: [{ ...month, ...calendar }] });
  test.each([
    ...[{ limit: 6 }, { limit: () => 5 }, { algorithm: 'gcra' }, ...MORE].map((other) => {
      return [LIMIT, { ...LIMIT, ...other }];
    }),
    ...OTHERS.map((other) => [fixed(), fixed(other)]),
  ])('must agree: %j and not %j', (one, other) => {
    expect(refusalOf({ rules: pair(one, other) })).toMatch(/'rules\[1\]\.zone'.*rules\[0\]/);
  });

  test('agree apart if they are shadow rules', () => {
    const [one, other] = pair(LIMIT, { ...LIMIT, limit: 77, shadow: true });
    expect(rateLimit({ rules: [one, other] })).toHaveLength(3);
    const third = { ...other, path: '/c', limit: 78 };
    expect(refusalOf({ rules: [one, other, third] })).toMatch(/'rules\[2\]\.zone'.*rules\[1\]/);
  });
});
