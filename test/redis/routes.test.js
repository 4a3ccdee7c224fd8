// How the native client finds its way to a server: credentials, the addresses of a name, Sentinels.
'use strict';

const { spawn } = require('node:child_process');
const dns = require('node:dns');
const { once } = require('node:events');
const net = require('node:net');
const RateLimiter = require('../..');
const { errorOf, everythingIn, outcomeOf, waitUntil } = require('../support/outcome');
const { clientsNamed, nativeLimiter } = require('../support/redis-clients');
const { redisForTests, startRedis } = require('../support/redis-server');
const { askProgram } = require('../support/run-program');
const { catchError } = require('../support/set-up');
const peers = require('../support/tcp-peers');
const { patient } = require('../support/tiers');

const AUTH = 'ERR_ROLLGATE_REDIS_AUTH';
const REPLY = 'ERR_ROLLGATE_REDIS_REPLY';
const UNREACHABLE = 'ERR_ROLLGATE_REDIS_UNREACHABLE';
const TIMEOUT = 'ERR_ROLLGATE_REDIS_TIMEOUT';
const GOOD = { interval: 60_000, maxInInterval: 2 };
const SECRET = 'Xyzzy';
const retry = { min: 1, max: 20 };

describe('credentials', () => {
  let locked;
  beforeAll(async () => {
    locked = await startRedis({ password: 'first' });
    await locked.command('ACL', 'SETUSER', 'alice', 'on', '>wonder', '~*', '+@all');
  });
  const limiterWith = (credentials, more) =>
    nativeLimiter({ port: locked.port, credentials, retry, ...more });

  test.each([
    ['a password', () => ({ password: 'first' }), 'default'],
    ['a user', () => ({ username: 'alice', password: 'wonder', more: 1 }), 'alice'],
    ['a promise', async () => ({ username: undefined, password: 'first' }), 'default'],
  ])('may be %s', async (what, credentials, user) => {
    const connectionName = what.replace(' ', '-');
    expect(await limiterWith(credentials, { connectionName })('a')).toBe(0);
    expect(await clientsNamed(locked, connectionName)).toMatchObject([{ user }]);
  });

  // Kills credentials that are asked once.
  test('are asked for each connection, so that a password may change', async () => {
    const server = await startRedis();
    await server.command('ACL', 'SETUSER', 'bob', 'on', '>one', '~*', '+@all');
    const passwords = ['one', 'two'];
    const limiter = nativeLimiter({
      ...{ port: server.port, connectionName: 'rotated', retry },
      credentials: async () => ({ username: 'bob', password: passwords.shift() }),
    });
    expect(await limiter('a')).toBe(0);
    await server.command('ACL', 'SETUSER', 'bob', 'resetpass', '>two');
    const [{ id }] = await clientsNamed(server, 'rotated');
    await server.command('CLIENT', 'KILL', 'ID', id);
    await waitUntil('it is connected again', async () => (await limiter('a')) === 0);
    expect(passwords).toEqual([]);
  });

  test.each([
    ['throws', () => Promise.reject(new Error('no vault')), 'no vault'],
    ['rejects without an Error', () => Promise.reject('no vault'), 'no vault'],
    ['rejects with nothing', () => Promise.reject(), 'failed'],
    ...[undefined, null, SECRET, [SECRET], { username: SECRET }, { password: '' }].map(nonsense),
    ...[{ password: [SECRET] }, { username: '', password: SECRET }].map(nonsense),
    ...[
      { username: 5, password: SECRET },
      { username: null, password: SECRET },
    ].map(nonsense),
  ])('that %s fail the calls, with a reason', async (_what, credentials, reason) => {
    for (const given of [credentials, async () => credentials()]) {
      const limiter = limiterWith(given);
      for (const call of [limiter('a'), limiter.clear('a')]) {
        const error = await errorOf(call);
        expect(error.code).toBe(AUTH);
        expect(error.message).toContain("option 'redis.credentials'");
        expect(error.message).toContain(reason);
        expect(everythingIn(error)).not.toContain(SECRET);
      }
    }
  });

  function nonsense(value) {
    return [`give ${JSON.stringify(value)}`, () => value, 'gave no { username?, password }'];
  }

  test('that throw at once fail the calls, and are asked again', async () => {
    let isReady = false;
    const limiter = limiterWith(() => {
      if (!isReady) throw new TypeError('not ready');
      return { password: 'first' };
    });
    expect(await errorOf(limiter('a'))).toMatchObject({ code: AUTH, cause: { name: 'TypeError' } });
    isReady = true;
    await waitUntil('it is connected', async () => (await limiter('a')) === 0);
  });

  test('that never come are an error within connectTimeout', async () => {
    const limiter = limiterWith(() => new Promise(() => {}), { connectTimeout: 100 });
    const error = await errorOf(limiter('a'));
    expect(error.code).toBe(UNREACHABLE);
    expect(error.message).toContain('no connection within 100 ms');
  });
});

describe('a name with several addresses', () => {
  const { lookup } = dns.promises;
  const server = redisForTests();
  let asked;
  beforeEach(() => {
    asked = 0;
    dns.promises.lookup = async (host, options) => {
      if (host !== 'several.test') return lookup(host, options);
      asked += 1;
      return ['127.0.0.2', '127.0.0.1'].map((address) => ({ address, family: 4 }));
    };
  });
  afterEach(() => {
    dns.promises.lookup = lookup;
  });
  const limiterAt = (more) =>
    nativeLimiter({ host: 'several.test', port: server.port, retry, ...more });
  const place = () => ({ host: '127.0.0.2', port: server.port });

  test('uses the next one if the first refuses', async () => {
    expect(await limiterAt()('a')).toBe(0);
    expect(asked).toBe(1);
  });

  /** Listens and never accepts: once its queue is full, further connections wait for ever. */
  const DEAF = `
    const server = require('node:net').createServer();
    server.listen({ port: Number(process.argv[1]), host: '127.0.0.2', backlog: 1 }, () => {
      require('node:fs').writeSync(1, 'ready');
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });
  `;

  test('uses the next one if the first does not take the connection', async () => {
    const deaf = spawn(process.execPath, ['-e', DEAF, String(server.port)], {
      env: { ...process.env, LD_PRELOAD: '' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(deaf, 'close');
    let connected = 0;
    const waiting = [];
    try {
      await once(deaf.stdout, 'data');
      for (let i = 0; i < 8; i++) {
        const socket = net.connect(server.port, '127.0.0.2').on('error', () => {});
        waiting.push(socket.on('connect', () => (connected += 1)));
      }
      await waitUntil('its queue is full', () => connected >= 2);
      expect(await limiterAt({ connectTimeout: patient(1000) })('a')).toBe(0);
    } finally {
      for (const socket of waiting) socket.destroy();
      deaf.kill('SIGKILL');
      await ended;
    }
  });

  test('uses the next one if the first does not answer the login', async () => {
    const silent = await peers.silentPeer(place());
    const limiter = limiterAt({ connectTimeout: 400, connectionName: 'me' });
    expect(await limiter('a')).toBe(0);
    expect(silent.connections).toBe(1);
    await silent.close();
  });

  // Kills: the addresses of an attempt that was given up, in place of those of the current one.
  test('uses it also if an earlier lookup ends meanwhile', async () => {
    const silent = await peers.silentPeer({ host: '127.0.0.2' });
    const answering = ([name]) => (name.startsWith('EVAL') ? '*1\r\n:0\r\n' : '+OK\r\n');
    const good = await peers.scriptedPeer(answering, { host: '127.0.0.3', port: silent.port });
    const resultOf = (...addresses) => addresses.map((address) => ({ address, family: 4 }));
    let answerFirst;
    dns.promises.lookup = async () => {
      if (answerFirst !== undefined) return resultOf('127.0.0.2', '127.0.0.3');
      return new Promise((resolve) => {
        answerFirst = () => resolve(resultOf('127.0.0.9'));
      });
    };
    const limiter = limiterAt({ port: silent.port, connectTimeout: 400, connectionName: 'me' });
    expect(await outcomeOf(limiter('a'))).toMatch(/UNREACHABLE$|TIMEOUT$/);
    const call = limiter('a');
    await waitUntil('it is at the first address', () => silent.connections === 1);
    answerFirst();
    expect(await call).toBe(0);
    await Promise.all([silent.close(), good.close()]);
  });

  test('uses the next one if the first does not answer a call', async () => {
    const silent = await peers.silentPeer(place());
    const limiter = limiterAt({ connectTimeout: 100, commandTimeout: 100 });
    expect(await outcomeOf(limiter('a'))).toBe(TIMEOUT);
    await waitUntil('the other answers', async () => (await limiter('a')) === 0);
    expect(silent.connections).toBe(1);
    await silent.close();
  });

  test.each([
    'LOADING Redis is loading the dataset in memory',
    "READONLY You can't write against a read only replica.",
  ])('uses the next one if the first answers %s', async (reply) => {
    for (const connectionName of [undefined, 'me']) {
      const peer = await peers.scriptedPeer(() => `-${reply}\r\n`, place());
      const limiter = limiterAt({ connectionName });
      const before = asked;
      // The login fails at once and moves on; a call may have been counted, and fails.
      if (connectionName === undefined) expect(await outcomeOf(limiter('a'))).toBe(REPLY);
      await waitUntil('the other answers', async () => (await limiter('a')) === 0);
      expect(peer.connections).toBe(1);
      expect(asked - before).toBe(connectionName === undefined ? 2 : 1); // the name, too, may have moved
      await limiter.close();
      await peer.close();
    }
  });

  test('fails with the name if no address answers', async () => {
    const error = await errorOf(nativeLimiter({ host: 'several.test', port: 1 })('a'));
    expect(error.code).toBe(UNREACHABLE);
    expect(error.message).toContain('several.test:1');
  });
});

describe('options that contradict each other', () => {
  const sentinels = [{ host: 'h' }];
  test.each([
    [{ sentinels, name: 'm', path: '/s' }, "'redis.sentinels' and 'redis.path'"],
    [{ sentinels, name: 'm', url: 'redis://h' }, "'redis.url' and 'redis.sentinels'"],
    [{ sentinels, name: 'm', cluster: ['redis://h'] }, "'redis.cluster' and 'redis.sentinels'"],
    [{ sentinels, name: 'm', host: 'h' }, "'redis.sentinels' and 'redis.host'"],
    [{ sentinels }, "'redis.name'"],
    [{ sentinels: [], name: 'm' }, "'redis.sentinels'"],
    [{ sentinels: 'redis://h', name: 'm' }, "'redis.sentinels'"],
    [{ sentinels: [5], name: 'm' }, "'redis.sentinels[0]'"],
    [{ sentinels: [{ port: '1' }], name: 'm' }, "'redis.sentinels[0].port'"],
    [{ sentinels, name: 5 }, "'redis.name'"],
    [{ name: 'm' }, "'redis.name': requires 'redis.sentinels'"],
    [{ url: 'redis://h', sentinelPassword: SECRET }, "'redis.sentinelPassword': requires"],
    [{ sentinels, name: 'm', sentinelPassword: [SECRET] }, "'redis.sentinelPassword'"],
    [{ url: 'redis://h', sentinelUsername: 'u' }, "'redis.sentinelUsername': requires"],
    [{ url: 'rediss://h', tls: false }, "'redis.tls'"],
    [{ credentials: {} }, "'redis.credentials'"],
    [{ credentials: () => {}, password: SECRET }, "'redis.password' and 'redis.credentials'"],
    [
      { credentials: () => {}, url: `redis://:${SECRET}@h` },
      "'redis.password' and 'redis.credentials'",
    ],
    [
      { cluster: [`redis://:${SECRET}@h`], credentials: () => {} },
      "'redis.password' and 'redis.credentials'",
    ],
    [{ addressMap: () => {} }, "'redis.addressMap': requires"],
    [{ path: '/s', addressMap: {} }, "'redis.addressMap': requires"],
  ])('%j are refused', (redis, part) => {
    const error = catchError(() => RateLimiter({ ...GOOD, redis }));
    expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
    expect(error.message).toContain(part);
    expect(error.message).not.toContain(SECRET);
  });
});

// Kills: asking a Sentinel for commandTimeout, which would outlast the patience with these programs.
test('a program whose routes fail ends by itself', async () => {
  const silent = await peers.silentPeer();
  const sentinels = (port) => `sentinels: [{ host: '127.0.0.1', port: ${port} }], name: 'm'`;
  const programs = {
    'credentials: () => new Promise(() => {}), connectTimeout: 100': UNREACHABLE,
    "credentials: () => { throw new Error('no'); }": AUTH,
    "host: 'no-such-host.invalid'": UNREACHABLE,
    [sentinels(1)]: UNREACHABLE,
    [`${sentinels(silent.port)}, connectTimeout: 100`]: UNREACHABLE,
    "cluster: ['redis://127.0.0.1:1'], addressMap: () => undefined": UNREACHABLE,
    "cluster: ['redis://127.0.0.1:1'], credentials: async () => 5": AUTH,
    [`url: 'rediss://127.0.0.1:${silent.port}', connectTimeout: 100`]: UNREACHABLE,
  };
  const ask = (redis) =>
    askProgram(`
      const RateLimiter = require('rollgate');
      const options = { commandTimeout: ${patient(600_000)}, ${redis} };
      const limiter = RateLimiter({ redis: options, interval: 1000, maxInInterval: 1 });
      limiter('a').catch(({ code }) => console.log(JSON.stringify(code)));
    `);
  const outcomes = await Promise.all(
    Object.keys(programs).map(async (redis) => [redis, await ask(redis)]),
  );
  expect(Object.fromEntries(outcomes)).toEqual(programs);
});
