// The turns of a process at what it frees, where other processes poll.
'use strict';

const { Turns } = require('../../lib/limiter/wait/turns');

const TURN_MS = 1000;
const PAUSE_MS = 60;

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

const later = (ms) => jest.advanceTimersByTime(ms);

test('a turn ends after a second of taking what is freed, for the time of a poll', () => {
  const turns = new Turns();
  for (let ms = 0; ms < TURN_MS; ms += 10) {
    expect([turns.freed('a'), turns.mayTake('a')]).toEqual([true, true]);
    later(10);
  }
  for (let ms = 0; ms < PAUSE_MS; ms += 10) {
    expect([turns.freed('a'), turns.mayTake('a')]).toEqual([false, false]);
    later(10);
  }
  expect([turns.freed('a'), turns.mayTake('a'), turns.freed('b')]).toEqual([true, true, true]);
});

// Kills: a turn that begins anew while something is held for long.
test('after what was held for longer than a turn, each time the next poll has it', () => {
  const turns = new Turns();
  turns.freed('a');
  for (let i = 0; i < 3; i++) {
    later(3 * TURN_MS);
    expect([turns.freed('a'), turns.freed('a'), turns.mayTake('a')]).toEqual([false, false, false]);
  }
});

test('what has been free for the time of a poll may be taken', () => {
  const turns = new Turns();
  turns.freed('a');
  later(2 * TURN_MS);
  expect(turns.freed('a')).toBe(false);
  later(PAUSE_MS + 1);
  expect([turns.mayTake('a'), turns.freed('a')]).toEqual([true, true]);
});

test('as many ids are known as are bounded, and the others begin anew', () => {
  const turns = new Turns();
  turns.freed('a');
  later(2 * TURN_MS);
  for (let i = 0; i < 1000; i++) turns.freed(`id ${i}`);
  expect(turns.freed('a')).toBe(true);
});
