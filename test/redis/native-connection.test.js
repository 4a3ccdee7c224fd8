// The native client's connection: when it is opened, how it logs in, and how it comes back.
'use strict';

const os = require('node:os');
const { clientsNamed, nativeLimiter } = require('../support/native-redis');
const { errorOf, outcomeOf } = require('../support/outcome');
const { startRedis } = require('../support/redis-server');
const peers = require('../support/tcp-peers');
const { waitUntil } = require('../support/wait-until');

const HAS_IPV6 = Object.values(os.networkInterfaces())
  .flat()
  .some(({ address }) => address === '::1');

let server;
let opened = [];

beforeAll(async () => {
  server = await startRedis({ args: ['--bind', '127.0.0.1', '-::1'] });
});

afterEach(async () => {
  await Promise.all(opened.map((limiter) => limiter.close()));
  opened = [];
});

function limiterAt(redis, options) {
  const limiter = nativeLimiter(redis, options);
  opened.push(limiter);
  return limiter;
}

const atServer = (more) => ({ host: '127.0.0.1', port: server.port, ...more });

describe('first use', () => {
  test('connects, the constructor does not', async () => {
    const peer = await peers.closingPeer();
    limiterAt(peer.url).stats();
    const limiter = limiterAt(atServer({ connectionName: 'first-use' }));
    expect(limiter.stats().connection).toEqual({ isUp: false, pending: 0, connections: 0 });
    expect(await clientsNamed(server, 'first-use')).toEqual([]);
    expect(peer.connections).toBe(0);
    await Promise.all([limiter('a'), limiter.peek('a')]);
    expect(limiter.stats().connection).toEqual({ isUp: true, pending: 0, connections: 1 });
    expect(await clientsNamed(server, 'first-use')).toHaveLength(1);
  });

  test('finds out that a host does not exist, the constructor does not', async () => {
    for (const host of ['no-such-host.invalid', 'x'.repeat(300), '1.2.3.4.5', 'a:b']) {
      const error = await errorOf(limiterAt({ host })('a'));
      expect(error.code).toBe('ERR_ROLLGATE_REDIS_UNREACHABLE');
      expect(error.message).toContain(`looking up '${host}'`);
    }
  });
});

describe('a login', () => {
  let locked;
  beforeAll(async () => {
    locked = await startRedis({ password: 'open sesame/@:' });
    await locked.command('ACL', 'SETUSER', 'alibaba', 'on', '>forty:@/thieves', '~*', '+@all');
  });

  const atLocked = (more) => ({ host: '127.0.0.1', port: locked.port, ...more });

  test('by password alone, in a URL or as an option', async () => {
    for (const redis of [locked.url, atLocked({ password: 'open sesame/@:' })]) {
      expect(await limiterAt(redis)('a')).toBe(0);
    }
  });

  test('by name and password, in a URL or as options', async () => {
    const url = `redis://alibaba:forty%3A%40%2Fthieves@127.0.0.1:${locked.port}`;
    const credentials = { username: 'alibaba', password: 'forty:@/thieves' };
    const fromUrl = limiterAt({ url, connectionName: 'ali' });
    const fromOptions = limiterAt(atLocked({ ...credentials, connectionName: 'ali' }));
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
      const limiter = limiterAt(redis);
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
      const error = await errorOf(limiterAt({ url: peer.url, password: 'Simsim' })('a'));
      expect(error.code).toMatch(/^ERR_ROLLGATE_REDIS_/);
      expect(everythingIn(error)).not.toContain('Simsim');
    }
  });

  test('is tried again once the password is right', async () => {
    const retry = { min: 20, max: 100 };
    const limiter = limiterAt(atServer({ username: 'morgiana', password: 'oil', retry }));
    expect(await outcomeOf(limiter('a'))).toBe('ERR_ROLLGATE_REDIS_AUTH');
    await server.command('ACL', 'SETUSER', 'morgiana', 'on', '>oil', '~*', '+@all');
    await waitUntil('she is let in', async () => (await limiter('a')) === 0, { withinMs: 2000 });
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
      expect(await limiterAt({ ...options, connectionName })('a')).toBe(0);
      expect(await clientsNamed(server, connectionName)).toMatchObject([{ db: String(db) }]);
    }
  });

  test('a database that is not there is an error', async () => {
    const error = await errorOf(limiterAt(`${server.url}/9999`)('a'));
    expect(error.code).toBe('ERR_ROLLGATE_REDIS_REPLY');
    expect(error.message).toContain('DB index is out of range');
  });

  test('a unix socket', async () => {
    const local = await startRedis({ unixSocket: true, password: 'pass' });
    expect(await limiterAt(local.url)('a')).toBe(0);
    expect(await limiterAt({ path: local.socketPath, password: 'pass', db: 1 })('a')).toBe(0);
    await local.stop();
    const error = await errorOf(limiterAt(local.url)('a'));
    expect(error.code).toBe('ERR_ROLLGATE_REDIS_UNREACHABLE');
    expect(error.message).toContain(local.socketPath);
  });

  test('localhost, whichever of its addresses answers', async () => {
    const peer = await peers.scriptedPeer(() => '*1\r\n:0\r\n'); // on IPv4 alone
    const redis = { host: 'localhost', connectionName: 'by-name' };
    expect(await limiterAt({ ...redis, port: server.port })('a')).toBe(0);
    expect(await limiterAt({ host: 'localhost', port: peer.port })('a')).toBe(0);
    expect(await clientsNamed(server, 'by-name')).toHaveLength(1);
  });

  (HAS_IPV6 ? test : test.skip)('an IPv6 address', async () => {
    expect(await limiterAt(`redis://[::1]:${server.port}`)('a')).toBe(0);
    expect(await limiterAt({ host: '::1', port: server.port })('a')).toBe(0);
  });
});

describe('coming back', () => {
  const connectionsOf = (limiter) => limiter.stats().connection.connections;

  test('at once after the server has hung up', async () => {
    const limiter = limiterAt(atServer({ connectionName: 'hung-up' }), { maxInInterval: 100 });
    await limiter('a');
    for (let round = 1; round <= 5; round++) {
      const [{ id }] = await clientsNamed(server, 'hung-up');
      await server.command('CLIENT', 'KILL', 'ID', id);
      await waitUntil('it is connected again', () => connectionsOf(limiter) === 1 + round);
      expect(await limiter('a')).toBe(0);
    }
    expect((await limiter.peek('a')).limits[0].used).toBe(7); // with the one peeked at
  });

  test('of itself after an outage, and no call fails from then on', async () => {
    const own = await startRedis();
    const redis = { url: own.url, retry: { min: 20, max: 100 } };
    const limiter = limiterAt(redis, { maxInInterval: 1000 });
    for (let round = 0; round < 3; round++) {
      expect(await limiter(`a${round}`)).toBe(0);
      await own.stop();
      expect(await outcomeOf(limiter('a'))).toBe('ERR_ROLLGATE_REDIS_UNREACHABLE');
      await own.restart();
      const calls = Array.from({ length: 50 }, (_, i) => limiter(`${round} ${i}`));
      expect(new Set(await Promise.all(calls))).toEqual(new Set([0]));
    }
  });

  test('tries grow apart, and calls meanwhile settle in time', async () => {
    const peer = await peers.closingPeer();
    const redis = { url: peer.url, commandTimeout: 200, retry: { min: 50, max: 2000 } };
    const limiter = limiterAt(redis);
    const began = performance.now();
    while (performance.now() - began < 2000) {
      const called = performance.now();
      expect(await outcomeOf(limiter('a'))).toMatch(/_UNREACHABLE$|_TIMEOUT$/);
      expect(performance.now() - called).toBeLessThan(200 + 150);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(peer.connections).toBeGreaterThan(3);
    expect(peer.connections).toBeLessThan(15);
  });

  test('a server that never answers is left for a new connection', async () => {
    const peer = await peers.silentPeer();
    const redis = { url: peer.url, commandTimeout: 50, connectTimeout: 100 };
    const limiter = limiterAt(redis);
    expect(await outcomeOf(limiter('a'))).toBe('ERR_ROLLGATE_REDIS_TIMEOUT');
    await waitUntil('it is connected anew', async () => {
      await outcomeOf(limiter('a'));
      return peer.connections >= 2 && peer.openConnections === 1;
    });
  });

  test('a name that the server does not take is an error like any other', async () => {
    const peer = await peers.scriptedPeer(([command]) => {
      return command === 'CLIENT' ? '-ERR no names here\r\n' : '*1\r\n:0\r\n';
    });
    const error = await errorOf(limiterAt({ url: peer.url, connectionName: 'me' })('a'));
    expect(error.code).toBe('ERR_ROLLGATE_REDIS_REPLY');
    expect(error.cause.message).toContain('no names here');
  });
});
