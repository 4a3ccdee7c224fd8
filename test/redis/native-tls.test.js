// TLS of the native client: with a hiredis that has it, real connections; without, what users are told.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const RateLimiter = require('../../lib');
const { redisHasTls } = require('../../lib/native').loadAddon();
const { startRedis } = require('../support/redis-server');

const CERTIFICATES = path.join(__dirname, '../support/certificates');
const fileOf = (name) => path.join(CERTIFICATES, name);
const pemOf = (name) => fs.readFileSync(fileOf(name), 'utf8');

/** The first of the candidates that `use` does not reject. */
async function firstThatWorks(candidates, use) {
  let last;
  for (const candidate of candidates()) {
    try {
      await use(candidate);
      return candidate;
    } catch (error) {
      last = error;
    }
  }
  throw last;
}

const limiterOn = (redis) => RateLimiter({ interval: 60_000, maxInInterval: 2, redis });
const withTls = redisHasTls ? describe : describe.skip;
const withoutTls = redisHasTls ? describe.skip : describe;

withoutTls('a build without TLS', () => {
  test.each([
    'rediss://localhost:6380',
    { host: 'localhost', tls: true },
    { cluster: ['rediss://localhost:6380'] },
  ])('refuses it at construction, and names the ways out: %j', (redis) => {
    expect(() => limiterOn(redis)).toThrow(
      expect.objectContaining({
        code: 'ERR_ROLLGATE_UNSUPPORTED',
        message: expect.stringMatching(/no TLS.*ioredis or redis \(node-redis\).*tunnel/s),
      }),
    );
  });
});

withTls('TLS', () => {
  let url;
  const limiters = [];
  const open = (redis) => {
    limiters.push(limiterOn({ commandTimeout: 3000, ...redis }));
    return limiters.at(-1);
  };
  const ca = pemOf('ca.pem');

  beforeAll(async () => {
    const server = await startRedis({
      args: [
        ...['--tls-port', '0'],
        ...['--tls-cert-file', fileOf('localhost.pem'), '--tls-key-file', fileOf('localhost.key')],
        ...['--tls-ca-cert-file', fileOf('ca.pem'), '--tls-auth-clients', 'optional'],
      ],
    });
    // A second port, with TLS; the first one stays for what the test asks of the server.
    const tlsPort = await firstThatWorks(
      function* () {
        for (let port = server.port + 10_001; port < server.port + 10_100; port++) yield port;
      },
      (port) => server.command('CONFIG', 'SET', 'tls-port', String(port)),
    );
    url = `rediss://localhost:${tlsPort}`;
  });

  afterEach(async () => {
    await Promise.all(limiters.splice(0).map((limiter) => limiter.close()));
  });

  test('limits over a server that its authority vouches for, by name and by address', async () => {
    const byName = open({ url, tls: { ca } });
    expect([await byName('a'), await byName('a')]).toEqual([0, 0]);
    expect(await byName('a')).toBeGreaterThan(0);
    const byAddress = open({ url: url.replace('localhost', '127.0.0.1'), tls: { ca: [ca] } });
    expect(await byAddress('a')).toBe(0);
  });

  test('many calls at once, with long ids', async () => {
    const limiter = open({ url, tls: { ca } });
    const ids = Array.from({ length: 3000 }, (_, i) => 'x'.repeat(i % 500) + i);
    expect(new Set(await Promise.all(ids.map((id) => limiter(id))))).toEqual(new Set([0]));
  });

  test.each([
    ['an authority that is not known', {}],
    ['another name', { ca, servername: 'elsewhere.example' }],
  ])('refuses a server with %s', async (_, tls) => {
    await expect(open({ url, tls })('a')).rejects.toMatchObject({
      code: 'ERR_ROLLGATE_REDIS_UNREACHABLE',
      message: expect.stringContaining('certificate verify failed'),
    });
  });

  test('rejectUnauthorized: false takes any server', async () => {
    expect(await open({ url, tls: { rejectUnauthorized: false } })('a')).toBe(0);
  });

  test('shows a certificate of its own', async () => {
    const own = { cert: pemOf('localhost.pem'), key: Buffer.from(pemOf('localhost.key')) };
    expect(await open({ url, tls: { ca, ...own } })('a')).toBe(0);
  });

  test.each([
    ['ca', { ca: 'no certificate' }],
    ['cert', { cert: 'no certificate' }],
    ['key', { key: 'no key' }],
  ])('says that %s makes no sense, without showing it', (name, tls) => {
    expect(() => open({ url, tls })).toThrow(
      expect.objectContaining({
        name: 'TypeError',
        code: 'ERR_ROLLGATE_OPTION',
        message: expect.stringMatching(new RegExp(`^option 'redis.tls': ${name}: `)),
      }),
    );
  });

  test('refuses options that it does not know', () => {
    expect(() => open({ url, tls: { ca, minVersion: 'TLSv1.3' } })).toThrow(
      expect.objectContaining({ code: 'ERR_ROLLGATE_OPTION' }),
    );
  });
});
