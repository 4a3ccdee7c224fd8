// Behaviours: refund, clear and clearAll.
'use strict';

const SECOND = 1_000_000; // us
const MINUTE = 60 * SECOND;

const usedOf = async (limiter) => {
  const { limits, allowed } = await limiter.peek('a');
  return limits[0].used - (allowed ? 1 : 0); // without the peek itself
};

const attemptAt = (limiter, at) => (seconds) => {
  at(seconds * SECOND);
  return limiter('a');
};

module.exports = {
  async 'a refund gives back what the attempt cost, once and in any order'({ make }) {
    const options = { maxInInterval: 5 };
    for (const order of [
      [0, 1],
      [1, 0],
    ]) {
      const limiter = make(options);
      const decisions = [
        await limiter.attempt('a', { cost: 3 }),
        await limiter.attempt('a', { cost: 2 }),
      ];
      expect(await limiter.peek('a')).toMatchObject({ allowed: false });
      expect(await limiter.refund(decisions[order[0]])).toBe(true);
      expect(await usedOf(limiter)).toBe(order[0] === 0 ? 2 : 3);
      expect(await limiter.refund(decisions[order[0]])).toBe(false);
      expect(await limiter.refund(decisions[order[1]])).toBe(true);
      expect(await usedOf(limiter)).toBe(0);
      expect(await limiter.attempt('a', { cost: 5 })).toMatchObject({ allowed: true });
      expect(await limiter.attempt('a')).toMatchObject({ allowed: false });
    }
  },

  async 'after a refund time is as if the attempt had not been made'({ make, at, fullFor }) {
    const limiter = make();
    await limiter.attempt('a');
    at(SECOND);
    const second = await limiter.attempt('a');
    expect(await limiter('a')).toBe(Math.ceil(fullFor(2) / 1000) - 1000);
    await limiter.refund(second);
    expect(await limiter.limitWithInfo('a')).toMatchObject({ blocked: false });
    at(fullFor(2) - 1);
    expect((await limiter.peek('a')).allowed).toBe(false);
    at(fullFor(2));
    expect((await limiter.peek('a')).allowed).toBe(true);
  },

  async 'decisions of attemptMany can be refunded, each on its own'({ make }) {
    const limiter = make({ maxInInterval: 3 });
    const many = await limiter.attemptMany(['a', 'b', 'a', 'a', 'a']);
    expect(await limiter.refund(many[0])).toBe(true);
    expect(await limiter.refund(many[2])).toBe(true);
    expect(await limiter.refund(many[0])).toBe(false);
    expect(await limiter.refund(many[4])).toBe(false); // a refusal
    const seen = await limiter.attemptMany(['a', 'a', 'a', 'b', 'b', 'b']);
    expect(seen.map(({ allowed }) => allowed)).toEqual([true, true, false, true, true, false]);
  },

  async 'a refusal and a peek have nothing to give back'({ make }) {
    const limiter = make({ maxInInterval: 1 });
    const peeked = await limiter.peek('a');
    await limiter('a');
    expect(await limiter.refund(peeked)).toBe(false);
    expect(await limiter.refund(await limiter.attempt('a'))).toBe(false);
    expect(await limiter('a')).toBeGreaterThan(0);
  },

  async 'a refund after clear takes nothing, not even within one microsecond'({ make }) {
    const limiter = make();
    for (const clear of [() => limiter.clear('a'), () => limiter.clearAll()]) {
      const decision = await limiter.attempt('a');
      await clear();
      await limiter.attempt('a', { cost: 2 });
      expect(await limiter.refund(decision)).toBe(false);
      expect(await limiter('a')).toBeGreaterThan(0);
      await limiter.clear('a');
    }
  },

  async 'a refund that comes too late changes nothing'({ make, at }) {
    const limiter = make();
    const decision = await limiter.attempt('a');
    at(10 * MINUTE);
    await limiter.attempt('a', { cost: 2 });
    expect(await limiter.refund(decision)).toBe(false);
    expect(await limiter('a')).toBeGreaterThan(0);
  },

  async "another limiter's decision is refused"({ make, codeOf }) {
    const [mine, other] = [make(), make()];
    const decision = await other.attempt('a');
    const codes = [];
    for (const wrong of [decision, { ...decision }, {}, null, undefined, 'a', true, 5]) {
      codes.push(await codeOf(() => mine.refund(wrong)));
    }
    expect(codes).toEqual(Array(8).fill('ERR_ROLLGATE_DECISION'));
    expect(await other.refund(decision)).toBe(true);
  },

  async 'a refund frees every window'({ make }) {
    const limits = [
      { interval: 60_000, maxInInterval: 2 },
      { interval: 600_000, maxInInterval: 2 },
    ];
    const limiter = make({ limits });
    const decision = await limiter.attempt('a', { cost: 2 });
    expect(await limiter('a')).toBeGreaterThan(0);
    expect(await limiter.refund(decision)).toBe(true);
    const { limits: windows } = await limiter.peek('a');
    expect(windows.map(({ used }) => used)).toEqual([1, 1]);
  },

  async 'clear forgets one id and no other'({ make, stateOf }) {
    const limiter = make({ maxInInterval: 1, minDifference: 5, blockFor: 1_000_000 });
    for (const id of ['a', 'b', 'a', 'b']) await limiter(id);
    await limiter.clear('a');
    expect(await stateOf('a')).toBeFalsy();
    expect(await limiter.peek('a')).toMatchObject({ allowed: true, actionsLeft: 0 });
    expect(await limiter('a')).toBe(0);
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
    // Kills: a log of one action that forgets that refusals have displaced another.
    async 'a refund after a refusal that counted lets no more through, also under a limit of one'({
      make,
    }) {
      const limiter = make({ maxInInterval: 1, minDifference: 7, countBlocked: true });
      const decision = await limiter.attempt('a');
      expect((await limiter.attempt('a')).allowed).toBe(false);
      expect(await limiter.refund(decision)).toBe(true);
      expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'count' });
    },

    async 'a refund after refusals that counted never lets more through'({ make, at }) {
      const limiter = make({ maxInInterval: 4, countBlocked: true });
      const attempt = attemptAt(limiter, at);
      expect([await attempt(0), await attempt(1), await attempt(2)]).toEqual([0, 0, 0]);
      at(3 * SECOND);
      const newest = await limiter.attempt('a');
      // A log holds four, so the refusal displaces the action at 0 s.
      expect(await attempt(4)).toBeGreaterThan(0);
      expect(await limiter.refund(newest)).toBe(true);
      // Three actions and the refusal count.
      expect(await limiter.peek('a')).toMatchObject({ allowed: false, actionsLeft: 0 });
      expect(await attempt(5)).toBeGreaterThan(0);
    },
  },

  'sliding-window-log': {
    async 'the newest action is refunded, and a clock that steps back finds all others'({
      make,
      at,
    }) {
      const name = 'x';
      // In Redis, 300 is a long log.
      for (const max of [2, 20, 300, 3000]) {
        for (const names of [{}, { limits: [{ name, interval: 60_000, maxInInterval: max }] }]) {
          const limiter = make({ maxInInterval: max, ...names });
          const options = max === 2 ? undefined : { cost: max / 2 };
          at(0);
          await limiter.attempt('a', options);
          await limiter.attempt('a', options);
          at(70 * SECOND);
          const newest = await limiter.attempt('a', options);
          expect(await limiter.refund(newest)).toBe(true);
          expect(await limiter.peek('a', options)).toMatchObject({ allowed: true });
          at(10 * SECOND);
          expect(await limiter.peek('a', options)).toMatchObject({
            allowed: false,
            timeLeft: 50_000,
            limits: [{ used: max }],
          });
        }
      }
    },

    async 'with places left, a clock that steps back behind a refunded action finds them, too'({
      make,
      at,
    }) {
      for (const limits of [undefined, [{ name: 'x', interval: 60_000, maxInInterval: 20 }]]) {
        const limiter = make({ maxInInterval: 20, ...(limits && { limits }) });
        at(0);
        await limiter.attempt('a', { cost: 5 });
        at(70 * SECOND);
        expect(await limiter.refund(await limiter.attempt('a'))).toBe(true);
        at(10 * SECOND);
        expect(await limiter.attempt('a', { cost: 16 })).toMatchObject({ allowed: false });
        expect(await limiter.attempt('a', { cost: 15 })).toMatchObject({ allowed: true });
      }
    },

    async 'a refund frees a place when what refusals displaced has left the window'({ make, at }) {
      const limiter = make({ maxInInterval: 4, countBlocked: true });
      const attempt = attemptAt(limiter, at);
      for (const seconds of [0, 1, 2]) await attempt(seconds);
      at(3 * SECOND);
      const decision = await limiter.attempt('a');
      expect(await attempt(4)).toBeGreaterThan(0);
      expect(await attempt(61.5)).toBe(0);
      expect(await limiter.refund(decision)).toBe(true);
      expect(await attempt(61.5)).toBe(0);
      expect(await attempt(61.5)).toBeGreaterThan(0);
    },
  },

  'fixed-window': {
    async 'a refund goes to the window of its attempt'({ make, at }) {
      const limiter = make({ maxInInterval: 9 });
      const first = await limiter.attempt('a', { cost: 5 });
      at(MINUTE);
      const second = await limiter.attempt('a', { cost: 3 });
      expect(await limiter.refund(first)).toBe(false);
      expect(await usedOf(limiter)).toBe(3);
      expect(await limiter.refund(second)).toBe(true);
      expect(await usedOf(limiter)).toBe(0);
    },
  },

  'sliding-window-counter': {
    async 'a refund goes to the window of its attempt'({ make, at }) {
      for (const [refunded, left] of [
        [0, 3], // what is left is the second attempt
        [1, 2], // half of the first one, rounded down
      ]) {
        const limiter = make({ maxInInterval: 9 });
        at(0);
        const decisions = [await limiter.attempt('a', { cost: 5 })];
        at(1.5 * MINUTE);
        decisions.push(await limiter.attempt('a', { cost: 3 }));
        expect(await usedOf(limiter)).toBe(5);
        expect(await limiter.refund(decisions[refunded])).toBe(true);
        expect(await usedOf(limiter)).toBe(left);
      }
    },
  },

  gcra: {
    async 'a refund gives back only what has not leaked'({ make, at }) {
      const limiter = make({ maxInInterval: 6 }); // one leaks in 10 s
      const first = await limiter.attempt('a', { cost: 3 });
      at(20 * SECOND);
      const second = await limiter.attempt('a', { cost: 2 });
      expect(await usedOf(limiter)).toBe(3);
      // One of the first is left. The second attempt stays.
      expect(await limiter.refund(first)).toBe(true);
      expect(await usedOf(limiter)).toBe(2);
      expect(await limiter.attempt('a', { cost: 4 })).toMatchObject({ allowed: true });
      expect(await limiter('a')).toBe(10_000);
      // All of the second has leaked, but what came later is above it.
      at(45 * SECOND);
      expect(await limiter.refund(second)).toBe(false);
      expect(await usedOf(limiter)).toBe(4);
    },

    async 'a refund gives back what has not leaked, however large the limit'({ make, at }) {
      for (const max of [2 ** 19, 2 ** 20, 2 ** 30, 2 ** 30 + 1, 2e9, 2 ** 40, 2 ** 50]) {
        const limiter = make({ interval: 700 * 86_400_000, maxInInterval: max });
        const cost = Math.floor(max / 5);
        at(0);
        const first = await limiter.attempt('a', { cost });
        const second = await limiter.attempt('a', { cost });
        const third = await limiter.attempt('a');
        expect(await limiter.refund(first)).toBe(true);
        expect(await usedOf(limiter)).toBe(cost + 1);
        expect(await limiter.settle(third, 3)).toBe(true);
        expect(await limiter.refund(second)).toBe(true);
        expect(await usedOf(limiter)).toBe(3);
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
        expect(await usedOf(limiter)).toBe(max);
      }
    },
  },
};
