// Who is counted: addresses and their subnets, authenticate, and warnings about addresses that may be wrong.
'use strict';

const { createHash } = require('node:crypto');
const http = require('node:http');
const { isIPv6 } = require('node:net');
const expressRateLimit = require('express-rate-limit');
const { ipKeyGenerator, rateLimit } = require('../..');
const { casesOf } = require('../support/tiers');
const { randomFrom } = require('../support/traces');
const apps = require('./apps');

const { FAILING, appWith, byHeaders, callDirectly, get, inTurn, newLogger, setUp, withCode } = apps;

describe('a keyGenerator with the parameter clientKey', () => {
  const keyGenerator = (req, _res, clientKey) => req.headers['x-user'] ?? clientKey();
  const keyOf = (options, req) =>
    callDirectly(rateLimit({ keyGenerator, ...options }), { headers: {}, ...req }).req.rateLimit
      .key;

  test('gets the default key of the request', () => {
    expect(keyOf({}, { ip: '2001:db8::1' })).toBe('2001:db8::/56');
    expect(keyOf({}, { ip: '2001:db8::1', headers: { 'x-user': 'ada' } })).toBe('ada');
  });

  test('leaves ipv6Subnet and trustProxy their meaning', () => {
    expect(keyOf({ ipv6Subnet: 64 }, { ip: '2001:db8::1' })).toBe('2001:db8::/64');
    const socket = { remoteAddress: '192.0.2.1' };
    const headers = { 'x-forwarded-for': '198.51.100.7' };
    expect(keyOf({ trustProxy: 1 }, { socket, headers })).toBe('198.51.100.7');
  });

  test('may get a promise of it', async () => {
    const middleware = rateLimit({ keyGenerator, ipv6Subnet: async () => 48 });
    const { req, returned } = callDirectly(middleware, { headers: {}, ip: '2001:db8::1' });
    await returned;
    expect(req.rateLimit.key).toBe('2001:db8::/48');
  });
});

describe('ipKeyGenerator', () => {
  const OTHERS = ['192.0.2.1', 'unknown', '192.0.2.1:8080', '', undefined, 'FE80::1%<script>'];
  test.each([
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::ffff:c000:201', '192.0.2.1'],
    ['::ffff:192.0.2.1%eth0', '192.0.2.1'],
    ['::192.0.2.1', '192.0.2.1'],
    ['::1', '::/56'],
    ['2001:db8:1:2ff:3:4:5:6', '2001:db8:1:200::/56'],
    ['fe80::1%eth0', 'fe80::/56'],
    ...OTHERS.map((other) => [other, other]),
  ])('%s has the key %s, which is the default key', async (ip, key) => {
    expect(ipKeyGenerator(ip)).toBe(key);
    if (!ip) return;
    for (const options of [{}, { ipv6Subnet: () => 56 }]) {
      const { req } = callDirectly(rateLimit({ validate: false, ...options }), { ip });
      expect(req.rateLimit.key).toBe(key);
    }
  });

  test.each([0, 129, -1, 56.5, Number.NaN, '56', true, null])('refuses %p bits', (bits) => {
    expect(() => ipKeyGenerator('2001:db8::1', bits)).toThrow(withCode('ERR_ROLLGATE_OPTION'));
  });

  /** An address in any spelling that a header or a socket may have, or nearly one. */
  function addressFrom({ between, chance, pick }) {
    const any = (low, high, make) => Array.from({ length: between(low, high) }, make);
    const byte = () => pick(['0', '1', '9', '10', '99', '127', '255', between(0, 255)]);
    const dotted = () => `${byte()}.${byte()}.${byte()}.${byte()}`;
    function group() {
      const hex = pick([0, 0, 0, 1, 0xff, 0xffff, between(0, 0xffff)]).toString(16);
      return chance(15) ? hex.padStart(4, '0') : hex;
    }
    const groups = (low, high) => any(low, high, group).join(':');
    const last = () => (chance(25) ? dotted() : groups(2, 2));
    const ipv6 = () =>
      pick([
        () => `${groups(6, 6)}:${last()}`,
        () => `${groups(0, 3)}::${groups(0, 4)}`,
        () => `${groups(0, 3)}::${chance(50) ? `${groups(1, 2)}:` : ''}${last()}`,
        () => `${groups(1, 7)}::`,
        () => `::${groups(1, 7)}`,
        () => `${pick(['::ffff:', '0:0:0:0:0:ffff:', '::', '64:ff9b::'])}${last()}`,
        () => `2001:db8:${groups(6, 6)}`,
        () => pick(['::', '::1', 'fe80::1', 'fe80::']),
      ])();
    const garbage = () => any(0, 9, () => pick([...'0123f:.%/[]g ', '::', '256', '01'])).join('');
    const address = pick([dotted, ipv6, ipv6, ipv6, ipv6, garbage])();
    const spelt = chance(15) ? address.toUpperCase() : address;
    const zone = chance(15) ? pick(['%eth0', '%1', '%en-0.1', '%', '%a b', '%<>', '%::1']) : '';
    return chance(5) ? `[${spelt}${zone}]:${between(1, 65535)}` : `${spelt}${zone}`;
  }

  // Stored counts are found by them, also by the next release.
  test('gives the keys that it has always given', () => {
    const random = randomFrom(1);
    const digest = createHash('sha256');
    for (let i = 0; i < 10_000; i++) {
      const bits = random.pick([undefined, false, 56, 64, random.between(32, 128)]);
      digest.update(`${ipKeyGenerator(addressFrom(random), bits)}\n`);
    }
    expect(digest.digest('hex')).toBe(
      '61890be434a5579c793b75909a1b58bb410dadd6987ee76bcc854c158e64939e',
    );
  });

  test('agrees with express-rate-limit on every IPv6 address', () => {
    const random = randomFrom(2);
    const addresses = Array.from({ length: casesOf(4000) }, () => addressFrom(random));
    const twoRunsOfZeros = '1:0:0:2:0:0:3:4';
    for (const ip of [twoRunsOfZeros, ...addresses]) {
      if (!isIPv6(ip)) continue;
      for (const bits of [128, random.pick([56, 64, 48, 32, 57, 1, 127, false])]) {
        const key = expressRateLimit.ipKeyGenerator(ip, bits);
        expect([ip, bits, ipKeyGenerator(ip, bits)]).toEqual([ip, bits, key]);
      }
    }
  });
});

describe('ipv6Subnet', () => {
  const ip = '2001:db8:1234:5678:9abc:def0:1234:5678';

  async function keyOf(ipv6Subnet, req) {
    const { calls, returned } = callDirectly(rateLimit({ validate: false, ipv6Subnet }), req);
    await returned;
    if (calls[0].length > 0) throw calls[0][0];
    return req.rateLimit.key;
  }

  test.each([
    [32, '2001:db8::/32'],
    [64, '2001:db8:1234:5678::/64'],
    [false, ip],
  ])('%p may be a value or come from a function', async (bits, key) => {
    for (const option of [bits, () => bits, async () => bits]) {
      expect(await keyOf(option, { ip })).toBe(key);
    }
    expect(await keyOf(undefined, { socket: { remoteAddress: ip } })).toMatch(/::\/56$/);
  });

  test('is asked with request and response, for IPv6 only', async () => {
    const ipv6Subnet = jest.fn((req) => req.bits);
    expect(await keyOf(ipv6Subnet, { ip: '192.0.2.1' })).toBe('192.0.2.1');
    expect(await keyOf(ipv6Subnet, {})).toBeUndefined();
    expect(ipv6Subnet).not.toHaveBeenCalled();
    const req = { ip, bits: 40 };
    expect(await keyOf(ipv6Subnet, req)).toBe('2001:db8:1200::/40');
    expect(ipv6Subnet.mock.calls).toEqual([[req, expect.objectContaining({ headersSent: false })]]);
  });

  test.each(FAILING(new Error('boom')))('as a function that %s is an error', async (_, fails) => {
    await expect(keyOf(fails, { ip })).rejects.toThrow('boom');
  });

  test.each([129, 0, 56.5, Number.NaN, '56', undefined, null, true])(
    'as a function must not return %p',
    async (bits) => {
      for (const option of [() => bits, async () => bits]) {
        await expect(keyOf(option, { ip })).rejects.toEqual(withCode('ERR_ROLLGATE_OPTION'));
      }
    },
  );
});

describe('trustProxy', () => {
  const CHAIN = { 'x-forwarded-for': '192.0.2.66, 198.51.100.7' };

  /** The key of a request that a server of node:http gets from this host, and the codes of warnings. */
  async function keyAndCodes(options, headers = CHAIN) {
    const logger = newLogger();
    const middleware = rateLimit({ logger, limit: 9, ...options });
    const server = http.createServer((req, res) => {
      middleware(req, res, (error) => res.end(JSON.stringify(error ?? req.rateLimit.key)));
    });
    const keys = await inTurn([1, 2], async () => (await get(server, '/', headers)).text);
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
  ])('%p gives the key %s', async (trustProxy, key, codes) => {
    expect(await keyAndCodes({ trustProxy })).toEqual([key, codes]);
  });

  test('a request without the header has the address of its connection, without a warning', async () => {
    for (const trustProxy of [undefined, 1]) {
      expect(await keyAndCodes({ trustProxy }, {})).toEqual(['127.0.0.1', []]);
    }
  });

  test('a function that gives a promise is an error of the request', () => {
    const middleware = rateLimit({ trustProxy: async () => false });
    const { calls } = callDirectly(middleware, {
      headers: CHAIN,
      socket: { remoteAddress: '::1' },
    });
    expect(calls).toEqual([[withCode('ERR_ROLLGATE_OPTION')]]);
  });

  test('an address that is none is warned about, also after good ones', async () => {
    const logger = newLogger();
    const middleware = rateLimit({ logger, trustProxy: 1, limit: 9 });
    const app = appWith(middleware);
    for (const address of ['192.0.2.1', 'unknown', 'unknown']) {
      await get(app, '/', { 'x-forwarded-for': address });
    }
    expect(logger.warn.mock.calls.map(([{ code }]) => code)).toEqual(['ROLLGATE_INVALID_IP']);
  });

  test("replaces Express' own setting", async () => {
    const app = appWith(rateLimit({ trustProxy: 1 }), (req, res) => res.json(req.rateLimit.key));
    expect((await get(app, '/', CHAIN)).body).toBe('198.51.100.7');
  });

  test('a request without headers or a connection has no address', () => {
    const { req } = callDirectly(rateLimit({ trustProxy: 1, validate: false }), {});
    expect(req.rateLimit.key).toBeUndefined();
  });
});

describe('authenticate', () => {
  const rules = [{ path: '/', group: 'staff', limit: 1 }];
  const NO_TOKEN = new Error('no token');

  test.each([byHeaders, async (req) => byHeaders(req)])(
    '%p gives the key',
    async (authenticate) => {
      const { ask, statuses } = setUp(undefined, { authenticate, limit: 1 });
      expect((await ask('/')).body.key).toBe('ada');
      expect(await statuses('/', ['/', { id: 'bob' }])).toEqual([429, 200]);
      const staff = ['/', { group: 'staff' }];
      expect(await setUp(rules, { authenticate }).statuses(staff, staff, '/')).toEqual([
        200, 429, 200,
      ]);
    },
  );

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
    for (const passOnStoreError of [false, true]) {
      for (const own of [rules, undefined]) {
        const { status, body } = await setUp(own, { authenticate, passOnStoreError }).ask('/');
        expect([status, body]).toEqual([500, error]);
      }
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

  test.each(FAILING(new Error('worse')))(
    'onAuthError that %s is one error',
    async (_, onAuthError) => {
      const req = { method: 'GET', url: '/', headers: {} };
      const { calls, returned } = callDirectly(rateLimit({ rules, ...fails, onAuthError }), req);
      await returned;
      expect(calls).toEqual([[new Error('worse')]]);
    },
  );
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
    for (const validate of [undefined, true, { [check]: true, default: false }]) {
      expect(await codesWith(validate)).toEqual([`ROLLGATE_${code}`]);
    }
    for (const validate of [{ [check]: false }, false]) {
      expect(await codesWith(validate)).toEqual([]);
    }
  });

  test.each([
    [31, ['ROLLGATE_IPV6_SUBNET']],
    [65, ['ROLLGATE_IPV6_SUBNET']],
    [32, []],
    [64, []],
    [false, []],
  ])('comes for the unusual ipv6Subnet %p: %p', async (ipv6Subnet, codes) => {
    expect(await codesOf({ ipv6Subnet }, undefined, {})).toEqual(codes);
    expect(await codesOf({ ipv6Subnet, validate: { ipv6Subnet: false } }, undefined)).toEqual([]);
  });

  test.each([
    ['undefined', () => undefined],
    ['undefined, later', async () => undefined],
    ['null, as of a missing header', (req) => new Headers(req.headers).get('x-user')],
  ])('comes once for a keyGenerator that gives %s', async (_what, keyGenerator) => {
    const code = 'ROLLGATE_UNDEFINED_KEY';
    expect(await codesOf({ keyGenerator }, undefined, {}, {})).toEqual([code]);
    const isOff = { keyGenerator, validate: { undefinedKey: false } };
    expect(await codesOf(isOff, undefined, {})).toEqual([]);
    expect(await codesOf({ keyGenerator: () => '' }, undefined, {})).toEqual([]);
  });

  test('comes for addresses that a keyGenerator takes as the default key', async () => {
    const keyGenerator = (_req, _res, clientKey) => clientKey();
    const codes = await codesOf({ keyGenerator }, undefined, FORWARDED_FOR);
    expect(codes).toEqual(['ROLLGATE_X_FORWARDED_FOR']);
  });

  test('comes for a proxy that is added later', async () => {
    const codes = await codesOf({}, undefined, {}, FORWARDED_FOR);
    expect(codes).toEqual(['ROLLGATE_X_FORWARDED_FOR']);
  });

  test.each([
    ['a client without a proxy', {}, undefined, {}],
    ['a trusted proxy', {}, 1, FORWARDED_FOR],
    ['a proxy trusted by address', {}, 'loopback', FORWARDED_FOR],
    ['a keyGenerator', { keyGenerator: () => 'k' }, true, { ...FORWARDED_FOR, ...FORWARDED }],
  ])('does not come for %s', async (_what, options, trust, headers) => {
    expect(await codesOf(options, trust, headers, headers)).toEqual([]);
  });

  test.each([
    [(req) => req.ip, true],
    [(request) => `${request.ip} ${request.method}`, true],
    [(req) => ipKeyGenerator(req.ip), false],
    [(req) => req.ipAddress, false],
    [(req) => req.get('x-key'), false],
  ])('comes for keyGenerator %s: %p', async (keyGenerator, isExpected) => {
    const expected = isExpected ? ['ROLLGATE_BARE_IP_KEY'] : [];
    expect(await codesOf({ keyGenerator }, undefined)).toEqual(expected);
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
