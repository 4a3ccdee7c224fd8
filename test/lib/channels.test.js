// What observers get: messages on the diagnostics channels while they are subscribed, and the warning of a limiter that
// has to drop ids.
'use strict';

const diagnostics = require('node:diagnostics_channel');
const RateLimiter = require('../..');
const { DECISIONS } = require('../../lib/base/channels');
const { createPlainKv } = require('../support/kv-stores');
const { askProgram } = require('../support/run-program');
const { setUp } = require('../support/set-up');

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
    RateLimiter.attemptAll([{ limiter, id: 'all' }]);
    const ids = [first, second, third].map(({ messages }) => messages.map(({ id }) => id));
    expect(ids).toEqual([[1], [1, 2n], [undefined, 'all']]);
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

  test('a subscriber may close the limiter', () => {
    const { limiter } = setUp();
    listen('rollgate:decision', () => limiter.close());
    expect(limiter('a')).toBe(0);
    expect(() => limiter('a')).toThrow('the limiter is closed');
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

  // Kills: another default of maxKeys.
  test('are those beyond a million by default', () => {
    const { limiter } = setUp();
    for (let id = 0; id < 1_000_000; id++) limiter(id);
    expect(limiter.stats()).toMatchObject({ keys: 1_000_000, evicted: 0 });
    limiter('one more');
    expect(limiter.stats()).toMatchObject({ keys: 1_000_000, evicted: 1 });
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
});
