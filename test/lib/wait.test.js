// wait() in memory, on timers and a clock that tests move: when calls are let in, give up or are rejected.
'use strict';

const { getEventListeners } = require('node:events');
const RateLimiter = require('../..');
const { createPlainKv } = require('../support/kv-stores');
const { errorOf } = require('../support/outcome');
const { handClock } = require('../support/set-up');
const { casesOf } = require('../support/tiers');

/** Far more than are served in one turn of the event loop. */
const MANY = casesOf(50_000);
const DEADLINE = 'ERR_ROLLGATE_WAIT_DEADLINE';

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask'] });
});
afterEach(() => {
  jest.useRealTimers();
});

/** One in 100 ms unless `options` say otherwise, by a clock that moves with the timers; counts its readings. */
function setUp(options) {
  const asked = { times: 0 };
  const clock = () => {
    asked.times += 1;
    return performance.now();
  };
  return { limiter: RateLimiter({ interval: 100, maxInInterval: 1, clock, ...options }), asked };
}

/** What became of each promise so far: its Decision, its error, or undefined. */
function follow(promises) {
  const ends = promises.map(() => undefined);
  const noteFor = (i) => (end) => {
    ends[i] = end;
  };
  promises.forEach((promise, i) => {
    promise.then(noteFor(i), noteFor(i));
  });
  return { ends, letIn: () => ends.filter((end) => end?.allowed).length };
}

const advance = (ms) => jest.advanceTimersByTimeAsync(ms);

/** A signal, and what aborts it. */
function withAbort() {
  const controller = new AbortController();
  return { signal: controller.signal, abort: (reason) => controller.abort(reason) };
}

describe('being let in', () => {
  test('happens to the first call exactly when timeLeft has passed', async () => {
    const { limiter, asked } = setUp();
    limiter.wait('a');
    expect(limiter.stats()).toMatchObject({ keys: 1, allowed: 1, blocked: 0 });
    expect(jest.getTimerCount()).toBe(0);
    const { letIn } = follow([limiter.wait('a'), limiter.wait('a')]);
    const before = asked.times;
    await advance(99);
    expect([letIn(), asked.times - before]).toEqual([0, 0]);
    await advance(1);
    expect(letIn()).toBe(1);
    await advance(99);
    expect(letIn()).toBe(1);
    await advance(1);
    expect(letIn()).toBe(2);
    expect(jest.getTimerCount()).toBe(0);
  });

  test('a thousand calls for one id have one timer, and ask about once each', async () => {
    const { limiter, asked } = setUp({ maxInInterval: 10 });
    const waiting = follow(Array.from({ length: 1010 }, () => limiter.wait('a')));
    expect(jest.getTimerCount()).toBe(1);
    await advance(100 * 100);
    expect(waiting.letIn()).toBe(1010);
    // Each is an attempt. The first ten peek on their own, then one peek finds a window empty, one full.
    expect(asked.times).toBeLessThanOrEqual(1010 + 10 + 2 * 101);
    expect(limiter.stats()).toMatchObject({ allowed: 1010, blocked: 0 });
    expect(jest.getTimerCount()).toBe(0);
  });

  test('waits of more than 2^31 ms are waited for', async () => {
    const interval = 2 ** 32;
    const { limiter } = setUp({ interval });
    limiter('a');
    const deadline = interval + 1000;
    const { letIn } = follow([limiter.wait('a', { deadline })]);
    await advance(interval - 1);
    expect(letIn()).toBe(0);
    await advance(1);
    expect(letIn()).toBe(1);
    expect(jest.getTimerCount()).toBe(0);
  });

  test('when very many are let in at once, others have a turn in between', async () => {
    const { limiter } = setUp({ maxInInterval: MANY });
    limiter.attempt('a', { cost: MANY });
    const waiting = follow(Array.from({ length: MANY }, () => limiter.wait('a')));
    let atMyTurn;
    const turn = new Promise((resolve) => {
      setTimeout(() => {
        setImmediate(() => {
          atMyTurn = waiting.letIn();
          resolve();
        });
      }, 100);
    });
    jest.advanceTimersByTime(100);
    await turn;
    expect(atMyTurn).toBeLessThan(MANY);
    while (waiting.letIn() < MANY) await new Promise((resolve) => setImmediate(resolve));
    expect(limiter.stats()).toMatchObject({ allowed: MANY + 1, blocked: 0 });
  });
});

describe('giving up', () => {
  test('afterwards the signal changes nothing and has no listener', async () => {
    const { limiter } = setUp();
    const { signal, abort } = withAbort();
    const atOnce = limiter.wait('a', { signal });
    const later = limiter.wait('a', { signal });
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    await advance(100);
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    abort();
    expect([await atOnce, await later]).toMatchObject([{ allowed: true }, { allowed: true }]);
  });

  test('a signal that has no reason rejects with an AbortError', async () => {
    const { limiter } = setUp();
    const signal = Object.assign(new EventTarget(), { aborted: false }); // as of older polyfills
    limiter('a');
    const later = errorOf(limiter.wait('a', { signal }));
    signal.aborted = true;
    signal.dispatchEvent(new Event('abort'));
    const atOnce = errorOf(limiter.wait('a', { signal }));
    for (const error of [await later, await atOnce]) {
      expect(error?.name).toBe('AbortError');
    }
  });

  test('calls that leave change neither the order of the others nor the time of the first', async () => {
    const { limiter, asked } = setUp();
    limiter('a');
    const signals = Array.from({ length: 5 }, withAbort);
    const { ends, letIn } = follow(signals.map(({ signal }) => limiter.wait('a', { signal })));
    const before = asked.times;
    await advance(50);
    for (const i of [0, 2, 4]) signals[i].abort();
    await advance(49);
    expect([letIn(), asked.times - before]).toEqual([0, 0]);
    await advance(1);
    const left = 'AbortError';
    expect(ends.map((end) => end?.allowed ?? end?.name)).toEqual([
      left,
      true,
      left,
      undefined,
      left,
    ]);
    await advance(100);
    expect(ends[3]).toMatchObject({ allowed: true });
    expect(jest.getTimerCount()).toBe(0);
  });

  test.each([
    [2, 1],
    [{ n: 2 }, { n: 1 }],
  ])(
    'when the first leaves, a cheaper one behind does not wait for what only it had to: %j',
    async (...costs) => {
      const limits = [
        { name: 'n', interval: 100, maxInInterval: 3 },
        { name: 'm', interval: 100, maxInInterval: 9 },
      ];
      const { limiter } = setUp({ limits });
      limiter.attempt('a', { cost: 2 });
      const { signal, abort } = withAbort();
      const [first, second] = costs;
      const { letIn } = follow([
        limiter.wait('a', { signal, cost: first }),
        limiter.wait('a', { cost: second }),
      ]);
      await advance(10);
      expect(letIn()).toBe(0);
      abort();
      await advance(0);
      expect(letIn()).toBe(1);
    },
  );

  test('a deadline ends the wait of calls behind others', async () => {
    const { limiter } = setUp({ maxInInterval: 2 });
    limiter('a');
    const { ends } = follow([
      limiter.wait('a', { cost: 2 }),
      limiter.wait('a', { deadline: 50 }), // for which there is room
      limiter.wait('a', { deadline: 150 }), // behind one who fills the window at 100
    ]);
    await advance(49);
    expect(ends[1]).toBeUndefined();
    await advance(1);
    expect(ends[1]).toMatchObject({
      code: DEADLINE,
      message: 'the action was not allowed within 50 ms',
    });
    await advance(50);
    expect(ends[0]).toMatchObject({ allowed: true });
    expect(ends[2]).toMatchObject({
      code: DEADLINE,
      message: 'the action would be allowed in 100 ms, past its deadline, 150 ms after the call',
    });
    expect(jest.getTimerCount()).toBe(0);
  });

  test('close ends the wait of all at once, and leaves no timer', async () => {
    const { limiter } = setUp();
    const { signal } = withAbort();
    limiter.attemptMany(['a', 'b']);
    const { ends } = follow(
      ['a', 'a', 'b'].map((id) => limiter.wait(id, { signal, deadline: 1e6 })),
    );
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    limiter.close();
    expect(jest.getTimerCount()).toBe(0);
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    await advance(0);
    expect(ends.map(({ code }) => code)).toEqual(Array(3).fill('ERR_ROLLGATE_CLOSED'));
  });
});

describe('priority', () => {
  // Kills: one queue for all; the newest first within a level.
  test.each([
    ['memory', {}],
    ['a key-value store', { kv: createPlainKv(), namespace: 'n' }],
  ])('3 goes first, within a level the first who came, in %s', async (_store, options) => {
    const { limiter } = setUp(options);
    await limiter('a');
    const order = [];
    const calls = ['0a', '1', '3a', '2', '3b', '0b'];
    for (const name of calls) {
      limiter.wait('a', { priority: Number(name[0]) }).then(() => order.push(name));
    }
    await advance(100 * calls.length);
    expect(order).toEqual(['3a', '3b', '2', '1', '0a', '0b']);
    expect(jest.getTimerCount()).toBe(0);
  });

  // Kills: no rise; a rise after another time; levels above 3, where those who come with 3 stay ahead.
  test.each([0, 1, 2])('%i is among the first after 10 s for each level to 3', async (priority) => {
    const { limiter } = setUp({ interval: 1000 });
    limiter('a');
    const { ends } = follow([limiter.wait('a', { priority })]);
    const others = follow(Array.from({ length: 50 }, () => limiter.wait('a', { priority: 3 })));
    const risenAt = 10_000 * (3 - priority);
    await advance(risenAt - 1);
    expect([ends[0], others.letIn()]).toEqual([undefined, risenAt / 1000 - 1]);
    await advance(1);
    expect(ends[0]).toMatchObject({ allowed: true });
  });

  // Kills: a timer for the refusal of the first only.
  test('who becomes the first by rising is let in then, though the former first has to wait', async () => {
    const { limiter, asked } = setUp({ interval: 35_000, maxInInterval: 3 });
    limiter('a');
    await advance(20_000);
    limiter.attempt('a', { cost: 2 });
    const { ends } = follow([limiter.wait('a'), limiter.wait('a', { priority: 3, cost: 3 })]);
    await advance(15_000); // until the first action leaves
    const before = asked.times;
    await advance(15_000 - 1);
    expect([ends, asked.times - before]).toEqual([[undefined, undefined], 0]);
    expect(jest.getTimerCount()).toBe(1);
    await advance(1);
    expect(ends[0]).toMatchObject({ allowed: true });
    await advance(35_000);
    expect(ends[1]).toMatchObject({ allowed: true });
  });

  // Kills: waiting for the timer of the one who was the first.
  test('who comes with a higher one is asked for at once', async () => {
    const { limiter } = setUp({ maxInInterval: 3 });
    limiter('a');
    const { ends } = follow([limiter.wait('a', { cost: 3 }), limiter.wait('a', { priority: 1 })]);
    await advance(0);
    expect(ends).toMatchObject([undefined, { allowed: true }]);
    limiter.close();
  });
});

describe('costs per window', () => {
  const named = (options) =>
    setUp({
      limits: [
        { name: 'requests', interval: 100, maxInInterval: 2 },
        { name: 'tokens', interval: 1000, maxInInterval: 10 },
      ],
      ...options,
    });

  const POLICIES = [{}, { countBlocked: false }, { countBlocked: false, blockFor: 5000 }];

  // Kills: a wait for the window that is full, though nothing is asked of it; a refusal of one cost taken for another.
  test.each(POLICIES)(
    'each call waits for the windows that it costs something in: %p',
    async (policy) => {
      const { limiter } = named(policy);
      limiter.attempt('a', { cost: { tokens: 10 } });
      const waiting = [{ tokens: 3 }, { tokens: 0 }, { tokens: 2, requests: 2 }, { requests: 0 }];
      const { ends } = follow([
        limiter.wait('a', { cost: { tokens: 0 } }),
        ...waiting.map((cost) => limiter.wait('a', { cost })),
      ]);
      const allowed = () => ends.map((end) => end?.allowed ?? false);
      await advance(999);
      expect(allowed()).toEqual([true, false, false, false, false]);
      await advance(1);
      expect(allowed()).toEqual([true, true, true, false, false]);
      await advance(99);
      expect(allowed()).toEqual([true, true, true, false, false]);
      await advance(1);
      expect(allowed()).toEqual([true, true, true, true, true]);
      expect(limiter.stats().blocked).toBe(0);
      expect(jest.getTimerCount()).toBe(0);
    },
  );

  // Kills: a deadline by the cost of the first, though the call asks another window.
  test('a deadline is compared with the wait of the own cost', async () => {
    const { limiter } = named();
    limiter.attempt('a', { cost: { tokens: 10 } });
    limiter.attempt('a', { cost: { tokens: 0 } });
    const costs = [{ tokens: 0 }, { requests: 0 }, { tokens: 1, requests: 0 }, { tokens: 0 }];
    const { ends } = follow(costs.map((cost) => limiter.wait('a', { cost, deadline: 500 })));
    await advance(100);
    expect(ends.map((end) => end?.allowed ?? end?.code)).toEqual([true, DEADLINE, DEADLINE, true]);
  });

  // Kills: a line that is woken by refunds only.
  test('what a settled attempt gives back is used at once', async () => {
    for (const [tokens, count] of [
      [7, 0],
      [6, 1],
    ]) {
      const { limiter } = named();
      const decision = limiter.attempt('a', { cost: { tokens: 10 } });
      const { letIn } = follow([limiter.wait('a', { cost: { tokens: 4 } })]);
      await advance(10);
      limiter.settle(decision, { tokens });
      await advance(0);
      expect(letIn()).toBe(count);
      limiter.close();
    }
  });
});

describe('a clock that does something else', () => {
  test('throws: the first fails, and the next has its turn', async () => {
    const { limiter } = setUp({ clock: () => nowOf() });
    let nowOf = () => performance.now();
    limiter('a');
    const { ends } = follow([limiter.wait('a'), limiter.wait('a'), limiter.wait('a')]);
    let failures = 0;
    nowOf = () => {
      if (++failures > 2) return performance.now();
      throw new Error('out of order');
    };
    await advance(100);
    const failed = 'ERR_ROLLGATE_CLOCK';
    expect(ends.map((end) => end?.code ?? end?.allowed)).toEqual([failed, failed, true]);
  });

  test('aborts the very wait, closes the limiter, or waits itself', async () => {
    const { clock, onNextReading } = handClock();
    const { limiter } = setUp({ maxInInterval: 2, clock });
    limiter.attempt('a', { cost: 2 });
    const { signal, abort } = withAbort();
    onNextReading(abort);
    expect((await errorOf(limiter.wait('a', { signal }))).name).toBe('AbortError');
    let inner;
    onNextReading(() => {
      inner = limiter.wait('b');
    });
    expect(await limiter.wait('b')).toMatchObject({ allowed: true, actionsLeft: 1 });
    expect(await inner).toMatchObject({ allowed: true, actionsLeft: 0 });
    onNextReading(() => limiter.close());
    expect(await errorOf(limiter.wait('c'))).toMatchObject({ code: 'ERR_ROLLGATE_CLOSED' });
  });
});
