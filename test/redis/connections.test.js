// Connections that limiters share: which limiters do, what a batch of several limiters answers, when one is closed.
'use strict';

const { inspect } = require('node:util');
const RateLimiter = require('../..');
const { readRedisOptions } = require('../../lib/stores/redis/options');
const { outcomeOf, waitUntil } = require('../support/outcome');
const { clientsNamed, nativeLimiter } = require('../support/redis-clients');
const { redisForTests } = require('../support/redis-server');
const { catchError } = require('../support/set-up');
const { patient } = require('../support/tiers');

const { RedisRateLimiter, createRedisConnection } = RateLimiter;
const LONG = patient(15_000);
const CLOSED = 'ERR_ROLLGATE_CLOSED';
const GOOD = { interval: 60_000, maxInInterval: 2 };

const server = redisForTests();

const times = (count, make) => Array.from({ length: count }, (_, i) => make(i));
const at = (more) => ({ url: server.url, commandTimeout: LONG, ...more });
const openCount = async (name) => (await clientsNamed(server, name)).length;
const isOpen = (name, count) =>
  waitUntil(`there are ${count}`, async () => (await openCount(name)) === count);
/** A limiter on a connection that a test made. */
const on = (connection, options) => nativeLimiter(undefined, { redis: connection, ...options });

describe('options', () => {
  const connectionOf = (redis) => readRedisOptions({ redis }).connection;

  test('that say the same mean one connection, of a thousand limiters', async () => {
    const { port } = server;
    const connectionName = 'same';
    const forms = [
      { url: `redis://127.0.0.1:${port}/1`, connectionName },
      { host: '127.0.0.1', port, db: 1, connectionName },
      { connectionName, db: 1, port },
      { url: `redis://127.0.0.1:${port}/9`, db: 1, connectionName, tls: false },
      { port, db: 1, retry: { max: 2000, min: 50 }, connectionName, url: undefined },
    ];
    const limiters = times(1000, (i) => nativeLimiter(forms[i % forms.length]));
    const timesLeft = await Promise.all(limiters.map((limiter, i) => limiter(i)));
    expect(new Set(timesLeft)).toEqual(new Set([0]));
    expect(await openCount('same')).toBe(1);
    expect(limiters[4].stats().connection.connections).toBe(1);
  });

  const credentials = () => ({ password: 'p' });
  const one = { host: 'one', port: 1 };
  const two = { host: 'two', port: 2 };
  test.each([
    ['redis://u:p@h:6379/2', { host: 'h', username: 'u', password: 'p', db: 2 }],
    ['rediss://h', { host: 'h', tls: {} }],
    ['unix://:p@/s?db=1', { path: '/s', password: 'p', db: 1 }],
    [{ credentials }, { port: 6379, credentials }],
    [{ cluster: ['redis://:p@h'] }, { cluster: ['redis://h:6379'], password: 'p' }],
    [
      { sentinels: [{}], name: 'm', addressMap: { 'a:1': one, 'b:2': two } },
      { sentinels: [{}], name: 'm', addressMap: { 'b:2': two, 'a:1': one } },
    ],
  ])('%j and %j are the same', (a, b) => {
    expect(connectionOf(b)).toBe(connectionOf(a));
  });

  const others = [connectionOf({})];
  // Kills a key of the connection without functions: two users would share a login.
  test.each([
    ...[{ port: 1 }, { host: 'localhost' }, { path: '/s' }, { db: 1 }, { tls: true }],
    ...[{ password: 'p' }, { password: 'p', username: 'u' }, { connectionName: 'n' }],
    ...[{ connectTimeout: 1 }, { commandTimeout: 1 }, { maxQueue: 1 }, { retry: { min: 1 } }],
    ...[{ tls: { servername: 's' } }, { cluster: ['redis://'] }, { credentials }],
    { credentials: () => ({ password: 'p' }) },
    { sentinels: [{}], name: 'm' },
    { sentinels: [{}], name: 'm', addressMap: () => one },
    { sentinels: [{}], name: 'm', addressMap: () => two },
    { sentinels: [{}], name: 'm', sentinelPassword: 'p' },
  ])('%p are those of no other connection', (options) => {
    others.push(connectionOf(options));
    expect(new Set(others).size).toBe(others.length);
  });
});

describe('createRedisConnection', () => {
  test('makes one of its own, which limiters take as connection, redis or client', async () => {
    const make = () => createRedisConnection(at({ connectionName: 'explicit' }));
    const connection = make();
    expect(await openCount('explicit')).toBe(0);
    const limiters = [
      RateLimiter({ ...GOOD, connection }),
      RateLimiter({ ...GOOD, redis: connection }),
      new RedisRateLimiter({ ...GOOD, connection }),
      new RedisRateLimiter({ ...GOOD, client: connection }),
      new RedisRateLimiter({ ...GOOD, redis: connection, connection }),
    ];
    expect(await Promise.all(limiters.map((limiter) => limiter('a')))).toEqual([0, 0, 0, 0, 0]);
    expect(limiters.map(({ detectedClientType }) => detectedClientType)).toContain('hiredis');
    expect(await openCount('explicit')).toBe(1);
    await on(make())('a');
    await nativeLimiter(at({ connectionName: 'explicit' }))('a');
    expect(await openCount('explicit')).toBe(3);
    await Promise.all(limiters.map((limiter) => limiter.close()));
  });

  test.each([
    [() => createRedisConnection(), "'redis'"],
    [() => createRedisConnection('localhost'), "'redis'"],
    [() => createRedisConnection({ hots: 'h' }), "did you mean 'host'"],
    [() => createRedisConnection({ client: {} }), "'redis.client'"],
    [() => createRedisConnection(createRedisConnection('redis://h')), "'redis'"],
    [
      () => createRedisConnection({ url: 'redis://h', client: createRedisConnection('redis://h') }),
      "'redis",
    ],
    [() => createRedisConnection('redis://h', { commandTimeout: 5 }), 'expected one argument'],
    ...['redis://h', {}, null, { isCluster: false, maxQueue: 5 }].map((connection) => [
      () => RateLimiter({ ...GOOD, connection }),
      "option 'connection': expected what createRedisConnection returns",
    ]),
    [
      () => RateLimiter({ ...GOOD, connection: createRedisConnection('redis://h'), redis: {} }),
      "'redis' and 'connection'",
    ],
    [
      () => RateLimiter({ ...GOOD, connection: createRedisConnection('redis://h'), shared: 's' }),
      "'connection'",
    ],
    [
      () => new RateLimiter.InMemoryRateLimiter({ ...GOOD, connection: createRedisConnection({}) }),
      "'connection'",
    ],
  ])('refuses what is wrong: %s', (make, part) => {
    const error = catchError(make);
    expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).toContain(part);
  });

  test('shows no password', () => {
    const connection = createRedisConnection('redis://u:Xyzzy@h');
    const limiter = RateLimiter({ ...GOOD, connection });
    const options = { depth: Infinity, showHidden: true, getters: true };
    const shown = [connection, limiter, limiter.stats()].flatMap((value) => [
      inspect(value, options),
      String(JSON.stringify(value)),
    ]);
    shown.push(JSON.stringify(Object.getOwnPropertyDescriptors(connection)), String(connection));
    expect(shown.join('\n')).not.toContain('Xyzzy');
  });
});

describe('the end of a limiter', () => {
  test('fails its own pending calls, and those of no other', async () => {
    const connection = createRedisConnection(at());
    const [closing, other] = [on(connection), on(connection)];
    const first = await closing.attempt('a');
    await other('a');
    await server.freeze();
    const callsOf = (limiter) => [
      ...[limiter('a'), limiter.attempt('b'), limiter.clear('c'), limiter.attemptMany(['d'])],
    ];
    const own = [...callsOf(closing), closing.refund(first)].map((call) => outcomeOf(call));
    const others = callsOf(other);
    await new Promise(setImmediate); // the calls have been sent
    await closing.close();
    expect(await Promise.all(own)).toEqual(own.map(() => CLOSED));
    server.thaw();
    expect(await Promise.all(others)).toMatchObject([0, { allowed: true }, undefined, [{}]]);
  });

  test.each([
    ['shared', () => at({ connectionName: 'last-shared' })],
    ['explicit', () => createRedisConnection(at({ connectionName: 'last-explicit' }))],
  ])('closes a %s connection if it was the last, and a new one opens it', async (kind, place) => {
    const name = `last-${kind}`;
    const redis = place();
    const limiters = times(3, () => RateLimiter({ ...GOOD, redis }));
    await Promise.all(limiters.map((limiter) => limiter('a')));
    await Promise.all(limiters.slice(1).flatMap((limiter) => [limiter.close(), limiter.close()]));
    expect(await limiters[0]('a')).toBe(0);
    expect(await openCount(name)).toBe(1);
    await limiters[0].close();
    await isOpen(name, 0);
    expect(await nativeLimiter(undefined, { redis })('a')).toBe(0);
    expect(await openCount(name)).toBe(1);
  });
});
