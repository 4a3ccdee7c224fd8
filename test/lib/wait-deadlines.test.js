// wait() with a deadline that cannot be met: rejected as soon as a peek can tell, and nobody waits behind it.
'use strict';

const RateLimiter = require('../..');
const { createPlainKv } = require('../support/kv-stores');
const { errorOf } = require('../support/outcome');

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
      'a deadline before enough places are free is rejected at once, a later one is met: %s',
      async (_name, options) => {
        const limiter = await threeIn1000(make, options);
        const ends = timed([
          limiter.wait('a', { cost: 3, deadline: 950 }),
          limiter.wait('a', { cost: 3, deadline: 1001 }),
        ]);
        await advance(0);
        expect(ends).toEqual([[DEADLINE, 0], undefined]);
        await advance(1000);
        expect(ends[1]).toEqual(['allowed', 1000]);
        expect(jest.getTimerCount()).toBe(0);
        expect(limiter.stats()).toMatchObject({ allowed: 4, blocked: 0 });
      },
    );

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
      const late = timed([limiter.wait('a', { deadline: 300 })]);
      await advance(0);
      expect(late).toEqual([[DEADLINE, 0]]);
      await advance(700);
      expect([ends[0], ends[3]]).toEqual([
        ['allowed', 600],
        ['allowed', 700],
      ]);
    });

    test('a cheaper call is not rejected by the wait of the one in front', async () => {
      const limiter = await threeIn1000(make);
      const giveUp = new AbortController();
      const ends = timed([
        limiter.wait('a', { cost: 3, signal: giveUp.signal }),
        limiter.wait('a', { deadline: 650 }),
      ]);
      await advance(0);
      expect(ends[1]).toBe(undefined);
      giveUp.abort();
      await advance(600);
      expect(ends[1]).toEqual(['allowed', 600]);
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
