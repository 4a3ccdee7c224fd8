// The options of rateLimit(): each wrong one is refused at once, by name, beside the good one.
'use strict';

const RateLimiter = require('../..');

const { rateLimit } = RateLimiter;
const limiter = RateLimiter({ interval: 1000, maxInInterval: 1 });
// Jest gives each test file a realm of its own: the name of the class is what users see.
const refusal = (name) => expect.objectContaining({ name, code: 'ERR_ROLLGATE_OPTION' });

function refusalOf(options) {
  try {
    rateLimit(options);
  } catch (error) {
    return error;
  }
  throw new Error('expected these options to be refused');
}

test.each([
  [undefined],
  [{}],
  [{ windowMs: 0.5 }],
  [{ interval: 1000, maxInInterval: 3 }],
  [{ limit: 0 }],
  [{ max: 7 }],
  [{ limit: () => 5 }],
  [{ max: async () => 5, windowMs: 1000 }],
  [{ limits: [{ interval: 1000, maxInInterval: 1 }] }],
  [{ minDifference: 5, countBlocked: false, maxKeys: 10, clock: () => 0 }],
  [{ limiter }],
  [{ limiter: { attempt() {} }, statusCode: 503 }],
  [{ message: '' }],
  [{ message: ['a', 'list'] }],
  [{ message: () => 'text' }],
  [{ statusCode: 200 }],
  [{ legacyHeaders: false, standardHeaders: 'draft-6' }],
  [{ standardHeaders: true }],
  [{ standardHeaders: 'draft-7' }],
  [{ standardHeaders: 'draft-8', identifier: 'a "quoted" name \\' }],
  [{ standardHeaders: 'draft-10', identifier: () => 'name' }],
  [{ ipv6Subnet: 32 }],
  [{ ipv6Subnet: 64 }],
  [{ ipv6Subnet: false }],
  [{ ipv6Subnet: () => 48 }],
  [{ skipSuccessfulRequests: true, countBlocked: true }],
  [{ skipFailedRequests: true, requestWasSuccessful: () => true }],
  [{ skipFailedRequests: true, limiter }],
  [{ skipFailedRequests: true, limit: 0 }],
  [{ passOnStoreError: true, problemDetails: true }],
  [{ problemDetails: false, handler: () => {} }],
  [{ validate: false }],
  [{ validate: { ip: false, default: true, positiveHits: false, singleCount: undefined } }],
  [{ logger: console }],
  [{ requestPropertyName: 'quota' }],
  [{ keyGenerator: () => 'k', skip: () => false, handler: () => {} }],
  [{ rules: undefined, nonsense: undefined, limiter: undefined, windowMs: undefined }],
])('%j is accepted', (options) => {
  const middleware = rateLimit(options);
  expect(middleware).toBeInstanceOf(Function);
  expect(middleware).toHaveLength(3);
});

const WRONG = [
  ['windowMs', 'TypeError', ['1000', null, 5n, {}, true]],
  ['windowMs', 'RangeError', [0, -1, Number.NaN, Infinity]],
  ['interval', 'TypeError', ['1000']],
  ['interval', 'RangeError', [0]],
  ['limit', 'TypeError', ['5', null, [], true]],
  ['limit', 'RangeError', [-1, 1.5, Number.NaN, Infinity]],
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
  ['statusCode', 'RangeError', [0, 100, 1000, 429.5, Number.NaN]],
  ['legacyHeaders', 'TypeError', ['yes', 1, null]],
  ['standardHeaders', 'TypeError', ['draft-5', 'draft-9', 'DRAFT-8', 'toString', 6, null]],
  ['identifier', 'TypeError', [5, null, true, ['a']]],
  ['identifier', 'RangeError', ['', 'a\nb', 'größe', '\x7f']],
  ['ipv6Subnet', 'TypeError', ['56', null, true, []]],
  ['ipv6Subnet', 'RangeError', [31, 65, 56.5, Number.NaN, Infinity, -1, 0]],
  ['skipSuccessfulRequests', 'TypeError', ['yes', 1, null]],
  ['skipFailedRequests', 'TypeError', ['yes', 1, null]],
  ['requestWasSuccessful', 'TypeError', [true, null]],
  ['passOnStoreError', 'TypeError', ['yes', 1, null]],
  ['problemDetails', 'TypeError', ['yes', 1, null]],
  ['validate', 'TypeError', ['yes', 1, null, []]],
  ['logger', 'TypeError', [console.warn, null, {}, { warn() {} }, 'console']],
  ['requestPropertyName', 'TypeError', [5, null, Symbol('p')]],
  ['requestPropertyName', 'RangeError', ['', '__proto__']],
  ['limiter', 'TypeError', [null, 'memory', {}, () => {}]],
].flatMap(([name, error, values]) => values.map((value) => [name, value, error]));

test.each(WRONG)('option %s: %p is a %s', (name, value, error) => {
  const refused = refusalOf({ [name]: value });
  expect(refused).toEqual(refusal(error));
  expect(refused.message).toContain(`'${name}'`);
});

test.each([null, 5, 'limit', [], true])('options that are %p are refused', (options) => {
  expect(refusalOf(options)).toEqual(refusal('TypeError'));
});

test('an unknown option is refused with the nearest known one', () => {
  const refused = refusalOf({ standardHeader: true });
  expect(refused).toEqual(refusal('TypeError'));
  expect(refused.message).toContain('"standardHeader"');
  expect(refused.message).toContain("did you mean 'standardHeaders'?");
});

test('a store is refused with what there is in its place', () => {
  const refused = refusalOf({ store: {} });
  expect(refused).toEqual(refusal('TypeError'));
  expect(refused.message).toBe(
    "option 'store': counts are kept by limiters: expected 'redis', 'shared', 'kv' or 'limiter' in its " +
      "place; a store for express-rate-limit itself is require('rollgate/store')",
  );
});

test.each(['windowMs', 'interval', 'limit', 'max', 'limits', 'countBlocked', 'clock'])(
  'option %s beside limiter is refused: it would have no effect',
  (name) => {
    expect(refusalOf({ limiter, [name]: 5 })).toEqual(refusal('TypeError'));
  },
);

test.each([
  [{ ipv6Subnet: 48, keyGenerator: () => 'k' }, 'ipv6Subnet'],
  [{ problemDetails: true, handler: () => {} }, 'problemDetails'],
  [{ skipFailedRequests: true, countBlocked: true }, 'countBlocked'],
  [{ skipFailedRequests: true, limiter: { attempt() {} } }, 'limiter'],
  [{ skipSuccessfulRequests: true, limiter: { attempt() {} } }, 'limiter'],
])('%o: options that do not go together are refused', (options, name) => {
  const refused = refusalOf(options);
  expect(refused).toEqual(refusal('TypeError'));
  expect(refused.message).toContain(`'${name}'`);
});

test('validate refuses unknown checks with the nearest known one', () => {
  const refused = refusalOf({ validate: { trustPrxy: false } });
  expect(refused).toEqual(refusal('TypeError'));
  expect(refused.message).toContain("did you mean 'trustProxy'?");
  const unlike = refusalOf({ validate: { everything: false } });
  expect(unlike.message).toMatch(
    /^unknown check "everything" \(string\) in validate: expected one of .*, default \(the nearest is '\w+'\)$/,
  );
  expect(refusalOf({ validate: { ip: 'no' } }).message).toContain("'validate.ip'");
});

test('limit 0 does not hide other wrong options', () => {
  expect(refusalOf({ limit: 0, minDifference: '5' })).toEqual(refusal('TypeError'));
});

test('the middleware names stand before those of the limiter', () => {
  const info = (options) => {
    const req = { ip: '192.0.2.1' };
    rateLimit({ clock: () => 0, ...options })(req, { headersSent: true }, () => {});
    return req.rateLimit;
  };
  expect(info({ limit: 2, max: 3, maxInInterval: 4 }).limit).toBe(2);
  expect(info({ max: 3, maxInInterval: 4 }).limit).toBe(3);
  expect(info({ maxInInterval: 4 }).limit).toBe(4);
  expect(info({ limit: undefined, max: 3 }).limit).toBe(3);
  const { resetTime } = info({ windowMs: 50_000, interval: 5 });
  expect(resetTime.getTime() - Date.now()).toBeGreaterThan(40_000);
});

test('the request has `used` by its older name, too', () => {
  const middleware = rateLimit({ limit: 5 });
  for (const expected of [1, 2]) {
    const req = { ip: '192.0.2.1' };
    middleware(req, { headersSent: true }, () => {});
    expect(req.rateLimit.current).toBe(expected);
  }
});

test.each([
  [{ limit: 3, max: 'x' }, 'max'],
  [{ windowMs: 1000, interval: -1 }, 'interval'],
  [{ limits: [{ interval: 1, maxInInterval: 1 }], limit: 'z' }, 'limit'],
])('what another option replaces must make sense all the same: %j', (options, name) => {
  expect(() => rateLimit(options)).toThrow(
    expect.objectContaining({
      code: 'ERR_ROLLGATE_OPTION',
      message: expect.stringContaining(`'${name}'`),
    }),
  );
});
