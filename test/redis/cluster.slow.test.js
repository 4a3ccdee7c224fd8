// A real cluster of three primaries, through every cluster client, with moving slots and a node out of reach.
'use strict';

const RateLimiter = require('../..');
const { keySlot } = require('../../lib/redis/cluster');
const { errorOf, outcomeOf, waitUntil } = require('../support/outcome');
const { EACH_CLUSTER_CLIENT, openings } = require('../support/redis-clients');
const { startCluster } = require('../support/redis-cluster');
const { callsOf } = require('../support/redis-server');
const { handClock } = require('../support/set-up');
const { patient } = require('../support/tiers');

const IDS = Array.from({ length: 60 }, (_, i) => `id ${i}`);
/** Waited for in full where a node is frozen. */
const SHORT = patient(1000);
let cluster;
let namespaces = 0;

beforeAll(async () => {
  // Without a node, the others go on.
  cluster = await startCluster({ args: ['--cluster-require-full-coverage', 'no'] });
}, patient(60_000));

test('slots are those of the server', async () => {
  const keys = [
    '123456789',
    'ns{a}',
    'ns{}',
    'ns{}}',
    'ns{{}',
    'ü{日本}',
    '{a}{b}',
    'no braces',
    '',
  ];
  for (const key of [...keys, 'x'.repeat(1000)]) {
    expect(keySlot(key)).toBe(await cluster.nodes[0].command('CLUSTER', 'KEYSLOT', key));
  }
});

describe.each(EACH_CLUSTER_CLIENT)('through %s', (_name, openCluster) => {
  const { using, closeAll } = openings();
  afterAll(closeAll);
  let redis;

  beforeAll(async () => {
    redis = { ...using(openCluster(cluster.urls)), commandTimeout: patient(15_000) };
    // A cluster of node-redis refuses what comes before it is connected.
    await waitUntil('the cluster answers', () => limiterWith().limiter.peek('a'));
  });

  function limiterWith(options) {
    namespaces += 1;
    const time = handClock();
    const limiter = RateLimiter({
      redis,
      namespace: `cluster-${namespaces}`,
      interval: 1000,
      maxInInterval: 2,
      countBlocked: false,
      clock: time.clock,
      ...options,
    });
    return { limiter, time };
  }

  test('decides for ids on every node', async () => {
    const { limiter, time } = limiterWith();
    for (const expected of [0, 0, 1000]) {
      const answers = await Promise.all(IDS.map((id) => limiter(id)));
      expect([...new Set(answers)]).toEqual([expected]);
    }
    time.advance(1000);
    expect(await limiter(IDS[0])).toBe(0);
  });

  test('attemptMany, refund, peek', async () => {
    const { limiter } = limiterWith();
    const decisions = await limiter.attemptMany([...IDS, ...IDS, IDS[7]]);
    expect(decisions.map(({ allowed }) => allowed)).toEqual([...Array(120).fill(true), false]);
    expect(decisions.map(({ actionsLeft }) => actionsLeft)).toEqual([
      ...Array(60).fill(1),
      ...Array(61).fill(0),
    ]);
    expect(await limiter.refund(decisions[7])).toBe(true);
    expect((await limiter.peek(IDS[7])).allowed).toBe(true);
  });

  test('clear and clearAll, on all nodes', async () => {
    const { limiter } = limiterWith();
    const other = limiterWith().limiter;
    await Promise.all([limiter.attemptMany(IDS), other.attemptMany(IDS)]);
    await limiter.clear(IDS[0]);
    expect((await limiter.peek(IDS[0])).limits[0].used).toBe(1);
    await limiter.clearAll();
    for (const id of IDS.slice(0, 20)) {
      expect((await limiter.peek(id)).limits[0].used).toBe(1);
      expect((await other.peek(id)).limits[0].used).toBe(2);
    }
  });

  test('a node that forgets its scripts', async () => {
    const { limiter } = limiterWith();
    await limiter('a');
    for (const node of cluster.nodes) {
      await node.command('SCRIPT', 'FLUSH');
      await node.command('CONFIG', 'RESETSTAT');
    }
    const answers = await Promise.all(IDS.map((id) => limiter(id)));
    expect([...new Set(answers)]).toEqual([0]);
    for (const node of cluster.nodes) expect(await callsOf(node, 'eval')).toBe(1);
  });

  test('a slot that moves', async () => {
    const { limiter } = limiterWith({ maxInInterval: 1000 });
    const slot = keySlot(`cluster-${namespaces}{a}`);
    await limiter('a');
    const from = await cluster.ownerOf(slot);
    const to = cluster.nodes.find((node) => node !== from);
    await cluster.beginMove(slot, from, to);
    await cluster.moveKeys(slot, from, to);
    expect(await limiter('a')).toBe(0);
    await cluster.endMove(slot, from, to);
    expect(await limiter('a')).toBe(0);
    expect((await limiter.peek('a')).limits[0].used).toBe(4);
  });

  test('a frozen node fails its own ids within their deadline', async () => {
    const { limiter } = limiterWith({ redis: { ...redis, commandTimeout: SHORT } });
    await limiter.attemptMany(IDS);
    const [, frozen] = cluster.nodes;
    await frozen.freeze();
    const outcomes = await Promise.all(IDS.map((id) => outcomeOf(limiter(id))));
    frozen.thaw();
    expect(new Set(outcomes).has('ERR_ROLLGATE_REDIS_TIMEOUT')).toBe(true);
    await waitUntil('all nodes answer', async () => {
      return (await limiter.attemptMany(IDS)).length === IDS.length;
    });
    await cluster.settled();
  });

  test('onError decides for the ids of a frozen node, Redis for all others', async () => {
    const { limiter } = limiterWith({
      redis: { ...redis, commandTimeout: SHORT },
      ...{ onError: 'memory', interval: 600_000, maxInInterval: 1000 },
    });
    await waitUntil('all nodes answer', async () => {
      for (const id of IDS) await limiter(id);
      const { fallbacks } = limiter.stats();
      for (const id of IDS) await limiter(id);
      return limiter.stats().fallbacks === fallbacks;
    });

    const [frozen] = cluster.nodes;
    await frozen.freeze();
    // The first call of each id finds out whether the frozen node serves it.
    await Promise.all(IDS.map((id) => limiter(id)));
    const dead = [];
    const alive = [];
    for (const id of IDS) {
      const { fallbacks } = limiter.stats();
      await limiter.peek(id);
      (limiter.stats().fallbacks > fallbacks ? dead : alive).push(id);
    }
    expect(dead.length * alive.length).toBeGreaterThan(0);
    for (let round = 0; round < 3; round++) {
      for (const [ids, softened] of [
        [dead, dead.length],
        [alive, 0],
      ]) {
        const before = limiter.stats().fallbacks;
        for (const id of ids) await limiter.peek(id);
        expect(limiter.stats().fallbacks - before).toBe(softened);
      }
    }

    frozen.thaw();
    await waitUntil('Redis decides again', async () => {
      const { fallbacks } = limiter.stats();
      for (const id of dead) await limiter.peek(id);
      return limiter.stats().fallbacks === fallbacks;
    });
    await cluster.settled();
  });
});

test('a node that is not addressed as one says what it takes', async () => {
  const limiter = RateLimiter({
    redis: { url: cluster.urls[0], commandTimeout: patient(15_000) },
    interval: 60_000,
    maxInInterval: 1000,
  });
  const errors = await Promise.all(IDS.map((id) => errorOf(limiter(id))));
  const moved = errors.filter(Boolean);
  expect(moved.length).toBeGreaterThan(0);
  for (const { code, message } of moved) {
    expect(code).toBe('ERR_ROLLGATE_REDIS_REPLY');
    expect(message).toMatch(/(MOVED|CROSSSLOT).*node of a cluster.*\{ cluster: /);
  }
  await limiter.close();
});
