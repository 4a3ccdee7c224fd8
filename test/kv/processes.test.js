// Processes that race on one database file admit exactly what they may, and what they did outlives them.
'use strict';

const RateLimiter = require('../..');
const { ALGORITHMS } = require('../../lib/algorithms');
const { openDenoKv } = require('../support/kv-stores');
const { askProgram } = require('../support/run-program');

const MAX = 60;
const IDS = ['hot', 'a', 'b'];

let store;

beforeEach(async () => {
  store = await openDenoKv();
});
afterEach(() => store.close());

const optionsOf = (algorithm) => ({
  namespace: `race-${algorithm}`,
  algorithm,
  // One window of the epoch, whenever the test runs: the second begins in the year 2255.
  interval: 9_007_199_254_740,
  maxInInterval: MAX,
  countBlocked: false,
});

/**
 * Asks for each id by turns, and again where the database was busy for too long; prints how often each
 * was allowed for certain, how often it may have been, and how long the longest call took.
 */
const racer = (algorithm) => `
  const { openKv } = require('@deno/kv');
  const RateLimiter = require('rollgate');
  (async () => {
    const kv = await openKv(${JSON.stringify(store.file)});
    const limiter = RateLimiter({ kv, commandTimeout: 2000, ...${JSON.stringify(optionsOf(algorithm))} });
    const report = { allowed: {}, unknown: {}, longest: 0 };
    for (const id of ${JSON.stringify(IDS)}) {
      report.allowed[id] = 0;
      report.unknown[id] = 0;
    }
    const ask = async (id) => {
      const before = performance.now();
      try {
        if ((await limiter(id)) === 0) report.allowed[id] += 1;
      } catch (error) {
        if (error.code !== 'ERR_ROLLGATE_KV_TIMEOUT') throw error;
        report.unknown[id] += 1;
      }
      report.longest = Math.max(report.longest, performance.now() - before);
    };
    for (let i = 0; i < 15; i++) {
      await Promise.all(${JSON.stringify(IDS)}.flatMap((id) => [ask(id), ask(id)]));
    }
    kv.close();
    console.log(JSON.stringify(report));
  })();
`;

describe.each(ALGORITHMS)('%s', (algorithm) => {
  test('four processes on one file', async () => {
    const racers = Array.from({ length: 4 }, () => askProgram(racer(algorithm)));
    const reports = await Promise.all(racers);
    // Whatever they left is had here: after a restart, so to say.
    const limiter = RateLimiter({
      kv: store.kv,
      commandTimeout: 10_000,
      ...optionsOf(algorithm),
    });
    for (const id of IDS) {
      let rest = 0;
      while ((await limiter(id)) === 0) rest += 1;
      const sum = (kind) => reports.reduce((all, report) => all + report[kind][id], 0);
      const told = sum('allowed') + rest;
      expect(told).toBeLessThanOrEqual(MAX);
      expect(told).toBeGreaterThanOrEqual(MAX - sum('unknown'));
    }
    for (const { longest } of reports) expect(longest).toBeLessThan(4000);
  });
});

test('what a process did counts after its end, also if it was killed', async () => {
  const options = JSON.stringify(optionsOf('sliding-window-log'));
  const program = (end) => `
    const { openKv } = require('@deno/kv');
    const RateLimiter = require('rollgate');
    (async () => {
      const kv = await openKv(${JSON.stringify(store.file)});
      const limiter = RateLimiter({ kv, commandTimeout: 10_000, ...${options} });
      const { actionsLeft } = await limiter.attempt('a', { cost: 20 });
      require('node:fs').writeSync(1, JSON.stringify(actionsLeft));
      ${end};
    })();
  `;
  expect(await askProgram(program('kv.close()'))).toBe(40);
  await expect(askProgram(program("process.kill(process.pid, 'SIGKILL')"))).rejects.toThrow(
    'the program ended with SIGKILL: 20',
  );
  expect(await askProgram(program('kv.close()'))).toBe(0);
});
