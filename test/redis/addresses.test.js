// Addresses from Sentinels, from nodes of a cluster and through addressMap, for servers that announce addresses which
// nobody outside can reach: those that cannot be used are an error with a code, never a crash.
'use strict';

const assert = require('node:assert');
const RateLimiter = require('../..');
const { errorOf } = require('../support/outcome');
const { nativeLimiter } = require('../support/redis-clients');
const { startRedis } = require('../support/redis-server');
const { ALLOWED, allSlotsAt, bulk } = require('../support/resp');
const { askProgram } = require('../support/run-program');
const { catchError } = require('../support/set-up');
const peers = require('../support/tcp-peers');
const { patient } = require('../support/tiers');

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
    ['an object', ({ port }) => ({ [announced]: { host: 'localhost', port } })],
    ['a function', (node) => (address) => (address === announced ? outside(node) : undefined)],
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
    ['no entry', () => undefined, 'has no { host, port }'],
    ['a promise', async () => INSIDE, 'has no { host, port }'],
    ['no port', () => ({ host: '127.0.0.1' }), 'has no { host, port }'],
    ['an error', () => assert.fail('no map'), 'no map'],
  ])('for whose address there is %s fails the call, and says why', async (_what, mapped, why) => {
    const seed = await nodeInside();
    const addressMap = (address) => (address === announced ? mapped() : undefined);
    const error = await errorOf(nativeLimiter({ cluster: [seed.url], addressMap })('a'));
    expect(error.code).toBe(UNREACHABLE);
    expect(error.message).toMatch(/'redis.addressMap'/);
    expect(error.message).toContain(why);
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

/** In a process of its own, which must live on. */
const codeIn = (redis) =>
  askProgram(`
    const RateLimiter = require('rollgate');
    const options = { commandTimeout: ${patient(15_000)}, ${redis} };
    const limiter = RateLimiter({ redis: options, interval: 1000, maxInInterval: 1 });
    limiter('a').then(String, ({ code }) => code).then((code) => console.log(JSON.stringify(code)));
  `);

test('a host that is empty, or a name without addresses, is an error', async () => {
  const sentinel = await peers.scriptedPeer(() => `*2\r\n${bulk('')}${bulk('6379')}`);
  const node = await nodeInside();
  const codes = await Promise.all([
    codeIn(`sentinels: ['${sentinel.url}'], name: 'm'`),
    codeIn(`cluster: ['${node.url}'],
            addressMap: (at) => at.startsWith('10.') ? { host: '', port: 1 } : undefined`),
    codeIn(`host: (require('node:dns').promises.lookup = async () => [], 'none.test')`),
  ]);
  expect(codes).toEqual([UNREACHABLE, UNREACHABLE, UNREACHABLE]);
});

// Each new attempt to connect would begin another lookup, which keeps the process alive, before the last one ends.
test('a lookup or a Sentinel slower than connectTimeout does not keep a program alive', async () => {
  const silent = await peers.silentPeer();
  const short = 'connectTimeout: 100, retry: { min: 1, max: 50 }';
  const lookup = `() => new Promise((_, reject) => setTimeout(reject, 1500, new Error('late')))`;
  const codes = await Promise.all([
    codeIn(`host: (require('node:dns').promises.lookup = ${lookup}, 'late.test'), ${short}`),
    codeIn(`${short}, sentinels: ['${silent.url}'], name: 'm', commandTimeout: 1500`),
  ]);
  expect(codes).toEqual([UNREACHABLE, UNREACHABLE]);
});

// Kills: Sentinels that are asked one after the other; a map of a cluster that is asked for though no call needs it.
test('a Sentinel or a node that hangs does not hold up a first call, or the end of a program', async () => {
  const silent = await peers.silentPeer();
  const master = await peers.scriptedPeer(([command]) => {
    if (command === 'SENTINEL') return `*2\r\n${bulk('127.0.0.1')}${bulk(String(master.port))}`;
    return command === 'ROLE' ? `*1\r\n${bulk('master')}` : ALLOWED;
  });
  const sentinels = [silent.url, master.url];
  expect(await nativeLimiter({ sentinels, name: 'm', commandTimeout: 15_000 })('a')).toBe(0);
  const code = await codeIn(`cluster: ['${silent.url}'], commandTimeout: 200`);
  expect(code).toBe('ERR_ROLLGATE_REDIS_TIMEOUT');
  expect(silent.connections).toBeLessThan(4);
});

test.each([-1, 0, 65_536])('port %d of a node is an error with a code', async (port) => {
  const node = await peers.scriptedPeer(() => allSlotsAt('127.0.0.1', port));
  const { code } = await errorOf(nativeLimiter({ cluster: [node.url] })('a'));
  expect(code).toMatch(/^ERR_ROLLGATE_REDIS_(REPLY|UNREACHABLE)$/);
});

test.each([
  ...[
    ...[5, null, [], { h: INSIDE }, { 'h:': INSIDE }, { ':1': INSIDE }, { 'h:1': undefined }],
    ...[{ 'h:1': { host: 'h' } }, { 'h:1': { port: 1 } }, { 'h:1': { host: '', port: 1 } }],
    ...[0, 65_536].map((port) => ({ 'h:1': { host: 'h', port } })),
  ].map((addressMap) => ['redis.addressMap', { cluster: ['redis://h'], addressMap }]),
  // These would be read as the Sentinel at 127.0.0.1:26379, or lose what they say.
  ...[
    ...[{ hots: 'h' }, { host: 'h', password: 'p' }, 'unix:///s', 'redis://:p@h', 'redis://h/3'],
  ].map((sentinel) => ['redis.sentinels[0]', { sentinels: [sentinel], name: 'm' }]),
])('refuses what is wrong in %s: %j', (option, redis) => {
  const error = catchError(() => RateLimiter({ redis, interval: 1, maxInInterval: 1 }));
  expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
  expect(error.message).toContain(option);
});
