// RollgateStore by itself: its counts are those of a rolling window, whatever comes in what order.
'use strict';

const fc = require('fast-check');
const RateLimiter = require('../../..');
const RollgateStore = require('../../../lib/store');

const WINDOW_MS = 1000;

function storeWith(options, init) {
  let now = 5000;
  const store = new RollgateStore({ clock: () => now, ...options });
  store.init({ windowMs: WINDOW_MS, limit: 2, ...init });
  return { store, advance: (ms) => (now += ms) };
}

const hitsOf = async (store, key) => (await store.get(key))?.totalHits ?? 0;

/** What a list of all hits says: the hit passes if fewer than `limit` came in the window before it. */
function exactWindow(limit) {
  const hits = [];
  return (now) => {
    const inside = hits.filter((at) => at > now - WINDOW_MS).length;
    hits.push(now);
    return inside < limit;
  };
}

test.each([
  ['a number', (limit) => limit, {}],
  ['a function, and the log as long as the largest', (limit) => () => limit, { maxInInterval: 4 }],
])('it allows what an exact rolling window allows; limit is %s', async (_what, asked, options) => {
  const steps = fc.array(fc.integer({ min: 0, max: 700 }), { maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 0, max: 4 }), steps, async (limit, waits) => {
      const { store, advance } = storeWith(options, { limit: asked(limit) });
      const passes = exactWindow(limit);
      let now = 0;
      for (const ms of waits) {
        now += ms;
        advance(ms);
        const { totalHits } = await store.increment('a');
        expect(Number.isInteger(totalHits) && totalHits >= 1).toBe(true);
        expect(totalHits <= limit).toBe(passes(now));
      }
    }),
  );
});

test('totalHits counts up to the limit and one more; resetTime is when a hit would pass', async () => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'performance'], now: 10_000 });
  try {
    const { store, advance } = storeWith();
    const answers = [];
    for (const ms of [0, 300, 100, 100]) {
      advance(ms);
      const { totalHits, resetTime } = await store.increment('a');
      answers.push([totalHits, resetTime.getTime() - 10_000]);
    }
    // Refused hits count: the last ones are at 400 and 500.
    expect(answers).toEqual([
      [1, 1000],
      [2, 700],
      [3, 900],
      [3, 900],
    ]);
  } finally {
    jest.useRealTimers();
  }
});

test('countBlocked: false lets refused hits leave no trace', async () => {
  const { store, advance } = storeWith({ countBlocked: false });
  const hits = [];
  for (const ms of [0, 500, 400, 100]) {
    advance(ms);
    hits.push((await store.increment('a')).totalHits);
  }
  expect(hits).toEqual([1, 2, 3, 2]);
});

test.each([0, 1, 2.5, 3])(
  'limit %p lets as many pass as express-rate-limit does',
  async (limit) => {
    const { store } = storeWith({}, { limit });
    const passed = [];
    for (let i = 0; i < 5; i++) passed.push((await store.increment('a')).totalHits <= limit);
    expect(passed.filter(Boolean)).toHaveLength(Math.floor(limit));
  },
);

test('keys count apart, also those of odd names', async () => {
  const { store } = storeWith();
  for (const key of ['a', 'b', '__proto__', '', 'constructor']) {
    expect((await store.increment(key)).totalHits).toBe(1);
  }
});

describe('decrement', () => {
  test('takes back the newest hit that was not taken back yet', async () => {
    const { store, advance } = storeWith({}, { limit: 5 });
    await store.increment('a');
    advance(400);
    await store.increment('a');
    await store.decrement('a');
    advance(599);
    expect(await hitsOf(store, 'a')).toBe(1);
    advance(1); // the first hit leaves the window
    expect(await hitsOf(store, 'a')).toBe(0);
  });

  test('as often as there were hits, and no further', async () => {
    const { store } = storeWith({}, { limit: 5 });
    for (let i = 0; i < 3; i++) await store.increment('a');
    await store.increment('b');
    const counts = [];
    for (let i = 0; i < 4; i++) {
      await store.decrement('a');
      counts.push(await hitsOf(store, 'a'));
    }
    expect(counts).toEqual([2, 1, 0, 0]);
    expect(await hitsOf(store, 'b')).toBe(1);
  });

  test('of a key nobody knows, or that was reset, does nothing', async () => {
    const { store } = storeWith();
    await store.decrement('a');
    await store.increment('a');
    await store.resetKey('a');
    await store.increment('a');
    await store.resetAll();
    await store.decrement('a');
    expect(await hitsOf(store, 'a')).toBe(0);
  });

  test('for a refused hit takes back no other, and with skipFailedRequests there is none', async () => {
    const { store } = storeWith({}, { limit: 1, skipFailedRequests: true });
    await store.increment('a');
    expect((await store.increment('a')).totalHits).toBe(2);
    await store.decrement('a'); // that of the refused request
    expect(await hitsOf(store, 'a')).toBe(1);
    await store.decrement('a');
    expect(await hitsOf(store, 'a')).toBe(0);
  });

  test('remembers thousands of hits, not all there ever were', async () => {
    const { store } = storeWith({}, { limit: 100 });
    await store.increment('early');
    for (let i = 0; i < 4999; i++) await store.increment(`k${i}`);
    await store.increment('late');
    await store.decrement('early'); // one of the five thousand newest before this one
    expect(await hitsOf(store, 'early')).toBe(0);
    await store.increment('early');
    for (let i = 0; i < 10_001; i++) await store.increment(`k${i}`);
    await store.decrement('early');
    expect(await hitsOf(store, 'early')).toBe(1);
  });
});

test('get tells what is counted and counts nothing', async () => {
  const { store } = storeWith();
  expect(await store.get('a')).toBeUndefined();
  await store.increment('a');
  for (let i = 0; i < 3; i++) {
    expect(await store.get('a')).toEqual({ totalHits: 1, resetTime: expect.any(Date) });
  }
});

test('resetKey forgets one key, resetAll all', async () => {
  const { store } = storeWith();
  for (const key of ['a', 'b', 'c']) await store.increment(key);
  await store.resetKey('a');
  expect(await Promise.all(['a', 'b', 'c'].map((key) => hitsOf(store, key)))).toEqual([0, 1, 1]);
  await store.resetAll();
  expect(await Promise.all(['a', 'b', 'c'].map((key) => hitsOf(store, key)))).toEqual([0, 0, 0]);
});

test('shutdown closes a limiter of its own and leaves one of yours', async () => {
  const { store } = storeWith();
  await store.shutdown();
  await expect(store.increment('a')).rejects.toMatchObject({ code: 'ERR_ROLLGATE_CLOSED' });
  await new RollgateStore().shutdown();

  const limiter = RateLimiter({ interval: 1000, maxInInterval: 2 });
  const over = new RollgateStore({ limiter });
  over.init({ windowMs: 1000, limit: 2 });
  await over.shutdown();
  expect(limiter('a')).toBe(0);
});

describe('over a limiter of yours', () => {
  const limiterOf = (options) => RateLimiter({ interval: 1e6, maxInInterval: 2, ...options });
  const play = async (limiter, limit, times) => {
    const store = new RollgateStore({ limiter });
    store.init({ windowMs: 1e6, limit });
    const hits = [];
    for (let i = 0; i < times; i++) hits.push((await store.increment('a')).totalHits);
    return hits;
  };

  test('the narrower of the two limits holds', async () => {
    expect(await play(limiterOf(), 2, 4)).toEqual([1, 2, 3, 3]);
    expect(await play(limiterOf(), 5, 4)).toEqual([1, 2, 6, 6]);
    expect(await play(limiterOf({ maxInInterval: 9 }), 2, 4)).toEqual([1, 2, 3, 4]);
    expect(await play(limiterOf(), () => 2, 4)).toEqual([1, 2, 3, 3]);
  });

  test('a refusal for another reason than the count is above the limit, too', async () => {
    expect(await play(limiterOf({ maxInInterval: 5, minDifference: 1e5 }), 5, 2)).toEqual([1, 6]);
  });
});

describe('localKeys and prefix tell express-rate-limit where it counts', () => {
  const told = ({ localKeys, prefix }) => ({ localKeys, prefix });

  test('in memory', () => {
    expect(told(new RollgateStore())).toEqual({ localKeys: true, prefix: undefined });
  });

  test('on Redis', () => {
    const redis = 'redis://127.0.0.1:1';
    const named = new RollgateStore({ redis, namespace: 'api' });
    expect(told(named)).toEqual({ localKeys: false, prefix: 'api' });
    const [one, two] = [new RollgateStore({ redis }), new RollgateStore({ redis })];
    expect(one.localKeys).toBe(false);
    expect(one.prefix).not.toBe(two.prefix);
  });

  test('over limiters of yours: one name for each', () => {
    const limiters = [1, 2].map((interval) => RateLimiter({ interval, maxInInterval: 1 }));
    const [a, b, again] = [...limiters, limiters[0]].map(
      (limiter) => new RollgateStore({ limiter }),
    );
    expect([a.localKeys, a.prefix === again.prefix, a.prefix === b.prefix]).toEqual([
      false,
      true,
      false,
    ]);
  });
});

describe('what is wrong', () => {
  test.each([
    ['no object', 'redis'],
    ['an unknown option', { intervall: 1000 }],
    ['a limit of the wrong type', { maxInInterval: '3' }],
    ['a clock that is none', { clock: 5 }],
    ['what is no limiter', { limiter: {} }],
    [
      'options beside a limiter',
      { limiter: RateLimiter({ interval: 1, maxInInterval: 1 }), clock: Date.now },
    ],
  ])('at construction: %s', (_what, options) => {
    expect(() => new RollgateStore(options)).toThrow(
      expect.objectContaining({ code: 'ERR_ROLLGATE_OPTION' }),
    );
  });

  test.each(['interval', 'windowMs', 'limit', 'max'])(
    '%s is refused with the place where it belongs',
    (name) => {
      expect(() => new RollgateStore({ [name]: 5 })).toThrow(
        expect.objectContaining({
          code: 'ERR_ROLLGATE_OPTION',
          message: expect.stringMatching(
            new RegExp(`^option '${name}': .*rateLimit\\({ windowMs, limit, store }\\)$`),
          ),
        }),
      );
    },
  );

  test.each([
    ['a window that is none', {}, { windowMs: -1, limit: 2 }],
    ['a limit that is a function, without maxInInterval', {}, { windowMs: 1000, limit: () => 2 }],
    ['a limit that is no number', {}, { windowMs: 1000, limit: Number.NaN }],
    [
      'countBlocked: true with skipFailedRequests',
      { countBlocked: true },
      { windowMs: 1000, limit: 2, skipFailedRequests: true },
    ],
  ])('at init, and at every use from then on: %s', async (_what, options, init) => {
    const store = new RollgateStore(options);
    expect(() => store.init(init)).toThrow(
      expect.objectContaining({ code: 'ERR_ROLLGATE_OPTION' }),
    );
    await expect(store.increment('a')).rejects.toMatchObject({
      code: 'ERR_ROLLGATE_STORE',
      cause: { code: 'ERR_ROLLGATE_OPTION' },
    });
  });

  test('use without init', async () => {
    const store = new RollgateStore();
    for (const call of [
      () => store.increment('a'),
      () => store.decrement('a'),
      () => store.get('a'),
      () => store.resetKey('a'),
      () => store.resetAll(),
    ]) {
      await expect(call()).rejects.toMatchObject({ code: 'ERR_ROLLGATE_STORE' });
    }
  });

  test('a second middleware with other limits: from then on neither can use it', async () => {
    const { store } = storeWith();
    store.init({ windowMs: WINDOW_MS, limit: 2 });
    expect((await store.increment('a')).totalHits).toBe(1);
    for (const limit of [3, 2]) {
      expect(() => store.init({ windowMs: WINDOW_MS, limit })).toThrow(
        expect.objectContaining({ code: 'ERR_ROLLGATE_STORE' }),
      );
      await expect(store.increment('a')).rejects.toMatchObject({ code: 'ERR_ROLLGATE_STORE' });
    }
    await store.shutdown();
  });

  test('a key that is no id', async () => {
    const { store } = storeWith();
    await expect(store.increment({})).rejects.toMatchObject({ code: 'ERR_ROLLGATE_ID' });
  });
});
