// What observers get: messages on the diagnostics channels while they are subscribed, and the warning of a
// limiter that has to drop ids.
'use strict';

const diagnostics = require('node:diagnostics_channel');
const RateLimiter = require('../..');
const { DECISIONS } = require('../../lib/channels');
const { createPlainKv } = require('../support/kv-stores');
const { askProgram, runProgram } = require('../support/run-program');
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
    limiter('both');
    first.stop();
    limiter('second');
    expect(DECISIONS.flag[0]).toBe(1);
    second.stop();
    expect(DECISIONS.flag[0]).toBe(0);
    limiter('after');
    limiter.attempt('after');
    const third = listen('rollgate:decision');
    limiter('third');
    const ids = [first, second, third].map(({ messages }) => messages.map(({ id }) => id));
    expect(ids).toEqual([['both'], ['both', 'second'], ['third']]);
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

  test('are just as many as maxKeys says, in every size', () => {
    for (const maxKeys of [1, 2, 7, 100, 1000, 5000]) {
      const { limiter } = setUp({ maxKeys });
      for (let i = 0; i < 3 * maxKeys; i++) {
        limiter(i);
        if (limiter.stats().keys > maxKeys) throw new Error(`${limiter.stats().keys} ids`);
      }
      expect(limiter.stats()).toMatchObject({ keys: maxKeys, evicted: 2 * maxKeys });
    }
  });

  test('bring a warning event, or a line on stderr, and nothing else ever warns', async () => {
    const full =
      "const limiter = require('rollgate')({ interval: 1e6, maxInInterval: 1, maxKeys: 1 });";
    const loop = 'for (let i = 0; i < 10; i++) limiter(i);';
    const heard = await runProgram(`${full}
      process.on('warning', ({ name, code }) => console.log(name, code));
      ${loop}`);
    expect(heard.stdout).toBe('RollgateWarning ROLLGATE_EVICTED\n');
    const { code, stderr } = await runProgram(full + loop);
    expect(code).toBe(0);
    expect(stderr.match(/\[ROLLGATE_EVICTED\] RollgateWarning: /g)).toHaveLength(1);
    const flags = ['--pending-deprecation', '--trace-warnings', '--throw-deprecation'];
    const quiet = `
      const limiter = require('rollgate')({ interval: 1, maxInInterval: 1 });
      for (let i = 0; i < 1e5; i++) limiter(i);
      limiter.limit('a').then(() => limiter.close());`;
    expect(await runProgram(quiet, { flags })).toMatchObject({ code: 0, stderr: '' });
  });
});

test('a limiter that was observed is freed', async () => {
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
