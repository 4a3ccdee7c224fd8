// Real clusters: through every cluster client; and the native one while nodes die and slots move.
'use strict';

const RateLimiter = require('../..');
const { keySlot } = require('../../lib/stores/redis/cluster');
const { outcomeOf, waitUntil } = require('../support/outcome');
const {
  EACH_CLUSTER_CLIENT,
  nativeLimiter,
  openings,
  scriptRuns,
} = require('../support/redis-clients');
const {
  callingAll,
  callingEach,
  idsInSlotOf,
  startCluster,
  startLoad,
} = require('../support/redis-cluster');
const { callsOf } = require('../support/redis-server');
const { handClock } = require('../support/set-up');
const { patient } = require('../support/tiers');

/** Waited for in full where a node is frozen. */
const SHORT = patient(1000);
/** Without a node, the others go on. */
const ARGS = ['--cluster-require-full-coverage', 'no'];
const HOUR = 3_600_000;
/** Of a range in the reply to CLUSTER SLOTS: whether the node serves it. */
const ownedBy =
  ({ port }) =>
  ([, , [, ownerPort]]) =>
    ownerPort === port;
const sum = (a, b) => a + b;
const numbered = (count) => Array.from({ length: count }, (_, i) => `id ${i}`);

describe('three primaries', () => {
  const IDS = numbered(60);
  let cluster;

  beforeAll(async () => {
    cluster = await startCluster({ args: ARGS });
  }, patient(60_000));

  test('slots are those of the server', async () => {
    const tags = ['ns{a}', 'ns{}', 'ns{}}', 'ns{{}', 'ü{日本}', '{a}{b}'];
    for (const key of ['123456789', ...tags, 'no braces', '', 'x'.repeat(1000)]) {
      expect(keySlot(key)).toBe(await cluster.nodes[0].command('CLUSTER', 'KEYSLOT', key));
    }
  });

  describe.each(EACH_CLUSTER_CLIENT)('through %s', (name, openCluster) => {
    const { using, closeAll } = openings();
    afterAll(closeAll);
    let redis;

    beforeAll(async () => {
      redis = { ...using(openCluster(cluster.urls)), commandTimeout: patient(15_000) };
      // A cluster of node-redis refuses what comes before it is connected.
      await waitUntil('the cluster answers', () => limiterWith().peek('a'));
    });

    const limiterWith = (options) =>
      RateLimiter({ redis, interval: HOUR, maxInInterval: 2, countBlocked: false, ...options });

    test('leases of ids on all nodes, settled by `close`', async () => {
      const { clock, advance } = handClock();
      const common = { interval: 1000, maxInInterval: 100, namespace: `${name} leases`, clock };
      const limiter = limiterWith({ ...common, lease: 100 });
      for (let i = 0; i < 40; i++) {
        await Promise.all(IDS.map((id) => limiter(id)));
        advance(5);
      }
      expect(limiter.stats().leases).toBe(IDS.length);
      expect(limiter.stats().local).toBeGreaterThan(IDS.length);
      await limiter.close();
      const plain = limiterWith(common);
      const usages = await Promise.all(IDS.map((id) => plain.usage(id)));
      expect(usages.map(({ used }) => used)).toEqual(Array(IDS.length).fill(40));
    });

    test('checks of one turn are one run for each slot', async () => {
      const limiters = ['one', 'two'].map((part) => limiterWith({ namespace: `${name} ${part}` }));
      const ids = [...idsInSlotOf('together', 3), 'apart'];
      const inOneTurn = () =>
        Promise.all(limiters.flatMap((limiter) => ids.map((id) => limiter(id))));
      const runs = async () => (await Promise.all(cluster.nodes.map(scriptRuns))).reduce(sum);
      await inOneTurn(); // then its nodes have the script
      const before = await runs();
      expect(new Set(await inOneTurn())).toEqual(new Set([0]));
      expect((await runs()) - before).toBe(2);
    });

    test('attemptMany, refund, clear and clearAll, on all nodes', async () => {
      const [limiter, other] = [limiterWith(), limiterWith()];
      const usedOf = async (one) =>
        (await Promise.all(IDS.map((id) => one.usage(id)))).map(({ used }) => used);
      const [decisions] = await Promise.all([limiter, other].map((one) => one.attemptMany(IDS)));
      expect(await Promise.all(decisions.map((one) => limiter.refund(one)))).not.toContain(false);
      expect(new Set(await usedOf(limiter))).toEqual(new Set([0]));
      await limiter.attemptMany([...IDS, ...IDS]);
      await limiter.clear(IDS[0]);
      expect(await usedOf(limiter)).toEqual(IDS.map((_, i) => (i === 0 ? 0 : 2)));
      await limiter.clearAll();
      expect(new Set(await usedOf(limiter))).toEqual(new Set([0]));
      expect(new Set(await usedOf(other))).toEqual(new Set([1]));
    });

    // Kills: a hash slot without the suffix, where the braces around an id are empty.
    test('slots of ids that leave the braces empty', async () => {
      const namespace = `${name} slots`;
      const slots = RateLimiter.ConcurrencyLimiter({ redis, namespace, max: 2 });
      const slotOfAlice = keySlot(`${namespace}{alice}:slots`);
      let number = 0;
      while (keySlot(`${namespace}{}${number}}`) !== slotOfAlice) number += 1;
      // node-redis 4 sends a key with an id that begins so to a wrong node, again and again.
      const ids = name === 'node-redis 4' ? ['alice', ''] : ['alice', `}${number}`, ''];
      const held = await Promise.all(ids.map((id) => slots.acquire(id)));
      expect(held.map(({ allowed, used }) => [allowed, used])).toEqual(ids.map(() => [true, 1]));
      expect(await Promise.all(held.map((slot) => slot.release()))).not.toContain(false);
      for (const id of ids) expect((await slots.usage(id)).used).toBe(0);
      await slots.close();
    });

    test('a node that forgets its scripts', async () => {
      const limiter = limiterWith();
      await limiter('a');
      for (const node of cluster.nodes) {
        await node.command('SCRIPT', 'FLUSH');
        await node.command('CONFIG', 'RESETSTAT');
      }
      const answers = await Promise.all(IDS.map((id) => limiter(id)));
      expect([...new Set(answers)]).toEqual([0]);
      for (const node of cluster.nodes) expect(await callsOf(node, 'eval')).toBe(1);
    });

    test('a frozen node fails its own ids alone, leaves the budget of the others, and onError decides for it', async () => {
      const ids = numbered(300);
      const limits = { namespace: `budget ${name}`, maxInInterval: 1e6 };
      const own = { ...redis, commandTimeout: SHORT, maxQueue: 1000 };
      const [patientOne, strict] = [{}, { redis: own }].map((more) =>
        limiterWith({ ...limits, ...more }),
      );
      const limiter = limiterWith({ ...limits, redis: own, onError: 'memory' });
      await waitUntil('all nodes answer', () => limiter.attemptMany(ids));
      await patientOne.clearAll();
      const [frozen] = cluster.nodes;
      const ranges = (await frozen.command('CLUSTER', 'SLOTS')).filter(ownedBy(frozen));
      const slotOf = (id) => keySlot(`{${id}}`);
      const isServed = (id) => !ranges.some(([a, b]) => a <= slotOf(id) && slotOf(id) <= b);
      const others = ids.filter(isServed);
      expect(others.length * (ids.length - others.length)).toBeGreaterThan(0);
      await frozen.freeze();
      const outcomes = await Promise.all(ids.map((id) => outcomeOf(strict.usage(id))));
      expect(outcomes.map((outcome) => outcome === 'ERR_ROLLGATE_REDIS_TIMEOUT')).toEqual(
        ids.map((id) => !isServed(id)),
      );
      const ofFrozen = [];
      for (let tick = 0; tick < 100; tick++) {
        const calls = new Map(ids.map((id) => [id, limiter(id)]));
        await Promise.all(others.map((id) => calls.get(id))); // no more than the client can take
        ofFrozen.push(...calls.values());
      }
      await Promise.all(ofFrozen);
      const [lost] = ids.filter((id) => !isServed(id));
      const fallsBack = async () => {
        const { fallbacks } = limiter.stats();
        await limiter.peek(lost);
        return limiter.stats().fallbacks > fallbacks;
      };
      expect(await fallsBack()).toBe(true);
      frozen.thaw();
      await waitUntil('Redis decides again', async () => !(await fallsBack()));
      await cluster.settled();
      const counted = await waitUntil('all nodes answer', () => patientOne.attemptMany(others));
      expect(new Set(counted.map(({ limits: [{ used }] }) => used))).toEqual(new Set([101]));
    });
  });
});

describe('the native client on primaries with replicas', () => {
  const MAX = 50;
  const IDS = numbered(30);
  let cluster;
  beforeAll(async () => {
    cluster = await startCluster({ replicas: 1, args: ARGS });
  }, patient(60_000));

  const limiterAt = (redis, options) =>
    nativeLimiter(
      { cluster: cluster.urls, ...redis },
      { maxInInterval: MAX, countBlocked: false, ...options },
    );

  const slotOf = (id) => keySlot(`{${id}}`);
  const isPrimary = async (node) => (await node.command('ROLE'))[0] === 'master';

  const expectExactly = (allowed, ids, max) =>
    expect(ids.map((id) => [id, allowed.get(id)])).toEqual(ids.map((id) => [id, max]));

  test('a slot that moves to and fro under load fails no call and lets nobody have more', async () => {
    const together = idsInSlotOf('moving', 8);
    const slot = slotOf('moving');
    const limiter = limiterAt({}, { maxInInterval: 400 });
    const rivals = limiterAt({}, { maxInInterval: 400, namespace: 'rivals' });
    const loads = [
      startLoad(callingAll(limiter, together)),
      startLoad(callingEach(rivals, together), { atOnce: 20 }),
      startLoad(callingEach(limiter, IDS), { atOnce: 20 }),
    ];
    const first = await cluster.ownerOf(slot);
    const primaries = [];
    for (const node of cluster.nodes) if (await isPrimary(node)) primaries.push(node);
    const [second] = primaries.filter((node) => node !== first);
    let [from, to] = [first, second];
    for (let moves = 0; moves < 4; moves++) {
      await cluster.beginMove(slot, from, to);
      // Some keys here and some there: what asks for all of them is to be tried again.
      const keys = await from.command('CLUSTER', 'GETKEYSINSLOT', slot, 1000);
      for (const key of keys.filter((_, i) => i % 2 === 0)) {
        await from.command('MIGRATE', '127.0.0.1', to.port, key, 0, 5000);
        await limiter.attemptMany(together);
      }
      await cluster.moveKeys(slot, from, to);
      await cluster.endMove(slot, from, to);
      [from, to] = [to, from];
    }
    const [many, each] = loads;
    await waitUntil('all are full', async () => {
      const peeks = await limiter.attemptMany(together);
      const full = (id) => each.allowed.get(id) >= 400;
      return peeks.every(({ allowed }) => !allowed) && together.every(full);
    });
    const results = await Promise.all(loads.map((running) => running.stop()));
    for (const { failures } of results) expect(failures).toEqual([]);
    expectExactly(each.allowed, together, 400);
    for (const id of together) expect(many.allowed.get(id)).toBeLessThanOrEqual(400);
    const tryAgain = [];
    for (const node of [first, second]) tryAgain.push(await node.command('INFO', 'errorstats'));
    expect(tryAgain.join()).toContain('errorstat_TRYAGAIN');
    expect(tryAgain.join()).toContain('errorstat_ASK');
  });

  test('a planned failover under load fails no call and is exact', async () => {
    const limiter = limiterAt({}, { maxInInterval: 2000 });
    const running = startLoad(callingEach(limiter, IDS), { atOnce: 20 });
    await cluster.failOver(await cluster.ownerOf(slotOf(IDS[0])));
    await waitUntil('all ids are full', () => IDS.every((id) => running.allowed.get(id) >= 2000));
    const { allowed, failures } = await running.stop();
    expect(failures).toEqual([]);
    expectExactly(allowed, IDS, 2000);
  });

  test('a node that dies under load fails its own ids alone, and its replica takes over', async () => {
    const limiter = limiterAt({ commandTimeout: patient(1000), retry: { min: 50, max: 500 } });
    await Promise.all(IDS.map((id) => limiter.attempt(id, { cost: MAX })));
    const owners = await Promise.all(IDS.map((id) => cluster.ownerOf(slotOf(id))));
    const [victim] = owners;
    const lost = IDS.filter((_, i) => owners[i] === victim);
    const kept = IDS.filter((_, i) => owners[i] !== victim);
    expect(kept.length).toBeGreaterThan(0);
    await cluster.replicated(victim);

    const ofOthers = startLoad(callingEach(limiter, kept));
    const ofVictim = startLoad(callingEach(limiter, lost));
    await cluster.failOver(victim, { kill: true });
    const peek = () => limiter.attemptMany(lost);
    const decisions = await waitUntil('its ids are decided on again', peek);
    const others = await ofOthers.stop();
    const { failures } = await ofVictim.stop();

    expect(others.failures).toEqual([]);
    expect(others.made).toBeGreaterThan(0);
    expect(failures.length).toBeGreaterThan(0);
    for (const { code } of failures) {
      expect(code).toMatch(/^ERR_ROLLGATE_REDIS_(TIMEOUT|UNREACHABLE|REPLY)$/);
    }
    expect(decisions.map(({ allowed }) => allowed)).toEqual(lost.map(() => false));
    expect([...others.allowed, ...ofVictim.allowed]).toEqual([]);
    await victim.restart();
    await cluster.settled();
  });

  test('a node that hangs is left once its replica has taken over', async () => {
    const limiter = limiterAt({ commandTimeout: patient(500), connectTimeout: 300_000 });
    await Promise.all(IDS.map((id) => limiter.attempt(id, { cost: MAX })));
    const victim = await cluster.ownerOf(slotOf(IDS[0]));
    await cluster.replicated(victim);
    await victim.freeze();
    const [other] = cluster.nodes.filter((node) => node !== victim);
    const hasNewOwner = async () =>
      !(await other.command('CLUSTER', 'SLOTS')).some(ownedBy(victim));
    await waitUntil('the replica has taken over', async () => {
      await outcomeOf(limiter(IDS[0]));
      return hasNewOwner();
    });
    // While the old owner still hangs, and its connection with it.
    await waitUntil('its ids are decided on again', () => limiter.peek(IDS[0]));
    victim.thaw();
    expect((await limiter.attemptMany(IDS)).some(({ allowed }) => allowed)).toBe(false);
    await cluster.settled();
  });

  test(
    'a whole cluster that dies fails every call in time, and serves again when it is back',
    async () => {
      const limiter = limiterAt({ commandTimeout: patient(1000), retry: { min: 50, max: 500 } });
      await limiter.attemptMany(IDS);
      await Promise.all(cluster.nodes.map((node) => node.stop()));
      for (let round = 0; round < 3; round++) {
        const calls = IDS.map((id) => limiter(id));
        calls.push(limiter.attemptMany(IDS), limiter.clearAll());
        for (const outcome of await Promise.all(calls.map((call) => outcomeOf(call)))) {
          expect(outcome).toMatch(/_UNREACHABLE$|_TIMEOUT$/);
        }
      }
      await Promise.all(cluster.nodes.map((node) => node.restart()));
      await cluster.settled();
      await waitUntil('all ids are decided on again', () => limiter.attemptMany(IDS));
    },
    patient(60_000),
  );
});
