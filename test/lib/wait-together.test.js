// Waiting calls of a store that promises its answers: which of them ask together, and who gets what is allowed.
'use strict';

const { Waiting } = require('../../lib/limiter/wait');
const { errorOf } = require('../support/outcome');

const nextTurn = () => new Promise(setImmediate);

/** A store whose attempts are answered by hand. */
function setUp(options) {
  const attempts = [];
  const refunded = [];
  const polls = [];
  const waiting = new Waiting({
    attempt: (id, demand) =>
      new Promise((resolve, reject) => attempts.push({ id, demand, resolve, reject })),
    refund: (answer) => refunded.push(answer),
    isAtLeast: (demand, other) => demand >= other,
    timeLeftOf: () => Infinity,
    isTimeKnown: false,
    mostAtOnce: 64,
    polls: { add: (poll) => polls.push(poll) && (() => {}) },
    ...options,
  });
  const got = [];
  const wait = (name, { demand = 1, priority = 0, signal } = {}) => {
    const call = waiting.wait('a', { demand, priority, signal, maxQueue: Infinity });
    call.then(
      () => got.push(name),
      () => {},
    );
    return call;
  };
  /** Answers all attempts that are open with `answers`, and returns how many there were. */
  async function answer(...answers) {
    const open = attempts.splice(0);
    for (const [i, { resolve, reject }] of open.entries()) {
      const allowed = answers[i] ?? answers.at(-1);
      if (allowed instanceof Error) reject(allowed);
      else resolve({ allowed, number: i });
    }
    await nextTurn();
    return open.length;
  }
  return { waiting, wait, answer, attempts, refunded, polls, got };
}

test('those that want the same ask together, twice as many each time that all are let in', async () => {
  const { wait, answer, got } = setUp();
  for (let i = 0; i < 200; i++) wait(i);
  const asked = [];
  for (let left = 200; left > 0; left -= asked.at(-1)) asked.push(await answer(true));
  expect(asked).toEqual([1, 2, 4, 8, 16, 32, 64, 64, 9]);
  expect(got).toEqual(Array.from({ length: 200 }, (_, i) => i));
});

test('after a refusal one asks, and for each release one more', async () => {
  const { waiting, wait, answer, polls } = setUp();
  for (let i = 0; i < 50; i++) wait(i);
  await answer(true);
  await answer(true, false);
  polls.pop()();
  expect(await answer(false)).toBe(1);
  for (let i = 0; i < 5; i++) waiting.changed('a');
  expect(await answer(true)).toBe(1); // sent with the first release
  expect(await answer(true)).toBe(5);
});

// Kills: an answer that goes to the call that asked.
test('what is allowed goes to the first in line, whichever of them it was for', async () => {
  const { wait, answer, got, refunded } = setUp();
  for (const name of ['a', 'b', 'c', 'd']) wait(name);
  await answer(true);
  expect(await answer(false, true)).toBe(2);
  expect([got, refunded]).toEqual([['a', 'b'], []]);
});

test('calls that want something else, or have another priority, do not ask with it', async () => {
  const { wait, answer, got } = setUp();
  wait('a');
  wait('b');
  wait('two', { demand: 2 });
  wait('c');
  await answer(true);
  expect(await answer(true)).toBe(1);
  expect(await answer(true)).toBe(1);
  expect(got).toEqual(['a', 'b', 'two']);
  wait('d');
  wait('high', { priority: 1 });
  await answer(true); // that of c was sent before
  expect(await answer(true)).toBe(1);
  expect(got.at(-1)).toBe('high');
});

test('what is allowed for a call that has left is given back', async () => {
  const { wait, answer, got, refunded } = setUp();
  const controller = new AbortController();
  wait('a');
  const left = [wait('b', { signal: controller.signal }), wait('c', { signal: controller.signal })];
  await answer(true);
  controller.abort(new Error('has left'));
  expect(await answer(true)).toBe(2);
  for (const call of left) expect((await errorOf(call)).message).toBe('has left');
  expect([got, refunded.length]).toEqual([['a'], 2]);
});

test('an attempt that fails rejects one call, and the others go on', async () => {
  const { wait, answer, got } = setUp();
  const calls = ['a', 'b', 'c'].map((name) => wait(name));
  await answer(true);
  expect(await answer(true, new Error('cut'))).toBe(2);
  expect([got, (await errorOf(calls[1])).message]).toEqual([['a', 'c'], 'cut']);
});

test('a store without mostAtOnce is asked for one', async () => {
  const { wait, answer } = setUp({ mostAtOnce: undefined });
  for (let i = 0; i < 5; i++) wait(i);
  for (let i = 0; i < 5; i++) expect(await answer(true)).toBe(1);
});
