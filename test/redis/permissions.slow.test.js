// The permissions that docs/redis.md asks for are enough for everything, and for a limiter none is too many.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { setTimeout: pause } = require('node:timers/promises');
const Redis = require('ioredis');
const { createCluster } = require('redis');
const { ConcurrencyLimiter } = require('../..');
const { keySlot } = require('../../lib/stores/redis/cluster');
const { ALGORITHMS } = require('../../lib/options/algorithms');
const { EACH_CLIENT, nativeLimiter, openings } = require('../support/redis-clients');
const { startCluster } = require('../support/redis-cluster');
const { startRedis } = require('../support/redis-server');
const { patient } = require('../support/tiers');

const page = fs.readFileSync(path.join(__dirname, '../../docs/redis.md'), 'utf8');
const [, section] = page.split('## Permissions\n');

/** By the first words of its row in the table. */
function commandsFor(purpose) {
  const row = section.split('\n').find((line) => line.startsWith(`| ${purpose}`));
  return row
    .split(' | ')[1]
    .replaceAll('\\|', '|')
    .match(/\+[a-z|-]+/g);
}

const DECISIONS = commandsFor('every limiter');
const SLOTS = commandsFor('[slots]');
const CLEARS = [...commandsFor('`clear`'), ...commandsFor('`clearAll`')];
const DATABASE = commandsFor('a database');
const NAME = commandsFor('`connectionName`');
const [, , ...CLUSTER_CLIENTS] = commandsFor('a cluster');
const CLUSTER = commandsFor('a cluster').slice(0, 2);
const [INFO] = commandsFor('a client of node-redis 3');
const [ROLE, GET_MASTER] = commandsFor('Sentinel');

const REFUSED = {
  code: 'ERR_ROLLGATE_REDIS_AUTH',
  message: expect.stringContaining('docs/redis.md#permissions'),
};
const { using, closeAll } = openings();
let namespaces = 0;

const permit = (server, ...rules) =>
  server.command('ACL', 'SETUSER', 'limits', 'reset', 'on', '>secret', '~login*', ...rules);

const urlOf = (server, database = '') =>
  `${server.url.replace('//', '//limits:secret@')}/${database}`;

const newLimiter = (redis, options) => {
  namespaces += 1;
  return nativeLimiter(redis, { namespace: `login-${namespaces}`, ...options });
};

/** All that limiters do on a server that has not seen the scripts; rejects if anything of it fails. */
async function doEverything(redis, { clears = true } = {}) {
  const policies = [
    { countBlocked: false },
    { limits: [1000, 60_000].map((interval) => ({ interval, maxInInterval: 2 })) },
    { minDifference: 1, blockFor: 1000 },
    { maxInInterval: 600 },
  ];
  for (const [algorithm, policy] of ALGORITHMS.flatMap((name) => policies.map((p) => [name, p]))) {
    const limiter = newLimiter(redis, { algorithm, ...policy });
    const decision = await limiter.attempt('a');
    await limiter.peek('a');
    await limiter.attemptMany(['a', 'b', 'b', 'b']);
    await limiter.refund(await limiter.attempt('c'));
    await limiter.refund(decision);
    for (let i = 0; i < 3; i++) await limiter.attempt('refused');
    if (policy.maxInInterval === 600) {
      await limiter.attempt('long', { cost: 500 });
      for (let i = 0; i < 2; i++) await limiter.attempt('long');
      await limiter.peek('long');
    }
    if (!clears) continue;
    await limiter.clear('b');
    await limiter.clearAll();
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true });
  }
}

describe('on one server', () => {
  let server;

  beforeAll(async () => {
    server = await startRedis();
    jest.spyOn(console, 'warn').mockImplementation(() => {}); // ioredis, without INFO
  });
  beforeEach(() => server.command('SCRIPT', 'FLUSH'));
  afterEach(closeAll);

  test('the command in the docs is that of the table', async () => {
    const [command] = section.match(/^ACL SETUSER .*$/m);
    expect(command.match(/\+[a-z|-]+/g)).toEqual([...DECISIONS, ...CLEARS]);
    await server.command(...command.split(' '));
    const url = `redis://limits:password@127.0.0.1:${server.port}`;
    const [own, foreign] = ['login', 'logins'].map((namespace) => newLimiter(url, { namespace }));
    expect([await own('a'), await own('b')]).toEqual([0, 0]);
    await own.clearAll();
    await expect(foreign('a')).rejects.toMatchObject(REFUSED);
  });

  test.each(EACH_CLIENT)('%s does everything with those of the table', async (name, open) => {
    const own = name === 'node-redis 3' ? [INFO] : [];
    await permit(server, ...DECISIONS, ...CLEARS, ...own);
    await doEverything(using(open(urlOf(server))));
  });

  test.each([...DECISIONS, ...CLEARS])('misses %s', async (missing) => {
    const others = [...DECISIONS, ...CLEARS].filter((command) => command !== missing);
    await permit(server, ...others);
    await expect(doEverything({ url: urlOf(server) })).rejects.toMatchObject(REFUSED);
  });

  test('slots do everything with those of their row', async () => {
    await permit(server, ...SLOTS);
    const redis = { url: urlOf(server), commandTimeout: patient(15_000) };
    const limiter = ConcurrencyLimiter({ max: 1, ttl: 1000, namespace: 'login-slots', redis });
    const slot = await limiter.acquire('a');
    await limiter.acquire('a');
    await limiter.usage('a');
    await pause(500); // until it is renewed
    expect(await slot.release()).toBe(true);
    expect(limiter.stats().errors).toBe(0);
    await limiter.close();
  });

  test('without those for clearing, all but clearing is possible', async () => {
    await permit(server, ...DECISIONS);
    await doEverything({ url: urlOf(server) }, { clears: false });
  });

  test.each([
    [DATABASE, { url: (of) => urlOf(of, 2) }],
    [NAME, { url: urlOf, connectionName: 'limits' }],
  ])('%p: for a connection that needs it', async (commands, { url, ...options }) => {
    const redis = { url: url(server), ...options };
    await permit(server, ...DECISIONS, ...CLEARS, ...commands);
    await doEverything(redis);
  });
});

test('with Sentinel, the master needs one more, and so do the Sentinels', async () => {
  const master = await startRedis();
  const sentinel = await startRedis({ args: ['--sentinel'], keepsConfig: true });
  await sentinel.command('SENTINEL', 'MONITOR', 'mymaster', '127.0.0.1', master.port, 1);
  const user = { username: 'limits', password: 'secret' };
  const redis = {
    ...user,
    sentinels: [sentinel.url],
    name: 'mymaster',
    retry: { min: 1, max: 20 },
  };
  const asUser = { ...redis, sentinelUsername: 'limits', sentinelPassword: 'secret' };
  await permit(master, ...DECISIONS, ...CLEARS);
  await permit(sentinel);
  await expect(newLimiter(redis)('a')).rejects.toMatchObject(REFUSED);
  await permit(master, ...DECISIONS, ...CLEARS, ROLE);
  await doEverything(redis);
  await expect(newLimiter(asUser)('a')).rejects.toMatchObject({
    message: expect.stringContaining('NOPERM'),
  });
  await permit(sentinel, GET_MASTER);
  expect(await newLimiter(asUser)('a')).toBe(0);
});

describe('in a cluster', () => {
  let cluster;

  beforeAll(async () => {
    cluster = await startCluster();
  }, patient(60_000));
  afterEach(closeAll);

  const permitAll = (...rules) => Promise.all(cluster.nodes.map((node) => permit(node, ...rules)));

  /** Everything, while the slot of one more id moves. */
  async function doEverythingInCluster(
    redis = { cluster: cluster.nodes.map((node) => urlOf(node)) },
  ) {
    const slot = keySlot('{moving}');
    const from = await cluster.ownerOf(slot);
    const to = cluster.nodes.find((node) => node !== from);
    const limiter = newLimiter(redis);
    await doEverything(redis);
    await cluster.beginMove(slot, from, to);
    try {
      await limiter('moving');
    } finally {
      await cluster.moveKeys(slot, from, to);
      await cluster.endMove(slot, from, to);
    }
  }

  test('the native client does everything with those of the table', async () => {
    await permitAll(...DECISIONS, ...CLEARS, ...CLUSTER);
    await doEverythingInCluster();
  });

  const login = { username: 'limits', password: 'secret' };
  const clients = {
    ioredis() {
      const hosts = cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port }));
      return new Redis.Cluster(hosts, { redisOptions: login }).on('error', () => {});
    },
    async 'node-redis'() {
      const rootNodes = cluster.nodes.map(({ url }) => ({ url }));
      const client = createCluster({ rootNodes, defaults: login }).on('error', () => {});
      await client.connect();
      return client;
    },
  };

  test.each([
    ['ioredis', CLUSTER_CLIENTS],
    ['node-redis', CLUSTER_CLIENTS.slice(0, 1)],
  ])('a client of %s does everything with %p as well', async (name, own) => {
    await permitAll(...DECISIONS, ...CLEARS, ...CLUSTER, ...own);
    await doEverythingInCluster(using({ client: await clients[name]() }));
  });

  test('without +asking, a call for a slot that moves is sent back', async () => {
    await permitAll(...DECISIONS, ...CLEARS, '+cluster|slots');
    const code = 'ERR_ROLLGATE_REDIS_REPLY';
    await expect(doEverythingInCluster()).rejects.toMatchObject({ code });
  });
});
