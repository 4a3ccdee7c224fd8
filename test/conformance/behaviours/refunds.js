// Behaviours: refund, clear and clearAll.
'use strict';

const { usedOf } = require('../usage');

const SECOND = 1_000_000; // us

module.exports = {
  async 'decisions of attemptMany can be refunded, each on its own'({ make }) {
    const limiter = make({ maxInInterval: 3 });
    const many = await limiter.attemptMany(['a', 'b', 'a', 'a', 'a']);
    const refunds = [];
    for (const place of [0, 2, 0, 4]) refunds.push(await limiter.refund(many[place]));
    expect(refunds).toEqual([true, true, false, false]);
    expect([await usedOf(limiter, 'a'), await usedOf(limiter, 'b')]).toEqual([[1], [1]]);
  },

  async 'clear forgets one id, its block and its offences, and no other id'({ make, stateOf }) {
    const limiter = make({ maxInInterval: 1, minDifference: 5, blockFor: [100_000, 900_000] });
    for (const id of ['a', 'b', 'a', 'b']) await limiter(id);
    await limiter.clear('a');
    expect(await stateOf('a')).toBe(undefined);
    expect([await limiter('a'), await limiter('a')]).toEqual([0, 100_000]);
    expect(await limiter.attempt('b')).toMatchObject({ blockedBy: 'block' });
    await limiter.clear('unknown');
    await limiter.clear();
  },

  async 'clearAll forgets all ids of this limiter and none of another'({ make }) {
    const [mine, other] = [make({ maxInInterval: 1 }), make({ maxInInterval: 1 })];
    const ids = ['a', 'b', '', '*', 'ü', '__proto__'];
    for (const id of ids) {
      await mine(id);
      await other(id);
    }
    await mine.clearAll();
    for (const id of ids) {
      expect(await mine(id)).toBe(0);
      expect(await other(id)).toBeGreaterThan(0);
    }
    await mine.clearAll();
    await mine.clearAll();
  },

  'where refusals can count': {
    // Kills: a log, also one of one action, that forgets that refusals have displaced another.
    async 'a refund after a refusal that counted lets no more through'({ make, at }) {
      for (const { gap, ...options } of [
        { maxInInterval: 1, minDifference: 7, gap: 0 },
        { maxInInterval: 4, gap: SECOND },
      ]) {
        const limiter = make({ ...options, countBlocked: true });
        const decisions = [];
        for (let i = 0; i <= options.maxInInterval; i++) {
          at(i * gap);
          decisions.push(await limiter.attempt('a'));
        }
        expect(decisions.at(-1).allowed).toBe(false);
        expect(await limiter.refund(decisions.at(-2))).toBe(true);
        expect(await limiter.peek('a')).toMatchObject({ blockedBy: 'count', actionsLeft: 0 });
      }
    },
  },

  'sliding-window-log': {
    // Kills: places that stay taken after what refusals displaced has left.
    async 'a refund frees a place when what refusals displaced has left the window'({ make, at }) {
      const limiter = make({ maxInInterval: 4, countBlocked: true });
      const decisions = [];
      for (const seconds of [0, 1, 2, 3, 4]) {
        at(seconds * SECOND);
        decisions.push(await limiter.attempt('a'));
      }
      at(61.5 * SECOND);
      expect(await limiter('a')).toBe(0);
      expect(await limiter.refund(decisions[3])).toBe(true);
      expect([await limiter('a'), await limiter('a')]).toEqual([0, 2500]);
    },

    async 'the newest action is refunded, and a clock that steps back finds all others'(suite) {
      const { make, at } = suite;
      // [the maximum, what is used, the cost of the newest]. In Redis, 300 is a long log.
      for (const [maxInInterval, used, cost] of [
        [2, 2, 1],
        [20, 20, 10],
        [20, 5, 1],
        [300, 300, 150],
        [3000, 3000, 1500],
      ]) {
        const named = { limits: [{ name: 'x', interval: 60_000, maxInInterval }] };
        for (const [options, second] of [
          [{}, 0],
          [{}, 20],
          [named, 0],
          [named, 20],
        ]) {
          const limiter = make({ maxInInterval, ...options });
          at(0);
          await limiter.attempt('a', { cost: Math.ceil(used / 2) });
          at(second * SECOND);
          await limiter.attempt('a', { cost: Math.floor(used / 2) });
          at(70 * SECOND);
          expect(await limiter.refund(await limiter.attempt('a', { cost }))).toBe(true);
          at((second + 10) * SECOND);
          const left = maxInInterval - used;
          expect(await limiter.peek('a', { cost: left + 1 })).toMatchObject({
            ...{ allowed: false, limits: [{ used }] },
            ...(second === 0 && { timeLeft: 50_000 }), // else a full log is more cautious
          });
          if (left === 0) continue;
          expect(await limiter.attempt('a', { cost: left })).toMatchObject({ allowed: true });
        }
      }
    },
  },

  gcra: {
    async 'a refund gives back what has not leaked, however large the limit'({ make, at }) {
      for (const max of [2 ** 19, 2 ** 20, 2 ** 30, 2 ** 30 + 1, 2e9, 2 ** 40, 2 ** 50]) {
        const limiter = make({ interval: 700 * 86_400_000, maxInInterval: max });
        const cost = Math.floor(max / 5);
        at(0);
        const first = await limiter.attempt('a', { cost });
        const second = await limiter.attempt('a', { cost });
        const third = await limiter.attempt('a');
        expect(await limiter.refund(first)).toBe(true);
        expect(await usedOf(limiter)).toEqual([cost + 1]);
        expect(await limiter.settle(third, 3)).toBe(true);
        expect(await limiter.refund(second)).toBe(true);
        expect(await usedOf(limiter)).toEqual([3]);
      }
    },

    async 'a refund after clear takes nothing, however large the limit'({ make }) {
      for (const maxInInterval of [2 ** 20, 2 ** 31, 2 ** 40]) {
        const limiter = make({ interval: 86_400_000, maxInInterval });
        const decisions = [];
        for (let i = 0; i < 5; i++) {
          decisions.push(await limiter.attempt('a', { cost: maxInInterval }));
          await limiter.clear('a');
        }
        await limiter.attempt('a', { cost: maxInInterval });
        for (const decision of decisions) expect(await limiter.refund(decision)).toBe(false);
      }
    },

    async 'a refund takes nothing from later attempts, however much those cost'({ make, at }) {
      // Stores count costs in 18 to 53 bits, so that four bursts later a number may occur again.
      for (const max of [2 ** 16, 2 ** 24, 2 ** 30, 2 ** 40]) {
        const limiter = make({ interval: max / 1000, maxInInterval: max }); // one leaks in 1 us
        const decisions = [];
        for (let burst = 0; burst <= 4; burst++) {
          at(burst * max);
          decisions.push(await limiter.attempt('a', { cost: max }));
        }
        expect(decisions.every(({ allowed }) => allowed)).toBe(true);
        for (const earlier of [0, 1, 2, 3]) {
          expect(await limiter.refund(decisions[earlier])).toBe(false);
        }
        expect(await usedOf(limiter)).toEqual([max]);
      }
    },
  },
};
