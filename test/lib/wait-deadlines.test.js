// wait() with a deadline that cannot be met: rejected as soon as a peek can tell, and nobody waits behind it.
'use strict';

const RateLimiter = require('../..');
const { ALGORITHMS } = require('../../lib/options/algorithms');
const { createPlainKv } = require('../support/kv-stores');
const { handClock } = require('../support/set-up');
const { errorOf } = require('../support/outcome');
const { casesOf } = require('../support/tiers');
const { randomFrom } = require('../support/traces');

const DEADLINE = 'ERR_ROLLGATE_WAIT_DEADLINE';

const advance = (ms) => jest.advanceTimersByTimeAsync(ms);

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask'] });
});
afterEach(() => {
  jest.useRealTimers();
});

const inMemory = (options) => RateLimiter(options);
const inKv = (options) => RateLimiter({ kv: createPlainKv(), namespace: 'n', ...options });

describe('a deadline, where places become free after 600, 700 and 1000 ms', () => {
  /** How each promise was settled, and after how many ms. */
  function timed(promises) {
    const start = performance.now();
    const ends = promises.map(() => undefined);
    promises.forEach(async (promise, i) => {
      const end = await promise.then(
        () => 'allowed',
        ({ code, name }) => code ?? name,
      );
      ends[i] = [end, performance.now() - start];
    });
    return ends;
  }

  async function threeIn1000(make, options) {
    const clock = () => performance.now();
    const limiter = make({ interval: 1000, maxInInterval: 3, clock, ...options });
    for (const ms of [0, 100, 300]) {
      await advance(ms);
      await limiter('a');
    }
    return limiter;
  }

  const POLICIES = [
    ['refusals count', {}],
    ['refusals do not count', { countBlocked: false }],
    ['minDifference', { minDifference: 10 }],
    ['refusals count and block', { blockFor: 5000 }],
  ];

  describe.each([
    ['memory', inMemory],
    ['a key-value store', inKv],
  ])('in %s', (_store, make) => {
    test.each(POLICIES)(
      'a deadline before enough places are free is rejected at once: %s',
      async (_name, options) => {
        const limiter = await threeIn1000(make, options);
        const ends = timed([limiter.wait('a', { cost: 3, deadline: 950 }), limiter.wait('a')]);
        await advance(0);
        expect(ends).toEqual([[DEADLINE, 0], undefined]);
        await advance(600);
        expect(ends[1]).toEqual(['allowed', 600]);
        expect(jest.getTimerCount()).toBe(0);
        expect(limiter.stats()).toMatchObject({ allowed: 4, blocked: 0 });
      },
    );

    test.each(POLICIES)('a deadline after that is met: %s', async (_name, options) => {
      const limiter = await threeIn1000(make, options);
      const ends = timed([limiter.wait('a', { cost: 3, deadline: 1001 }), limiter.wait('a')]);
      await advance(1000);
      expect(ends).toEqual([['allowed', 1000], undefined]);
    });

    test('calls behind the first are rejected when it is known how long that waits', async () => {
      const limiter = await threeIn1000(make);
      const ends = timed([
        limiter.wait('a'),
        limiter.wait('a', { deadline: 599 }),
        limiter.wait('a', { cost: 2, deadline: 300 }),
        limiter.wait('a', { deadline: 2000 }),
      ]);
      await advance(0);
      expect(ends).toEqual([undefined, [DEADLINE, 0], [DEADLINE, 0], undefined]);
      await advance(700);
      expect([ends[0], ends[3]]).toEqual([
        ['allowed', 600],
        ['allowed', 700],
      ]);
    });

    test('a call whose wait others lengthen past its deadline is rejected, wherever it stands', async () => {
      const limiter = await threeIn1000(make, { countBlocked: false });
      const ends = timed([
        limiter.wait('a', { cost: 2 }),
        limiter.wait('a', { cost: 2, deadline: 900 }),
      ]);
      await advance(650);
      await limiter('a');
      await advance(50);
      expect(ends).toEqual([undefined, [DEADLINE, 700]]);
      await advance(300);
      expect(ends[0]).toEqual(['allowed', 1000]);
    });
  });

  test('in memory a call asks for itself, though those in front have a higher cost', async () => {
    const limiter = await threeIn1000(inMemory);
    const giveUp = new AbortController();
    const ends = timed([
      limiter.wait('a', { cost: 3, signal: giveUp.signal }),
      limiter.wait('a', { deadline: 599 }),
      limiter.wait('a', { cost: 2, deadline: 699 }),
      limiter.wait('a', { deadline: 601 }),
    ]);
    await advance(0);
    expect(ends).toEqual([undefined, [DEADLINE, 0], [DEADLINE, 0], undefined]);
    giveUp.abort();
    await advance(600);
    expect(ends[3]).toEqual(['allowed', 600]);
  });

  test('a clock that throws as a call asks for itself fails that call', async () => {
    let now = () => performance.now();
    const limiter = await threeIn1000(inMemory, { clock: () => now() });
    const first = limiter.wait('a');
    now = () => {
      throw new Error('out of order');
    };
    const second = limiter.wait('a', { deadline: 5000 });
    now = () => performance.now();
    expect(await errorOf(second)).toMatchObject({ code: 'ERR_ROLLGATE_CLOCK' });
    await advance(600);
    expect(await first).toMatchObject({ allowed: true });
    expect(jest.getTimerCount()).toBe(0);
  });
});

/** For how many ms the error says that the action has to wait; 0 if it was allowed. */
async function waitOf(limiter, cost) {
  const { blocked } = limiter.stats();
  try {
    await limiter.wait('a', { cost, deadline: 0 });
    return 0;
  } catch ({ code, message }) {
    expect(code).toBe(DEADLINE);
    return Number(/allowed in (\d+) ms/.exec(message)[1]);
  } finally {
    expect(limiter.stats().blocked).toBe(blocked);
  }
}

const CASES = ALGORITHMS.flatMap((algorithm) =>
  [
    { countBlocked: true },
    { countBlocked: false },
    { countBlocked: true, minDifference: 7 },
    { countBlocked: true, blockFor: [30, 90] },
    { countBlocked: false, blockFor: 40, minDifference: 3 },
  ]
    .filter(({ countBlocked }) => !countBlocked || algorithm !== 'gcra')
    .map((policy) => [algorithm, policy]),
);

/** Windows that cost the same, and windows with costs of their own: their limits, a random cost, what it came to. */
const FORMS = {
  'one cost': {
    limits: [
      { interval: 50, maxInInterval: 4 },
      { interval: 170, maxInInterval: 9 },
    ],
    costFrom: (random) => random.between(1, 4),
  },
  'a cost for each window': {
    limits: [
      { name: 'few', interval: 50, maxInInterval: 4 },
      { name: 'many', interval: 170, maxInInterval: 30 },
      { interval: 110, maxInInterval: 5 },
    ],
    costFrom: (random) =>
      random.chance(20)
        ? random.between(1, 4)
        : { few: random.between(0, 4), many: random.between(0, 9) },
    isSettled: true,
  },
};

// Kills: a wait for windows in which the call costs nothing; cost 1 in place of the cost of a window.
describe.each(Object.entries(FORMS))('%s', (_form, { limits, costFrom, isSettled = false }) => {
  test.each(CASES)(
    'the wait in the error is never too long, and exact without blocks: %s %p',
    async (algorithm, { minDifference = 0, ...policy }) => {
      const isExact =
        policy.blockFor === undefined &&
        minDifference === 0 &&
        !(algorithm === 'sliding-window-counter' && policy.countBlocked);
      for (const make of [inMemory, inKv]) {
        const { clock, advance } = handClock();
        const own = limits.map((limit, i) => ({ ...limit, ...(i === 0 && { minDifference }) }));
        const limiter = make({ limits: own, algorithm, clock, ...policy });
        const random = randomFrom(7);
        for (let i = 0; i < casesOf(300); i++) {
          const given = costFrom(random);
          const decision = await limiter.attempt('a', { cost: given });
          if (isSettled && random.chance(30)) {
            const actual = random.between(0, 40);
            await limiter.settle(decision, typeof given === 'number' ? actual : { many: actual });
          }
          advance(random.between(0, 39));
          const cost = costFrom(random);
          const wait = await waitOf(limiter, cost);
          if (wait === 0) continue;
          advance(wait - 1);
          expect(await limiter.peek('a', { cost })).toMatchObject({ allowed: false });
          advance(1);
          if (isExact) expect(await limiter.peek('a', { cost })).toMatchObject({ allowed: true });
        }
        await limiter.close();
      }
    },
  );
});
