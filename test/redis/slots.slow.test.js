// Slots on Redis over clusters, and held by processes that are killed and stopped, over connections that break, on a
// server that is killed and stopped.
'use strict';

const { setTimeout: pause } = require('node:timers/promises');
const { ConcurrencyLimiter } = require('../..');
const { keySlot } = require('../../lib/stores/redis/cluster');
const { waitUntil } = require('../support/outcome');
const { EACH_CLUSTER_CLIENT, openings } = require('../support/redis-clients');
const { startCluster } = require('../support/redis-cluster');
const { holdWithFaults } = require('../support/slot-faults');
const { patient } = require('../support/tiers');

describe('in a cluster', () => {
  const { using, closeAll } = openings();
  const TTL = patient(1000);
  let cluster;
  beforeAll(async () => {
    cluster = await startCluster();
  }, patient(60_000));
  afterEach(closeAll);

  // Kills: one command for keys of several hash slots; a renewal that stays with the node that a slot has left.
  test.each(EACH_CLUSTER_CLIENT)(
    '%s renews the slots of all nodes, also of a hash slot that moves',
    async (name, open) => {
      const namespace = `moving-${name}`;
      const redis = { ...using(open(cluster.urls)), commandTimeout: patient(15_000) };
      const limiter = ConcurrencyLimiter({ max: 3, ttl: TTL, namespace, redis });
      await waitUntil('it answers', async () => (await limiter.usage('a')).used === 0);
      const ids = Array.from({ length: 40 }, (_, i) => `id ${i}`);
      const slots = await Promise.all(ids.map((id) => limiter.acquire(id)));
      const moving = keySlot(`{${ids[0]}}`);
      const from = await cluster.ownerOf(moving);
      const to = cluster.nodes.find((node) => node !== from);
      await cluster.beginMove(moving, from, to);
      await cluster.moveKeys(moving, from, to);
      await cluster.endMove(moving, from, to);
      await pause(2.5 * TTL);
      expect(slots.filter(({ lost }) => lost.aborted)).toEqual([]);
      const used = await Promise.all(ids.map(async (id) => (await limiter.usage(id)).used));
      expect(used).toEqual(ids.map(() => 1));
      await limiter.close();
    },
  );
});

// Kills: belief that lasts longer than the record, or counts from the answer; a release by count.
test.each([1, 2])(
  'never more than max are held, and nothing is after the processes have died: seed %d',
  async (seed) => {
    const max = 5;
    const found = await holdWithFaults({ seed, seconds: 12, max });
    expect(found.uses).toBeGreaterThan(100);
    expect(found).toMatchObject({ inconsistent: 0, usedAfter: 0 });
    expect([found.mostUsed, found.mostOnServer]).toEqual([max, max]);
  },
  patient(120_000),
);
