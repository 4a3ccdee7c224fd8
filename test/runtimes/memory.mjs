// Limiters in memory: every algorithm, every method, ids of all kinds, both clocks.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import RateLimiter from 'rollgate';

const MINUTE = 60_000;

function handClock() {
  const clock = () => clock.now;
  clock.now = 1_000_000 * MINUTE; // a multiple of every window below
  return clock;
}

// Of the attempts at 0, 10, 20, 30 and 40 s, with three a minute, the last two are refused: until when.
const waits = {
  'sliding-window-log': [30_000, 20_000],
  'sliding-window-counter': [30_001, 20_001], // once less than all of this window counts
  'fixed-window': [30_000, 20_000],
  gcra: [0, 0], // a burst of three, then one each 20 s
};
for (const [algorithm, expected] of Object.entries(waits)) {
  const clock = handClock();
  const options = { interval: MINUTE, maxInInterval: 3, countBlocked: false, algorithm, clock };
  const limiter = RateLimiter(options);
  const start = clock.now;
  const answers = [0, 10_000, 20_000, 30_000, 40_000].map((after) => {
    clock.now = start + after;
    return limiter('ada');
  });
  assert.deepEqual(answers, [0, 0, 0, ...expected], algorithm);

  // Refused until timeLeft, allowed exactly at it.
  limiter('bob');
  limiter('bob');
  limiter('bob');
  const timeLeft = limiter('bob');
  assert.ok(timeLeft > 0, algorithm);
  clock.now += timeLeft - 1;
  assert.equal(limiter('bob'), 1, algorithm);
  clock.now += 1;
  assert.equal(limiter('bob'), 0, algorithm);
}

{
  const clock = handClock();
  const limits = [
    { interval: 1000, maxInInterval: 2 },
    { interval: MINUTE, maxInInterval: 3 },
  ];
  const limiter = RateLimiter({ limits, minDifference: 1, countBlocked: false, clock });
  const decision = limiter.attempt('ada', { cost: 2 });
  assert.equal(decision.allowed, true);
  assert.deepEqual(
    decision.limits.map(({ remaining }) => remaining),
    [0, 1],
  );
  assert.equal(limiter.peek('ada').timeLeft, 1000);
  assert.equal(limiter.refund(decision), true);
  assert.equal(limiter.refund(decision), false);
  const many = limiter.attemptMany(['ada', 'bob', 'ada']);
  assert.deepEqual(
    many.map(({ allowed }) => allowed),
    [true, true, true],
  );
  assert.equal(await limiter.wouldLimit('ada'), true);
  assert.equal((await limiter.limitWithInfo('ada')).millisecondsUntilAllowed, 1000);
  await limiter.clear('ada');
  assert.equal(await limiter.limit('ada'), false);
  assert.equal(limiter.stats().keys, 2);
  await limiter.clearAll();
  assert.equal(limiter.stats().keys, 0);
  await limiter.close();
  assert.throws(() => limiter('ada'), { code: 'ERR_ROLLGATE_CLOSED' });
}

{
  const clock = handClock();
  const limiter = RateLimiter({ interval: 10, maxInInterval: 1, blockFor: [50, 100], clock });
  assert.deepEqual([limiter('ada'), limiter('ada')], [0, 50]);
  clock.now += 50;
  assert.deepEqual([limiter('ada'), limiter('ada')], [0, 100]);
}

{
  // The callback comes later, and has this call's answer.
  const limiter = RateLimiter({ interval: MINUTE, maxInInterval: 2, clock: handClock() });
  const answers = [];
  const done = new Promise((resolve) => {
    for (const id of ['ada', 'ada', 'ada']) {
      const result = limiter(id, (error, ...answer) => {
        answers.push([error, ...answer]);
        if (answers.length === 3) resolve();
      });
      assert.equal(result, undefined);
    }
  });
  assert.deepEqual(answers, []);
  await done;
  assert.deepEqual(answers, [
    [null, 0, 1],
    [null, 0, 0],
    [null, MINUTE, 0],
  ]);
}

{
  const limiter = RateLimiter({ interval: MINUTE, maxInInterval: 1, clock: handClock() });
  const megabyte = 'x'.repeat(2 ** 20);
  const ids = [
    'A',
    'Ł',
    '\ud800',
    '\ud801',
    '\ufffd',
    'a',
    'a\0',
    'a\0b',
    '__proto__',
    0,
    undefined,
  ];
  for (const id of [...ids, 2n ** 64n, megabyte, `${megabyte}y`]) assert.equal(limiter(id), 0);
  for (const id of ['0', '', null, '18446744073709551616']) assert.equal(limiter(id), MINUTE);
}

{
  // The built-in clock: never before timeLeft, and then.
  const limiter = RateLimiter({ interval: 40, maxInInterval: 1, countBlocked: false });
  const startedAt = performance.now();
  assert.equal(limiter('ada'), 0);
  const timeLeft = limiter('ada');
  assert.ok(timeLeft >= 1 && timeLeft <= 40, `timeLeft is ${timeLeft}`);
  while (limiter('ada') > 0);
  const took = performance.now() - startedAt;
  assert.ok(took >= 39, `allowed again after ${took} ms`);
}

{
  const warned = once(process, 'warning');
  const limiter = RateLimiter({ interval: MINUTE, maxInInterval: 1, maxKeys: 1000 });
  for (let id = 0; id < 200_000; id += 1) limiter(id);
  const { keys, allowed, evicted } = limiter.stats();
  assert.deepEqual({ keys, allowed, evicted }, { keys: 1000, allowed: 200_000, evicted: 199_000 });
  const [warning] = await warned;
  assert.equal(warning.code, 'ROLLGATE_EVICTED');
}
console.log('result: works');
