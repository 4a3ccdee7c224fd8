// The native client's connection: when it is opened, how it logs in, and where it goes.
'use strict';

const os = require('node:os');
const { Registry } = require('prom-client');
const { registerMetrics } = require('../../lib/adapters/metrics');
const { errorOf, everythingIn, outcomeOf, waitUntil } = require('../support/outcome');
const { clientsNamed, nativeLimiter } = require('../support/redis-clients');
const { redisForTests, startRedis } = require('../support/redis-server');
const { allSlotsAt } = require('../support/resp');
const peers = require('../support/tcp-peers');

const HAS_IPV6 = Object.values(os.networkInterfaces())
  .flat()
  .some(({ address }) => address === '::1');

const server = redisForTests({ args: ['--bind', '127.0.0.1', '-::1'] });

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
    expect(list.match(/name=ali .*user=alibaba/g)).toHaveLength(1); // which they share
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

  test('that is not answered is in the message of a call that times out', async () => {
    const { url } = await peers.silentPeer();
    const error = await errorOf(nativeLimiter({ url, password: 'p', commandTimeout: 100 })('a'));
    expect(error.code).toBe('ERR_ROLLGATE_REDIS_TIMEOUT');
    expect(error.message).toContain('still connecting');
  });

  test('is tried again once the password is right', async () => {
    const retry = { min: 20, max: 100 };
    const limiter = nativeLimiter(atServer({ username: 'morgiana', password: 'oil', retry }));
    expect(await outcomeOf(limiter('a'))).toBe('ERR_ROLLGATE_REDIS_AUTH');
    await server.command('ACL', 'SETUSER', 'morgiana', 'on', '>oil', '~*', '+@all');
    await waitUntil('she is let in', async () => (await limiter('a')) === 0);
  });
});

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

  test('an IPv6 address has brackets in messages', async () => {
    const { port } = await peers.gonePeer();
    const move = `-MOVED 15495 ::1:${port}\r\n`;
    const seed = await peers.scriptedPeer(([command]) =>
      command === 'CLUSTER' ? allSlotsAt(null, seed.port) : move,
    );
    const owner = await peers.scriptedPeer(() => allSlotsAt('::1', port));
    for (const redis of [
      { host: '::1', port },
      { sentinels: [{ host: '::1', port }], name: 'm' },
      { cluster: [seed.url] },
      { cluster: [owner.url] },
    ]) {
      const { message } = await errorOf(nativeLimiter(redis)('a'));
      expect(message.split(`[::1]:${port}: `)).toHaveLength(2);
    }
  });
});
