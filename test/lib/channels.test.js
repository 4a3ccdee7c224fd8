// What observers get: messages on the diagnostics channels while they are subscribed, the warning of a limiter that
// has to drop ids, and topBlocked's counts of refusals in bounded memory.
'use strict';

const diagnostics = require('node:diagnostics_channel');
const RateLimiter = require('../..');
const { DECISIONS } = require('../../lib/base/channels');
const { topBlocked } = require('../../lib/adapters/metrics');
const { SpaceSaving } = require('../../lib/adapters/metrics/top-blocked');
const { createPlainKv } = require('../support/kv-stores');
const { askProgram, runProgram } = require('../support/run-program');
const { catchError, setUp } = require('../support/set-up');
const { randomFrom } = require('../support/traces');

const stops = [];

afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

/** The messages of a channel from now on. */
function listen(name, onMessage = () => {}) {
  const messages = [];
  const listener = (message, channel) => {
    messages.push(message);
    onMessage(message, channel);
  };
  diagnostics.subscribe(name, listener);
  const stop = () => diagnostics.unsubscribe(name, listener);
  stops.push(stop);
  return { messages, stop };
}

describe('rollgate:decision', () => {
  test('begins with the first subscriber, for older limiters too, and ends with the last', () => {
    const { limiter } = setUp({ maxInInterval: 100 });
    limiter('before');
    const first = listen('rollgate:decision');
    const second = listen('rollgate:decision');
    limiter(1);
    expect(() => limiter({})).toThrow(TypeError);
    first.stop();
    limiter(2n);
    expect(DECISIONS.flag[0]).toBe(1);
    second.stop();
    expect(DECISIONS.flag[0]).toBe(0);
    limiter('after');
    limiter.attempt('after');
    const third = listen('rollgate:decision');
    limiter();
    const ids = [first, second, third].map(({ messages }) => messages.map(({ id }) => id));
    expect(ids).toEqual([[1], [1, 2n], [undefined]]);
  });

  test('a subscriber may call the limiter, and the answers stay what they are', () => {
    const { limiter } = setUp({ maxInInterval: 2 });
    const { messages } = listen('rollgate:decision', ({ id }) => {
      if (id === 'other') return;
      limiter.attempt('other', { cost: 2 });
      limiter('other');
    });
    expect(limiter.attempt('a')).toMatchObject({ allowed: true, actionsLeft: 1 });
    expect(limiter('a')).toBe(0);
    expect(limiter('a')).toBe(10);
    const many = limiter.attemptMany(['b', 'b', 'b']);
    expect(many.map(({ allowed }) => allowed)).toEqual([true, true, false]);
    expect(messages.filter(({ id }) => id !== 'other')).toHaveLength(6);
  });

  // Kills: an array of the store; windows without a name as 'undefined'.
  test('a cost by name of a limit is published as an object', async () => {
    const limits = [
      { interval: 1000, maxInInterval: 5 },
      { interval: 1000, maxInInterval: 50, name: 'tokens' },
      { interval: 1000, maxInInterval: 5, name: 'requests' },
    ];
    const { messages } = listen('rollgate:decision');
    for (const store of [{}, { kv: createPlainKv(), namespace: 'n' }]) {
      const limiter = RateLimiter({ limits, ...store });
      await limiter.attempt('a', { cost: { tokens: 40 } });
      await limiter.attempt('a', { cost: 2 });
      await limiter('a');
      const costs = [{ tokens: 40, requests: 1 }, 2, 1];
      expect(messages.splice(0).map(({ cost }) => cost)).toEqual(costs);
    }
  });

  test('a subscriber may close the limiter', () => {
    const { limiter } = setUp();
    listen('rollgate:decision', () => limiter.close());
    expect(limiter('a')).toBe(0);
    expect(() => limiter('a')).toThrow('the limiter is closed');
  });

  test('messages come in order while a key-value store answers in microtasks, those of onError too', async () => {
    const kv = createPlainKv();
    const options = { namespace: 'n', interval: 1000, maxInInterval: 1, onError: 'memory' };
    const limiter = RateLimiter({ kv, ...options });
    const { messages } = listen('rollgate:decision');
    const told = [];
    for (const id of ['a', 'b', 'c', 'd']) {
      if (id === 'd') kv.get = () => Promise.reject(new Error('broken'));
      await limiter(id);
      told.push(messages.map((message) => message.id).join(''));
    }
    expect(told).toEqual(['a', 'ab', 'abc', 'abcd']);
  });

  // Kills: a refusal of wait() that is published, by a store that answers at once or by one that does not.
  test.each([
    ['memory', {}],
    ['a key-value store', { kv: createPlainKv(), namespace: 'n' }],
  ])('refusals of wait() are no decisions, in %s', async (_where, store) => {
    const limiter = RateLimiter({ interval: 60_000, maxInInterval: 1, ...store });
    await limiter('a');
    const { messages } = listen('rollgate:decision');
    const giveUp = new AbortController();
    const waiting = limiter.wait('a', { signal: giveUp.signal });
    await limiter.wait('b');
    giveUp.abort();
    await expect(waiting).rejects.toThrow('aborted');
    expect(messages.map(({ id, allowed }) => ({ id, allowed }))).toEqual([
      { id: 'b', allowed: true },
    ]);
    expect(limiter.stats()).toMatchObject({ allowed: 2, blocked: 0 });
  });

  test('a listener that throws harms no call', async () => {
    const found = await askProgram(`
      const RateLimiter = require('rollgate');
      const uncaught = [];
      process.on('uncaughtException', (error) => uncaught.push(error.message));
      require('node:diagnostics_channel').subscribe('rollgate:decision', () => {
        throw new Error('of the listener');
      });
      const limiter = RateLimiter({ interval: 1e6, maxInInterval: 1 });
      const answers = [limiter('a'), limiter('a') > 0, limiter.attempt('b').allowed];
      setImmediate(() => console.log(JSON.stringify({ answers, uncaught })));
    `);
    expect(found).toEqual({
      answers: [0, true, true],
      uncaught: Array(3).fill('of the listener'),
    });
  });
});

describe('rollgate:slot', () => {
  // Kills: a message for each refusal of wait, or none for a slot that is lost.
  test('each slot that is asked for, and each that ends', async () => {
    let now = 0;
    const limiter = RateLimiter.ConcurrencyLimiter({ max: 1, maxAge: 50, clock: () => now });
    limiter.acquire('nobody listens').release();
    const { messages } = listen('rollgate:slot');
    const slot = limiter.acquire('ada');
    limiter.acquire('ada');
    const waiting = limiter.wait('ada');
    slot.release();
    slot.release();
    const second = await waiting;
    now = 60;
    expect(second.release()).toBe(false);
    expect(messages.map(({ type }) => type).join(' ')).toBe(
      'acquired refused released acquired lost',
    );
    expect(messages[0]).toEqual({
      ...{ limiter, type: 'acquired', id: 'ada', cost: 1 },
      ...{ max: 1, used: 1, remaining: 0 },
    });
    expect(messages.at(-1)).toEqual({ limiter, type: 'lost', id: 'ada', cost: 1 });
  });
});

describe('ids that are dropped because of maxKeys', () => {
  let warn;

  beforeEach(() => {
    warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
  });
  afterEach(() => warn.mockRestore());

  test('are published on rollgate:evicted, from the first one on', () => {
    const { limiter } = setUp({ maxKeys: 2 });
    const { messages, stop } = listen('rollgate:evicted', () => limiter.peek('any'));
    limiter.attemptMany([1, 2, 3]);
    limiter(3);
    expect(limiter.attempt(4)).toMatchObject({ allowed: true, actionsLeft: 1 });
    limiter.attemptMany([6, 7]);
    stop();
    limiter(8);
    expect(messages).toEqual([1, 2, 4].map((evicted) => ({ limiter, keys: 2, evicted })));
    expect(limiter.stats().evicted).toBe(5);
    expect(warn).toHaveBeenCalledTimes(1);
  });

  test('bring one warning for a limiter, through whichever call it gets full', () => {
    const calls = [
      (limiter, id) => limiter(id),
      (limiter, id) => limiter(id, () => {}),
      (limiter, id) => limiter.attempt(id),
      (limiter, id) => limiter.attemptMany([id]),
      (limiter, id) => limiter.limit(id),
    ];
    for (const [i, call] of calls.entries()) {
      const { limiter } = setUp({ maxKeys: 3 });
      for (const id of ['a', 'b', 'c']) call(limiter, id);
      expect(warn).toHaveBeenCalledTimes(i);
      for (let id = 0; id < 50; id++) call(limiter, id);
      expect(warn).toHaveBeenCalledTimes(i + 1);
      expect(limiter.stats()).toMatchObject({ keys: 3, evicted: 50, allowed: 53 });
    }
    expect(warn).toHaveBeenLastCalledWith(expect.stringContaining('3 ids (maxKeys)'), {
      type: 'RollgateWarning',
      code: 'ROLLGATE_EVICTED',
    });
  });

  test('make no room for peeks and ids that were cleared', () => {
    const { limiter } = setUp({ maxKeys: 1 });
    limiter('a');
    limiter.peek('b');
    limiter.clear('a');
    limiter('b');
    limiter.refund(limiter.attempt('c'));
    expect(limiter.stats().evicted).toBe(1); // 'b' for 'c'
  });

  test('are all that a limiter warns of, deprecations included', async () => {
    const flags = ['--pending-deprecation', '--trace-warnings', '--throw-deprecation'];
    const quiet = `
      const limiter = require('rollgate')({ interval: 1, maxInInterval: 1 });
      for (let i = 0; i < 1e5; i++) limiter(i);
      limiter.limit('a').then(() => limiter.close());`;
    expect(await runProgram(quiet, { flags })).toMatchObject({ code: 0, stderr: '' });
  });
});

const opened = [];

afterEach(() => {
  for (const one of opened.splice(0)) one.close();
});

function open(options) {
  const one = topBlocked(options);
  opened.push(one);
  return one;
}

/** One that refuses everything but the first attempt of each id. */
const strict = () => setUp({ maxInInterval: 1, interval: 1e9 }).limiter;

function refuse(limiter, id, times) {
  if (limiter.peek(id).allowed) limiter(id);
  for (let i = 0; i < times; i++) limiter(id);
}

describe('topBlocked', () => {
  test('refusals are counted by id, most first, from zero after a reset, and nothing else is', () => {
    const api = strict();
    const blocked = open({ limiters: { api } });
    refuse(api, 'ada', 2);
    refuse(api, 'bob', 5);
    api('eve');
    api.peek('eve');
    expect(blocked.top()).toEqual([
      { limiter: 'api', id: 'bob', blocked: 5, overcount: 0 },
      { limiter: 'api', id: 'ada', blocked: 2, overcount: 0 },
    ]);
    expect(blocked.top(1).map(({ id }) => id)).toEqual(['bob']);
    expect(blocked.total).toBe(7);
    blocked.reset();
    expect([blocked.top(), blocked.total]).toEqual([[], 0]);
    refuse(api, 'ada', 1);
    expect(blocked.top()).toEqual([{ limiter: 'api', id: 'ada', blocked: 1, overcount: 0 }]);
  });

  test('ids with the same string are one id', () => {
    const limiter = strict();
    const blocked = open({ limiters: { limiter } });
    refuse(limiter, 1, 3);
    refuse(limiter, '1', 3);
    refuse(limiter, 1n, 3);
    refuse(limiter, undefined, 2);
    refuse(limiter, '', 2);
    refuse(limiter, '\ud800', 1);
    const counts = blocked.top().map(({ id, blocked: count }) => [id, count]);
    expect(counts).toEqual([
      ['1', 9],
      ['', 4],
      ['\ud800', 1],
    ]);
  });

  test('of long ids the beginning and a hash are kept, and each is an id of its own', () => {
    const limiter = strict();
    const blocked = open({ limiters: { limiter } });
    const long = 'x'.repeat(100_000);
    refuse(limiter, `${long}a`, 3);
    refuse(limiter, `${long}b`, 2);
    const [first, second] = blocked.top();
    expect([first.blocked, second.blocked]).toEqual([3, 2]);
    expect(first.id).toMatch(/^x{200}\.\.\.[\w-]{43}$/);
    expect(second.id).not.toBe(first.id);
    // Nobody makes up the short form of another's id.
    refuse(limiter, first.id, 9);
    expect(blocked.top().map((entry) => entry.blocked)).toEqual([9, 3, 2]);
  });

  test('each limiter is counted apart; without names all are', () => {
    const [one, other] = [strict(), strict()];
    const all = open();
    const named = open({ limiters: { one } });
    refuse(one, 'ada', 1);
    refuse(other, 'ada', 2);
    const both = all.top();
    expect(both.map(({ id, blocked }) => [id, blocked])).toEqual([
      ['ada', 2],
      ['ada', 1],
    ]);
    expect(both[0].limiter).toBe(other);
    expect(both[1].limiter).toBe(one);
    expect(named.top()).toEqual([{ limiter: 'one', id: 'ada', blocked: 1, overcount: 0 }]);
    expect([all.total, named.total]).toEqual([3, 1]);
  });

  /** Ids as they come in life: the k-th about as often as 1 / k. */
  function zipf(random, ids) {
    const limit = Math.log(ids + 1);
    return () => Math.floor(Math.exp((random.between(0, 1e9 - 1) / 1e9) * limit));
  }

  test.each([1, 2, 10, 64, 500])(
    'with capacity %i, counts are at most as wrong as they say, and the frequent are there',
    (capacity) => {
      const random = randomFrom(capacity);
      const limiters = { a: strict(), b: strict() };
      const blocked = open({ limiters, capacity });
      const exact = new Map();
      const pick = zipf(random, 2000);
      const seen = (steps) => {
        for (let i = 0; i < steps; i++) {
          const name = random.pick(['a', 'b']);
          const id = `id ${pick()}`;
          const isRefused = limiters[name](id) > 0;
          const key = `${name} ${id}`;
          if (isRefused) exact.set(key, (exact.get(key) ?? 0) + 1);
        }
      };
      for (let round = 0; round < 8; round++) {
        seen(round === 0 ? 20 : 1000);
        const entries = blocked.top(1e9);
        const total = [...exact.values()].reduce((sum, n) => sum + n, 0);
        expect(blocked.total).toBe(total);
        expect(entries.length).toBe(Math.min(exact.size, capacity));
        const kept = new Map(entries.map((entry) => [`${entry.limiter} ${entry.id}`, entry]));
        expect(kept.size).toBe(entries.length);
        for (const [key, { blocked: count, overcount }] of kept) {
          const n = exact.get(key);
          expect(n).toBeLessThanOrEqual(count);
          expect(n).toBeGreaterThanOrEqual(count - overcount);
          expect(overcount).toBeLessThanOrEqual(total / capacity);
        }
        for (const [key, n] of exact) if (n > total / capacity) expect(kept.has(key)).toBe(true);
        const counts = entries.map((entry) => entry.blocked);
        expect(counts).toEqual([...counts].sort((x, y) => y - x));
        if (exact.size >= capacity) expect(counts.reduce((sum, n) => sum + n, 0)).toBe(total);
      }
    },
  );

  // A search for the smallest counter would take 2e10 steps here, and run into Jest's time limit.
  test('a new id takes over a counter without a search', () => {
    const counts = new SpaceSaving(200_000);
    for (let i = 0; i < 300_000; i++) counts.add(i);
    const takenOver = [...counts.counters()].filter(({ overcount }) => overcount === 1);
    expect(takenOver.length).toBe(100_000);
  });

  test('a closed one listens no more, and limiters are unobserved again', () => {
    const limiter = strict();
    const [one, other] = [open(), open()];
    expect(diagnostics.channel('rollgate:decision').hasSubscribers).toBe(true);
    refuse(limiter, 'a', 1);
    one.close();
    one.close();
    expect(diagnostics.channel('rollgate:decision').hasSubscribers).toBe(true);
    refuse(limiter, 'a', 1);
    expect([one.top(), one.total]).toEqual([[], 0]);
    expect(other.total).toBe(2);
    other.close();
    expect(diagnostics.channel('rollgate:decision').hasSubscribers).toBe(false);
  });

  test('closed by an earlier subscriber, it does not count that decision', () => {
    let blocked;
    const close = ({ allowed }) => allowed || blocked.close();
    diagnostics.subscribe('rollgate:decision', close);
    blocked = open();
    refuse(strict(), 'a', 1);
    diagnostics.unsubscribe('rollgate:decision', close);
    expect([blocked.total, blocked.top()]).toEqual([0, []]);
  });

  test('a limiter without a name is freed when it is dropped', async () => {
    const told = await askProgram(
      `
    const RateLimiter = require('rollgate');
    const { topBlocked } = require('rollgate/metrics');
    const blocked = topBlocked();
    let limiter = RateLimiter({ interval: 60_000, maxInInterval: 1 });
    const ref = new WeakRef(limiter);
    limiter('a');
    limiter('a');
    const before = blocked.top().length;
    limiter = undefined;
    const look = (turns) => {
      gc();
      if (ref.deref() !== undefined && turns > 0) return setTimeout(look, 1, turns - 1);
      console.log(JSON.stringify({ before, isFreed: ref.deref() === undefined, after: blocked.top() }));
    };
    setTimeout(look, 1, 1000);
  `,
      { flags: ['--expose-gc'] },
    );
    expect(told).toEqual({ before: 1, isFreed: true, after: [] });
  });

  test('a limiter has one name, and top a number of entries', () => {
    const limiter = strict();
    expect(catchError(() => topBlocked({ limiters: { a: limiter, b: limiter } }))).toMatchObject({
      code: 'ERR_ROLLGATE_OPTION',
      message: "'b': there is this limiter as 'a' already",
    });
    const blocked = open();
    expect(catchError(() => blocked.top(0))).toBeInstanceOf(RangeError);
    expect(catchError(() => blocked.top('5'))).toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
  });
});
