// The option addressMap: servers that announce addresses which nobody outside can reach, as behind NAT.
'use strict';

const RateLimiter = require('../..');
const { errorOf, outcomeOf } = require('../support/outcome');
const { nativeLimiter } = require('../support/redis-clients');
const { startCluster } = require('../support/redis-cluster');
const { startRedis } = require('../support/redis-server');
const { ALLOWED, allSlotsAt, bulk } = require('../support/resp');
const { catchError } = require('../support/set-up');
const peers = require('../support/tcp-peers');
const { slow } = require('../support/tiers');

const UNREACHABLE = 'ERR_ROLLGATE_REDIS_UNREACHABLE';
const INSIDE = { host: '10.255.255.1', port: 7000 };
const announced = `${INSIDE.host}:${INSIDE.port}`;

/** A node that announces an address inside; it answers scripts with `run()`. */
const nodeInside = (run = () => ALLOWED) =>
  peers.scriptedPeer(([command]) => {
    if (command === 'CLUSTER') return allSlotsAt(INSIDE.host, INSIDE.port);
    return command === 'ASKING' ? '+OK\r\n' : run();
  });

const outside = ({ port }) => ({ host: '127.0.0.1', port });

describe('a cluster', () => {
  test.each([
    ['an object', (node) => ({ [announced]: outside(node) })],
    ['a function', (node) => (address) => (address === announced ? outside(node) : undefined)],
    ['a name', ({ port }) => ({ [announced]: { host: 'localhost', port } })],
  ])('is reached through %s, and its seeds need no entry', async (_what, mapTo) => {
    const node = await nodeInside();
    const limiter = nativeLimiter({ cluster: [node.url], addressMap: mapTo(node) });
    expect(await Promise.all([limiter('a'), limiter('b')])).toEqual([0, 0]);
  });

  test.each(['MOVED', 'ASK'])('is reached after %s', async (word) => {
    const target = await nodeInside();
    const elsewhere = '10.255.255.2:7000';
    const seed = await nodeInside(() => `-${word} 15495 ${elsewhere}\r\n`);
    const addressMap = { [announced]: outside(seed), [elsewhere]: outside(target) };
    expect(await nativeLimiter({ cluster: [seed.url], addressMap })('a')).toBe(0);
  });

  test.each([
    ['an object', { '10.255.255.9:7000': INSIDE }],
    ['a function that returns nothing', () => undefined],
    ['a function that returns null', () => null],
    ['a function that returns a promise', async () => INSIDE],
    ['a function that returns a text', () => '127.0.0.1:6379'],
    ['a function that returns no port', () => ({ host: '127.0.0.1' })],
  ])('whose address is missing in %s is an error that names it', async (_what, addressMap) => {
    const seed = await nodeInside();
    const own = new URL(seed.url).host; // a value that is no address is an error for a seed, too
    const option =
      typeof addressMap === 'function'
        ? (address) => (address === own ? undefined : addressMap(address))
        : addressMap;
    const error = await errorOf(nativeLimiter({ cluster: [seed.url], addressMap: option })('a'));
    expect(error.code).toBe(UNREACHABLE);
    expect(error.message).toContain("'redis.addressMap'");
    expect(error.message).toContain(`'${announced}'`);
  });

  slow.test('of real servers that announce a name which does not exist', async () => {
    const cluster = await startCluster({
      args: [
        ...['--cluster-announce-hostname', 'node.invalid'],
        ...['--cluster-preferred-endpoint-type', 'hostname'],
      ],
    });
    const ids = Array.from({ length: 50 }, (_, i) => `id ${i}`);
    const without = nativeLimiter({ cluster: cluster.urls });
    expect(await outcomeOf(without('a'))).toBe(UNREACHABLE);
    const entries = cluster.nodes.map((node) => [`node.invalid:${node.port}`, outside(node)]);
    const limiter = nativeLimiter({
      cluster: [cluster.urls[0]],
      addressMap: Object.fromEntries(entries),
    });
    const timesLeft = await Promise.all(ids.map((id) => limiter(id)));
    expect(new Set(timesLeft)).toEqual(new Set([0]));
    expect(limiter.stats().connection.connections).toBeGreaterThanOrEqual(3);
    await limiter.clearAll();
    await Promise.all([limiter.close(), without.close()]);
    await cluster.stop();
  });
});

test('a master that Sentinel announces is reached through it', async () => {
  const server = await startRedis();
  const reply = `*2\r\n${bulk(INSIDE.host)}${bulk(String(INSIDE.port))}`;
  const sentinel = await peers.scriptedPeer(() => reply);
  const redis = { sentinels: [sentinel.url], name: 'm' };
  const addressMap = { [announced]: outside(server) };
  expect(await nativeLimiter({ ...redis, addressMap })('a')).toBe(0);
  const error = await errorOf(nativeLimiter({ ...redis, addressMap: { 'x:1': INSIDE } })('a'));
  expect(error.message).toContain(`'${announced}'`);
});

test.each([
  ...[5, 'h:1', null, [], { h: INSIDE }, { 'h:': INSIDE }, { ':1': INSIDE }, { 'h:1': undefined }],
  ...[{ 'h:1': 'h:2' }, { 'h:1': {} }, { 'h:1': { host: 'h' } }, { 'h:1': { port: 1 } }],
  ...[{ 'h:1': { host: '', port: 1 } }, { 'h:1': { host: 5, port: 1 } }],
  ...[0, 65_536, 1.5, '1'].map((port) => ({ 'h:1': { host: 'h', port } })),
])('%j is refused by the constructor', (addressMap) => {
  const redis = { cluster: ['redis://h'], addressMap };
  const error = catchError(() => RateLimiter({ redis, interval: 1, maxInInterval: 1 }));
  expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
  expect(error.message).toContain("'redis.addressMap");
});
