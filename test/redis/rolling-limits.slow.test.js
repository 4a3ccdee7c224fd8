// Limits that change on Redis while four processes attempt: a rolling deploy, and setLimits under load.
'use strict';

const { INTERVAL_MS, mostInInterval, startProgram } = require('../support/rolling-programs');
const { startRedis, stopRedis } = require('../support/redis-server');
const { patient } = require('../support/tiers');

const PHASE_MS = patient(800);

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

let redis;
beforeAll(async () => {
  redis = (await startRedis()).url;
});
afterAll(stopRedis);

// Kills: a log that is cut to the lower limit although the higher one needs it.
test.each(['sliding-window-log', 'sliding-window-counter'])(
  'a rolling deploy from 100 to 200 and setLimits: no error, and never more than 200: %s',
  async (algorithm) => {
    const options = { redis, namespace: algorithm, algorithm };
    const change = `(turn) => limiter.setLimits([{ interval: ${INTERVAL_MS}, maxInInterval: turn % 2 ? 100 : 200 }])`;
    const old = await Promise.all([
      startProgram({ ...options, maxInInterval: 100 }),
      startProgram({ ...options, maxInInterval: 100 }, change),
    ]);
    await pause(PHASE_MS);
    const young = await Promise.all(
      [1, 2].map(() => startProgram({ ...options, maxInInterval: 200 })),
    );
    await pause(PHASE_MS);
    const reports = await Promise.all([...old, ...young].map(({ end }) => end()));
    const allowed = reports.flatMap((report) => report.allowed);
    // The counter is an estimate: see docs/algorithms.md.
    const most = algorithm === 'sliding-window-log' ? 200 : 400;
    expect(mostInInterval(allowed)).toBeLessThanOrEqual(most);
    expect(allowed.length).toBeGreaterThan(200);
    for (const { stats } of reports) expect(stats.errors).toBe(0);
  },
  patient(60_000),
);
