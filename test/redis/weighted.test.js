// Costs by window in the log of Redis: what is merged, written and dropped. script-traces.test.js has what is decided.
'use strict';

const SCRIPTS = require('../../lib/stores/redis/scripts');
const { expectEqual } = require('../support/outcome');
const { changedLog, LOG, scriptsOnRedis, START_US } = require('../support/scripts-on-redis');
const { casesOf } = require('../support/tiers');
const { randomFrom } = require('../support/traces');

const TRACES = casesOf(30);
const STEPS = 400;
/** In the script: the room that comes back late is as much as a window has in this part of it. */
const CELLS = 8;
/** Has few entries before it merges them, and is written in parts as soon as it can be. */
const MERGING = changedLog(
  ['MOST_ENTRIES = 0xA6, 1024', 'MOST_ENTRIES = 0xA6, 16'],
  ['local CELLS = 512', `local CELLS = ${CELLS}`],
  ['local MOST_WASTED = 64', 'local MOST_WASTED = 3'],
  ['local FEW_BYTES = 1024', 'local FEW_BYTES = 40'],
);
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
const nameOf = (w) => `n${w}`;
const byName = (numbers) => Object.fromEntries(numbers.map((number, w) => [nameOf(w), number]));

describe('a log with costs', () => {
  const script = scriptsOnRedis();
  let now;
  beforeEach(() => {
    now = START_US;
  });

  const open = (limits, source = SCRIPTS[LOG].source) =>
    script.openOn(source)({
      limits,
      countBlocked: false,
      clock: () => now / 1000,
      namespace: 'log',
    });

  test('is written whole where many entries leave at once', async () => {
    const limiter = open([{ interval: 1, maxInInterval: 2000 }]);
    const usedAt = async (us, cost = 2) => {
      now = START_US + us;
      const { limits } = await (cost ? limiter.attempt('k', { cost }) : limiter.usage('k'));
      return limits[0].used;
    };
    for (let us = 0; us < 70; us++) expect(await usedAt(us)).toBe(2 * (us + 1));
    expect([await usedAt(1066), await usedAt(1067)]).toEqual([2 * 4, 2 * 4]);
    // Those that the newest but one needs, and one that is dropped.
    expect(await script.redis.strlen('log{k}')).toBe(47 + 8 * 6);
    expect(await usedAt(1067, 0)).toBe(2 * 4);
  });

  // Kills: a cost that is taken from the next entry.
  test('settles nothing that it has dropped', async () => {
    const limiter = open([0, 1].map((w) => ({ name: nameOf(w), interval: 1, maxInInterval: 9 })));
    const attempt = () => limiter.attempt('k', { cost: byName([2, 3]) });
    const first = await attempt();
    for (const us of [1000, 1500, 1900]) {
      now = START_US + us;
      await attempt();
    }
    expect(await limiter.settle(first, byName([9, 9]))).toBe(false);
    expect((await limiter.usage('k')).limits.map(({ used }) => used)).toEqual([6, 9]);
  });

  test('resets where the oldest entry that cost something leaves', async () => {
    const limits = [1000, 2000].map((maxInInterval, w) => {
      return { name: nameOf(w), interval: 1000, maxInInterval };
    });
    const [two, one] = [open(limits), open(limits.slice(0, 1))];
    const resetAfter = async (limiter, ms, ...costs) => {
      now = START_US + 1000 * ms;
      return (await limiter.attempt('k', { cost: byName(costs) })).limits[0].resetIn;
    };
    await resetAfter(two, 0, 0, 5);
    expect(await resetAfter(two, 10, 5, 5)).toBe(1000);
    for (const ms of [20, 21, 22]) expect(await resetAfter(one, ms, 1)).toBe(1010 - ms);
    expect(await resetAfter(one, 1010, 1)).toBe(10);
  });

  // What windows would use if each entry came back as late as merging may make it.
  test.each([
    ['named windows', { isNamed: true, least: 1, largest: [5, 40, 3000] }],
    ['one cost for all windows', { isNamed: false, least: 1025, largest: [2000, 5000] }],
  ])('of too many entries gives room back late, within the bound: %s', async (_, options) => {
    const { isNamed, least, largest } = options;
    await script.load(MERGING);
    const runTrace = async (_each, seed) => {
      const random = randomFrom(seed + 1);
      const limits = Array.from({ length: random.between(1, 3) }, (__, w) => ({
        ...(isNamed && { name: nameOf(w) }),
        interval: 20 * random.pick([3, 10, 25, 60]),
        maxInInterval: random.between(least, random.pick(largest)),
      }));
      const longest = Math.max(...limits.map(({ interval }) => interval));
      let at = START_US;
      const clock = () => at / 1000;
      const given = { limits, countBlocked: false, clock, namespace: `${isNamed}${seed}` };
      const limiter = script.openOn(MERGING)(given);
      const costOf = (costs) => (isNamed ? byName(costs) : costs[0]);
      let entries = [];
      /** Whether costs do not fit where entries count for `late` times the window longer. */
      const isFull = (costs, late) =>
        limits.some(({ interval, maxInInterval }, w) => {
          const since = at - 1000 * interval * (1 + late);
          const used = sum(
            entries.filter((entry) => entry.at > since).map((entry) => entry.costs[w]),
          );
          return costs[w] > 0 && used + costs[w] > maxInInterval;
        });
      for (let step = 0; step < STEPS; step++) {
        at += random.between(0, 3000);
        const costs = limits.map(({ maxInInterval }) =>
          random.chance(70) ? 1 : random.between(isNamed ? 0 : 1, maxInInterval),
        );
        if (!isNamed) costs.fill(Math.min(...costs));
        if (sum(costs) === 0) continue;
        const decision = await limiter.attempt('k', { cost: costOf(costs) });
        const { allowed } = decision;
        const late = allowed ? 0 : (2 * limits.length) / CELLS;
        const context = { seed, step, limits, at };
        expectEqual(!isFull(costs, late), allowed, context);
        if (!allowed) continue;
        const entry = { at, costs };
        entries = [...entries.filter((each) => each.at > at - 3_000_000), entry];
        if (!random.chance(30)) continue;
        const actual = costs.map((each) => random.between(0, 2 * each));
        if (!isNamed) actual.fill(actual[0]);
        expect(await limiter.settle(decision, costOf(actual))).toBe(true);
        entry.costs = actual;
      }
      expect(await script.redis.strlen(`${isNamed}${seed}{k}`)).toBeLessThan(56 + 25 * (8 + 7 * 3));
      at += 1000 * longest;
      const { limits: windows } = await limiter.usage('k');
      expect(windows.map(({ used }) => used)).toEqual(limits.map(() => 0));
    };
    await Promise.all(Array.from({ length: TRACES }, runTrace));
  });
});
