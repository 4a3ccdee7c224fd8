// Slots in Redis: what the script does, and a server on which something is wrong.
'use strict';

const { setTimeout: pause } = require('node:timers/promises');
const SCRIPTS = require('../../lib/stores/redis/scripts');
const { outcomeOf, waitUntil } = require('../support/outcome');
const { clientAt, scriptRuns } = require('../support/redis-clients');
const { SHORT, slotsOnRedis } = require('../support/slots-on-redis');

const redis = slotsOnRedis();
const { keyOf, later, make, usedBy } = redis;

describe('bad input', () => {
  test.each([
    [{ ttl: 999 }, 'ERR_ROLLGATE_OPTION'],
    [{ ttl: 1500.5 }, 'ERR_ROLLGATE_OPTION'],
    [{ ttl: null }, 'ERR_ROLLGATE_OPTION'],
    [{ ttl: '5000' }, 'ERR_ROLLGATE_OPTION'],
    [{ ttl: 5000, redis: undefined, shared: 'a' }, 'ERR_ROLLGATE_OPTION'],
    [{ onError: 'memory' }, 'ERR_ROLLGATE_OPTION'],
    [{ namespace: 'a{b' }, 'ERR_ROLLGATE_OPTION'],
    [{ redis: {}, connection: {} }, 'ERR_ROLLGATE_OPTION'],
    [{ redis: 5 }, 'ERR_ROLLGATE_OPTION'],
    [{ redis: undefined, kv: new Map() }, 'ERR_ROLLGATE_UNSUPPORTED'],
  ])('%j is refused', (options, code) => {
    expect(() => make(options)).toThrow(expect.objectContaining({ code }));
  });

  test('a foreign value at the key is an error, and stays', async () => {
    const limiter = make({ ttl: SHORT, max: 2 });
    const foreign = [
      ['SET', '5'],
      ['ZADD', '1', 'a'],
      ['ZADD', '-1', 'a'],
      ['ZADD', '9e15', 'a'],
      ['ZADD', '5', ''],
      ['RPUSH', 'a'],
    ];
    for (const [command, ...words] of foreign) {
      await redis.server.command('DEL', keyOf('a'));
      await redis.server.command(command, keyOf('a'), ...words);
      const dump = await redis.server
        .command('DEBUG', 'DIGEST-VALUE', keyOf('a'))
        .catch(() => 'same');
      const code = 'ERR_ROLLGATE_REDIS_REPLY';
      const others = [limiter.acquire('b'), limiter.acquire('a'), limiter.usage('a')];
      const [free, ...failed] = await Promise.all(others.map((one) => outcomeOf(one)));
      expect([free.allowed, await free.release(), ...failed]).toEqual([true, true, code, code]);
      expect(
        await redis.server.command('DEBUG', 'DIGEST-VALUE', keyOf('a')).catch(() => 'same'),
      ).toEqual(dump);
      expect(limiter.stats().held).toBe(0);
    }
    await redis.server.command('DEL', keyOf('a'));
    const [slot, lost] = [await limiter.acquire('a'), await limiter.acquire('a')];
    await redis.server.command('SET', keyOf('a'), '5');
    expect(await slot.release()).toBe(false);
    await waitUntil('the renewal finds it', () => lost.lost.aborted);
  });

  test.each([
    [
      'refuses scripts',
      ['ACL SETUSER default -eval -evalsha', 'ACL SETUSER default +eval +evalsha'],
      'ERR_ROLLGATE_REDIS_AUTH',
    ],
    ['is full', ['CONFIG SET maxmemory 1', 'CONFIG SET maxmemory 0'], 'ERR_ROLLGATE_REDIS_REPLY'],
    [
      'is a replica',
      ['REPLICAOF 127.0.0.1 1', 'REPLICAOF NO ONE'],
      /ERR_ROLLGATE_REDIS_(REPLY|UNREACHABLE)/,
    ],
  ])('a server that %s gives no slot', async (_what, [worsen, mend], code) => {
    const limiter = make();
    await usedBy(limiter);
    await redis.server.command(...worsen.split(' '));
    const mendServer = () => redis.server.command(...mend.split(' '));
    expect(await outcomeOf(limiter.acquire('a')).finally(mendServer)).toMatch(code);
    expect([await usedBy(limiter), limiter.stats().held]).toEqual([0, 0]);
    expect((await limiter.acquire('a')).allowed).toBe(true);
  });

  test('a full server renews and takes back', async () => {
    const limiter = make({ max: 2, ttl: SHORT });
    const [slot, kept] = [await limiter.acquire('a'), await limiter.acquire('a')];
    await redis.server.command('CONFIG', 'SET', 'maxmemory', '1');
    later(() => redis.server.command('CONFIG', 'SET', 'maxmemory', '0'));
    expect(await slot.release()).toBe(true);
    await pause(2.2 * SHORT);
    expect([kept.lost.aborted, await usedBy(limiter)]).toEqual([false, 1]);
  });
});

describe('sums', () => {
  const stateOf = async (id) => {
    const words = await redis.server.command('ZRANGE', keyOf(id), '0', '-1', 'WITHSCORES');
    return { units: -words[1], tokens: words.length / 2 - 1 };
  };

  // Kills: units of an acquisition that are forgotten by a release in the same command; costs of one byte.
  test('are right after calls of all kinds in one command, and for large costs', async () => {
    const limiter = make({ max: 1000 });
    const [one, other] = [await limiter.acquire('a', { cost: 300 }), await limiter.acquire('a')];
    const calls = [
      limiter.acquire('a', { cost: 2 }),
      one.release(),
      limiter.acquire('a', { cost: 600 }),
      limiter.usage('a'),
      other.release(),
      limiter.acquire('a', { cost: 3 }),
    ];
    const [two, , six] = await Promise.all(calls);
    expect([two.used, six.used, await usedBy(limiter)]).toEqual([303, 603, 605]);
    expect(await stateOf('a')).toEqual({ units: 605, tokens: 3 });
    await limiter.close();
    expect(await redis.server.command('EXISTS', keyOf('a'))).toBe(0);
  });

  // Kills: a renewal that cuts the life of a key to its own ttl.
  test('live as long as the longest ttl', async () => {
    const [long, short] = [make({ max: 2 }), make({ max: 2, ttl: SHORT })];
    const slots = [await long.acquire('a'), await short.acquire('a')];
    const runs = await scriptRuns(redis.server);
    await waitUntil('it is renewed', async () => (await scriptRuns(redis.server)) > runs);
    expect(await redis.server.command('PTTL', keyOf('a'))).toBeGreaterThan(50_000);
    expect(slots.map(({ lost }) => lost.aborted)).toEqual([false, false]);
  });
});
describe('the script', () => {
  const SECOND = 1_000_000;
  const START = 1_000_000 * SECOND;
  const OPERATIONS = { usage: 0, acquire: 1, release: 2 };

  function wordOf(calls, time, ttl) {
    const numbers = [calls.length, 1, 2, time, ttl, ...calls.flat()];
    const word = Buffer.alloc(8 * numbers.length);
    for (const [i, number] of numbers.entries()) word.writeDoubleLE(number, 8 * i);
    return word;
  }

  /** Calls about one key at a time in us: [operation, number, cost, max]. */
  function run(key, calls, { time = START, ttl = 1000 } = {}) {
    const named = calls.map(([name, number = 0, cost = 1, max = 9]) => [
      OPERATIONS[name],
      number,
      cost,
      max,
    ]);
    const keys = calls.map(() => key);
    const words = [
      SCRIPTS.slots.source,
      keys.length,
      ...keys,
      'together',
      wordOf(named, time, ttl),
    ];
    return clientAt(redis.server.url).eval(...words);
  }

  const many = (operation, key, tokens) =>
    clientAt(redis.server.url).eval(SCRIPTS.slots.source, 1, key, operation, '1 2', '1000', tokens);

  test('an acquisition that is repeated is granted once', async () => {
    const calls = [['acquire', 5, 2, 3], ['acquire', 5, 2, 3], ['acquire', 6, 2, 3], ['usage']];
    expect(await run('repeated', calls)).toEqual([5, 5, 4, 2]);
    expect(await run('repeated', [['acquire', 5, 2, 3]])).toEqual([5]);
    // Its end does not move: 2 s after the start it has ended.
    expect(await run('repeated', [['acquire', 5, 2, 3]], { time: START + SECOND })).toEqual([5]);
    expect(await run('repeated', [['acquire', 7, 3, 3]], { time: START + 2 * SECOND })).toEqual([
      7,
    ]);
  });

  test('a token is released once, by any process, and no other', async () => {
    await run('released', [
      ['acquire', 1],
      ['acquire', 2],
    ]);
    expect(
      await run('released', [['release', 1], ['release', 1], ['release', 3], ['usage']]),
    ).toEqual([1, 0, 0, 1]);
    expect(await run('released', [['release', 2], ['usage'], ['release', 2]])).toEqual([1, 0, 0]);
    expect(await redis.server.command('EXISTS', 'released')).toBe(0);
  });

  test('a token counts until its end, and the server drops it then', async () => {
    await run('ended', [['acquire', 1, 1, 1]]);
    const at = (ms) => ({ time: START + ms * 1000 });
    expect(await run('ended', [['acquire', 2, 1, 1]], at(1999))).toEqual([2]);
    expect(await run('ended', [['acquire', 2, 1, 1]], at(2000))).toEqual([3]);
    expect(await run('ended', [['release', 1], ['usage']], at(2000))).toEqual([0, 1]);
    expect(await run('ended', [['usage']], at(4000))).toEqual([0]);
  });

  // Kills: a renewal that creates what was released or cleared.
  test('renewal makes ends later and creates nothing', async () => {
    await run('renewed', [
      ['acquire', 1],
      ['acquire', 2],
    ]);
    expect(await many('renew', 'renewed', '3 1 1 1 4 1 2 1')).toEqual([0, 2]);
    expect(await run('renewed', [['usage']], { time: Date.now() * 1000 })).toEqual([2]);
    expect(await many('release', 'renewed', '1 1 3 1')).toEqual([1]);
    expect(await many('renew', 'renewed', '1 1')).toEqual([0]);
    expect(await many('release', 'renewed', '2 1')).toEqual([]);
    expect(await many('renew', 'renewed', '2 1')).toEqual([0]);
    expect(await redis.server.command('EXISTS', 'renewed')).toBe(0);
  });

  test('many that have ended are dropped as far as they are in the way', async () => {
    const acquisitions = Array.from({ length: 2500 }, (_, i) => ['acquire', i, 1, 3000]);
    await run('many', acquisitions.slice(0, 1500));
    await run('many', acquisitions.slice(1500));
    const later = { time: START + 2000 * 1000 };
    expect(await run('many', [['acquire', 9999, 1, 3000]], later)).toEqual([2 * 1501 + 1]);
    expect(await run('many', [['acquire', 9998, 1, 2]], later)).toEqual([2 * 2 + 1]);
    expect(await run('many', [['usage']], later)).toEqual([2]);
  });
});
