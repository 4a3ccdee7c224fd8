// The native client's connection: when it is opened, how it logs in, where it goes, and TLS.
'use strict';

const os = require('node:os');
const { Registry } = require('prom-client');
const { registerMetrics } = require('../../lib/metrics');
const { redisHasTls } = require('../../lib/native').loadAddon();
const { errorOf, outcomeOf, waitUntil } = require('../support/outcome');
const { clientsNamed, nativeLimiter } = require('../support/redis-clients');
const { pemOf, startRedis, startRedisWithTls } = require('../support/redis-server');
const { runProgram } = require('../support/run-program');
const peers = require('../support/tcp-peers');

const HAS_IPV6 = Object.values(os.networkInterfaces())
  .flat()
  .some(({ address }) => address === '::1');

let server;

beforeAll(async () => {
  server = await startRedis({ args: ['--bind', '127.0.0.1', '-::1'] });
});

const atServer = (more) => ({ host: '127.0.0.1', port: server.port, ...more });

describe('first use', () => {
  test('connects, the constructor does not', async () => {
    const peer = await peers.closingPeer();
    nativeLimiter(peer.url).stats();
    const limiter = nativeLimiter(atServer({ connectionName: 'first-use' }));
    expect(limiter.stats().connection).toEqual({ isUp: false, pending: 0, connections: 0 });
    expect(await clientsNamed(server, 'first-use')).toEqual([]);
    expect(peer.connections).toBe(0);
    await Promise.all([limiter('a'), limiter.peek('a')]);
    expect(limiter.stats().connection).toEqual({ isUp: true, pending: 0, connections: 1 });
    expect(await clientsNamed(server, 'first-use')).toHaveLength(1);
  });

  test('finds out that a host does not exist, the constructor does not', async () => {
    for (const host of ['no-such-host.invalid', 'x'.repeat(300), '1.2.3.4.5', 'a:b']) {
      const error = await errorOf(nativeLimiter({ host })('a'));
      expect(error.code).toBe('ERR_ROLLGATE_REDIS_UNREACHABLE');
      expect(error.message).toContain(`looking up '${host}'`);
    }
  });

  test('a name that the server does not take is an error like any other', async () => {
    const peer = await peers.scriptedPeer(([command]) => {
      return command === 'CLIENT' ? '-ERR no names here\r\n' : '*1\r\n:0\r\n';
    });
    const error = await errorOf(nativeLimiter({ url: peer.url, connectionName: 'me' })('a'));
    expect(error.code).toBe('ERR_ROLLGATE_REDIS_REPLY');
    expect(error.cause.message).toContain('no names here');
  });

  test('fails at once where nobody listens, and metrics tell', async () => {
    const limiter = nativeLimiter('redis://127.0.0.1:1', { onError: 'allow' });
    const register = new Registry();
    const metrics = registerMetrics({ limiters: { api: limiter }, register });
    expect(await limiter('a')).toBe(0);
    const lines = await register.metrics();
    metrics.unregister();
    expect(lines).toContain(
      'rollgate_redis_call_duration_seconds_count{limiter="api",outcome="error"} 1',
    );
    expect(lines).toContain('rollgate_redis_up{limiter="api"} 0');
    expect(lines).toContain('rollgate_fallbacks_total{limiter="api"} 1');
  });
});

describe('a login', () => {
  let locked;
  beforeAll(async () => {
    locked = await startRedis({ password: 'open sesame/@:' });
    await locked.command('ACL', 'SETUSER', 'alibaba', 'on', '>forty:@/thieves', '~*', '+@all');
  });

  const atLocked = (more) => ({ host: '127.0.0.1', port: locked.port, ...more });

  test('by name and password, in a URL or as options', async () => {
    const url = `redis://alibaba:forty%3A%40%2Fthieves@127.0.0.1:${locked.port}`;
    const credentials = { username: 'alibaba', password: 'forty:@/thieves' };
    const fromUrl = nativeLimiter({ url, connectionName: 'ali' });
    const fromOptions = nativeLimiter(atLocked({ ...credentials, connectionName: 'ali' }));
    expect(await Promise.all([fromUrl('a'), fromOptions('a')])).toEqual([0, 0]);
    const list = await locked.command('CLIENT', 'LIST');
    expect(list.match(/name=ali .*user=alibaba/g)).toHaveLength(2);
  });

  test('that fails says so to every call, and never the password', async () => {
    const wrong = [
      atLocked({ password: 'Simsim' }),
      atLocked({ username: 'kasim', password: 'Simsim' }),
      `redis://kasim:Simsim@127.0.0.1:${locked.port}`,
      atServer({ username: 'kasim', password: 'Simsim' }),
      atServer({ password: 'Simsim' }),
    ];
    for (const redis of wrong) {
      const limiter = nativeLimiter(redis);
      const errors = await Promise.all(
        [limiter('a'), limiter('b'), limiter.clear('a')].map(errorOf),
      );
      errors.push(await errorOf(limiter('a')));
      for (const error of errors) {
        expect(error.code).toBe('ERR_ROLLGATE_REDIS_AUTH');
        expect(everythingIn(error)).not.toContain('Simsim');
      }
    }
  });

  test('is not shown even where a server repeats it', async () => {
    const replies = [
      "-ERR unknown command 'AUTH', with args beginning with: 'Simsim' \r\n",
      '-ERR unknown command `AUTH`, with args beginning with: `kasim`, `Simsim`, \r\n',
    ];
    for (const reply of replies) {
      const peer = await peers.scriptedPeer(() => reply);
      const error = await errorOf(nativeLimiter({ url: peer.url, password: 'Simsim' })('a'));
      expect(error.code).toMatch(/^ERR_ROLLGATE_REDIS_/);
      expect(everythingIn(error)).not.toContain('Simsim');
    }
  });

  test('is tried again once the password is right', async () => {
    const retry = { min: 20, max: 100 };
    const limiter = nativeLimiter(atServer({ username: 'morgiana', password: 'oil', retry }));
    expect(await outcomeOf(limiter('a'))).toBe('ERR_ROLLGATE_REDIS_AUTH');
    await server.command('ACL', 'SETUSER', 'morgiana', 'on', '>oil', '~*', '+@all');
    await waitUntil('she is let in', async () => (await limiter('a')) === 0);
  });
});

/** An error with its causes, and their stacks, as one text. */
function everythingIn(error) {
  if (!(error instanceof Object)) return '';
  const own = Object.getOwnPropertyNames(error).map((name) => String(error[name]));
  return [...own, everythingIn(error.cause)].join('\n');
}

describe('where it goes', () => {
  test('a database, by URL, by option, or by both with the option first', async () => {
    const places = [
      [`${server.url}/3`, 3],
      [atServer({ db: 4 }), 4],
      [{ url: `${server.url}/3`, db: 5 }, 5],
    ];
    for (const [redis, db] of places) {
      const connectionName = `db-${db}`;
      const options = typeof redis === 'string' ? { url: redis } : redis;
      expect(await nativeLimiter({ ...options, connectionName })('a')).toBe(0);
      expect(await clientsNamed(server, connectionName)).toMatchObject([{ db: String(db) }]);
    }
  });

  test('a database that is not there is an error', async () => {
    const error = await errorOf(nativeLimiter(`${server.url}/9999`)('a'));
    expect(error.code).toBe('ERR_ROLLGATE_REDIS_REPLY');
    expect(error.message).toContain('DB index is out of range');
  });

  test('a unix socket', async () => {
    const local = await startRedis({ unixSocket: true, password: 'pass' });
    expect(await nativeLimiter(local.url)('a')).toBe(0);
    expect(await nativeLimiter({ path: local.socketPath, password: 'pass', db: 1 })('a')).toBe(0);
    await local.stop();
    const error = await errorOf(nativeLimiter(local.url)('a'));
    expect(error.code).toBe('ERR_ROLLGATE_REDIS_UNREACHABLE');
    expect(error.message).toContain(local.socketPath);
  });

  test('localhost, whichever of its addresses answers', async () => {
    const peer = await peers.scriptedPeer(() => '*1\r\n:0\r\n'); // on IPv4 alone
    const redis = { host: 'localhost', connectionName: 'by-name' };
    expect(await nativeLimiter({ ...redis, port: server.port })('a')).toBe(0);
    expect(await nativeLimiter({ host: 'localhost', port: peer.port })('a')).toBe(0);
    expect(await clientsNamed(server, 'by-name')).toHaveLength(1);
  });

  (HAS_IPV6 ? test : test.skip)('an IPv6 address', async () => {
    expect(await nativeLimiter(`redis://[::1]:${server.port}`)('a')).toBe(0);
    expect(await nativeLimiter({ host: '::1', port: server.port })('a')).toBe(0);
  });
});

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
    const set = (index, value) => {
      Atomics.store(shared, index, value);
      Atomics.notify(shared, index);
    };
    const ALERT = Buffer.from([21, 3, 3, 0, 2, 2, 40]); // fatal: handshake_failure
    const server = require('node:net').createServer((socket) => {
      socket.on('error', () => {});
      socket.write(ALERT, () => set(1, 1));
    });
    server.listen(0, '127.0.0.1', () => set(0, server.address().port));
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

const withTls = redisHasTls ? describe : describe.skip;
const withoutTls = redisHasTls ? describe.skip : describe;

withoutTls('a build without TLS', () => {
  test.each([
    'rediss://localhost:6380',
    { host: 'localhost', tls: true },
    { cluster: ['rediss://localhost:6380'] },
  ])('refuses it at construction, and names the ways out: %j', (redis) => {
    expect(() => nativeLimiter(redis)).toThrow(
      expect.objectContaining({
        code: 'ERR_ROLLGATE_UNSUPPORTED',
        message: expect.stringMatching(/no TLS.*ioredis or redis \(node-redis\).*tunnel/s),
      }),
    );
  });
});

withTls('TLS', () => {
  let url;
  const ca = pemOf('ca.pem');

  beforeAll(async () => {
    ({ url } = await startRedisWithTls());
  });

  test.each([
    ['that its authority vouches for, by name', 'localhost', { ca }],
    ['that its authority vouches for, by address', '127.0.0.1', { ca: [ca] }],
    ['that is not to be checked', 'localhost', { rejectUnauthorized: false }],
    [
      'and shows a certificate of its own',
      'localhost',
      { ca, cert: pemOf('localhost.pem'), key: Buffer.from(pemOf('localhost.key')) },
    ],
  ])('limits over a server %s', async (_, host, tls) => {
    const limiter = nativeLimiter({ url: url.replace('localhost', host), tls });
    expect([await limiter('a'), await limiter('a')]).toEqual([0, 0]);
    expect(await limiter('a')).toBeGreaterThan(0);
  });

  test('many calls at once, with long ids', async () => {
    const limiter = nativeLimiter({ url, tls: { ca } });
    const ids = Array.from({ length: 3000 }, (_, i) => 'x'.repeat(i % 500) + i);
    expect(new Set(await Promise.all(ids.map((id) => limiter(id))))).toEqual(new Set([0]));
  });

  test.each([
    ['an authority that is not known', {}],
    ['another name', { ca, servername: 'elsewhere.example' }],
  ])('refuses a server with %s', async (_, tls) => {
    await expect(nativeLimiter({ url, tls })('a')).rejects.toMatchObject({
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

  test.each([
    ['ca', { ca: 'no certificate' }],
    ['cert', { cert: 'no certificate' }],
    ['key', { key: 'no key' }],
  ])('says that %s makes no sense, without showing it', (name, tls) => {
    expect(() => nativeLimiter({ url, tls })).toThrow(
      expect.objectContaining({
        name: 'TypeError',
        code: 'ERR_ROLLGATE_OPTION',
        message: expect.stringMatching(new RegExp(`^option 'redis.tls': ${name}: `)),
      }),
    );
  });

  test('refuses options that it does not know', () => {
    expect(() => nativeLimiter({ url, tls: { ca, minVersion: 'TLSv1.3' } })).toThrow(
      expect.objectContaining({ code: 'ERR_ROLLGATE_OPTION' }),
    );
  });
});
