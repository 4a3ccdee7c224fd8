// Servers that refuse and peers that talk nonsense: the right code each time, never an admission.
'use strict';

const RateLimiter = require('../..');
const { errorOf, outcomeOf } = require('../support/outcome');
const { EACH_CLIENT, openings } = require('../support/redis-clients');
const { startRedis } = require('../support/redis-server');
const peers = require('../support/tcp-peers');
const { waitUntil } = require('../support/wait-until');

const REPLY = 'ERR_ROLLGATE_REDIS_REPLY';
const LOST = /^ERR_ROLLGATE_REDIS_(TIMEOUT|UNREACHABLE)$/;

let server;
let locked;
let namespaces = 0;

beforeAll(async () => {
  [server, locked] = await Promise.all([startRedis(), startRedis({ password: 'Sesame' })]);
});

describe.each(EACH_CLIENT)('through %s', (name, open) => {
  const { using, closeAll } = openings();
  afterEach(closeAll);

  function limiterAt(url, options) {
    const redis = { ...using(open(url)), commandTimeout: 300 };
    namespaces += 1;
    const namespace = `failures-${namespaces}`;
    return RateLimiter({
      redis,
      interval: 60_000,
      maxInInterval: 2,
      namespace,
      ...options,
    });
  }

  /** A limiter that has had an answer. */
  async function connected(options) {
    const limiter = limiterAt(server.url, options);
    await waitUntil('Redis answers', () => limiter.peek('a'));
    return limiter;
  }

  test('a good password opens, a wrong one or none does not', async () => {
    const limiter = limiterAt(locked.url);
    await waitUntil('Redis answers', async () => (await limiter('a')) === 0);
    for (const url of [
      locked.url.replace('Sesame', 'Simsim'),
      locked.url.replace(':Sesame@', ''),
    ]) {
      const error = await errorOf(limiterAt(url)('a'));
      // Clients of others tell some of it to their error listeners alone.
      const expected = name === 'native' ? /_AUTH$/ : /_(AUTH|TIMEOUT|UNREACHABLE|CLOSED)$/;
      expect(error.code).toMatch(expected);
      expect(error.message).not.toMatch(/Sesame|Simsim/);
    }
  });

  test('a user who may not run scripts', async () => {
    await server.command('ACL', 'SETUSER', 'weak', 'on', '>pw', '~*', '+@all', '-@scripting');
    const limiter = limiterAt(server.url.replace('//', '//weak:pw@'));
    await waitUntil('Redis refuses', async () => {
      return (await outcomeOf(limiter('a'))) === 'ERR_ROLLGATE_REDIS_AUTH';
    });
    const error = await errorOf(limiter('a'));
    expect(error.cause.message).toMatch(/^NOPERM/);
  });

  test.each([
    ['of another type', ['LPUSH', 'list']],
    ['a foreign string', ['SET', 'hello world, this is no log']],
    ['a short foreign string', ['SET', 'x']],
  ])('something else at the key: %s', async (_what, [command, value]) => {
    const limiter = await connected({ namespace: 'foreign' });
    const [other, long] = [
      await connected({ namespace: 'foreign', minDifference: 5 }),
      await connected({ namespace: 'foreign', maxInInterval: 500 }),
    ];
    await server.command('DEL', 'foreign{a}');
    await server.command(command, 'foreign{a}', value);
    for (const one of [limiter, other, long]) {
      expect(await outcomeOf(one('a'))).toBe(REPLY);
      expect(await outcomeOf(one.attempt('a'))).toBe(REPLY);
      expect(await outcomeOf(one.peek('a'))).toBe(REPLY);
      expect(await outcomeOf(one.attemptMany(['b', 'a']))).toBe(REPLY);
    }
    await limiter.clear('a');
    expect(await limiter('a')).toBe(0);
  });

  test('a replica', async () => {
    const limiter = await connected();
    await server.command('REPLICAOF', '127.0.0.1', '1');
    const error = await errorOf(limiter('a')).finally(() =>
      server.command('REPLICAOF', 'NO', 'ONE'),
    );
    expect(error.code).toBe(REPLY);
    expect(error.cause.message).toMatch(/READONLY|MASTERDOWN/);
    expect(await limiter('a')).toBe(0);
  });

  test('a server whose memory is used up', async () => {
    const limiter = await connected();
    await server.command('CONFIG', 'SET', 'maxmemory', '1');
    const error = await errorOf(limiter('a')).finally(() =>
      server.command('CONFIG', 'SET', 'maxmemory', '0'),
    );
    expect(error.code).toBe(REPLY);
    expect(error.cause.message).toMatch(/^OOM|OOM /);
    expect(await limiter('a')).toBe(0);
  });

  test('a server that is busy with a script', async () => {
    const limiter = await connected();
    await server.command('CONFIG', 'SET', 'busy-reply-threshold', '1');
    const script = server.command('EVAL', 'while true do end', 0).catch(() => {});
    await waitUntil('the server says that it is busy', async () => {
      return (await outcomeOf(limiter('a'))) === REPLY;
    });
    const error = await errorOf(limiter('a'));
    await server.command('SCRIPT', 'KILL');
    await script;
    expect(error.cause.message).toMatch(/^BUSY/);
    await waitUntil('Redis answers', async () => (await limiter('b')) === 0);
  });

  test('nobody listens there', async () => {
    const peer = await peers.silentPeer();
    await peer.close();
    expect(await outcomeOf(limiterAt(peer.url)('a'))).toMatch(LOST);
  });

  test.each([
    ['says nothing', () => peers.silentPeer(), LOST],
    ['talks nonsense', () => peers.garbagePeer(), /^ERR_ROLLGATE_REDIS_/],
    ['closes at once', () => peers.closingPeer(), LOST],
    ['closes when asked', () => peers.closingPeer({ afterBytes: 1 }), LOST],
    ['resets the connection', () => peers.closingPeer({ afterBytes: 1, reset: true }), LOST],
  ])('a peer that %s', async (_what, start, expected) => {
    const { url } = await start();
    const limiter = limiterAt(url);
    const calls = Array.from({ length: 10 }, () => limiter('a'));
    calls.push(limiter.attempt('a'), limiter.clearAll(), limiter.clear('a'));
    for (const outcome of await Promise.all(calls.map((call) => outcomeOf(call)))) {
      expect(outcome).toMatch(expected);
    }
  });
});

describe('replies that make no sense', () => {
  const { using, closeAll } = openings();
  afterEach(closeAll);
  const HANDSHAKE = { INFO: '$8\r\nrole:x\r\n\r\n', PING: '+PONG\r\n' };

  const wrong = ['+OK\r\n', '$-1\r\n', ':0\r\n', '*0\r\n', '*1\r\n$1\r\nx\r\n', '*1\r\n$-1\r\n'];
  wrong.push('*2\r\n:0\r\n:0\r\n', '*1\r\n:-2\r\n', '*1\r\n*1\r\n:0\r\n');

  test.each(EACH_CLIENT)('through %s', async (_name, open) => {
    let reply;
    const peer = await peers.scriptedPeer((words) => {
      const command = words[0].toUpperCase();
      if (command === 'EVALSHA') return reply;
      if (command === 'HELLO') return "-ERR unknown command 'HELLO'\r\n";
      return HANDSHAKE[command] ?? '+OK\r\n';
    });
    const redis = { ...using(open(peer.url)), commandTimeout: 1000 };
    const limiter = RateLimiter({ redis, interval: 1000, maxInInterval: 1 });
    reply = '*1\r\n:0\r\n';
    await waitUntil('the peer answers', async () => (await limiter('a')) === 0);
    for (reply of wrong) {
      expect([reply, await outcomeOf(limiter('a'))]).toEqual([reply, REPLY]);
      expect([reply, await outcomeOf(limiter.attempt('a'))]).toEqual([reply, REPLY]);
      expect([reply, await outcomeOf(limiter.attemptMany(['a']))]).toEqual([reply, REPLY]);
    }
    reply = '*1\r\n:1\r\n';
    expect(await limiter('a')).toBe(1);
  });

  test('to the search of clearAll', async () => {
    let reply;
    const peer = await peers.scriptedPeer(([command]) => {
      return command.toUpperCase() === 'SCAN' ? reply : ':-2\r\n'; // to PTTL
    });
    const limiter = RateLimiter({ redis: peer.url, interval: 1000, maxInInterval: 1 });
    for (reply of ['+OK\r\n', ':0\r\n', '$-1\r\n', '*0\r\n', '*2\r\n$1\r\n0\r\n:1\r\n']) {
      expect([reply, await outcomeOf(limiter.clearAll())]).toEqual([reply, REPLY]);
    }
    reply = '*2\r\n$1\r\n0\r\n*0\r\n';
    await limiter.clearAll();
    await limiter.close();
  });
});
