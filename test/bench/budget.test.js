// A benchmark ends within its budget, whatever its jobs do, and says what it left out.
'use strict';

const { TimeIsUp, runBenchmark } = require('../../bench/js/harness');

/** Runs jobs that take `ms` each, or end as the time runs out, by a clock moved by hand. */
async function runBy(jobs, budgetMs, { failing = {} } = {}) {
  let time = 0;
  const seen = [];
  const benchmark = { budgetMs, jobs: () => jobs };
  const results = await runBenchmark('none', benchmark, {
    now: () => time,
    run: async (_file, { key, ms }, timeoutMs) => {
      time += Math.min(ms, timeoutMs);
      if (ms > timeoutMs) throw new TimeIsUp('no result in time');
      if (failing[key]) throw new Error(failing[key]);
      return { ns: ms };
    },
    onProgress: (progress) => seen.push({ ...progress, time }),
  });
  return { results, time, seen };
}

const job = (key, ms, rounds) => ({ key, ms, rounds });

test('all rounds are run when there is time for them', async () => {
  const { results, time } = await runBy([job('a', 10, 3), job('b', 20, 2)], 1000);
  expect(results.a).toMatchObject({ runs: 3, ns: { median: 10, min: 10, max: 10 } });
  expect(results.b).toMatchObject({ runs: 2 });
  expect(time).toBe(70);
});

test('a round that would not fit is left out for all of its jobs', async () => {
  const { results, time } = await runBy([job('a', 10, 5), job('b', 30, 5)], 100);
  expect([results.a.runs, results.b.runs]).toEqual([2, 2]);
  expect(time).toBe(80);
});

test('a later round of fewer jobs may still fit', async () => {
  const { results } = await runBy([job('slow', 50, 2), job('quick', 10, 4)], 90);
  expect([results.slow.runs, results.quick.runs]).toEqual([1, 3]);
});

test('the first round ends with the budget: what had no time has failed, and says so', async () => {
  const { results, time } = await runBy([job('a', 60, 3), job('b', 60, 3), job('c', 1, 3)], 100);
  expect(time).toBe(100);
  expect(results.a).toMatchObject({ runs: 1 });
  expect(results.b).toMatchObject({ error: 'no result in time' });
  expect(results.c).toMatchObject({ error: 'no time was left for it' });
});

test('a job that is cut off later keeps what it had', async () => {
  let calls = 0;
  const slower = {
    key: 'a',
    rounds: 3,
    get ms() {
      return ++calls === 1 ? 40 : 400;
    },
  };
  const { results, time } = await runBy([slower], 100);
  expect(results.a).toMatchObject({ runs: 1 });
  expect(time).toBe(100);
});

test('a job that is cut off by a timer that is a moment early keeps what it had, too', async () => {
  let time = 0;
  let calls = 0;
  const results = await runBenchmark(
    'none',
    { budgetMs: 100, jobs: () => [job('a', 0, 3)] },
    {
      now: () => time,
      run: async (_file, _job, timeoutMs) => {
        time += ++calls === 1 ? 40 : timeoutMs - 0.5;
        if (calls > 1) throw new TimeIsUp('no result in time');
        return { ns: 1 };
      },
    },
  );
  expect(results.a).toMatchObject({ runs: 1 });
});

test('a process that ends without numbers has failed', async () => {
  const results = await runBenchmark(require.resolve('./answers-nothing'), {
    budgetMs: 60_000,
    jobs: () => [{ key: 'a', rounds: 1 }],
  });
  expect(results.a.error).toMatch(/JSON/);
});

test('a job that fails is not run again, and the others are', async () => {
  const failing = { a: 'it broke' };
  const { results, time } = await runBy([job('a', 10, 3), job('b', 10, 3)], 1000, { failing });
  expect(results.a).toMatchObject({ error: 'it broke' });
  expect(results.b).toMatchObject({ runs: 3 });
  expect(time).toBe(40);
});

test('progress counts the runs and never expects more than what is left', async () => {
  const { seen } = await runBy([job('a', 10, 5), job('b', 30, 5)], 100);
  expect(seen.map(({ done }) => done)).toEqual([1, 2, 3, 4]);
  for (const { expectedMs, time } of seen) expect(expectedMs).toBeLessThanOrEqual(100 - time);
});

test('a process that does not answer is ended', async () => {
  const start = performance.now();
  const results = await runBenchmark(require.resolve('./never-answers'), {
    budgetMs: 300,
    jobs: () => [{ key: 'a', rounds: 1 }],
  });
  expect(results.a.error).toBe('no result within 1 s');
  expect(performance.now() - start).toBeLessThan(10_000);
});
