// Addresses that cannot be used, from Sentinels, nodes of a cluster or addressMap: an error with a code, never a crash.
'use strict';

const RateLimiter = require('../..');
const { readRedisOptions } = require('../../lib/stores/redis/options');
const { errorOf } = require('../support/outcome');
const { nativeLimiter } = require('../support/redis-clients');
const { askProgram } = require('../support/run-program');
const { catchError } = require('../support/set-up');
const { ALLOWED, allSlotsAt, bulk } = require('../support/resp');
const peers = require('../support/tcp-peers');
const { patient } = require('../support/tiers');

const { createRedisConnection } = RateLimiter;
const UNREACHABLE = 'ERR_ROLLGATE_REDIS_UNREACHABLE';
const nodeThatSays = (map) =>
  peers.scriptedPeer(([command]) => (command === 'CLUSTER' ? map : ALLOWED));

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
  const node = await nodeThatSays(allSlotsAt('10.255.255.1', 7000));
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

test('an addressMap that throws is an error with a code', async () => {
  const node = await nodeThatSays(allSlotsAt('10.255.255.1', 7000));
  const addressMap = (announced) => {
    if (announced.startsWith('10.')) throw new Error('no map');
  };
  const error = await errorOf(nativeLimiter({ cluster: [node.url], addressMap })('a'));
  expect(error.code).toBe(UNREACHABLE);
  expect(error.message).toContain('no map');
});

test.each([-1, 0, 65_536, 70_000])('port %d of a node is an error with a code', async (port) => {
  const node = await nodeThatSays(allSlotsAt('127.0.0.1', port));
  const { code } = await errorOf(nativeLimiter({ cluster: [node.url] })('a'));
  expect(code).toMatch(/^ERR_ROLLGATE_REDIS_(REPLY|UNREACHABLE)$/);
});

// All of these would be read as the Sentinel at 127.0.0.1:26379, or lose what they say.
test.each([
  ...[{ hots: 'h' }, { host: 'h', password: 'p' }, 'unix:///s', 'redis://:p@h', 'redis://h/3'],
])('the sentinel %j is refused', (sentinel) => {
  const redis = { sentinels: [sentinel], name: 'm' };
  const error = catchError(() => RateLimiter({ redis, interval: 1, maxInInterval: 1 }));
  expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
  expect(error.message).toContain('redis.sentinels[0]');
});

test('a connection is no options of another one', () => {
  const connection = createRedisConnection('redis://h');
  for (const redis of [connection, { url: 'redis://h', client: connection }]) {
    expect(catchError(() => createRedisConnection(redis)).code).toBe('ERR_ROLLGATE_OPTION');
  }
});

test('address maps whose entries are in another order are the same', () => {
  const [one, two] = ['one', 'two'].map((host, i) => ({ host, port: i + 1 }));
  const [a, b] = [
    { 'a:1': one, 'b:2': two },
    { 'b:2': two, 'a:1': one },
  ].map((addressMap) => readRedisOptions({ redis: { cluster: ['redis://h'], addressMap } }));
  expect(a.connection).toBe(b.connection);
});
