// InMemoryRateLimiter beside that of rolling-rate-limiter 0.4.2, on one hand-moved clock.
'use strict';

const mockTime = { us: 5_000_000_001 };
jest.mock('microtime', () => ({ __esModule: true, default: { now: () => mockTime.us } }));

const theirs = require('rolling-rate-limiter');
const ours = require('../..');
const { randomFrom, randomStep } = require('../support/traces');

// It forgets ids with timers, by the real time: not in this file.
beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

const METHODS = ['limit', 'wouldLimit', 'limitWithInfo', 'wouldLimitWithInfo', 'clear'];

test('answers as it does on random traces', async () => {
  for (let seed = 1; seed <= 100; seed++) {
    const random = randomFrom(seed);
    const unit = random.pick([1, 1000]);
    const steps = random.between(1, 40);
    // It forgets actions after `interval`, and so does not keep a minDifference that is longer.
    const gapSteps = random.chance(40) ? random.between(1, Math.min(steps, 12)) : 0;
    const options = {
      interval: (steps * unit) / 1000,
      maxInInterval: random.between(1, 7),
      minDifference: (gapSteps * unit) / 1000,
    };
    const clock = () => mockTime.us / 1000;
    const limiters = [
      new theirs.InMemoryRateLimiter(options),
      new ours.InMemoryRateLimiter({ ...options, clock }),
    ];
    for (let step = 0; step < 100; step++) {
      mockTime.us += randomStep(random, unit);
      const id = random.pick(['a', 'b', 1, '1']);
      const method = random.chance(3) ? 'clear' : random.pick(METHODS.slice(0, 4));
      const answers = await Promise.all(limiters.map((limiter) => limiter[method](id)));
      expect({ seed, step, method, answer: answers[1] }).toEqual({
        seed,
        step,
        method,
        answer: answers[0],
      });
    }
  }
});

test('is constructed and has its methods as there', () => {
  const options = { interval: 1000, maxInInterval: 2, minDifference: 1 };
  const limiter = new ours.InMemoryRateLimiter(options);
  expect(limiter).toBeInstanceOf(ours.RateLimiter);
  for (const method of METHODS) expect(limiter[method]('a')).toBeInstanceOf(Promise);
  const info = (all) => Object.keys(all).sort();
  return Promise.all(
    [limiter, new theirs.InMemoryRateLimiter(options)].map((each) => each.limitWithInfo('b')),
  ).then(([our, their]) => expect(info(our)).toEqual(info(their)));
});
