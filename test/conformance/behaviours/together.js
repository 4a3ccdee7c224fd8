// Behaviours: usage, and attempts on several limiters and ids, of which all pass or none counts.
'use strict';

const RateLimiter = require('../../../lib');
const { RECORDS } = require('../../../lib/base/decision');
const { DECIDE } = require('../../../lib/base/internal-methods');

const { attemptAll } = RateLimiter;

module.exports = {
  // Kills: an attempt imagined; a peek at cost 1 in place of one at 0.
  async 'usage tells what is counted, and writes nothing'({ make, stateOf, at }) {
    const limiter = make({ maxInInterval: 2 });
    at(0);
    expect(await limiter.usage('a')).toMatchObject({
      allowed: true,
      used: 0,
      remaining: 2,
      resetIn: 0,
      timeLeft: 0,
    });
    expect(await stateOf('a')).toBeFalsy();
    await limiter.attempt('a');
    const first = await limiter.attempt('a');
    const state = await stateOf('a');
    const usage = await limiter.usage('a');
    expect(usage).toEqual({
      ...{ allowed: false, used: 2, remaining: 0, resetIn: first.resetIn },
      ...{ timeLeft: expect.any(Number), limits: first.limits },
    });
    expect(usage.timeLeft).toBe((await limiter.peek('a')).timeLeft);
    expect(await stateOf('a')).toEqual(state);
  },

  async 'usage is that of the window with the least left'({ make, at }) {
    const limits = [
      { interval: 60_000, maxInInterval: 9 },
      { interval: 600_000, maxInInterval: 3 },
    ];
    const limiter = make({ limits });
    at(0);
    await limiter.attempt('a', { cost: 2 });
    const { used, remaining, limits: windows } = await limiter.usage('a');
    expect([used, remaining]).toEqual([2, 1]);
    expect(windows.map((window) => window.used)).toEqual([2, 2]);
  },

  async 'usage shows minDifference and blocks as not allowed'({ make, at }) {
    const limiter = make({ maxInInterval: 1, minDifference: 10, blockFor: 90_000_000 });
    at(0);
    await limiter.attempt('a');
    await limiter.attempt('a');
    expect(await limiter.usage('a')).toMatchObject({ allowed: false, timeLeft: 90_000_000 });
  },

  // Kills: attempts without a peek before; a refund that is left out.
  async 'a refusal of one of several leaves no trace on any'({ make, stateOf, at }) {
    at(0);
    const full = make({ maxInInterval: 1 });
    await full.attempt('a');
    const free = make({ maxInInterval: 5 });
    const list = [
      { limiter: free, id: 'a', cost: 3 },
      { limiter: free, id: 'b' },
      { limiter: full, id: 'a' },
      { limiter: free, id: 'c' },
    ];
    const result = await attemptAll(list);
    expect(result).toMatchObject({ allowed: false, refusedBy: 2 });
    const allowed = result.decisions.map((decision) => decision?.allowed);
    expect(allowed).toEqual([true, true, false, undefined]);
    for (const id of ['a', 'b', 'c']) expect(await free.usage(id)).toMatchObject({ used: 0 });
    expect(await stateOf('c')).toBeFalsy();
  },

  async 'all of several are recorded if all are allowed'({ make, at }) {
    at(0);
    const user = make({ maxInInterval: 5 });
    const everybody = make({ maxInInterval: 9 });
    const result = await attemptAll([
      { limiter: user, id: 1, cost: 3 },
      { limiter: user, id: 2 },
      { limiter: everybody },
    ]);
    expect(result).toMatchObject({ allowed: true, refusedBy: null });
    expect(result.decisions.map(({ actionsLeft }) => actionsLeft)).toEqual([2, 4, 8]);
    expect(await user.usage('1')).toMatchObject({ used: 3 });
    expect(await everybody.usage()).toMatchObject({ used: 1 });
    expect(await user.refund(result.decisions[0])).toBe(true);
  },

  async 'the answer of several comes at once or as a promise, by the store'({ make, store }) {
    const answer = attemptAll([{ limiter: make() }]);
    expect(answer instanceof Promise).toBe(!store.isSync);
    await answer;
    const wrong = () => attemptAll([{ limiter: make(), id: {} }]);
    if (store.isSync) expect(wrong).toThrow(TypeError);
    else await expect(wrong()).rejects.toThrow(TypeError);
  },

  async 'a wrong list is an error, and nothing is recorded'({ make, failureOf }) {
    const limiter = make();
    const ok = { limiter, id: 'a' };
    const errors = [
      ...[undefined, 'a', {}, []].map((list) => [list, 'ERR_ROLLGATE_OPTION']),
      ...[
        undefined,
        null,
        1,
        {},
        { id: 1 },
        { limiter: () => 0 },
        { limiter: RateLimiter.prototype },
        { ...ok, price: 1 },
      ].map((entry) => [[ok, entry], 'ERR_ROLLGATE_OPTION']),
      [[ok, { limiter, id: 'a', cost: 2 }], 'ERR_ROLLGATE_OPTION'],
      [
        [
          { limiter, id: 1 },
          { limiter, id: '1' },
        ],
        'ERR_ROLLGATE_OPTION',
      ],
      [[ok, { limiter, id: {} }], 'ERR_ROLLGATE_ID'],
      ...[0, 3, 1.5, '1', null].map((cost) => [
        [ok, { limiter, id: 'b', cost }],
        'ERR_ROLLGATE_COST',
      ]),
    ];
    for (const [list, code] of errors)
      expect(await failureOf(() => attemptAll(list))).toMatchObject({ code });
    expect(limiter.stats()).toMatchObject({ allowed: 0, blocked: 0 });
  },

  async 'an error of one takes back the others'({ make, failureOf }) {
    const limiter = make();
    const closed = make();
    await closed.close();
    const call = () => attemptAll([{ limiter, id: 'a' }, { limiter: closed }]);
    expect(await failureOf(call)).toMatchObject({ code: 'ERR_ROLLGATE_CLOSED' });
    expect(await limiter.usage('a')).toMatchObject({ used: 0 });
  },

  // Kills: a loop of refunds that ends with the first that fails.
  async 'a refund that fails leaves no other attempt counted'({ make, store, failureOf }) {
    const [failing, counting, full] = [make(), make(), make({ maxInInterval: 1 })];
    await full.attempt();
    failing.refund = () => {
      if (!store.isSync) return Promise.reject(new Error('lost'));
      throw new Error('lost');
    };
    let asked = 0;
    full[DECIDE] = (...call) => {
      asked += 1; // refuses only once the others have recorded
      return asked === 1 && call[2] === RECORDS.NOTHING ? make().peek() : full.attempt();
    };
    const list = [failing, counting, full].map((limiter) => ({ limiter }));
    expect(await failureOf(() => attemptAll(list))).toMatchObject({ message: 'lost' });
    expect(await counting.usage()).toMatchObject({ used: 0 });
  },

  'where refusals can count': {
    // Kills: refusals that count; a block that starts.
    async 'refusals of several count nowhere and start no block'({ make, at }) {
      const limiter = make({ maxInInterval: 1, countBlocked: true, blockFor: 60_000_000 });
      at(0);
      await limiter.attempt('a');
      for (const micros of [0, 1000, 2000]) {
        at(micros);
        const before = await limiter.usage('a');
        expect(await attemptAll([{ limiter, id: 'a' }])).toMatchObject({ allowed: false });
        expect(await limiter.usage('a')).toEqual(before);
      }
    },
  },
};
