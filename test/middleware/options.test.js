// The options of rateLimit() and of its rules: each wrong one is refused by name, beside the good one.
'use strict';

const RateLimiter = require('../..');
const { storeOptionsFor } = require('../../lib/adapters/middleware/rules/zones');
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
  table.flatMap(([name, error, values]) => values.map((v) => [name, v, error]));

test.each([
  undefined,
  {},
  { windowMs: 0.5 },
  { interval: 1000, maxInInterval: 3 },
  { limit: 0 },
  { max: async () => 5, windowMs: 1000 },
  { limits: [{ interval: 1000, maxInInterval: 1 }] },
  { minDifference: 5, countBlocked: false, maxKeys: 10, clock: () => 0 },
  { limiter },
  { limiter: { attempt() {} }, statusCode: 503 },
  { message: '' },
  { message: ['an', 'array'] },
  { statusCode: 200 },
  { standardHeaders: 'draft-8', identifier: 'a "quoted" name \\' },
  { ipv6Subnet: 32 },
  { ipv6Subnet: 64 },
  { skipSuccessfulRequests: true, countBlocked: true },
  { skipFailedRequests: true, limiter },
  { cost: 7, limiter },
  { cost: () => 0, limits: [{ interval: 1000, maxInInterval: 1 }] },
  { skipFailedRequests: true, limit: 0 },
  { problemDetails: false, handler: () => {} },
  { validate: { ip: false, default: true, positiveHits: false, singleCount: undefined } },
  { logger: console },
  { rules: undefined, nonsense: undefined, limiter: undefined, windowMs: undefined },
  { rules: [{ path: '/' }], clock: () => 0, maxKeys: 5, statusCode: 503 },
])('%j is accepted', (options) => {
  expect(rateLimit(options)).toHaveLength(3);
});

const NO_BOOLEANS = ['yes', 1, null];
test.each(
  each([
    ['windowMs', 'TypeError', ['1000', null, 5n, {}, true]],
    ['windowMs', 'RangeError', [0, -1, Number.NaN, Infinity]],
    ['interval', 'TypeError', ['1000']],
    ['interval', 'RangeError', [0]],
    ['limit', 'TypeError', ['5', null, [], true]],
    ['limit', 'RangeError', [-1, 1.5, Number.NaN, -Infinity]],
    ['cost', 'TypeError', ['5', {}, null]],
    ['cost', 'RangeError', [0, -1, 1.5, Number.NaN, 2 ** 53]],
    ['max', 'TypeError', ['5']],
    ['max', 'RangeError', [-1]],
    ['maxInInterval', 'TypeError', ['5']],
    ['maxInInterval', 'RangeError', [-1]],
    ['minDifference', 'TypeError', ['5']],
    ['limits', 'TypeError', ['5']],
    ['clock', 'TypeError', [5]],
    ['keyGenerator', 'TypeError', ['ip', null, {}]],
    ['skip', 'TypeError', [true, null]],
    ['handler', 'TypeError', ['no', null]],
    ['message', 'TypeError', [null, 5, true, Symbol('m')]],
    ['statusCode', 'TypeError', ['429', null]],
    ['statusCode', 'RangeError', [0, 199, 1000, 429.5, Number.NaN]],
    ['legacyHeaders', 'TypeError', NO_BOOLEANS],
    ['standardHeaders', 'TypeError', ['draft-5', 'draft-9', 'DRAFT-8', 'toString', 6, null]],
    ['identifier', 'TypeError', [5, null, true, ['a']]],
    ['identifier', 'RangeError', ['', 'a\nb', 'größe', '\x7f']],
    ['ipv6Subnet', 'TypeError', ['56', null, true, []]],
    [
      'trustProxy',
      'TypeError',
      [-1, 1.5, null, {}, [5], [], '', '1', 'nonsense', ['192.0.2.0/33']],
    ],
    ['ipv6Subnet', 'RangeError', [129, 56.5, Number.NaN, Infinity, -1, 0]],
    ['skipSuccessfulRequests', 'TypeError', NO_BOOLEANS],
    ['skipFailedRequests', 'TypeError', NO_BOOLEANS],
    ['requestWasSuccessful', 'TypeError', [true, null]],
    ['passOnStoreError', 'TypeError', NO_BOOLEANS],
    ['problemDetails', 'TypeError', NO_BOOLEANS],
    ['validate', 'TypeError', [...NO_BOOLEANS, []]],
    ['logger', 'TypeError', [console.warn, null, {}, { warn() {} }, 'console']],
    ['requestPropertyName', 'TypeError', [5, null, Symbol('p')]],
    ['requestPropertyName', 'RangeError', ['', '__proto__']],
    ['limiter', 'TypeError', [null, 'memory', {}, () => {}]],
    ['rules', 'TypeError', [null, 5, '/', {}, [], [null], ['/']]],
    ['authenticate', 'TypeError', ['me']],
  ]),
)('%s: %p is a %s', (name, value, error) => {
  expect(refusalOf({ [name]: value }, error)).toContain(name);
});

const LIMITS = { interval: 1000, maxInInterval: 5 };

test.each([null, 5, 'limit', [], true])('options that are %p are refused', (options) => {
  expect(refusalOf(options)).toMatch(/^rateLimit: option 'options'/);
});

test.each([
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
  [{ skipFailedRequests: true, limiter: { attempt() {} } }, /'limiter'/],
  [{ skipSuccessfulRequests: true, limiter: { attempt() {} } }, /'limiter'/],
  [{ cost: 2, limiter: { attempt() {} } }, /'limiter'.*peek/],
  [{ cost: 2, rules: [{ path: '/' }] }, /'cost': conflicts with 'rules'/],
  [{ onAuthError: () => {} }, /'onAuthError'/],
  [{ authenticate, keyGenerator: () => 'k' }, /'keyGenerator'/],
  [{ authenticate, ipv6Subnet: 64 }, /'ipv6Subnet'/],
  [{ authenticate, onAuthError: 5 }, /'onAuthError'/],
  // Neither a limit of 0 nor a name that is not used hides a wrong option.
  [{ limit: 0, minDifference: '5' }, /'minDifference'/],
  [{ limit: 3, max: 'x' }, /'max'/],
  [{ limits: [{ interval: 1, maxInInterval: 1 }], limit: 'z' }, /'limit'/],
])('%o is refused', (options, message) => {
  expect(refusalOf(options)).toMatch(message);
});

describe('with lease', () => {
  const withLease = (options) => ({
    ...options,
    redis: redisAt('redis://127.0.0.1:1'),
    namespace: 'n',
    lease: 100,
  });

  test.each([
    [{ limit: () => 5 }],
    [{ limit: () => ({ calls: 5 }), limits: [{ ...LIMITS, name: 'calls' }] }],
    [{ rules: [{ path: '/', limit: () => 5 }] }],
  ])('%o is refused', (options) => {
    const message = /'lease': conflicts with a 'limit' that each request brings/;
    expect(refusalOf(withLease(options))).toMatch(message);
  });

  test.each([0, Number.POSITIVE_INFINITY, 60])('a limit of %p is not', (limit) => {
    expect(rateLimit(withLease({ limit }))).toHaveLength(3);
    expect(rateLimit(withLease({ rules: [{ path: '/', limit }] }))).toHaveLength(3);
  });

  test.each([
    [0, []],
    [Number.POSITIVE_INFINITY, [[]]],
  ])('a limit of %p leases nothing', async (limit, expected) => {
    const { calls, returned } = callDirectly(rateLimit(withLease({ limit })));
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
    { path: '/' },
    { path: '/größe/ä%20' },
    { path: '/a:b/%3Ac/%2A%28%7B' },
    { path: /x/, limit: 0 },
    { path: '/', method: ['POST', 'M-SEARCH'], ...LIMIT },
    { path: '/', group: ['a', 'b'], ...LIMIT },
    { path: '/', zone: 'größe {x} :/', ...LIMIT },
    { path: '/', windowMs: 1000, max: 3, minDifference: 5 },
    { path: '/', limits: [{ interval: 5, maxInInterval: 1 }], countBlocked: false },
    { path: '/', interval: 1, maxInInterval: 1, algorithm: 'gcra', blockFor: [1, 2] },
    { path: '/', ...LIMIT, blockFor: 5, blockEverywhere: true, perPath: true, shadow: true },
    { path: '/', limit: 0, blockFor: [1] },
    { path: '/', ...LIMIT, zone: undefined, method: undefined, nonsense: undefined },
  ])('%j is accepted', (rule) => {
    expect(rateLimit({ rules: [rule], authenticate })).toHaveLength(3);
  });

  const PATTERNS = ['/users/:id', '/api/*', '/a*b', '/files/(x)', '/a{/b}'];
  test.each(
    each([
      ['path', 'TypeError', [undefined, 5, null]],
      ['path', 'RangeError', ['', 'api', '/api?x', '/api#x', ...PATTERNS]],
      ['method', 'TypeError', [5, [5]]],
      ['method', 'RangeError', ['*', 'GTE', []]],
      ['group', 'TypeError', [5, ['a', null]]],
      ['group', 'RangeError', ['', []]],
      ['zone', 'TypeError', [5]],
      ['zone', 'RangeError', ['', '\ud800']],
      ['perPath', 'TypeError', [1]],
      ['shadow', 'TypeError', ['yes']],
      ['blockEverywhere', 'TypeError', [1]],
      ['limit', 'TypeError', ['5']],
      ['cost', 'RangeError', [0]],
      ['limits', 'TypeError', [[]]],
      ['blockFor', 'RangeError', [0]],
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
    ...['redis', 'namespace', 'clock', 'maxKeys', 'standardHeaders', 'handler', 'skip'].map(
      (name) => {
        return [{ path: '/', ...LIMIT, [name]: 'x' }, new RegExp(`"${name}" in rules\\[0\\]`)];
      },
    ),
    ...Object.entries({ zone: 'z', perPath: true, shadow: true, countBlocked: true, cost: 2 }).map(
      ([name, value]) => [{ path: '/', [name]: value }, new RegExp(`'rules\\[0\\].${name}'`)],
    ),
    [{ path: '/', algorithm: 'gcra' }, /'rules\[0\].algorithm'/],
    [{ path: '/', blockFor: 5 }, /'rules\[0\].blockFor'/],
  ])('%j is refused', (...row) => {
    const [rule, message, error] = row; // the last one may be missing
    expect(refusalOf({ rules: [rule] }, error)).toMatch(message);
  });

  test('that counts refusals is refused beside skipFailedRequests', () => {
    const rules = [{ path: '/', ...LIMIT, countBlocked: true }];
    expect(refusalOf({ rules, skipFailedRequests: true })).toContain('rules[0]');
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

  test('is one of a group without authenticate, unless it is the group default', () => {
    expect(refusalOf({ rules: of({ group: 'admin' }) })).toContain("without 'authenticate'");
    expect(rateLimit({ rules: of({ group: ['admin', 'default'] }) })).toHaveLength(3);
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
  });

  const MORE = [{ windowMs: 5 }, { minDifference: 1 }, { countBlocked: true }, { blockFor: 5 }];
  test.each([{ limit: 6 }, { limit: 0 }, { limit: () => 5 }, { algorithm: 'gcra' }, ...MORE])(
    'must agree: not %p',
    (other) => {
      const message = refusalOf({ rules: pair(LIMIT, { ...LIMIT, ...other }) });
      expect(message).toMatch(/'rules\[1\]\.zone'.*rules\[0\]/);
    },
  );

  test('agree apart if they are shadow rules', () => {
    const [one, other] = pair(LIMIT, { ...LIMIT, limit: 77, shadow: true });
    expect(rateLimit({ rules: [one, other] })).toHaveLength(3);
    const third = { ...other, path: '/c', limit: 78 };
    expect(refusalOf({ rules: [one, other, third] })).toMatch(/'rules\[2\]\.zone'.*rules\[1\]/);
  });
});

test('each zone has its own place in a store with names', () => {
  const places = (options) => ['zone:a', 'zone:b'].map((name) => storeOptionsFor(options, name));
  expect(places({ maxKeys: 5 })).toEqual([{ maxKeys: 5 }, { maxKeys: 5 }]);
  const namespaces = places({ namespace: 'n' }).map(({ namespace }) => namespace);
  expect(namespaces).toEqual(['n:zone:a', 'n:zone:b']);
  const [a, b] = places({ shared: { name: 's', maxKeys: 7 } }).map(({ shared }) => shared);
  expect(a).toEqual({ name: expect.stringMatching(/^s\+[\w-]{16}$/), maxKeys: 7 });
  expect(b.name).not.toBe(a.name);
  expect(places({ shared: 's' })[0].shared.name).toBe(a.name);
});
