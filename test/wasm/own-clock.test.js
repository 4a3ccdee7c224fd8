// The clock of limiters in the module's memory, on a host that sleeps and whose time of day is set.
'use strict';

const os = require('node:os');
const { performance } = require('node:perf_hooks');
const { NEVER } = require('../../lib/base/channels');
const { NUMBERS } = require('../../lib/base/decision');
const { readLimiterOptions } = require('../../lib/limiter/options');
const { nativePolicy } = require('../../lib/native/policy');

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** A noon. */
const NOON = 1_700_049_600_000;

const time = {};
let binding;

beforeEach(() => {
  Object.assign(time, { performance: 5 * SECOND, wall: NOON + 30 * MINUTE, uptime: 99 * HOUR });
  jest.spyOn(performance, 'now').mockImplementation(() => time.performance);
  jest.spyOn(Date, 'now').mockImplementation(() => time.wall);
  jest.spyOn(os, 'uptime').mockImplementation(() => time.uptime / 1000);
  Object.defineProperty(process, 'platform', { value: 'linux' }); // of this test file alone
  jest.isolateModules(() => {
    binding = require('../support/bindings').newWasmBinding();
  });
});
afterEach(() => jest.restoreAllMocks());

function run(ms) {
  for (const clock of Object.keys(time)) time[clock] += ms;
}

function sleep(ms) {
  time.wall += ms;
  time.uptime += ms;
}

/** The clock of a limiter, in us. Each reading is an attempt with another id, because those of one never step back. */
function createClock(algorithm) {
  const checked = readLimiterOptions({ interval: HOUR, maxInInterval: 1, algorithm });
  const numbers = new Float64Array(16);
  const limiter = binding.createMemoryLimiter(
    { policy: nativePolicy(checked), maxKeys: checked.maxKeys },
    { numbers, observesDecisions: NEVER, observesEvictions: NEVER },
  );
  let ids = 0;
  return () => {
    limiter.decide(ids++);
    return numbers[NUMBERS.AT];
  };
}

/** The time in ms, once the clock has looked at the others. */
function read(clock) {
  clock();
  run(1001);
  return clock() / 1000;
}

describe('without aligned windows', () => {
  test('time goes on while the host sleeps, as far as its uptime says so', () => {
    const clock = createClock('sliding-window-log');
    const before = read(clock);
    sleep(2.5 * HOUR);
    expect(read(clock) - before).toBe(2.5 * HOUR + 1001);
    run(HOUR);
    expect(read(clock) - before).toBe(3.5 * HOUR + 2002);
  });

  test('an uptime in whole seconds, or one that steps back, changes nothing', () => {
    const clock = createClock('sliding-window-log');
    const before = read(clock);
    time.uptime += 999;
    expect(read(clock) - before).toBe(1001);
    time.uptime -= HOUR;
    expect(read(clock) - before).toBe(2002);
  });

  test('a host that does not tell its uptime has the clock that it has', () => {
    const clock = createClock('sliding-window-log');
    os.uptime.mockImplementation(() => {
      throw new Error('not allowed');
    });
    const before = read(clock);
    sleep(HOUR);
    expect(read(clock) - before).toBe(1001);
    expect(os.uptime).toHaveBeenCalledTimes(1);
  });
});

describe('with aligned windows', () => {
  test('time follows that of day, in sleep and in steps forward', () => {
    const clock = createClock('fixed-window');
    expect(read(clock)).toBe(time.wall);
    sleep(HOUR);
    expect(read(clock)).toBe(time.wall);
    time.wall += 400 * 24 * HOUR;
    expect(read(clock)).toBe(time.wall);
  });
});
