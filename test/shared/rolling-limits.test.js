// Limits that change while processes use one region: a rolling deploy, and setLimits under load.
'use strict';

const RateLimiter = require('../..');
const { catchError } = require('../support/set-up');
const { INTERVAL_MS, mostInInterval, startProgram } = require('../support/rolling-programs');
const { newName } = require('../support/shared-regions');
const { patient } = require('../support/tiers');

const PHASE_MS = patient(800);

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const after = (moment, actions) => actions.filter(([before]) => before > moment);
const micros = () => Number(process.hrtime.bigint() / 1000n);

// Kills: a region that refuses other limits; a log that is cut to the lower limit; a count that is not shared.
test(
  'a rolling deploy from 100 to 200: no error, never more than 200, and old processes go on',
  async () => {
    const shared = { name: newName(), maxKeys: 10, room: 200 };
    const started = [1, 2].map(() => startProgram({ shared, maxInInterval: 100 }));
    const old = await Promise.all(started);
    await pause(PHASE_MS);
    const deployedAt = micros();
    const young = await Promise.all(
      [{ shared }, { shared: { ...shared, room: undefined } }].map((options) =>
        startProgram({ ...options, maxInInterval: 200 }),
      ),
    );
    await pause(PHASE_MS);
    const ofYoung = await Promise.all(young.map(({ end }) => end()));
    const endedAt = micros();
    await pause(PHASE_MS);
    const ofOld = await Promise.all(old.map(({ end }) => end()));

    const all = [...ofOld, ...ofYoung];
    const allowedOf = (reports) => reports.flatMap(({ allowed }) => allowed);
    expect(mostInInterval(allowedOf(all))).toBeLessThanOrEqual(200);
    for (const { stats } of all) expect(stats).toMatchObject({ errors: 0, evicted: 0 });
    const isOfOldAlone = ([before]) => before < deployedAt - INTERVAL_MS * 1000;
    const first = allowedOf(ofOld).filter(isOfOldAlone);
    expect(mostInInterval(first)).toBeLessThanOrEqual(100);
    expect(first.length).toBeGreaterThanOrEqual(100);
    // With the others they came above 100; and afterwards the old limit holds again.
    expect(allowedOf(ofYoung).length).toBeGreaterThan(100);
    const last = after(endedAt + INTERVAL_MS * 1000, allowedOf(ofOld));
    expect(mostInInterval(last)).toBeLessThanOrEqual(100);
    expect(last.length).toBeGreaterThanOrEqual(100);
  },
  patient(60_000),
);

// Kills: limits that are taken over only by the next attachment.
test(
  'setLimits in some processes, to and fro under load: no error, and never more than the larger limit',
  async () => {
    const shared = { name: newName(), maxKeys: 10, room: 200 };
    const change = `(turn) => limiter.setLimits([{ interval: ${INTERVAL_MS}, maxInInterval: turn % 2 ? 100 : 200 }])`;
    const programs = await Promise.all([
      ...[1, 2].map(() => startProgram({ shared, maxInInterval: 100 }, change)),
      ...[100, 200].map((maxInInterval) => startProgram({ shared, maxInInterval })),
    ]);
    await pause(2 * PHASE_MS);
    const reports = await Promise.all(programs.map(({ end }) => end()));
    const allowed = reports.flatMap((report) => report.allowed);
    expect(mostInInterval(allowed)).toBeLessThanOrEqual(200);
    expect(allowed.length).toBeGreaterThan(200);
    for (const { stats } of reports) expect(stats).toMatchObject({ errors: 0, evicted: 0 });
  },
  patient(60_000),
);

// Kills: a refusal under the lower limit that cuts the log to it.
test('limiters with the limits 100 and 200 admit no more than 200 together where refusals count', () => {
  const shared = { name: newName(), maxKeys: 10, room: 200 };
  const [old, young] = [100, 200].map((maxInInterval) =>
    RateLimiter({ shared, interval: 60_000, maxInInterval, countBlocked: true }),
  );
  const admitted = (limiter, most) =>
    Array.from({ length: most }, () => limiter('a')).filter((timeLeft) => timeLeft === 0).length;
  expect(admitted(young, 150)).toBe(150);
  expect(admitted(old, 150)).toBe(0);
  expect(admitted(young, 200)).toBe(0);
});

// Kills: arrival times in the units of another interval.
test('with gcra, other intervals fit, and what was counted stays', () => {
  const shared = { name: newName(), maxKeys: 10 };
  const [short, long] = [60_000, 3_600_000].map((interval) =>
    RateLimiter({ shared, interval, maxInInterval: 100, algorithm: 'gcra', clock: () => 0 }),
  );
  short.attempt('a', { cost: 4 });
  expect(long.attempt('a', { cost: 2 }).limits).toMatchObject([{ used: 6, remaining: 94 }]);
  expect(short.usage('a')).toMatchObject({ used: 6 });
});

describe('what does not fit', () => {
  const LIMITS = { interval: 60_000, maxInInterval: 100 };

  test('setLimits throws it and changes nothing', () => {
    const limiter = RateLimiter({ ...LIMITS, shared: { name: newName(), maxKeys: 10 } });
    limiter('a');
    const error = catchError(() => limiter.setLimits([{ ...LIMITS, maxInInterval: 129 }]));
    expect(error).toMatchObject({ code: 'ERR_ROLLGATE_SHARED_MISMATCH' });
    expect(error.message).toContain('room: 129');
    expect(limiter.usage('a').limits).toMatchObject([{ maxInInterval: 100, used: 1 }]);
    expect(limiter('a')).toBe(0);
    limiter.setLimits([{ ...LIMITS, maxInInterval: 128 }]);
    expect(limiter.usage('a').limits).toMatchObject([{ maxInInterval: 128, used: 2 }]);
  });

  test('before the first call, setLimits decides what the region has room for', () => {
    const limiter = RateLimiter({ ...LIMITS, shared: { name: newName(), maxKeys: 10 } });
    limiter.setLimits([{ ...LIMITS, maxInInterval: 900 }]);
    expect(limiter.attempt('a', { cost: 900 }).allowed).toBe(true);
  });

  // Kills: a limit of a call that is cut to the room of the records.
  test('a limit of a call above the room is an error that names room, and nothing is counted', () => {
    const limiter = RateLimiter({ ...LIMITS, shared: { name: newName(), maxKeys: 10 } });
    expect(limiter.attempt('a', { limits: 128, cost: 128 }).allowed).toBe(true);
    const error = catchError(() => limiter.attempt('b', { limits: 129 }));
    expect(error).toMatchObject({ code: 'ERR_ROLLGATE_SHARED_MISMATCH' });
    expect(error.message).toContain('room: 129');
    expect(limiter.usage('b').used).toBe(0);
    expect(limiter('b')).toBe(0);
  });
});
