// Behaviours: refund and clear.
'use strict';

const { MINUTE, SECOND, canCountBlocked, codeOf, fullFor } = require('./support');

module.exports = {
  async 'a refund gives the place back, once'({ make }) {
    const limiter = make({ countBlocked: false });
    const first = await limiter.attempt('a');
    const second = await limiter.attempt('a');
    expect(await limiter('a')).toBeGreaterThan(0);
    expect(await limiter.refund(first)).toBe(true);
    expect(await limiter.peek('a')).toMatchObject({ allowed: true, actionsLeft: 0 });
    expect(await limiter.refund(first)).toBe(false);
    expect(await limiter.refund(second)).toBe(true);
    expect(await limiter.peek('a')).toMatchObject({ allowed: true, actionsLeft: 1 });
    expect([await limiter('a'), await limiter('a')]).toEqual([0, 0]);
    expect(await limiter('a')).toBeGreaterThan(0);
  },

  async 'the newest can be refunded first'({ make }) {
    const limiter = make({ countBlocked: false });
    const [first, second] = [await limiter.attempt('a'), await limiter.attempt('a')];
    expect(await limiter.refund(second)).toBe(true);
    expect(await limiter.refund(first)).toBe(true);
    expect(await limiter.peek('a')).toMatchObject({ allowed: true, actionsLeft: 1 });
  },

  async 'a refund gives back what the attempt cost'({ make }) {
    const limiter = make({ maxInInterval: 5, countBlocked: false });
    const decision = await limiter.attempt('a', { cost: 3 });
    await limiter.attempt('a', { cost: 2 });
    expect(await limiter.refund(decision)).toBe(true);
    const { limits } = await limiter.peek('a');
    expect(limits[0].used).toBe(3);
    expect(await limiter.attempt('a', { cost: 3 })).toMatchObject({ allowed: true });
    expect(await limiter.attempt('a')).toMatchObject({ allowed: false });
  },

  async 'a refund moves time as if the attempt had not been'({ make, at, algorithm }) {
    const limiter = make({ countBlocked: false });
    await limiter.attempt('a');
    at(SECOND);
    const second = await limiter.attempt('a');
    expect(await limiter('a')).toBe(Math.ceil(fullFor(algorithm, 2) / 1000) - 1000);
    await limiter.refund(second);
    expect(await limiter.limitWithInfo('a')).toMatchObject({ blocked: false });
    at(fullFor(algorithm, 2) - 1);
    expect((await limiter.peek('a')).allowed).toBe(false);
    at(fullFor(algorithm, 2));
    expect((await limiter.peek('a')).allowed).toBe(true);
  },

  async 'decisions of attemptMany can be refunded, each on its own'({ make }) {
    const limiter = make({ maxInInterval: 3, countBlocked: false });
    const many = await limiter.attemptMany(['a', 'b', 'a', 'a', 'a']);
    expect(await limiter.refund(many[0])).toBe(true);
    expect(await limiter.refund(many[2])).toBe(true);
    expect(await limiter.refund(many[0])).toBe(false);
    expect(await limiter.refund(many[4])).toBe(false); // a refusal
    const seen = await limiter.attemptMany(['a', 'a', 'a', 'b', 'b', 'b']);
    expect(seen.map(({ allowed }) => allowed)).toEqual([true, true, false, true, true, false]);
  },

  async 'a refusal and a peek have nothing to give back'({ make }) {
    const limiter = make({ maxInInterval: 1, countBlocked: false });
    const peeked = await limiter.peek('a');
    await limiter('a');
    expect(await limiter.refund(peeked)).toBe(false);
    expect(await limiter.refund(await limiter.attempt('a'))).toBe(false);
    expect(await limiter('a')).toBeGreaterThan(0);
  },

  async 'a refund after clear takes nothing, not even within one microsecond'({ make }) {
    const limiter = make({ maxInInterval: 2, countBlocked: false });
    const decision = await limiter.attempt('a');
    await limiter.clear('a');
    await limiter.attempt('a', { cost: 2 });
    expect(await limiter.refund(decision)).toBe(false);
    expect(await limiter('a')).toBeGreaterThan(0);
    const other = await limiter.attempt('b');
    await limiter.clearAll();
    await limiter.attempt('b', { cost: 2 });
    expect(await limiter.refund(other)).toBe(false);
    expect(await limiter('b')).toBeGreaterThan(0);
  },

  async 'a refund takes nothing from later attempts, however much those cost'({
    make,
    at,
    algorithm,
  }) {
    if (algorithm === 'sliding-window-log') return; // no log has room for that
    for (const later of [2 ** 24, 2 ** 32]) {
      // One in a microsecond, on average.
      const limiter = make({ interval: (5 * later) / 1000, maxInInterval: 5 * later });
      at(0);
      const first = await limiter.attempt('a', { cost: later });
      at(later - 1000);
      await limiter.attempt('a', { cost: later });
      at(later + 1000); // all of the first has leaked from gcra's bucket
      const [{ used }] = (await limiter.peek('a')).limits;
      const found = await limiter.refund(first);
      const [{ used: left }] = (await limiter.peek('a')).limits;
      if (algorithm === 'gcra') expect([later, found, used - left]).toEqual([later, false, 0]);
      else expect(used - left).toBeLessThanOrEqual(found ? later : 0);
      await limiter.clear('a');
    }
  },

  async 'a refund that comes too late changes nothing'({ make, at }) {
    const limiter = make({ countBlocked: false });
    const decision = await limiter.attempt('a');
    at(10 * MINUTE);
    await limiter.attempt('a', { cost: 2 });
    expect(await limiter.refund(decision)).toBe(false);
    expect(await limiter('a')).toBeGreaterThan(0);
  },

  async "another limiter's decision is refused"({ make }) {
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
    const limiter = make({ limits, countBlocked: false });
    const decision = await limiter.attempt('a', { cost: 2 });
    expect(await limiter('a')).toBeGreaterThan(0);
    expect(await limiter.refund(decision)).toBe(true);
    const { limits: windows } = await limiter.peek('a');
    expect(windows.map(({ used }) => used)).toEqual([1, 1]);
  },

  async 'a refund leaves a block as it is'({ make, at }) {
    const limiter = make({ maxInInterval: 1, countBlocked: false, blockFor: 90_000 });
    const decision = await limiter.attempt('a');
    await limiter('a');
    at(SECOND);
    expect(await limiter.refund(decision)).toBe(true);
    expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'block', timeLeft: 89_000 });
    at(90 * SECOND);
    expect(await limiter('a')).toBe(0);
  },

  async 'a refund after refusals that counted never lets more through'({ make, at, algorithm }) {
    if (!canCountBlocked(algorithm)) return;
    const limiter = make({ countBlocked: true });
    const decision = await limiter.attempt('a', { cost: 2 });
    for (const seconds of [1, 2, 3]) {
      at(seconds * SECOND);
      await limiter('a');
    }
    await limiter.refund(decision);
    // Three refusals are still counted, more than there is room for.
    expect((await limiter.peek('a')).allowed).toBe(false);
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
    await limiter.clear(1);
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
};
