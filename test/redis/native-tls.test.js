// TLS of the native client: with a hiredis that has it, real connections; without, what users are told.
'use strict';

const RateLimiter = require('../../lib');
const { redisHasTls } = require('../../lib/native').loadAddon();
const { pemOf, startRedisWithTls } = require('../support/redis-tls');
const { runProgram } = require('../support/run-program');

/**
 * A server in a thread refuses TLS with an alert as soon as it is connected to. The client waits for that
 * with its event loop blocked, so that SSL_connect finds the alert in its first call.
 */
const REFUSED_AT_ONCE = `
  const { Worker } = require('node:worker_threads');
  const RateLimiter = require('rollgate');
  const PORT = 0;
  const REFUSED = 1;
  const shared = new Int32Array(new SharedArrayBuffer(8));

  function serve() {
    const { workerData: shared } = require('node:worker_threads');
    const tell = (index, value) => {
      Atomics.store(shared, index, value);
      Atomics.notify(shared, index);
    };
    const ALERT = Buffer.from([21, 3, 3, 0, 2, 2, 40]); // fatal: handshake_failure
    const server = require('node:net').createServer((socket) => {
      socket.on('error', () => {});
      socket.write(ALERT, () => tell(1, 1));
    });
    server.listen(0, '127.0.0.1', () => tell(0, server.address().port));
  }

  new Worker('(' + serve + ')()', { eval: true, workerData: shared }).unref();
  Atomics.wait(shared, PORT, 0);
  const limiter = RateLimiter({
    interval: 1000,
    maxInInterval: 2,
    redis: { url: 'rediss://127.0.0.1:' + shared[PORT], commandTimeout: 10_000 },
  });
  const cleared = limiter.clear('a'); // connects before it returns
  Atomics.wait(shared, REFUSED, 0);
  cleared.catch(async ({ code, message, cause }) => {
    console.log([code, message, cause.message].join('\\n'));
    await limiter.close();
  });
`;

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
    ({ url } = await startRedisWithTls());
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

  test('a handshake that fails at once rejects the call and leaves the process alive', async () => {
    const { code, signal, stdout, stderr } = await runProgram(REFUSED_AT_ONCE);
    expect({ code, signal, stderr }).toEqual({ code: 0, signal: null, stderr: '' });
    expect(stdout).toMatch(
      /^ERR_ROLLGATE_REDIS_UNREACHABLE\n.*handshake failure\n.*handshake failure\n$/,
    );
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
