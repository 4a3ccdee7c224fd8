// Every way to connect to Redis: clearing, messages, prefixes, clients that are told to answer otherwise.
'use strict';

const { EACH_CLIENT, nativeLimiter, openings, published } = require('../support/redis-clients');
const { redisForTests } = require('../support/redis-server');
const { handClock } = require('../support/set-up');

const { using, closeAll } = openings();
const server = redisForTests();
let namespaces = 0;
const newNamespace = () => `clients-${++namespaces}`;
const keysOnServer = async () => (await server.command('KEYS', '*')).sort();

afterEach(async () => {
  await closeAll();
  await server.command('FLUSHALL');
});

const limiterOver = (connection, options) =>
  nativeLimiter(using(connection), { countBlocked: false, ...options });

describe.each(EACH_CLIENT)('%s', (client, open) => {
  const make = (options) => limiterOver(open(server.url), options);

  test('a refund whose clock fails takes nothing', async () => {
    const time = handClock(1_700_000_000_000);
    const limiter = make({ clock: time.clock });
    const [first] = await limiter.attemptMany(['a', 'a']);
    time.set(Number.NaN);
    await expect(limiter.refund(first)).rejects.toMatchObject({ code: 'ERR_ROLLGATE_CLOCK' });
    time.set(1_700_000_000_000);
    expect((await limiter.peek('a')).allowed).toBe(false);
  });

  test('clear forgets one id, clearAll all of one namespace, whatever its characters', async () => {
    const namespace = `${client}*[all]?\\`;
    const [first, second] = ['', '2'].map((end) => make({ namespace: `${namespace}${end}` }));
    await Promise.all([first.attemptMany(['a', 'b']), second('a')]);
    await first.clear('a');
    expect(await keysOnServer()).toEqual([`${namespace}2{a}`, `${namespace}{b}`]);
    await first.attemptMany(Array.from({ length: 700 }, (_, i) => i));
    await first.clearAll();
    expect(await keysOnServer()).toEqual([`${namespace}2{a}`]);
  });

  test('each call is published', async () => {
    const limiter = make();
    const all = await published('rollgate:redis', async () => {
      const decision = await limiter.attempt('a');
      await limiter('a');
      await limiter.peek('a');
      await limiter.attemptMany(['a', 'b']);
      await limiter.refund(decision);
      await limiter.clear('a');
      await new Promise((resolve) => setImmediate(resolve));
    });
    const messages = all.filter(({ type }) => type === 'call');
    const commands = ['attempt', 'attempt', 'peek', 'attempt', 'refund', 'clear'];
    expect(messages.map(({ command }) => command)).toEqual(commands);
    expect(messages.map(({ ids }) => ids)).toEqual([1, 1, 1, 2, 1, 1]);
    for (const call of messages) {
      expect(call).toMatchObject({ limiter, error: null });
      expect(call.durationMs).toBeGreaterThan(0);
    }
    expect(limiter.stats().connection).toMatchObject({ isUp: true, pending: 0 });
  });
});

test.each([
  ['ioredis', (url) => new (require('ioredis'))(url, { keyPrefix: 'app*:' })],
  ['ioredis-5', (url) => new (require('ioredis-5'))(url, { keyPrefix: 'app*:' })],
  ['redis-3', (url) => require('redis-3').createClient(url, { prefix: 'app*:' })],
])('a prefix of %s is that of all keys', async (_name, open) => {
  const namespace = newNamespace();
  const limiter = limiterOver({ client: open(server.url) }, { namespace });
  await limiter.attemptMany(['a', 'b', 'a']);
  expect(await keysOnServer()).toEqual([`app*:${namespace}{a}`, `app*:${namespace}{b}`]);
  await limiter.clear('a');
  await server.command('SET', `app+:${namespace}{c}`, 'of others');
  await limiter.clearAll();
  expect(await keysOnServer()).toEqual([`app+:${namespace}{c}`]);
});

const odd = { commandOptions: { typeMapping: { 58: String, 36: Buffer, 43: Buffer } } };
const ioredis = (options) => (url) => new (require('ioredis'))(url, options);
const nodeRedis =
  (name, options, create = 'createClient') =>
  async (url) => {
    const client = require(name)[create]({ url, ...options });
    await client.connect();
    return client;
  };
test.each([
  ['ioredis, stringNumbers', ioredis({ stringNumbers: true })],
  ['ioredis, enableAutoPipelining', ioredis({ enableAutoPipelining: true })],
  ['node-redis 6, other types', nodeRedis('redis', odd)],
  ['node-redis 5, RESP 3', nodeRedis('redis-5', { RESP: 3 })],
  ['node-redis 4, legacyMode', nodeRedis('redis-4', { legacyMode: true })],
  ['a pool of node-redis 6', nodeRedis('redis', {}, 'createClientPool')],
  [
    'node-redis 3, buffers',
    (url) => require('redis-3').createClient(url, { return_buffers: true }),
  ],
])('a client that answers otherwise: %s', async (_name, open) => {
  const limiter = limiterOver({ client: await open(server.url) });
  const decisions = await limiter.attemptMany(['a', 'a', 'a']);
  expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, false]);
  expect(await limiter('a')).toBeGreaterThan(0);
  await limiter.clear('a');
  expect(await limiter('a')).toBe(0);
  await limiter.clearAll();
  expect(await keysOnServer()).toEqual([]);
});
