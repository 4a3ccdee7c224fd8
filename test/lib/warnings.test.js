// A full limiter drops the id nearest to expiry, counts it, and warns once.
'use strict';

const RateLimiter = require('../..');
const { handClock } = require('../support/hand-clock');
const { runProgram } = require('../support/run-program');

let warn;

beforeEach(() => {
  warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
});

afterEach(() => warn.mockRestore());

function setUp(options) {
  const time = handClock();
  const limiter = RateLimiter({ interval: 10, maxInInterval: 1, clock: time.clock, ...options });
  return { limiter, time };
}

test('ROLLGATE_EVICTED is emitted once for a limiter, however many ids it drops', () => {
  const { limiter } = setUp({ maxKeys: 3 });
  limiter.attemptMany(['a', 'b', 'c']);
  expect(warn).not.toHaveBeenCalled();
  for (let i = 0; i < 100; i++) limiter(i);
  expect(warn).toHaveBeenCalledTimes(1);
  expect(warn).toHaveBeenCalledWith(expect.stringContaining('3 ids (maxKeys)'), {
    type: 'RollgateWarning',
    code: 'ROLLGATE_EVICTED',
  });
  expect(limiter.stats()).toMatchObject({ keys: 3, evicted: 100, allowed: 103 });
});

test('each limiter warns for itself, through whichever call it gets full', () => {
  const calls = [
    (limiter, id) => limiter(id),
    (limiter, id) => limiter(id, () => {}),
    (limiter, id) => limiter.attempt(id),
    (limiter, id) => limiter.attemptMany([id]),
    (limiter, id) => limiter.limit(id),
  ];
  for (const call of calls) {
    const { limiter } = setUp({ maxKeys: 1 });
    for (const id of ['a', 'b', 'c']) call(limiter, id);
    expect(limiter.stats().evicted).toBe(2);
  }
  expect(warn).toHaveBeenCalledTimes(calls.length);
});

test('a call that drops an id gives its own answer all the same', () => {
  const { limiter } = setUp({ maxInInterval: 3, maxKeys: 1 });
  limiter('a');
  expect(limiter.attempt('b', { cost: 2 })).toMatchObject({ allowed: true, actionsLeft: 1 });
});

test('the id nearest to expiry is dropped', () => {
  const { limiter, time } = setUp({ maxKeys: 3 });
  for (const id of ['a', 'b', 'c']) {
    limiter(id);
    time.advance(1);
  }
  limiter('a'); // refused, and so recorded anew
  time.advance(1);
  limiter('d');
  expect(['a', 'c', 'd', 'b'].map((id) => limiter.peek(id).allowed)).toEqual([
    false,
    false,
    false,
    true,
  ]);
});

test('an id that has expired makes room without a word', () => {
  const { limiter, time } = setUp({ maxKeys: 100 });
  for (let round = 0; round < 5; round++) {
    for (let i = 0; i < 100; i++) expect(limiter(`${round} ${i}`)).toBe(0);
    time.advance(10);
  }
  expect(warn).not.toHaveBeenCalled();
  expect(limiter.stats()).toMatchObject({ evicted: 0, keys: 100 });
});

test('peeks, and ids that are cleared, take no room', () => {
  const { limiter } = setUp({ maxKeys: 1 });
  limiter('a');
  limiter.peek('b');
  limiter.clear('a');
  limiter('b');
  limiter.refund(limiter.attempt('c'));
  expect(limiter.stats().evicted).toBe(1); // 'b' for 'c'
});

test('the limit of ids is kept to, exactly, in every size', () => {
  for (const maxKeys of [1, 2, 7, 100, 1000, 5000]) {
    const { limiter } = setUp({ maxKeys });
    for (let i = 0; i < 3 * maxKeys; i++) {
      limiter(i);
      if (limiter.stats().keys > maxKeys) throw new Error(`${limiter.stats().keys} ids`);
    }
    expect(limiter.stats()).toMatchObject({ keys: maxKeys, evicted: 2 * maxKeys });
  }
});

test('a program hears it as a warning event', async () => {
  const { stdout } = await runProgram(`
    const limiter = require('rollgate')({ interval: 1e6, maxInInterval: 1, maxKeys: 1 });
    process.on('warning', ({ name, code }) => console.log(name, code));
    for (let i = 0; i < 10; i++) limiter(i);
  `);
  expect(stdout).toBe('RollgateWarning ROLLGATE_EVICTED\n');
});

test('a program without a listener reads it on stderr, once', async () => {
  const { code, stderr } = await runProgram(`
    const limiter = require('rollgate')({ interval: 1e6, maxInInterval: 1, maxKeys: 1 });
    for (let i = 0; i < 10; i++) limiter(i);
  `);
  expect(code).toBe(0);
  expect(stderr.match(/\[ROLLGATE_EVICTED\] RollgateWarning: /g)).toHaveLength(1);
});

test('nothing else ever warns', async () => {
  const { code, stderr } = await runProgram(
    `
    const { RateLimiter } = require('rollgate');
    const limiter = new RateLimiter({ interval: 1, maxInInterval: 1 });
    for (let i = 0; i < 1e5; i++) limiter(i);
    limiter.limit('a').then(() => limiter.close());
  `,
    { flags: ['--pending-deprecation', '--trace-warnings', '--throw-deprecation'] },
  );
  expect([code, stderr]).toEqual([0, '']);
});
