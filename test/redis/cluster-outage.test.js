// One node of a cluster out of reach: onError decides for its ids, Redis for all others.
'use strict';

const RateLimiter = require('../..');
const { errorOf } = require('../support/outcome');
const { EACH_CLUSTER_CLIENT, openings } = require('../support/redis-clients');
const { startCluster } = require('../support/redis-cluster');
const { waitUntil } = require('../support/wait-until');

const IDS = Array.from({ length: 60 }, (_, i) => `id ${i}`);
let cluster;
let namespaces = 0;

beforeAll(async () => {
  cluster = await startCluster({ args: ['--cluster-require-full-coverage', 'no'] });
}, 60_000);

const limiterWith = (redis, options) => {
  namespaces += 1;
  const namespace = `outage-${namespaces}`;
  return RateLimiter({ redis, namespace, interval: 600_000, maxInInterval: 1000, ...options });
};

async function expectSoftened(limiter, ids, expected) {
  const before = limiter.stats().fallbacks;
  for (const id of ids) await limiter.peek(id);
  expect(limiter.stats().fallbacks - before).toBe(expected ? ids.length : 0);
}

describe('with one of three primaries frozen', () => {
  const { using, closeAll } = openings();
  afterEach(() => cluster.nodes[0].thaw());
  afterAll(closeAll);

  test.each(EACH_CLUSTER_CLIENT)('through %s', async (_, openCluster) => {
    const redis = { ...using(openCluster(cluster.urls)), commandTimeout: 300 };
    const limiter = limiterWith(redis, { onError: 'memory' });
    await waitUntil('all nodes answer', async () => {
      for (const id of IDS) await limiter(id);
      const { fallbacks } = limiter.stats();
      for (const id of IDS) await limiter(id);
      return limiter.stats().fallbacks === fallbacks;
    });

    await cluster.nodes[0].freeze();
    // The first call of each id finds out whether the frozen node serves it.
    await Promise.all(IDS.map((id) => limiter(id)));
    const dead = [];
    const alive = [];
    for (const id of IDS) {
      const { fallbacks } = limiter.stats();
      await limiter.peek(id);
      (limiter.stats().fallbacks > fallbacks ? dead : alive).push(id);
    }
    expect(dead.length).toBeGreaterThan(0);
    expect(alive.length).toBeGreaterThan(0);
    for (let round = 0; round < 3; round++) {
      await expectSoftened(limiter, dead, true);
      await expectSoftened(limiter, alive, false);
    }

    cluster.nodes[0].thaw();
    await waitUntil('Redis decides again', async () => {
      const { fallbacks } = limiter.stats();
      for (const id of dead) await limiter.peek(id);
      return limiter.stats().fallbacks === fallbacks;
    });
    await limiter.close();
  });
});

test('a node that is not addressed as one says what it takes', async () => {
  const limiter = limiterWith(cluster.nodes[0].url);
  const errors = await Promise.all(IDS.map((id) => errorOf(limiter(id))));
  const moved = errors.filter(Boolean);
  expect(moved.length).toBeGreaterThan(0);
  for (const { code, message } of moved) {
    expect(code).toBe('ERR_ROLLGATE_REDIS_REPLY');
    expect(message).toMatch(/(MOVED|CROSSSLOT).*node of a cluster.*\{ cluster: /);
  }
  await limiter.close();
});
