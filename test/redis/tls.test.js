// TLS of the native client: whom it trusts, what it negotiates, and what it makes of broken connections.
'use strict';

const { createPrivateKey } = require('node:crypto');
const tls = require('node:tls');
const { errorOf, outcomeOf, waitUntil } = require('../support/outcome');
const { nativeLimiter } = require('../support/redis-clients');
const { startRedis, startRedisWithTls } = require('../support/redis-server');
const { catchError } = require('../support/set-up');
const peers = require('../support/tcp-peers');
const { all, patient } = require('../support/tiers');
const { makeAuthority, startForeignServer } = require('../support/tls-servers');
const { randomFrom } = require('../support/traces');

const UNREACHABLE = 'ERR_ROLLGATE_REDIS_UNREACHABLE';
const authority = makeAuthority();
const other = makeAuthority();
const good = authority.issue();
const { ca } = authority;
const at = (port, tls = { ca }, more = {}) => ({ url: `rediss://127.0.0.1:${port}`, tls, ...more });

/** A Redis with TLS whose certificate is `good`. */
const startGood = (...args) =>
  startRedisWithTls(
    ...['--tls-cert-file', good.certFile, '--tls-key-file', good.keyFile],
    ...['--tls-ca-cert-file', authority.caFile, ...args],
  );

/** The message of the error with which the first call fails. */
async function refusalOf(redis) {
  const error = await errorOf(nativeLimiter(redis)('a'));
  expect(error.code).toBe(UNREACHABLE);
  return error.message;
}

async function expectLimits(redis) {
  const limiter = nativeLimiter(redis);
  expect([await limiter('a'), await limiter('a')]).toEqual([0, 0]);
  expect(await limiter('a')).toBeGreaterThan(0);
}

let redis;
beforeAll(async () => {
  redis = await startGood();
});

describe('a server is trusted', () => {
  test.each([
    ['by its name', 'localhost', { ca }],
    ['by its address', '127.0.0.1', { ca: [other.ca, ca] }],
    ['by a name that is not the host', '127.0.0.1', { ca, servername: 'localhost' }],
    ['unchecked', 'localhost', { rejectUnauthorized: false }],
    ['by a check of the user', 'localhost', { ca, servername: 'x', checkServerIdentity: () => {} }],
    ['by a context of the user', '127.0.0.1', { secureContext: tls.createSecureContext({ ca }) }],
  ])('%s', async (_, host, tls) => {
    await expectLimits({ url: `rediss://${host}:${redis.port}`, tls });
  });

  test('for many calls at once, with long ids', async () => {
    const limiter = nativeLimiter(at(redis.port));
    const ids = Array.from({ length: 3000 }, (_, i) => 'x'.repeat(i % 500) + i);
    expect(new Set(await Promise.all(ids.map((id) => limiter(id))))).toEqual(new Set([0]));
  });

  test('through a network that delivers single bytes', async () => {
    const peer = await peers.tricklingPeer(redis.port);
    await expectLimits(at(peer.port));
  });
});

describe('a server is not trusted', () => {
  // Kills: an exception of the user's check, or of node:tls, that ends the process.
  test('for an exception', async () => {
    const checkServerIdentity = () => {
      throw new Error('nobody is trusted');
    };
    expect(await refusalOf(at(redis.port, { ca, checkServerIdentity }))).toMatch(/nobody is/);
    const context = { secureContext: { context: 5 } };
    expect(await refusalOf(at(redis.port, context))).toMatch(/cannot be reached/);
  });

  test.each([
    ['unknown authority', () => other.issue(), /unable to verify/],
    ['another name', () => authority.issue('DNS:elsewhere.example'), /not in the cert's list/],
    ['another address', () => authority.issue('IP:127.0.0.2'), /not in the cert's list/],
  ])('%s', async (_, makeCertificate, reason) => {
    const message = await refusalOf(at(await startForeignServer(makeCertificate())));
    expect(message).toContain('certificate verify failed: ');
    expect(message).toMatch(reason);
  });

  test('by the authorities that Node trusts, or by another servername', async () => {
    expect(await refusalOf(at(redis.port, {}))).toContain('certificate verify failed: ');
    const tls = { ca, servername: 'elsewhere.example' };
    expect(await refusalOf(at(redis.port, tls))).toContain("not in the cert's altnames");
  });
});

// Kills: a context for each question to a Sentinel, which takes long with many authorities.
test('Sentinels and master have one context', async () => {
  const createSecureContext = jest.spyOn(tls, 'createSecureContext');
  const sentinels = ['127.0.0.1', 'localhost'].map((host) => ({ host, port: redis.port }));
  const limiter = nativeLimiter({ sentinels, name: 'm', tls: { ca } });
  expect((await errorOf(limiter('a'))).message).toMatch(/unknown command/i);
  expect(createSecureContext).toHaveBeenCalledTimes(1);
  createSecureContext.mockRestore();
});

describe('a client', () => {
  let strict;
  beforeAll(async () => {
    strict = await startGood('--tls-auth-clients', 'yes');
  });

  test('shows its certificate', async () => {
    const { cert, key } = authority.issue();
    await expectLimits(at(strict.port, { ca, cert, key: Buffer.from(key) }));
    const secret = { format: 'pem', type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'sesame' };
    const locked = { ca, cert, key: createPrivateKey(key).export(secret) };
    await expectLimits(at(strict.port, { ...locked, passphrase: 'sesame' }));
    for (const passphrase of [undefined, 'Simsim']) {
      const error = catchError(() => nativeLimiter(at(strict.port, { ...locked, passphrase })));
      expect(error.message).toMatch(/^option 'redis.tls': key: (?!.*Simsim)/);
    }
  });

  test('without the right one is refused', async () => {
    expect(await refusalOf(at(strict.port))).toMatch(/alert certificate required/);
    const { cert, key } = other.issue();
    expect(await refusalOf(at(strict.port, { ca, cert, key }))).toMatch(/alert unknown ca/);
  });
});

// Kills: an option that is blamed for the fault of another one, or not passed on.
test.each([
  ['ca', { ca: 'no certificate' }],
  ['ca', { ca: `${ca}-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n` }],
  ['cert', { cert: 'no certificate', key: good.key }],
  ['key', { cert: good.cert, key: other.issue().key }],
  ['ciphers', { ciphers: 'no-cipher' }],
  ['ecdhCurve', { ca, ecdhCurve: 'no-curve' }, 'Failed to set ECDH curve'],
  ['crl', { ca, crl: 'no list' }, 'Failed to parse CRL'],
  ['pfx', { ca, pfx: Buffer.from('no archive') }],
  ['sigalgs', { ca, sigalgs: 'no-algorithm' }],
])(
  '%s without sense is refused with the reason of node:tls, and not shown: %#',
  (name, tls, why = '') => {
    expect(() => nativeLimiter(at(redis.port, tls))).toThrow(
      expect.objectContaining({
        name: 'TypeError',
        code: 'ERR_ROLLGATE_OPTION',
        message: expect.stringMatching(new RegExp(`^option 'redis.tls': ${name}: ${why}[^-]*$`)),
      }),
    );
  },
);

describe('a server without anything in common', () => {
  test.each([
    ['versions', { maxVersion: 'TLSv1.2' }, { minVersion: 'TLSv1.3' }, /protocol/],
    [
      'ciphers',
      { maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-AES256-GCM-SHA384' },
      { ciphers: 'ECDHE-ECDSA-AES128-GCM-SHA256' },
      /handshake failure/,
    ],
    ['protocols', { ALPNProtocols: ['other'] }, { ALPNProtocols: ['redis'] }, /no application/],
  ])('%s', async (_, options, tls, reason) => {
    const port = await startForeignServer(good, options);
    expect(await refusalOf(at(port, { ca, ...tls }))).toMatch(reason);
  });
});

describe('a server that is not what the URL says', () => {
  const soon = { connectTimeout: patient(200) };

  test('speaks TLS, but is not Redis', async () => {
    const limiter = nativeLimiter(at(await startForeignServer(good)));
    for (const id of ['a', 'b']) expect((await errorOf(limiter(id))).code).toMatch(/^ERR_ROLLGATE/);
  });

  test('refuses TLS with an alert', async () => {
    const { port } = await peers.garbagePeer(Buffer.from([21, 3, 3, 0, 2, 2, 40]));
    expect(await refusalOf(at(port))).toContain('handshake failure');
  });

  test('answers without TLS', async () => {
    const { port } = await peers.garbagePeer();
    expect(await refusalOf(at(port))).toContain('does not speak TLS on this port');
  });

  test('is a port of Redis without TLS', async () => {
    const { port } = await startRedis();
    expect(await refusalOf(at(port, { ca }, soon))).toMatch(/TLS.*redis:\/\//);
  });

  test('has TLS, and the URL does not', async () => {
    expect(await refusalOf(`redis://127.0.0.1:${redis.port}`)).toContain('rediss://');
  });

  test('is silent in the handshake, from its beginning or later', async () => {
    const within = `no connection within ${soon.connectTimeout} ms`;
    const silent = await peers.silentPeer();
    const message = await refusalOf(at(silent.port, { ca }, soon));
    expect(message).toContain(within);
    expect(message).toContain('the TLS handshake was not completed');
    const fault = { from: 'server', kind: 'stall', at: 500 };
    const stalling = await peers.faultyPeer(redis.port, fault);
    const later = await refusalOf(at(stalling.port, { ca }, soon));
    expect(later).toContain(within);
    expect(later).toContain('the TLS handshake was not completed');
  });
});

describe('a broken connection ends in an error or a right answer, and heals', () => {
  const AT_ONCE = 8;
  const TIMES = {
    connectTimeout: patient(250),
    commandTimeout: patient(500),
    retry: { min: 1, max: 20 },
  };
  const ENDS = [0, UNREACHABLE, 'ERR_ROLLGATE_REDIS_TIMEOUT'];
  /** How many bytes pass until the first answer has come. */
  let passed;

  beforeAll(async () => {
    const peer = await peers.faultyPeer(redis.port);
    await nativeLimiter(at(peer.port))('a');
    passed = peer.passed;
  });

  /** A call through a peer with this fault, and then through the same peer without it. */
  async function expectHealing(fault) {
    const peer = await peers.faultyPeer(redis.port, fault);
    const limiter = nativeLimiter(at(peer.port, { ca }, TIMES));
    expect(ENDS).toContain(await outcomeOf(limiter('a')));
    peer.heal();
    await waitUntil(`calls succeed after ${JSON.stringify(fault)}`, async () => {
      return Number.isInteger(await limiter('healed'));
    });
    await limiter.close();
    await peer.close();
  }

  /** Every fourth offset, in the fast tier every 16th, from a random one. */
  function offsetsBelow(end) {
    const step = all ? 4 : 16;
    const first = randomFrom(end).between(0, step - 1);
    return Array.from({ length: Math.ceil((end - first) / step) }, (_, i) => first + i * step);
  }

  test.each([
    ['flip', 'server'],
    ['flip', 'client'],
    ['close', 'server'],
    ['close', 'client'],
  ])(
    '%s any byte of the %s up to its first answer',
    async (kind, from) => {
      const faults = offsetsBelow(passed[from]).map((offset) => ({ kind, from, at: offset }));
      for (let i = 0; i < faults.length; i += AT_ONCE) {
        await Promise.all(faults.slice(i, i + AT_ONCE).map(expectHealing));
      }
    },
    600_000,
  );
});
