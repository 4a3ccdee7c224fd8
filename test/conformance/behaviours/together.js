// Behaviours: usage, and attempts on several limiters and ids, of which all pass or none counts.
'use strict';

const RateLimiter = require('../../../lib');
const { RECORDS } = require('../../../lib/base/decision');
const { DECIDE } = require('../../../lib/base/internal-methods');
const { NAMED, usedOf } = require('../usage');

const { attemptAll } = RateLimiter;

module.exports = {
  // Kills: an attempt imagined; a peek at cost 1 in place of one at 0.
  async 'usage tells what is counted'({ make, at }) {
    const limiter = make();
    at(0);
    expect(await limiter.usage('a')).toMatchObject({
      ...{ allowed: true, used: 0, remaining: 2, resetIn: 0, timeLeft: 0 },
    });
    await limiter.attempt('a');
    const { resetIn, limits } = await limiter.attempt('a');
    expect(await limiter.usage('a')).toEqual({
      ...{ allowed: false, used: 2, remaining: 0, resetIn, limits },
      timeLeft: (await limiter.peek('a')).timeLeft,
    });
  },

  // Kills: attempts without a peek before; a refund that is left out.
  async 'a refusal of one of several leaves no trace on any'({ make, store, stateOf, at }) {
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
    expect(await stateOf('c')).toBe(undefined);
    if (store.isSync) expect(free.stats().keys).toBe(0); // nobody can act between its peeks and attempts
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

  async 'costs by name count on all limiters or on none'({ make }) {
    const user = make(NAMED);
    const organisation = make({ limits: [{ ...NAMED.limits[1], maxInInterval: 4000 }] });
    const attempt = (id, tokens) =>
      attemptAll([
        { limiter: user, id, cost: { tokens } },
        { limiter: organisation, id: 'acme', cost: { tokens } },
      ]);
    const first = await attempt('ada', 2500);
    expect(first.allowed).toBe(true);
    expect((await attempt('bob', 2000)).refusedBy).toBe(1);
    expect(await usedOf(user, 'bob')).toEqual([0, 0]);
    await organisation.settle(first.decisions[1], { tokens: 1500 });
    expect((await attempt('bob', 2000)).allowed).toBe(true);
    expect(await usedOf(organisation, 'acme')).toEqual([3500]);
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
