// Slots on Redis over clusters, and held by processes that are killed and stopped, over connections that break, on a
// server that is killed and stopped.
'use strict';

const { setTimeout: pause } = require('node:timers/promises');
const { ConcurrencyLimiter } = require('../..');
const { keySlot } = require('../../lib/stores/redis/cluster');
const { runWithFaults } = require('../support/faults');
const { waitUntil } = require('../support/outcome');
const { EACH_CLUSTER_CLIENT, openings, redisAt } = require('../support/redis-clients');
const { startCluster } = require('../support/redis-cluster');
const { startRedis } = require('../support/redis-server');
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

/** Of each id: the units that its state claims, and those of its tokens. */
const UNITS = `
  local found = {}
  for _, key in ipairs(KEYS) do
    local units = 0
    for _, token in ipairs(redis.call('ZRANGE', key, 0, -1)) do
      if token ~= '' then units = units + token:byte(15) + 256 * token:byte(16) end
    end
    found[#found + 1] = units
    found[#found + 1] = -(redis.call('ZSCORE', key, '') or 0)
  end
  return found`;

/** The most that were in use at once, of { first, last } times. */
function mostAtOnce(uses) {
  const edges = uses.flatMap(({ first, last }) => [
    [first, 1],
    [last, -1],
  ]);
  edges.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  let now = 0;
  return Math.max(...edges.map(([, change]) => (now += change)));
}

// Kills: belief that lasts longer than the record, or counts from the answer; a release by count.
test.each([1, 2])(
  'never more than max are held, and nothing is after the processes have died: seed %d',
  async (seed) => {
    const IDS = ['a', 'b', 'c'];
    const slots = { max: 5, ttl: 1000, namespace: 'faults' };
    const server = await startRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
    /** First and last use of each unit of each slot. */
    const uses = new Map();
    const note = ([id, unit, time]) => {
      const { first = time } = uses.get(unit) ?? {};
      uses.set(unit, { id, first, last: time });
    };
    let mostOnServer = 0;
    let differing = 0;
    let isOver = false;
    async function watch() {
      const keys = IDS.map((id) => `${slots.namespace}{${id}}:slots`);
      while (!isOver) {
        await pause(5);
        if (server.frozen || server.pid === undefined) continue;
        const units = await server.command('EVAL', UNITS, keys.length, ...keys).catch(() => []);
        for (let i = 0; i < units.length; i += 2) if (units[i] !== units[i + 1]) differing += 1;
        mostOnServer = Math.max(mostOnServer, ...units);
      }
    }
    const watched = watch();
    const program = { program: 'slot-holder.js', given: { ...slots, ids: IDS }, note };
    const more = { restart: () => server.restart() };
    const ended = runWithFaults({ server, ...program, seed, seconds: 12, more });
    await ended.finally(() => {
      isOver = true;
      return watched;
    });
    await pause(slots.ttl + 1000); // then all that the dead held has run out
    const limiter = ConcurrencyLimiter({ ...slots, redis: redisAt(server.url) });
    for (const id of IDS) expect((await limiter.usage(id)).used).toBe(0);
    await limiter.close();
    expect(uses.size).toBeGreaterThan(100);
    const usesOf = (id) => [...uses.values()].filter((use) => use.id === id);
    expect(Math.max(...IDS.map((id) => mostAtOnce(usesOf(id))))).toBe(slots.max);
    expect({ mostOnServer, differing }).toEqual({ mostOnServer: slots.max, differing: 0 });
  },
  patient(120_000),
);
