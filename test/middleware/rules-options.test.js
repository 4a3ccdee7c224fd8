// The option rules: each wrong one is refused at once, with its place, beside the good one.
'use strict';

const { rateLimit } = require('../..');
const { storeOptionsFor } = require('../../lib/middleware/rules/zones');

const LIMIT = { limit: 5 };
const authenticate = () => ({ id: 1 });

function refusalOf(options) {
  try {
    rateLimit(options);
  } catch (error) {
    return error;
  }
  throw new Error('expected these options to be refused');
}

const refusal = (name) => expect.objectContaining({ name, code: 'ERR_ROLLGATE_OPTION' });

test.each([
  [{ path: '/' }],
  [{ path: '/größe/ä%20' }],
  [{ path: '/a:b/%3Ac/%2A%28%7B' }],
  [{ path: /x/, limit: 0 }],
  [{ path: '/', method: 'get', ...LIMIT }],
  [{ path: '/', method: ['POST', 'M-SEARCH'], ...LIMIT }],
  [{ path: '/', group: ['a', 'b'], ...LIMIT }],
  [{ path: '/', zone: 'größe {x} :/', ...LIMIT }],
  [{ path: '/', windowMs: 1000, max: 3, minDifference: 5 }],
  [{ path: '/', limits: [{ interval: 5, maxInInterval: 1 }], countBlocked: false }],
  [{ path: '/', interval: 1, maxInInterval: 1, algorithm: 'gcra', blockFor: [1, 2] }],
  [{ path: '/', ...LIMIT, blockFor: 5, blockEverywhere: true, perPath: true, shadow: true }],
  [{ path: '/', ...LIMIT, zone: undefined, method: undefined, nonsense: undefined }],
])('%j is accepted', (rule) => {
  expect(rateLimit({ rules: [rule], authenticate })).toHaveLength(3);
});

test('options of the store and of answers go beside rules', () => {
  const clock = () => 0;
  expect(rateLimit({ rules: [{ path: '/' }], clock, maxKeys: 5, statusCode: 503 })).toHaveLength(3);
});

test.each([
  ['path', undefined, 'TypeError'],
  ['path', 5, 'TypeError'],
  ['path', null, 'TypeError'],
  ['path', '', 'RangeError'],
  ['path', 'api', 'RangeError'],
  ['path', '/api?x', 'RangeError'],
  ['path', '/api#x', 'RangeError'],
  ['path', '/users/:id', 'RangeError'],
  ['path', '/api/*', 'RangeError'],
  ['path', '/a*b', 'RangeError'],
  ['path', '/files/(x)', 'RangeError'],
  ['path', '/a{/b}', 'RangeError'],
  ['method', 5, 'TypeError'],
  ['method', [5], 'TypeError'],
  ['method', '*', 'RangeError'],
  ['method', 'GTE', 'RangeError'],
  ['method', [], 'RangeError'],
  ['group', 5, 'TypeError'],
  ['group', ['a', null], 'TypeError'],
  ['group', '', 'RangeError'],
  ['group', [], 'RangeError'],
  ['zone', 5, 'TypeError'],
  ['zone', '', 'RangeError'],
  ['zone', '\ud800', 'RangeError'],
  ['perPath', 1, 'TypeError'],
  ['shadow', 'yes', 'TypeError'],
  ['blockEverywhere', 1, 'TypeError'],
  ['limit', '5', 'TypeError'],
  ['limit', -1, 'RangeError'],
  ['windowMs', 0, 'RangeError'],
  ['minDifference', '5', 'TypeError'],
  ['limits', [], 'TypeError'],
  ['countBlocked', 1, 'TypeError'],
  ['algorithm', 'leaky-bucket', 'TypeError'],
  ['blockFor', 0, 'RangeError'],
])('%s: %j in a rule is a %3$s', (name, value, error) => {
  const rules = [
    { path: '/ok', ...LIMIT },
    { path: '/', ...LIMIT, [name]: value },
  ];
  const refused = refusalOf({ rules, authenticate });
  expect(refused).toEqual(refusal(error));
  expect(refused.message).toContain('rules[1]');
  expect(refused.message).toContain(`'${name}'`);
});

test('a text that looks like the path of a route is told that it is a prefix', () => {
  const { message } = refusalOf({ rules: [{ path: '/users/:id', ...LIMIT }] });
  expect(message).toMatch(/it is a prefix.*for a pattern give a RegExp/);
});

test('a limit of 0 has one length of block: it remembers no offences', () => {
  const rule = { path: '/', limit: 0, blockFor: [1, 2] };
  expect(refusalOf({ rules: [rule] }).message).toContain("'blockFor'");
  expect(rateLimit({ rules: [{ ...rule, blockFor: [1] }] })).toHaveLength(3);
});

test.each([[undefined], [null], [5], ['/'], [{}], [[]], [[null]], [['/']]])(
  'rules that are %j are refused',
  (rules) => {
    if (rules === undefined) expect(rateLimit({ rules })).toHaveLength(3);
    else expect(refusalOf({ rules })).toEqual(refusal('TypeError'));
  },
);

test('an unknown field is refused with the nearest known one, and so is what belongs to the top level', () => {
  const messageOf = (field) => refusalOf({ rules: [{ path: '/', ...LIMIT, ...field }] }).message;
  expect(messageOf({ perpath: true })).toMatch(
    /"perpath" \(string\) in rules\[0\].*did you mean 'perPath'/,
  );
  for (const name of [
    'redis',
    'namespace',
    'clock',
    'maxKeys',
    'standardHeaders',
    'handler',
    'skip',
  ]) {
    expect(messageOf({ [name]: 'x' })).toContain(`"${name}" (string) in rules[0]`);
  }
});

test.each([
  'limiter',
  'windowMs',
  'interval',
  'limit',
  'max',
  'limits',
  'countBlocked',
  'blockFor',
  'algorithm',
])('option %s beside rules is refused: each rule has its own', (name) => {
  const refused = refusalOf({ rules: [{ path: '/', ...LIMIT }], [name]: 5 });
  expect(refused).toEqual(refusal('TypeError'));
  expect(refused.message).toContain(`'${name}': not allowed beside 'rules'`);
});

test.each(['zone', 'perPath', 'shadow', 'countBlocked', 'algorithm', 'blockFor'])(
  'option %s in a rule without limits is refused: it would have no effect',
  (name) => {
    const value = { zone: 'z', algorithm: 'gcra', blockFor: 5 }[name] ?? true;
    const refused = refusalOf({ rules: [{ path: '/', [name]: value }] });
    expect(refused).toEqual(refusal('TypeError'));
    expect(refused.message).toContain(`'rules[0].${name}'`);
  },
);

test('blockEverywhere takes blockFor', () => {
  const refused = refusalOf({ rules: [{ path: '/', ...LIMIT, blockEverywhere: true }] });
  expect(refused).toEqual(refusal('TypeError'));
  expect(refused.message).toContain("'blockFor'");
});

describe('a rule that is never reached is refused', () => {
  const of = (...rules) => rules.map((rule) => ({ ...LIMIT, ...rule }));

  test.each([
    ['the same', of({ path: '/a' }, { path: '/a' })],
    ['the same but for spelling', of({ path: '/a' }, { path: '/A/' })],
    ['a longer path', of({ path: '/a' }, { path: '/a/b' })],
    ['everything before it', of({ path: '/' }, { path: /x/ })],
    ['the same RegExp', of({ path: /x/i }, { path: /x/i })],
    [
      'a method of those before',
      of({ path: '/', method: ['GET', 'PUT'] }, { path: '/', method: 'PUT' }),
    ],
    ['HEAD behind GET', of({ path: '/', method: 'GET' }, { path: '/', method: 'HEAD' })],
    ['a group behind all', of({ path: '/' }, { path: '/', group: 'a' })],
    ['one that lets pass', [{ path: '/' }, { path: '/a', limit: 1 }]],
  ])('%s', (_name, rules) => {
    const refused = refusalOf({ rules: [{ path: '/first' }, ...rules], authenticate });
    expect(refused).toEqual(refusal('TypeError'));
    expect(refused.message).toContain(
      "'rules[2]': never reached: what it matches is taken by rules[1] before it",
    );
  });

  test('by several before it together', () => {
    const method = (name) => ({ path: '/', method: name, ...LIMIT });
    const one = [method('GET'), method('PUT'), method(['PUT', 'GET'])];
    expect(refusalOf({ rules: one }).message).toContain('taken by rules[0] and rules[1] before');
    const kinds = of(
      { path: '/', method: 'PUT', group: ['a', 'b'] },
      { path: '/', method: 'POST', group: 'a' },
      { path: '/x', method: ['PUT', 'POST'], group: ['a', 'b'] },
    );
    expect(rateLimit({ rules: kinds, authenticate })).toHaveLength(3);
    kinds.splice(2, 0, { path: '/', method: 'POST', group: 'b', ...LIMIT });
    expect(refusalOf({ rules: kinds, authenticate }).message).toContain("'rules[3]'");
  });

  test.each([
    ['a shorter path', of({ path: '/a/b' }, { path: '/a' })],
    ['no whole segment', of({ path: '/a' }, { path: '/ab' })],
    ['another RegExp', of({ path: /x/ }, { path: /x/i })],
    ['a RegExp behind a path', of({ path: '/a' }, { path: /^\/a/ })],
    ['a method more', of({ path: '/', method: 'GET' }, { path: '/', method: ['GET', 'PUT'] })],
    ['every method', of({ path: '/', method: 'GET' }, { path: '/' })],
    ['GET behind HEAD', of({ path: '/', method: 'HEAD' }, { path: '/', method: 'GET' })],
    ['another group', of({ path: '/', group: 'a' }, { path: '/', group: 'b' })],
  ])('but not %s', (_name, rules) => {
    expect(rateLimit({ rules, authenticate })).toHaveLength(3);
  });

  test('one for a group, where nobody tells groups', () => {
    const rules = [{ path: '/', group: 'admin', ...LIMIT }];
    expect(refusalOf({ rules }).message).toContain("without 'authenticate'");
    expect(rateLimit({ rules, authenticate })).toHaveLength(3);
    expect(rateLimit({ rules: [{ ...rules[0], group: ['admin', 'default'] }] })).toHaveLength(3);
  });
});

describe('rules of one zone', () => {
  const zone = 'z';

  test('may say the same in other words, and differ in what is no limit', () => {
    const rules = [
      { path: '/a', zone, limit: 5, windowMs: 1000, blockFor: 7, blockEverywhere: true },
      {
        path: '/b',
        zone,
        limits: [{ interval: 1000, maxInInterval: 5 }],
        blockFor: [7],
        shadow: true,
      },
    ];
    expect(rateLimit({ rules })).toHaveLength(3);
  });

  test.each([
    { limit: 6 },
    { limit: 0 },
    { windowMs: 5 },
    { minDifference: 1 },
    { countBlocked: false },
    { algorithm: 'fixed-window' },
    { blockFor: 5 },
  ])('must agree: not %j', (other) => {
    const rules = [
      { path: '/a', zone, ...LIMIT },
      { path: '/b', zone, ...LIMIT, ...other },
    ];
    const refused = refusalOf({ rules });
    expect(refused).toEqual(refusal('TypeError'));
    expect(refused.message).toContain("'rules[1].zone'");
    expect(refused.message).toContain('rules[0]');
  });
});

test('each zone has a place of its own in every store that knows places by name', () => {
  const places = (options) => ['zone:a', 'zone:b'].map((name) => storeOptionsFor(options, name));
  expect(places({ maxKeys: 5 })).toEqual([{ maxKeys: 5 }, { maxKeys: 5 }]);
  expect(places({ namespace: 'n' })).toEqual([
    { namespace: 'n:zone:a' },
    { namespace: 'n:zone:b' },
  ]);
  const [a, b] = places({ shared: 's' });
  expect(a.shared.name).toMatch(/^s\+[\w-]{16}$/);
  expect(b.shared.name).not.toBe(a.shared.name);
  expect(places({ shared: { name: 's', maxKeys: 7 } })[0].shared).toEqual({
    ...a.shared,
    maxKeys: 7,
  });
});

test.each([
  [{ onAuthError: () => {} }, 'onAuthError'],
  [{ authenticate, keyGenerator: () => 'k' }, 'keyGenerator'],
  [{ authenticate, ipv6Subnet: 64 }, 'ipv6Subnet'],
  [{ authenticate: 'me' }, 'authenticate'],
  [{ authenticate, onAuthError: 5 }, 'onAuthError'],
])('%o: refused, with rules and without', (options, name) => {
  for (const rules of [undefined, [{ path: '/', ...LIMIT }]]) {
    const refused = refusalOf({ ...options, rules });
    expect(refused).toEqual(refusal('TypeError'));
    expect(refused.message).toContain(`'${name}'`);
  }
});

test('with skipFailedRequests no rule counts refusals', () => {
  const rules = [{ path: '/', ...LIMIT, countBlocked: true }];
  expect(refusalOf({ rules, skipFailedRequests: true }).message).toContain('rules[0]');
});
