// Who is counted: addresses and their subnets, authenticate, and warnings about addresses that may be wrong.
'use strict';

const expressRateLimit = require('express-rate-limit');
const fc = require('fast-check');
const { ipKeyGenerator, rateLimit } = require('../..');
const { casesOf } = require('../support/tiers');
const apps = require('./apps');

const { FAILING, appWith, byHeaders, callDirectly, get, inTurn, newLogger, setUp, withCode } = apps;

/** The key that a request is counted by; what it fails with is thrown. */
async function keyOf(options, req) {
  const asked = { headers: {}, ...req };
  const { calls, returned } = callDirectly(rateLimit({ validate: false, ...options }), asked);
  await returned;
  if (calls[0].length > 0) throw calls[0][0];
  return asked.rateLimit.key;
}

const socket = { remoteAddress: '192.0.2.1' };

test.each([
  [{}, { ip: '2001:db8::1' }, '2001:db8::/56'],
  [{}, { ip: '2001:db8::1', headers: { 'x-user': 'ada' } }, 'ada'],
  [{}, { ip: '2001:db8::1', headers: { 'x-user': '2001:db8::1' } }, '2001:db8::1'],
  [{ ipv6Subnet: 64 }, { ip: '2001:db8::1' }, '2001:db8::/64'],
  [{ ipv6Subnet: async () => 48 }, { ip: '2001:db8::1' }, '2001:db8::/48'],
  [{ trustProxy: 1 }, { socket, headers: { 'x-forwarded-for': '198.51.100.7' } }, '198.51.100.7'],
])('a keyGenerator with the parameter clientKey, %j and %j: %s', async (options, req, key) => {
  const keyGenerator = (asked, _res, clientKey) => asked.headers['x-user'] ?? clientKey();
  expect(await keyOf({ keyGenerator, ...options }, req)).toBe(key);
});

describe('ipKeyGenerator', () => {
  const OTHERS = ['192.0.2.1', 'unknown', '192.0.2.1:8080', '', undefined, '[::1]:80'];
  test.each([
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::ffff:c000:201', '192.0.2.1'],
    ['::ffff:192.0.2.1%eth0', '192.0.2.1'],
    ['::192.0.2.1', '192.0.2.1'],
    ['::1', '::/56'],
    ['2001:DB8::1', '2001:db8::/56'],
    ['2001:db8:1:2ff:3:4:5:6', '2001:db8:1:200::/56'],
    ['fe80::1%eth0', 'fe80::/56'],
    ...OTHERS.map((other) => [other, other]),
  ])('%s has the key %s, which is the default key', async (ip, key) => {
    expect(ipKeyGenerator(ip)).toBe(key);
    if (!ip) return;
    for (const options of [{}, { ipv6Subnet: () => 56 }])
      expect(await keyOf(options, { ip })).toBe(key);
  });

  test.each([0, 129, 56.5, '56'])('refuses %p bits', (bits) => {
    expect(() => ipKeyGenerator('2001:db8::1', bits)).toThrow(withCode('ERR_ROLLGATE_OPTION'));
  });

  // Stored counts are found by them, also by the next release.
  test('gives the keys of express-rate-limit for every IPv6 address', () => {
    const bits = fc.constantFrom(128, 127, 64, 57, 56, 48, 32, 1, false);
    const property = fc.property(fc.ipV6(), bits, (ip, subnet) => {
      expect(ipKeyGenerator(ip, subnet)).toBe(expressRateLimit.ipKeyGenerator(ip, subnet));
    });
    fc.assert(property, { numRuns: casesOf(5000), examples: [['1:0:0:2:0:0:3:4', 128]] });
  });
});

describe('ipv6Subnet', () => {
  const ip = '2001:db8:1234:5678:9abc:def0:1234:5678';

  test.each([
    [32, '2001:db8::/32'],
    [false, ip],
  ])('%p may be a value or come from a function', async (bits, key) => {
    for (const ipv6Subnet of [bits, () => bits, async () => bits]) {
      expect(await keyOf({ ipv6Subnet }, { ip })).toBe(key);
    }
    expect(await keyOf({}, { socket: { remoteAddress: ip } })).toMatch(/::\/56$/);
  });

  test('is asked with request and response, for IPv6 only', async () => {
    const ipv6Subnet = jest.fn((req) => req.bits);
    expect(await keyOf({ ipv6Subnet }, { ip: '192.0.2.1' })).toBe('192.0.2.1');
    expect(await keyOf({ ipv6Subnet }, {})).toBeUndefined();
    expect(await keyOf({ ipv6Subnet }, { ip, bits: 40 })).toBe('2001:db8:1200::/40');
    const res = expect.objectContaining({ headersSent: false });
    expect(ipv6Subnet.mock.calls).toEqual([[expect.objectContaining({ bits: 40 }), res]]);
  });

  test('as a function that fails, or gives what is none, is an error', async () => {
    for (const [, ipv6Subnet] of FAILING(new Error('boom'))) {
      await expect(keyOf({ ipv6Subnet }, { ip })).rejects.toThrow('boom');
    }
    for (const ipv6Subnet of [() => 129, async () => undefined]) {
      await expect(keyOf({ ipv6Subnet }, { ip })).rejects.toEqual(withCode('ERR_ROLLGATE_OPTION'));
    }
  });
});

describe('trustProxy', () => {
  const CHAIN = { 'x-forwarded-for': '192.0.2.66, 198.51.100.7' };

  /** The key of a request that a server of node:http gets from this host, and the codes of warnings. */
  async function keyAndCodes(options, headers) {
    const logger = newLogger();
    const middleware = rateLimit({ logger, limit: 9, ...options });
    const app = (req, res) =>
      middleware(req, res, (error) => res.end(JSON.stringify(error ?? req.rateLimit.key)));
    const keys = await inTurn([1, 2], async () => (await get(app, '/', headers)).text);
    expect(keys[0]).toBe(keys[1]);
    return [JSON.parse(keys[0]), logger.warn.mock.calls.map(([{ code }]) => code)];
  }

  test.each([
    [undefined, '127.0.0.1', ['ROLLGATE_X_FORWARDED_FOR']],
    [false, '127.0.0.1', []],
    [0, '127.0.0.1', []],
    [1, '198.51.100.7', []],
    [2, '192.0.2.66', []],
    ['loopback', '198.51.100.7', []],
    ['loopback, 198.51.100.0/24', '192.0.2.66', []],
    [['127.0.0.1', '::1'], '198.51.100.7', []],
    [(address) => address === '127.0.0.1', '198.51.100.7', []],
    ['192.0.2.0/24', '127.0.0.1', []],
    [true, '192.0.2.66', ['ROLLGATE_TRUST_PROXY']],
    [undefined, '127.0.0.1', [], {}],
    [1, '127.0.0.1', [], {}],
  ])('%p gives the key %s', async (trustProxy, key, codes, headers = CHAIN) => {
    expect(await keyAndCodes({ trustProxy }, headers)).toEqual([key, codes]);
  });

  test('a function that gives a promise is an error of the request', async () => {
    const asked = keyOf({ trustProxy: async () => false }, { headers: CHAIN, socket });
    await expect(asked).rejects.toEqual(withCode('ERR_ROLLGATE_OPTION'));
  });

  test('an address that is none is warned about, also after good ones', async () => {
    const logger = newLogger();
    const middleware = rateLimit({ logger, trustProxy: 1, limit: 9 });
    for (const address of ['192.0.2.1', 'unknown', 'unknown']) {
      callDirectly(middleware, { socket, headers: { 'x-forwarded-for': address } });
    }
    expect(logger.warn.mock.calls).toEqual([[withCode('ROLLGATE_INVALID_IP')]]);
  });

  test("replaces Express' own setting", async () => {
    const app = appWith(rateLimit({ trustProxy: 1 }), (req, res) => res.json(req.rateLimit.key));
    expect((await get(app, '/', CHAIN)).body).toBe('198.51.100.7');
  });

  test('a request without headers or a connection has no address, without a warning', async () => {
    const options = { trustProxy: 1, validate: true, logger: newLogger() };
    expect(await keyOf(options, { headers: undefined })).toBeUndefined();
    expect(options.logger.warn).not.toHaveBeenCalled();
  });
});

describe('authenticate', () => {
  const rules = [{ path: '/', group: 'staff', limit: 1 }];
  const NO_TOKEN = new Error('no token');

  test('gives the key and the group, or promises them', async () => {
    for (const authenticate of [byHeaders, async (req) => byHeaders(req)]) {
      const { ask, statuses } = setUp(undefined, { authenticate, limit: 1 });
      expect((await ask('/')).body.key).toBe('ada');
      expect(await statuses('/', ['/', { id: 'bob' }])).toEqual([429, 200]);
      const staff = ['/', { group: 'staff' }];
      const byGroup = setUp(rules, { authenticate });
      expect(await byGroup.statuses(staff, staff, '/')).toEqual([200, 429, 200]);
    }
  });

  const unknown = withCode('ERR_ROLLGATE_AUTHENTICATE');
  const withMessage = expect.objectContaining({ message: 'no token' });
  const FAILURES = [
    ...FAILING(NO_TOKEN).map((failing) => [...failing, withMessage]),
    [...FAILING(undefined)[0], withCode('ERR_ROLLGATE_THROWN')],
    ['gives nothing', () => undefined, unknown],
    ['gives null, later', async () => null, unknown],
    ['gives an id alone', () => 'ada', unknown],
    ['gives no id', () => ({ group: 'staff' }), unknown],
    ['gives a group that is no string', () => ({ id: 1, group: 5 }), unknown],
  ];

  test.each(FAILURES)('that %s is an error, or answered by onAuthError', async (...failure) => {
    const [, authenticate, error] = failure;
    for (const own of [rules, undefined]) {
      const { status, body } = await setUp(own, { authenticate, passOnStoreError: true }).ask('/');
      expect([status, body]).toEqual([500, error]);
    }
    const onAuthError = jest.fn((_error, _req, res, _next) => void res.status(401).end());
    expect(await setUp(rules, { authenticate, onAuthError }).statuses('/')).toEqual([401]);
    expect(onAuthError).toHaveBeenCalledTimes(1);
  });

  const fails = { authenticate: () => Promise.reject(NO_TOKEN) };

  test('onAuthError gets the error and may let the request pass, uncounted', async () => {
    const onAuthError = jest.fn(async (_error, _req, _res, next) => next());
    const { status, body } = await setUp(rules, { ...fails, onAuthError }).ask('/');
    expect([status, body]).toEqual([200, null]);
    expect(onAuthError.mock.calls[0][0]).toBe(NO_TOKEN);
  });

  test.each(FAILING(new Error('worse')))('onAuthError that %s is one error', async (...row) => {
    const { status, body } = await setUp(rules, { ...fails, onAuthError: row[1] }).ask('/');
    expect([status, body.message]).toEqual([500, 'worse']);
  });
});

describe('a warning', () => {
  const FORWARDED_FOR = { 'X-Forwarded-For': '192.0.2.1' };
  const WITH_PORT = { 'X-Forwarded-For': '192.0.2.1:1234' };
  const FORWARDED = { Forwarded: 'for=192.0.2.1' };

  /** The codes of the warnings about requests with these headers; `trust` is the setting 'trust proxy'. */
  async function codesOf(options, trust, ...headersOfEach) {
    const logger = newLogger();
    const app = appWith(rateLimit({ logger, limit: 2, ...options }));
    if (trust !== undefined) app.set('trust proxy', trust);
    for (const headers of headersOfEach) await get(app, '/', headers);
    return logger.warn.mock.calls.map(([{ code }]) => code);
  }

  test.each([
    ['TRUST_PROXY', 'trustProxy', true, {}],
    ['X_FORWARDED_FOR', 'xForwardedForHeader', undefined, FORWARDED_FOR],
    ['FORWARDED', 'forwardedHeader', undefined, FORWARDED],
    ['INVALID_IP', 'ip', 1, WITH_PORT],
  ])('ROLLGATE_%s comes once, unless its check is off', async (code, check, trust, headers) => {
    const codesWith = (validate) => codesOf({ validate }, trust, headers, headers, headers);
    for (const validate of [undefined, { [check]: true, default: false }]) {
      expect(await codesWith(validate)).toEqual([`ROLLGATE_${code}`]);
    }
    for (const validate of [{ [check]: false }, false]) {
      expect(await codesWith(validate)).toEqual([]);
    }
  });

  test('comes for an unusual ipv6Subnet', async () => {
    const codes = await inTurn([31, 32, 64, 65, false], (ipv6Subnet) => codesOf({ ipv6Subnet }));
    const code = 'ROLLGATE_IPV6_SUBNET';
    expect(codes).toEqual([[code], [], [], [code], []]);
    expect(await codesOf({ ipv6Subnet: 31, validate: { ipv6Subnet: false } })).toEqual([]);
  });

  test.each([
    ['undefined, later', async () => undefined],
    ['null, as of a missing header', (req) => new Headers(req.headers).get('x-user')],
  ])('comes once for a keyGenerator that gives %s', async (_what, keyGenerator) => {
    const code = 'ROLLGATE_UNDEFINED_KEY';
    expect(await codesOf({ keyGenerator }, undefined, {}, {})).toEqual([code]);
    const isOff = { keyGenerator, validate: { undefinedKey: false } };
    expect(await codesOf(isOff, undefined, {})).toEqual([]);
    expect(await codesOf({ keyGenerator: () => '' }, undefined, {})).toEqual([]);
  });

  const clientKey = (_req, _res, byDefault) => byDefault();
  test.each([
    ['a key made of clientKey', 1, { keyGenerator: clientKey }, undefined, FORWARDED_FOR],
    ['a proxy that is added later', 1, {}, undefined, {}, FORWARDED_FOR],
    ['a client without a proxy', 0, {}, undefined, {}],
    ['a trusted proxy', 0, {}, 1, FORWARDED_FOR],
    ['a proxy trusted by address', 0, {}, 'loopback', FORWARDED_FOR],
    ['a key without an address', 0, { keyGenerator: () => 'k' }, true, FORWARDED_FOR],
  ])('of %s comes %i times', async (_what, times, ...asked) => {
    expect(await codesOf(...asked)).toEqual(Array(times).fill('ROLLGATE_X_FORWARDED_FOR'));
  });

  test.each([
    [(req) => req.ip, ['ROLLGATE_BARE_IP_KEY']],
    [(request) => `${request.ip} ${request.method}`, ['ROLLGATE_BARE_IP_KEY']],
    [(req) => ipKeyGenerator(req.ip), []],
    [(req) => req.ipAddress, []],
  ])('comes for keyGenerator %s: %p', async (keyGenerator, expected) => {
    expect(await codesOf({ keyGenerator })).toEqual(expected);
  });

  test('is one of the process without a logger, with a link', async () => {
    const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
    await codesOf({ logger: undefined }, true, {});
    const options = { type: 'RollgateWarning', code: 'ROLLGATE_TRUST_PROXY' };
    const link = expect.stringContaining('docs/errors.md#rollgate_trust_proxy');
    expect(warn.mock.calls).toEqual([[link, options]]);
    warn.mockRestore();
  });
});
