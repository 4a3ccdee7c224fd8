// The diagnostics channels: each attempt is told while somebody listens, and to nobody otherwise.
'use strict';

const diagnostics = require('node:diagnostics_channel');
const RateLimiter = require('../..');
const { createPlainKv } = require('../support/kv-stores');
const { setUp } = require('../support/set-up');
const { askProgram } = require('../support/run-program');

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
  test('tells of every attempt, whatever the call, and of no peek', async () => {
    const { limiter } = setUp({ maxInInterval: 3 });
    const { messages } = listen('rollgate:decision');
    limiter('plain');
    limiter(1);
    limiter();
    limiter('called back', () => {});
    limiter.attempt('a', { cost: 3 });
    limiter.attempt('a');
    limiter.attemptMany(['b', 2n]);
    await limiter.limit('c');
    await limiter.limitWithInfo('d');
    await limiter.wait('e');
    limiter.peek('f');
    await limiter.wouldLimit('f');
    const told = (id, cost = 1) => ({ limiter, id, cost, allowed: true, timeLeft: 0 });
    expect(messages).toEqual([
      told('plain'),
      told(1),
      told(undefined),
      told('called back'),
      told('a', 3),
      { limiter, id: 'a', cost: 1, allowed: false, timeLeft: 10 },
      told('b'),
      told(2n),
      told('c'),
      told('d'),
      told('e'),
    ]);
    for (const message of messages) expect(message.limiter).toBe(limiter);
  });

  test('begins with the first subscriber, also for limiters that were there before, and ends with the last', () => {
    const { limiter } = setUp({ maxInInterval: 100 });
    limiter('before');
    const first = listen('rollgate:decision');
    const second = listen('rollgate:decision');
    limiter('both');
    first.stop();
    limiter('second');
    second.stop();
    limiter('after');
    limiter.attempt('after');
    const third = listen('rollgate:decision');
    limiter('third');
    const ids = [first, second, third].map(({ messages }) => messages.map(({ id }) => id));
    expect(ids).toEqual([['both'], ['both', 'second'], ['third']]);
  });

  test('who listens may ask the limiter itself, and the answers stay what they are', () => {
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

  test('may close the limiter', () => {
    const { limiter } = setUp();
    listen('rollgate:decision', () => limiter.close());
    expect(limiter('a')).toBe(0);
    expect(() => limiter('a')).toThrow('the limiter is closed');
  });

  test('tells of calls with a callback what they come to, and of calls that fail nothing', async () => {
    const { limiter } = setUp();
    const { messages } = listen('rollgate:decision', ({ id }) => {
      if (id === 'a') limiter.attempt('b', { cost: 2 });
    });
    const answer = new Promise((resolve) => {
      limiter('a', (error, timeLeft, actionsLeft) => resolve([error, timeLeft, actionsLeft]));
    });
    expect(await answer).toEqual([null, 0, 1]);
    expect(() => limiter({})).toThrow(TypeError);
    expect(messages.map(({ id }) => id)).toEqual(['a', 'b']);
  });

  test('in a key-value store, and of what onError decides', async () => {
    const kv = createPlainKv();
    const limiter = RateLimiter({
      kv,
      namespace: 'n',
      interval: 1000,
      maxInInterval: 1,
      onError: 'memory',
    });
    const { messages } = listen('rollgate:decision');
    await limiter('a');
    await limiter.attempt('a');
    await limiter.peek('a');
    await limiter.attemptMany(['b', 'c']);
    kv.get = () => {
      throw new Error('broken');
    };
    await limiter('d');
    await new Promise((resolve) => setImmediate(resolve));
    expect(messages).toEqual([
      { limiter, id: 'a', cost: 1, allowed: true, timeLeft: 0 },
      { limiter, id: 'a', cost: 1, allowed: false, timeLeft: expect.any(Number) },
      { limiter, id: 'b', cost: 1, allowed: true, timeLeft: 0 },
      { limiter, id: 'c', cost: 1, allowed: true, timeLeft: 0 },
      { limiter, id: 'd', cost: 1, allowed: true, timeLeft: 0 },
    ]);
  });

  test('messages come in order while a key-value store answers in microtasks alone', async () => {
    const limiter = RateLimiter({
      kv: createPlainKv(),
      namespace: 'n',
      interval: 1000,
      maxInInterval: 1,
    });
    const { messages } = listen('rollgate:decision');
    const told = [];
    for (const id of ['a', 'b', 'c']) {
      await limiter(id);
      told.push(messages.map((message) => message.id).join(''));
    }
    expect(told).toEqual(['a', 'ab', 'abc']);
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

describe('rollgate:evicted', () => {
  test('tells of ids that make room, while somebody listens', () => {
    const { limiter } = setUp({ maxKeys: 2 });
    const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
    limiter.attemptMany([1, 2, 3]);
    const { messages, stop } = listen('rollgate:evicted', () => limiter.peek('any'));
    limiter(3);
    expect(limiter.attempt(4)).toMatchObject({ allowed: true, actionsLeft: 1 });
    limiter(5);
    limiter.attemptMany([6, 7]);
    stop();
    limiter(8);
    expect(messages).toEqual([2, 3, 5].map((evicted) => ({ limiter, keys: 2, evicted })));
    expect(limiter.stats().evicted).toBe(6);
    expect(warn).toHaveBeenCalledTimes(1);
    warn.mockRestore();
  });

  test('tells of the first, too, which brings the warning', () => {
    const { limiter } = setUp({ maxKeys: 1 });
    const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
    const { messages } = listen('rollgate:evicted');
    limiter('a');
    limiter('b');
    expect(messages).toEqual([{ limiter, keys: 1, evicted: 1 }]);
    expect(warn).toHaveBeenCalledTimes(1);
    warn.mockRestore();
  });
});

test('a limiter that somebody listened to is freed', async () => {
  const found = await askProgram(
    `
    const RateLimiter = require('rollgate');
    const { liveLimiters } = require('./lib/native').loadAddon();
    const ids = [];
    require('node:diagnostics_channel').subscribe('rollgate:decision', ({ id }) => ids.push(id));
    for (let i = 0; i < 5; i++) RateLimiter({ interval: 1e6, maxInInterval: 1 })(i);
    (async () => {
      for (let i = 0; i < 10; i++) {
        gc();
        await new Promise((resolve) => setImmediate(resolve));
      }
      console.log(JSON.stringify({ ids, live: liveLimiters() }));
    })();
  `,
    { flags: ['--expose-gc'] },
  );
  expect(found).toEqual({ ids: [0, 1, 2, 3, 4], live: 0 });
});
