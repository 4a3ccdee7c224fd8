// Costs by window and settled attempts in the Redis scripts: random traces against an oracle that keeps every entry.
'use strict';

const Redis = require('ioredis');
const RateLimiter = require('../..');
const { ALGORITHMS } = require('../../lib/options/algorithms');
const { NUMBERS, RECORDS } = require('../../lib/base/decision');
const { readLimiterOptions } = require('../../lib/limiter/options');
const { createRedisStore } = require('../../lib/stores/redis/store');
const SCRIPTS = require('../../lib/stores/redis/scripts');
const { callNumbers, groupHead, runWords } = require('../../lib/stores/redis/script');
const { OPERATIONS, isAttempt } = require('../../lib/stores/remote/operations');
const { expectEqual } = require('../support/outcome');
const { startRedis } = require('../support/redis-server');
const { LOG, scriptsOnRedis, START_US } = require('../support/scripts-on-redis');
const { handClock } = require('../support/set-up');
const { casesOf } = require('../support/tiers');
const { randomFrom, randomStep } = require('../support/traces');

const TRACES = casesOf(process.env.ROLLGATE_SANITIZED ? 20 : 60);
const STEPS = 80;
const [ONE_AMOUNT, AMOUNTS] = [-1, -2]; // in place of a cost
const [COUNT, MIN_DIFFERENCE, BLOCK, NEVER] = [1, 2, 4, 9];
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
const { max, min, floor } = Math;

/** The log and the aligned windows as their rules say, from all that was ever recorded for one id. */
class Oracle {
  entries = []; // { at, costs }, in the order of their attempts
  blockUntil = -Infinity;
  offences = 0;
  dropped = -Infinity; // the newest
  latest = -Infinity; // of all attempts that were ever recorded

  constructor(policy) {
    this.policy = policy;
  }

  get newest() {
    if (this.policy.algorithm !== LOG) return this.latest;
    return this.entries.at(-1)?.at ?? this.dropped;
  }

  used(w, at) {
    const { algorithm, limits } = this.policy;
    const { interval } = limits[w];
    const costsWhere = (isIn) => sum(this.entries.filter(isIn).map(({ costs }) => costs[w]));
    if (algorithm === LOG) return costsWhere((entry) => entry.at > at - interval && entry.at <= at);
    const windowOf = (time) => floor(time / interval);
    const current = costsWhere((entry) => windowOf(entry.at) === windowOf(at));
    if (algorithm === 'fixed-window') return current;
    const previous = costsWhere((entry) => windowOf(entry.at) === windowOf(at) - 1);
    const left = (windowOf(at) + 1) * interval - at;
    return current + Number((BigInt(previous) * BigInt(left)) / BigInt(interval));
  }

  isBlocked(now, costs) {
    const { limits, minDifference } = this.policy;
    const at = max(now, this.newest);
    if (limits.some(({ maxInInterval }, w) => costs[w] > maxInInterval)) return NEVER;
    if (at < this.blockUntil) return BLOCK;
    if (sum(costs) === 0) return 0;
    const isFull = limits.some(
      ({ maxInInterval }, w) => costs[w] > 0 && this.used(w, at) + costs[w] > maxInInterval,
    );
    return (isFull ? COUNT : 0) + (at - this.newest < minDifference ? MIN_DIFFERENCE : 0);
  }

  /** The first moment from `now` on at which `holds`, which it does forever then. */
  first(now, holds) {
    if (this.policy.algorithm !== LOG) {
      let [before, since] = [now - 1, 2 * max(now, this.newest, START_US + 1e12)];
      while (since - before > 1) {
        const middle = floor((before + since) / 2);
        if (holds(middle)) since = middle;
        else before = middle;
      }
      return since;
    }
    const moments = new Set([now, max(now, this.newest), this.blockUntil]);
    moments.add(this.newest + this.policy.minDifference);
    for (const { interval } of this.policy.limits) {
      for (const { at } of this.entries) moments.add(at + interval);
    }
    const later = [...moments].filter((moment) => moment >= now).sort((a, b) => a - b);
    return later.find(holds);
  }

  /** What the script answers, but for the moment and the generation. */
  answer(now, costs, isRecorded) {
    const { limits, countBlocked, blockFor, algorithm, isNamed } = this.policy;
    const at = max(now, this.newest);
    const keepsMax = countBlocked && algorithm === LOG && !isNamed;
    const blocked = this.isBlocked(now, costs);
    const entry = { at, costs };
    const before = { ...this };
    if (sum(costs) > 0 && (blocked === 0 || (countBlocked && blocked < BLOCK))) {
      this.entries = [...this.entries, entry];
      this.latest = at;
      if (this.policy.algorithm === LOG) this.drop(at);
    }
    const longest = max(...limits.map(({ interval }) => interval));
    if (blockFor.length > 0 && blocked !== 0 && blocked < BLOCK) {
      const offences = at >= this.blockUntil + longest ? 0 : this.offences;
      this.offences = min(offences + 1, blockFor.length);
      this.blockUntil = at + blockFor[this.offences - 1];
    }
    const isAllowed = (given) => (moment) => this.isBlocked(moment, given) === 0;
    const waits = blocked !== 0 && blocked !== NEVER;
    const timeLeft = waits ? this.first(now, isAllowed(costs)) - now : 0;
    const wait = this.first(now, isAllowed(limits.map(() => 1))) - now;
    const uses = limits.map(({ maxInInterval }, w) => {
      const shown = (moment) => {
        const used = this.used(w, max(moment, this.newest));
        return keepsMax ? min(used, maxInInterval) : used;
      };
      const used = shown(now);
      const taken = min(used, maxInInterval);
      const resetIn = used === 0 ? 0 : this.first(now, (moment) => shown(moment) < taken) - now;
      return { used, remaining: maxInInterval - taken, resetIn };
    });
    const left = min(...uses.map(({ remaining }) => remaining));
    const tightest = uses.filter(({ remaining }) => remaining === left);
    const resetIn = max(...tightest.map((use) => use.resetIn));
    if (!isRecorded) Object.assign(this, before);
    return {
      entry: blocked === 0 ? entry : undefined,
      numbers: [
        ...[
          blocked,
          blocked === NEVER ? longest : timeLeft,
          left,
          waits ? timeLeft : resetIn,
          wait,
        ],
        ...uses.flatMap((use) => [use.used, use.resetIn]),
      ],
    };
  }

  /** What has left every window is gone, even if the clock steps back later. */
  drop(at) {
    const { limits, minDifference } = this.policy;
    const retention = max(minDifference, ...limits.map(({ interval }) => interval));
    const gone = this.entries.filter((entry) => at - entry.at >= retention);
    this.dropped = max(this.dropped, ...gone.map((entry) => entry.at));
    this.entries = this.entries.slice(gone.length);
  }

  /** Whether an attempt may be unknown because no window has it any more. */
  mayHaveForgotten(at, costs, now) {
    const { algorithm, limits } = this.policy;
    const kept = algorithm === 'fixed-window' ? 1 : 2;
    const hasLeft = ({ interval }) =>
      algorithm === LOG
        ? max(now, this.newest) - at >= interval
        : floor(this.newest / interval) - floor(at / interval) >= kept;
    return at <= this.dropped || limits.every((limit, w) => costs[w] === 0 || hasLeft(limit));
  }

  settle(entry, actual) {
    entry.costs = actual;
    if (this.policy.algorithm !== LOG || sum(actual) > 0) return;
    this.entries = this.entries.filter((one) => one !== entry);
  }

  clear() {
    Object.assign(this, new Oracle(this.policy));
  }
}

const clockOf = (random, unit) => {
  let now = START_US;
  return () => {
    now += random.chance(10) ? -random.between(1, 3 * unit) : randomStep(random, unit);
    return now;
  };
};

/** The log with few entries before it merges them, and written in parts as soon as it can be. */
const CHANGES = [
  ['MOST_ENTRIES = 0xA6, 1024', 'MOST_ENTRIES = 0xA6, 16'],
  ['local CELLS = 512', 'local CELLS = 8'],
  ['local MOST_WASTED = 64', 'local MOST_WASTED = 3'],
  ['local FEW_BYTES = 1024', 'local FEW_BYTES = 40'],
];
const changed = (source, changes) =>
  changes.reduce((text, [from, to]) => text.replace(from, to), source);
const IN_PARTS = changed(SCRIPTS[LOG].source, CHANGES.slice(2));
const MERGING = changed(SCRIPTS[LOG].source, CHANGES);

describe('the scripts with costs', () => {
  const script = scriptsOnRedis();

  function run(policy, key, operation, { isFull = true, now, cost, receipt = [] }) {
    const { limits, minDifference, blockFor, countBlocked, sha1 } = policy;
    const numbers = [
      ...[countBlocked ? 1 : 0, minDifference, 0, limits.length, blockFor.length],
      ...limits.flatMap(({ interval, maxInInterval }) => [interval, maxInInterval]),
      ...blockFor,
    ];
    let [number, amounts] = [cost, []];
    if (typeof cost !== 'number') [number, amounts] = [policy.isNamed ? AMOUNTS : ONE_AMOUNT, cost];
    else if (cost > 1) [number, amounts] = [ONE_AMOUNT, [cost]]; // as the native client
    const call = callNumbers(OPERATIONS[operation], isFull, now, number, ...receipt);
    const isApart = policy.algorithm === LOG || !isAttempt(call[0]);
    const question = { head: groupHead(call, numbers), isApart };
    return script.redis.evalsha(
      sha1 ?? SCRIPTS[policy.algorithm].sha1,
      ...runWords([{ question, keys: [key], amounts }]),
    );
  }

  const costOf = ({ isNamed }, costs) => (isNamed ? costs : costs[0]);
  /** What an attempt cost, and what it came to. */
  const settledCostOf = ({ isNamed }, costs, actual) =>
    isNamed ? [...costs, ...actual] : [costs[0], actual[0]];

  /** Attempts, peeks and settlements at random; `check(came, expected)` for each. */
  async function runTrace(random, policy, { key, steps, unit, mostCost, largestActual, check }) {
    const oracle = new Oracle(policy);
    const next = clockOf(random, unit);
    const made = [];
    // Behind an attempt that was settled, a log may be more cautious: see traces.test.js.
    let notBefore = -Infinity;
    const costsOf = () => {
      for (;;) {
        const smallest = min(...policy.limits.map((limit) => limit.maxInInterval));
        const one = random.between(1, min(smallest, mostCost));
        const costs = policy.limits.map(({ maxInInterval }) => {
          if (!policy.isNamed) return random.chance(50) ? 1 : one;
          if (random.chance(25)) return 0;
          return random.chance(50) ? 1 : random.between(1, min(maxInInterval, mostCost));
        });
        if (random.chance(5)) costs[0] = policy.limits[0].maxInInterval + 1;
        if (!policy.isNamed) costs.fill(costs[0]);
        if (sum(costs) > 0) return costs;
      }
    };
    for (let step = 0; step < steps; step++) {
      const now = max(next(), notBefore);
      const kind = random.between(1, 100);
      const context = { policy, step, now };
      if (kind <= 60) {
        const costs = costsOf();
        const reply = await run(policy, key, 'ATTEMPT', { now, cost: costOf(policy, costs) });
        const { entry, numbers } = oracle.answer(now, costs, true);
        check([...reply.slice(0, 5), ...reply.slice(7)], numbers, { ...context, costs });
        if (reply[0] === 0) made.push({ entry, costs, receipt: reply.slice(5, 7) });
      } else if (kind <= 75) {
        const costs = random.chance(20) ? policy.limits.map(() => 0) : costsOf();
        const reply = await run(policy, key, 'PEEK', { now, cost: costOf(policy, costs) });
        const { numbers } = oracle.answer(now, costs, false);
        check([...reply.slice(0, 5), ...reply.slice(7)], numbers, { ...context, costs });
      } else if (kind <= 97) {
        if (made.length === 0) continue;
        const [{ entry, costs, receipt }] = made.splice(random.between(0, made.length - 1), 1);
        const actual = costs.map((cost) =>
          random.chance(30) ? 0 : random.between(0, largestActual(cost)),
        );
        if (!policy.isNamed || random.chance(20)) actual.fill(actual[0]);
        const cost = settledCostOf(policy, costs, actual);
        const [found] = await run(policy, key, 'SETTLE', { isFull: false, now, cost, receipt });
        // It may have been dropped only once it has left the longest window.
        const isOld = oracle.mayHaveForgotten(receipt[0], costs, now);
        if (!isOld) expect({ ...context, found }).toEqual({ ...context, found: 1 });
        if (found === 1) oracle.settle(entry, actual);
        else expect(isOld).toBe(true);
        notBefore = max(notBefore, receipt[0]);
      } else {
        await script.redis.del(key);
        oracle.clear();
        for (const { receipt } of made) {
          const each = (value) => policy.limits.map(() => value);
          const cost = settledCostOf(policy, each(1), each(0));
          const [found] = await run(policy, key, 'SETTLE', { isFull: false, now, cost, receipt });
          expect(found).toBe(0);
        }
        made.length = 0;
      }
      await script.redis.persist(key);
    }
  }

  function randomPolicy(random, algorithm, { isNamed, unit, largest = [5, 40, 3000], least = 1 }) {
    const limits = Array.from({ length: random.between(1, 3) }, () => ({
      interval: unit * random.pick([3, 10, 25, 60]),
      maxInInterval: random.between(least, random.pick(largest)),
    }));
    return {
      algorithm,
      isNamed,
      limits,
      countBlocked: random.chance(30),
      minDifference: random.chance(20) ? random.between(1, 2 * unit) : 0,
      blockFor: random.chance(15) ? [unit, 5 * unit] : [],
    };
  }

  const overdraft = (random) => (cost) =>
    random.chance(70) ? cost : random.pick([2 * cost, 100, 70_000, 2 ** 34]);
  const noOverdraft = () => (cost) => cost;

  async function runTraces(algorithm, options) {
    const {
      unit = 1000,
      actuals = overdraft,
      clockUnit = unit,
      steps = STEPS,
      mostCost = Infinity,
    } = options;
    const traces = Array.from({ length: TRACES }, async (_, seed) => {
      const random = randomFrom(seed + 1);
      const policy = {
        ...randomPolicy(random, algorithm, { unit, ...options }),
        ...options.changes,
      };
      await runTrace(random, policy, {
        key: `k{${seed}}`,
        unit: clockUnit,
        steps,
        mostCost,
        largestActual: actuals(random),
        check: (came, expected, context) => expectEqual(came, expected, { seed, ...context }),
      });
    });
    const failed = (await Promise.allSettled(traces)).find(({ reason }) => reason);
    if (failed) throw failed.reason;
  }

  test.each([
    ['named windows', { isNamed: true }],
    ['named windows of hours', { isNamed: true, unit: 400_000_003 }],
    ['one cost for all windows', { isNamed: false, largest: [1e4, 1e6, 1e10], least: 1025 }],
  ])('sliding-window-log decides as defined: %s', async (_, options) => {
    for (const source of [SCRIPTS[LOG].source, IN_PARTS]) {
      const changes = { sha1: await script.load(source) };
      await runTraces(LOG, { ...options, changes });
      await script.redis.flushall();
    }
  });

  test.each([true, false])(
    'sliding-window-log decides on parts of long logs, %s',
    async (isNamed) => {
      const limits = [{ interval: 60_000, maxInInterval: 4000 }];
      for (const countBlocked of [false, true]) {
        const changes = { limits, countBlocked, minDifference: 0, blockFor: [] };
        const clock = { unit: 1000, clockUnit: 40 };
        await runTraces(LOG, { isNamed, changes, ...clock, steps: 4 * STEPS, mostCost: 60 });
        await script.redis.flushall();
      }
    },
  );

  test.each([true, false])(
    'sliding-window-log decides where entries of a single window leave one by one, %s',
    async (isNamed) => {
      const limits = [{ interval: 40, maxInInterval: 1500 }];
      for (const source of [SCRIPTS[LOG].source, IN_PARTS]) {
        for (const countBlocked of [false, true]) {
          const sha1 = await script.load(source);
          const changes = { sha1, limits, countBlocked, minDifference: 0, blockFor: [] };
          await runTraces(LOG, { isNamed, changes, unit: 5, steps: 2 * STEPS, mostCost: 600 });
          await script.redis.flushall();
        }
      }
    },
  );

  test('sliding-window-log is written whole where many entries leave at once', async () => {
    const limits = [{ interval: 1000, maxInInterval: 2000 }];
    const policy = { algorithm: LOG, limits, minDifference: 0, blockFor: [], countBlocked: false };
    const usedAt = async (us) =>
      (await run(policy, 'k', 'ATTEMPT', { now: START_US + us, cost: 2 }))[7];
    for (let us = 0; us < 70; us++) expect(await usedAt(us)).toBe(2 * (us + 1));
    expect(await usedAt(1066)).toBe(2 * 4);
    expect(await usedAt(1067)).toBe(2 * 4);
    // Those that the newest but one needs, and one that is dropped.
    expect(await script.redis.strlen('k')).toBe(47 + 8 * 6);
    expect((await run(policy, 'k', 'PEEK', { now: START_US + 1067, cost: 0 }))[7]).toBe(2 * 4);
  });

  test('sliding-window-log resets where the oldest entry that cost something leaves', async () => {
    const limits = [1000, 2000].map((maxInInterval) => ({ interval: 1000, maxInInterval }));
    const two = { algorithm: LOG, isNamed: true, limits, minDifference: 0, blockFor: [] };
    const one = { ...two, limits: limits.slice(0, 1) };
    const resetAfter = async (policy, us, ...cost) =>
      (await run(policy, 'k', 'ATTEMPT', { now: START_US + us, cost }))[8];
    await resetAfter(two, 0, 0, 5);
    expect(await resetAfter(two, 10, 5, 5)).toBe(1000);
    for (const us of [20, 21, 22]) expect(await resetAfter(one, us, 1)).toBe(1010 - us);
    expect(await resetAfter(one, 1010, 1)).toBe(10);
  });

  test('sliding-window-log takes less than it was reserved for back from plain logs', () =>
    runTraces(LOG, {
      ...{ isNamed: false, largest: [5, 40, 1000], actuals: noOverdraft },
      changes: { countBlocked: false },
    }));

  test.each(['fixed-window', 'sliding-window-counter'])(
    '%s decides as defined',
    async (algorithm) => {
      for (const isNamed of [true, false]) {
        // A count that is larger than three bytes can tell grows no more by refusals.
        await runTraces(algorithm, {
          isNamed,
          actuals: (random) => (cost) => random.pick([cost, 2 * cost, 70_000]),
        });
        await script.redis.flushall();
      }
    },
  );

  /** What the windows would use if each entry of these came back so much later as merging may make it. */
  function lateUse({ limits }, entries, at, cells) {
    return limits.map(({ interval }, w) => {
      const late = (2 * interval * limits.length) / cells;
      return sum(
        entries.filter((entry) => entry.at > at - interval - late).map(({ costs }) => costs[w]),
      );
    });
  }

  test.each([
    ['named windows', { isNamed: true }],
    ['one cost for all windows', { isNamed: false, least: 1025, largest: [2000, 5000] }],
  ])('a log of too many entries gives room back late, within the bound: %s', async (_, options) => {
    const sha1 = await script.load(MERGING);
    const cells = 8;
    await Promise.all(
      Array.from({ length: TRACES }, async (_each, seed) => {
        const random = randomFrom(seed + 1);
        const policy = {
          ...randomPolicy(random, LOG, { unit: 20_000, ...options }),
          ...{ sha1, countBlocked: false, minDifference: 0, blockFor: [] },
        };
        const { limits } = policy;
        const key = `k{${seed}}`;
        let entries = [];
        let now = START_US;
        for (let step = 0; step < 5 * STEPS; step++) {
          now += random.between(0, 3000);
          const context = { seed, step, policy, now };
          const costs = limits.map(({ maxInInterval }) =>
            random.chance(70) ? 1 : random.between(options.isNamed ? 0 : 1, maxInInterval),
          );
          if (!policy.isNamed) costs.fill(min(...costs));
          if (sum(costs) === 0) continue;
          const cost = costOf(policy, costs);
          const reply = await run(policy, key, 'ATTEMPT', { now, cost });
          const used = limits.map(({ interval }, w) =>
            sum(entries.filter(({ at }) => at > now - interval).map((entry) => entry.costs[w])),
          );
          const isFull = (uses) =>
            limits.some(
              ({ maxInInterval }, w) => costs[w] > 0 && uses[w] + costs[w] > maxInInterval,
            );
          if (reply[0] === 0) {
            expect({ ...context, isFull: isFull(used) }).toEqual({ ...context, isFull: false });
            const entry = { at: now, costs };
            entries.push(entry);
            if (random.chance(30)) {
              const actual = costs.map((each) => random.between(0, 2 * each));
              if (!policy.isNamed) actual.fill(actual[0]);
              const receipt = reply.slice(5, 7);
              const settledCost = settledCostOf(policy, costs, actual);
              const settled = { isFull: false, now, cost: settledCost, receipt };
              expect(await run(policy, key, 'SETTLE', settled)).toEqual([1]);
              entry.costs = actual;
            }
          } else {
            const isRight = isFull(lateUse(policy, entries, now, cells));
            expect({ ...context, isRight }).toEqual({ ...context, isRight: true });
          }
          entries = entries.filter(({ at }) => at > now - 3_000_000);
          await script.redis.persist(key);
        }
        expect(await script.redis.strlen(key)).toBeLessThan(56 + 25 * (8 + 7 * 3));
        const longest = max(...limits.map(({ interval }) => interval));
        const usage = await run(policy, key, 'PEEK', {
          now: now + longest,
          cost: costOf(
            policy,
            limits.map(() => 0),
          ),
        });
        expect(limits.map((_limit, w) => usage[7 + 2 * w])).toEqual(limits.map(() => 0));
      }),
    );
  });
});

describe('stores with costs', () => {
  let server;
  let client;
  const stores = [];
  beforeAll(async () => {
    server = await startRedis();
    client = new Redis(server.url).on('error', () => {});
  });
  afterEach(() => Promise.all(stores.splice(0).map((store) => store.close())));
  afterAll(() => client.disconnect());

  function storeOf(redis, { isWeighted, ...options }) {
    const given = { interval: 60_000, maxInInterval: 5, countBlocked: false, ...options };
    const checked = { ...readLimiterOptions({ ...given, redis, namespace: 'ns' }), isWeighted };
    const store = createRedisStore(checked);
    stores.push(store);
    return store;
  }

  const read = (numbers) => Array.from(numbers);
  const usedOf = (numbers) => numbers.slice(NUMBERS.WINDOWS).filter((_, i) => i % 2 === 0);
  const receiptOf = (id, cost, numbers) => ({
    ...{ id, cost, at: numbers[NUMBERS.AT], generation: numbers[NUMBERS.GENERATION] },
  });
  const CLIENTS = [
    ['natively', () => server.url],
    ['through ioredis', () => client],
  ];
  const limits = [
    { interval: 60_000, maxInInterval: 100 },
    { interval: 60_000, maxInInterval: 100_000 },
  ];

  test.each(CLIENTS)('decide on costs by window and settle them, %s', async (_, redisOf) => {
    for (const algorithm of ['sliding-window-log', 'fixed-window', 'gcra']) {
      await client.flushall();
      const store = storeOf(redisOf(), { limits, algorithm, isWeighted: true });
      const attempt = (id, ...cost) =>
        store.decide(id, Float64Array.from(cost), RECORDS.ATTEMPT, read);
      const ids = ['a', 'b', 'a', 'c', 'b', 'a'];
      const all = await Promise.all(ids.map((id, i) => attempt(id, i, 1000 * (i + 1))));
      expect(all.map((numbers) => numbers[NUMBERS.BLOCKED])).toEqual(ids.map(() => 0));
      const used = await store.decide('a', 0, RECORDS.NOTHING, read);
      if (algorithm !== 'gcra') expect(usedOf(used)).toEqual([7, 10_000]);
      expect((await attempt('a', 1, 99_000))[NUMBERS.BLOCKED]).toBe(1);
      expect((await attempt('a', 1, 0))[NUMBERS.BLOCKED]).toBe(0);
      const newest = await attempt('a', 2, 500);
      const receipt = receiptOf('a', Float64Array.of(2, 500), newest);
      expect(await store.settle(receipt, Float64Array.of(2, 200_000))).toBe(true);
      expect((await attempt('a', 1, 1))[NUMBERS.BLOCKED]).toBe(1);
      expect((await attempt('a', 1, 0))[NUMBERS.BLOCKED]).toBe(0);
      const [, tokens] = usedOf(await store.decide('a', 0, RECORDS.NOTHING, read));
      expect(tokens).toBeGreaterThan(150_000);
      await store.clear('a');
      expect(await store.settle(receipt, 0)).toBe(false);
    }
  });

  test.each(CLIENTS)('share entries of many large costs, %s', async (_, redisOf) => {
    for (const algorithm of ['sliding-window-log', 'fixed-window', 'sliding-window-counter']) {
      await client.flushall();
      const options = { maxInInterval: 2_000_000, algorithm, clock: () => START_US / 1000 };
      const store = storeOf(redisOf(), { ...options, isWeighted: false });
      const costs = Array.from({ length: 300 }, (_each, i) => (i % 7 === 0 ? 1 : 4000 + i));
      const attempts = costs.map((cost, i) =>
        store.decide(`id${i % 3}`, cost, RECORDS.ATTEMPT, read),
      );
      const all = await Promise.all(attempts);
      for (let id = 0; id < 3; id++) {
        const own = costs.filter((_cost, i) => i % 3 === id);
        const peek = await store.decide(`id${id}`, 0, RECORDS.NOTHING, read);
        expect(usedOf(peek)).toEqual([sum(own)]);
        expect(await client.strlen(`ns{id${id}}`)).toBeLessThan(2000);
      }
      expect(await store.settle(receiptOf('id1', costs[1], all[1]), 1_999_999)).toBe(true);
      const peek = await store.decide('id1', 0, RECORDS.NOTHING, read);
      const own = costs.filter((_cost, i) => i % 3 === 1);
      expect(usedOf(peek)).toEqual([sum(own) - costs[1] + 1_999_999]);
    }
  });

  test.each(ALGORITHMS)(
    'natively, calls of one turn have costs of their own: %s',
    async (algorithm) => {
      for (const maxInInterval of [1000, 2000]) {
        await client.flushall();
        const { clock } = handClock(START_US / 1000);
        const options = { interval: 60_000, maxInInterval, algorithm, countBlocked: false, clock };
        const both = [options, { ...options, redis: server.url, namespace: 'ns' }].map((given) =>
          RateLimiter(given),
        );
        stores.push(...both);
        const costs = [1, 700, 1, 900, 300, 99, 200, 301, 2];
        const attempt = (limiter) => costs.map((cost, i) => limiter.attempt(`${i % 2}`, { cost }));
        const [expected, came] = await Promise.all(both.map((one) => Promise.all(attempt(one))));
        const shown = ({ toJSON, ...decision }) => decision;
        expect(came.map(shown)).toEqual(expected.map(shown));
      }
    },
  );

  // Kills: a refund of what has leaked since the attempt, or of what others made after it.
  test('settle named limits of gcra as the store in memory does', async () => {
    await client.flushall();
    const NAMES = ['requests', 'tokens', 'bytes'];
    for (let seed = 1; seed <= 3 * TRACES; seed++) {
      const random = randomFrom(seed);
      const named = NAMES.slice(0, random.between(1, 3)).map((name) => ({
        name,
        interval: random.pick([1, 7, 60]),
        maxInInterval: random.pick([3, 40, 1500]),
      }));
      const { clock, advance } = handClock(START_US / 1000);
      const options = { limits: named, algorithm: 'gcra', clock };
      const both = [options, { ...options, redis: server.url, namespace: `gcra${seed}` }].map(
        (given) => RateLimiter(given),
      );
      stores.push(...both);
      const made = [];
      const costsOf = (largest) =>
        Object.fromEntries(
          named.map(({ name, maxInInterval }) => [
            name,
            random.chance(20) ? 0 : random.between(1, largest(maxInInterval)),
          ]),
        );
      const shown = ({ toJSON, ...decision }) => decision;
      for (let step = 0; step < STEPS; step++) {
        const context = { seed, step };
        advance(random.pick([0, 0, 1, 250, 3000]) / 1000);
        if (made.length === 0 || random.chance(60)) {
          const cost = costsOf((most) => random.pick([1, Math.ceil(most / 4), most]));
          if (sum(Object.values(cost)) === 0) continue;
          const decisions = await Promise.all(both.map((one) => one.attempt('a', { cost })));
          const [expected, came] = decisions.map(shown);
          expectEqual(came, expected, context);
          if (expected.allowed) made.push(decisions);
        } else {
          const [decisions] = made.splice(random.between(0, made.length - 1), 1);
          const actual = random.chance(30) ? 0 : costsOf((most) => 2 * most);
          const settle = (one, i) =>
            actual === 0 ? one.refund(decisions[i]) : one.settle(decisions[i], actual);
          const [expected, came] = await Promise.all(both.map(settle));
          expectEqual(came, expected, { ...context, actual });
        }
        const [expected, came] = await Promise.all(both.map((one) => one.usage('a')));
        expectEqual(came, expected, context);
      }
    }
  });

  test('a key of named limits of gcra lives as long as its attempts can be settled', async () => {
    await client.flushall();
    const limits = [{ name: 'tokens', interval: 84_000, maxInInterval: 100 }];
    const limiter = RateLimiter({ limits, algorithm: 'gcra', redis: server.url, namespace: 'ns' });
    stores.push(limiter);
    const decision = await limiter.attempt('a', { cost: { tokens: 1 } }); // leaks in 840 ms
    const times = [await client.pttl('ns{a}')];
    await limiter.block('a', 1000);
    times.push(await client.pttl('ns{a}'));
    await limiter.settle(decision, { tokens: 0 });
    times.push(await client.pttl('ns{a}'));
    for (const ms of times) expect(ms).toBeGreaterThan(42_000);
  });

  // Kills: an excess of sums that are no exact numbers, so that the total wraps to 0.
  test('an overdraft of nearly 2^53 is not forgotten', async () => {
    await client.flushall();
    const store = storeOf(server.url, {
      maxInInterval: 1000,
      isWeighted: true,
      countBlocked: true,
    });
    const cost = Float64Array.of(5);
    const attempt = () => store.decide('a', cost, RECORDS.ATTEMPT, read);
    const first = receiptOf('a', cost, await attempt());
    await attempt();
    expect(await store.settle(first, Float64Array.of(2 ** 53 - 1))).toBe(true);
    await store.decide('a', Float64Array.of(2), RECORDS.ATTEMPT, read);
    const seen = await store.decide('a', Float64Array.of(0), RECORDS.NOTHING, read);
    expect(usedOf(seen)).toEqual([2 ** 53 - 1]);
  });

  test('a plain log of many actions becomes a weighted one that uses as much', async () => {
    await client.flushall();
    const store = storeOf(server.url, { maxInInterval: 10_000, isWeighted: false });
    for (let i = 0; i < 50; i++) {
      await Promise.all(Array.from({ length: 60 }, () => store.call('a')));
    }
    await store.decide('a', 500, RECORDS.ATTEMPT, read);
    expect(usedOf(await store.decide('a', 0, RECORDS.NOTHING, read))).toEqual([3500]);
    expect(await client.strlen('ns{a}')).toBeLessThan(10_000);
    expect(await store.call('a')).toBe(0);
    expect((await store.decide('a', 6500, RECORDS.ATTEMPT, read))[NUMBERS.BLOCKED]).toBe(1);
  });
});
