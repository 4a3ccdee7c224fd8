// The polls of waiting calls: when they come, and how many.
'use strict';

const { Polls } = require('../../lib/limiter/wait/polls');

const PASS_MS = 50;
const latest = () => 1 - Number.EPSILON;

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

test('a poll comes once, in a pass that it shares with the others', () => {
  const polls = new Polls(() => 0);
  const polled = [];
  polls.add(() => polled.push('a'));
  jest.advanceTimersByTime(20);
  polls.add(() => polled.push('b'));
  jest.advanceTimersByTime(19);
  expect(polled).toEqual([]);
  jest.advanceTimersByTime(1);
  expect(polled).toEqual(['a', 'b']);
  jest.advanceTimersByTime(1000);
  expect([polled.length, polls.length, jest.getTimerCount()]).toEqual([2, 0, 0]);
});

// Kills: a cancelled poll that is called because its pass has begun; a timer that outlives the last poll.
test('one that is cancelled does not come, and without any there is no timer', () => {
  const polls = new Polls(latest);
  const polled = [];
  const cancel = { second: () => {} };
  polls.add(() => {
    polled.push('first');
    cancel.second();
  });
  cancel.second = polls.add(() => polled.push('second'));
  const cancelThird = polls.add(() => polled.push('third'));
  cancelThird();
  jest.advanceTimersByTime(PASS_MS);
  expect([polled, jest.getTimerCount()]).toEqual([['first'], 0]);
  polls.add(() => polled.push('last'))();
  expect([polls.length, jest.getTimerCount()]).toEqual([0, 0]);
});

// Kills: polls of which the first ones are always due again.
test('of many, at most 1,000 come in 50 ms, and all in turn', () => {
  const polls = new Polls(latest);
  const counts = new Array(2000).fill(0);
  for (const i of counts.keys()) {
    const poll = () => {
      counts[i]++;
      polls.add(poll);
    };
    polls.add(poll);
  }
  const sum = () => counts.reduce((a, b) => a + b);
  for (let pass = 1; pass <= 5; pass++) {
    const before = sum();
    jest.advanceTimersByTime(PASS_MS);
    expect(sum() - before).toBeLessThanOrEqual(1000);
  }
  expect(new Set(counts)).toEqual(new Set([2]));
});

test('passes are between 40 and 50 ms apart', () => {
  const randoms = [0, 0.5, latest()];
  const polls = new Polls(() => randoms.shift());
  const times = [];
  const poll = () => {
    times.push(Date.now());
    if (times.length < 3) polls.add(poll);
  };
  const start = Date.now();
  polls.add(poll);
  jest.advanceTimersByTime(1000);
  expect(times.map((time) => time - start)).toEqual([40, 85, 135]);
});

// Kills: a pass that forgets the next one, which was begun in it, and begins another.
test('what is cancelled and added in a pass makes one next pass', () => {
  const polls = new Polls(latest);
  let cancel;
  polls.add(() => {
    cancel();
    polls.add(() => {});
  });
  cancel = polls.add(() => {});
  jest.advanceTimersByTime(PASS_MS);
  expect([polls.length, jest.getTimerCount()]).toEqual([1, 1]);
});
