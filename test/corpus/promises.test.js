// The checks of promises: for each, a limiter that breaks it alone.
'use strict';

const { linesOf } = require('../conformance/corpus');
const { breaksPromise, judge } = require('./judge');
const { PROMISES, STEP_KINDS } = require('./promises');
const { handTime } = require('./time');

const traces = linesOf()
  .slice(1)
  .map((line) => JSON.parse(line))
  .filter((_, i) => i % 3 === 0);

/** An exact rolling log, with one fault or none. */
function limiterWith(fault) {
  return {
    ...{ name: 'a limiter', version: '1', algorithm: 'log', reads: 'a clock', takesCosts: true },
    promised: Object.keys(PROMISES),
    most: (max) => max,
    time: handTime,
    open({ interval, max }, time) {
      let limit = max;
      let log = [];
      const penalties = new Map();
      const read = fault === 'clock' ? time.wall : time.monotonic;
      const windowEnd = (at) => (Math.floor(at / interval) + 1) * interval;
      const endOf = (at) => (fault === 'interval' ? windowEnd(at) : at + interval);
      return {
        attempt(id, cost) {
          const now = read();
          const counted = log.filter((one) => one.id === id && endOf(one.at) > now);
          let used = counted.reduce((sum, one) => sum + one.cost, 0);
          let free = penalties.get(id) ?? now;
          for (const one of counted) {
            if (used + cost <= limit) break;
            used -= one.cost;
            free = Math.max(free, endOf(one.at));
          }
          if (free <= now && used + cost <= limit) {
            log.push({ id, at: now, cost });
            return { allowed: true };
          }
          if (fault === 'refusals') {
            free += 10;
            penalties.set(id, free);
          }
          return { allowed: false, wait: fault === 'wait' ? free - now - 2 : free - now };
        },
        setMax(next) {
          limit = next;
          if (fault === 'limits') log = [];
        },
      };
    },
  };
}

const brokenIn = (verdicts) =>
  Object.keys(verdicts).filter((promise) => breaksPromise({ [promise]: verdicts[promise] }));

test('an exact limiter breaks none', async () => {
  const verdicts = await judge(limiterWith(null), traces);
  expect(brokenIn(verdicts)).toEqual([]);
  expect(Object.values(verdicts).every(({ tried }) => tried > 70)).toBe(true);
});

// Kills: a check that finds nothing, or that finds the fault of another promise.
test.each(Object.keys(PROMISES))(
  'a limiter that breaks the promise %s breaks it alone',
  async (promise) => {
    const verdicts = await judge(limiterWith(promise), traces);
    expect(brokenIn(verdicts)).toEqual([promise]);
    // Reduced: two refusals or admissions, what they need, and no more.
    for (const { text } of verdicts[promise].failures) {
      expect(text.split(', ').length).toBeLessThan(12);
    }
  },
);

// Kills: an effect of a step that is not looked for.
test('a wall clock shows every effect of a step', async () => {
  const { clock } = await judge(limiterWith('clock'), traces);
  expect(clock.failures.map(({ kind }) => kind)).toEqual(
    Object.keys(STEP_KINDS).filter((kind) => kind !== 'more after a step back'),
  );
});
