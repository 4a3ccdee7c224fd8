// What the start page computes: runs of traffic against the algorithms, and the code that it shows.
'use strict';

const RateLimiter = require('../..');
const {
  expressCode,
  limiterCode,
  slotsCode,
  slotsExpressCode,
} = require('../../examples/start/page/code');
const { placeLanes, placeSlots } = require('../../examples/start/page/arrangement');
const { runLeases } = require('../../examples/start/page/leases');
const { PRESETS, WINDOWS } = require('../../examples/start/page/presets');
const {
  ALGORITHMS,
  mostInAnyWindow,
  runLane,
  simulate,
} = require('../../examples/start/page/simulation');
const { mostAtOnce, runningAt, runSlots } = require('../../examples/start/page/slots');
const { callDirectly } = require('../middleware/apps');
const { askProgram } = require('../support/run-program');
const { newName } = require('../support/shared-regions');

const [LOG, , FIXED] = ALGORITHMS;

const settingsOf = (preset, others) => ({
  preset,
  limit: 5,
  windowMs: 10_000,
  countBlocked: PRESETS[preset].countBlocked ?? false,
  ...others,
});

const allowedOf = (requests) => requests.filter(({ decision }) => decision.allowed);
const placesOf = (requests) => requests.map(({ at, client }) => [at, client]);

/** Slowly: each allowed request, and all others less than a window after it. */
function countedMost(requests, windowMs) {
  const times = allowedOf(requests).map(({ at }) => at);
  const within = (from) => times.filter((at) => at >= from && at < from + windowMs).length;
  return Math.max(0, ...times.map(within));
}

const VARIANTS = Object.keys(PRESETS).flatMap((preset) =>
  [
    [1, 2000],
    [5, 10_000],
    [7, 3000],
    [20, 20_000],
  ].flatMap(([limit, windowMs]) =>
    [false, true].map((countBlocked) => ({ preset, limit, windowMs, countBlocked })),
  ),
);

describe('in a run', () => {
  test('a lane has at most as many requests in any window as its algorithm promises', () => {
    for (const settings of VARIANTS) {
      const { limit, windowMs, preset } = settings;
      const limiters = PRESETS[preset].limiters === 'own' ? 2 : 1;
      const most = [limit, 2 * limit, 2 * limit, 2 * limit - 1];
      simulate(settings).forEach((requests, i) => {
        const { count } = mostInAnyWindow(requests, windowMs);
        expect(count).toBe(countedMost(requests, windowMs));
        expect(count).toBeGreaterThan(0);
        expect(count).toBeLessThanOrEqual(most[i] * limiters);
        expect(requests.every(({ at }) => at >= 0 && at < WINDOWS * windowMs)).toBe(true);
      });
    }
  });

  test('two bursts around a boundary pass a fixed window, and no other algorithm', () => {
    const most = simulate(settingsOf('burst')).map((lane) => mostInAnyWindow(lane, 10_000));
    expect(most.map(({ count }) => count)).toEqual([5, 6, 10, 6]);
    expect(most[2].from < 10_000 && most[2].to > 10_000).toBe(true);
  });

  test('a polite client is never refused, and gets all that the limit allows', () => {
    for (const settings of VARIANTS.filter(({ preset }) => preset === 'polite')) {
      for (const requests of simulate(settings)) {
        expect(requests.filter(({ decision }) => !decision.allowed)).toEqual([]);
        expect(requests.length).toBeGreaterThanOrEqual(WINDOWS * settings.limit - 1);
      }
      const requests = runSlots({ ...settings, max: 3 });
      expect(allowedOf(requests)).toEqual(requests);
    }
  });

  test.each([
    ['counted refusals keep an attacker out of log and counter', 'attacker', true, [5, 5, 15, 19]],
    ['uncounted refusals let an attacker have the limit', 'attacker', false, [15, 15, 15, 19]],
    ['two processes get the limit together if they share it', 'shared', false, [15, 15, 15, 19]],
    ['two processes get twice as much if each has its own', 'separate', false, [30, 30, 30, 30]],
  ])('%s', (_what, preset, countBlocked, expected) => {
    const lanes = simulate(settingsOf(preset, { countBlocked }));
    expect(lanes.map((requests) => allowedOf(requests).length)).toEqual(expected);
  });

  describe('with leases', () => {
    const runs = VARIANTS.filter(
      ({ preset, countBlocked }) => preset === 'leases' && !countBlocked,
    );
    const isInWindow =
      (at, { windowMs }) =>
      (request) =>
        request.decision.allowed && request.at > at - windowMs && request.at <= at;

    test('what is used and what is lent fit into the limit together, at any time', () => {
      for (const settings of runs) {
        const { requests, lent } = runLeases(settings);
        const lentAt = (at) =>
          lent.find(({ from, to }) => from <= at && at < to)?.permits ?? [0, 0];
        for (const at of [...requests.map((each) => each.at), ...lent.map(({ from }) => from)]) {
          const used = requests.filter(isInWindow(at, settings)).length;
          const [a, b] = lentAt(at);
          expect(used + a + b).toBeLessThanOrEqual(settings.limit);
        }
      }
    });

    test('a process uses only permits that it holds', () => {
      for (const settings of runs) {
        const { requests, lent } = runLeases(settings);
        const held = (at, client) =>
          lent.find(({ from, to }) => from < at && at <= to)?.permits[client] ?? 0;
        const local = allowedOf(requests).filter(({ isLocal }) => isLocal);
        expect(local.filter(({ at, client }) => held(at, client) === 0)).toEqual([]);
      }
    });

    test('most requests need no Redis, where there is room', () => {
      const { requests, lent } = runLeases(settingsOf('leases', { limit: 20 }));
      expect(requests.filter(({ isLocal }) => isLocal).length).toBeGreaterThan(requests.length / 2);
      expect(lent.some(({ permits: [a, b] }) => a > 0 && b > 0)).toBe(true);
      expect(runLeases(settingsOf('leases', { limit: 1 })).lent).toEqual([]);
    });

    test('only a log that counts no refusals has them', () => {
      const isKnown = (settings) =>
        simulate(settings).map((requests) => requests.some(({ isLocal }) => isLocal !== undefined));
      expect(isKnown(settingsOf('leases'))).toEqual([true, false, false, false]);
      expect(isKnown(settingsOf('leases', { countBlocked: true }))).toEqual(Array(4).fill(false));
      expect(isKnown(settingsOf('shared'))).toEqual(Array(4).fill(false));
    });
  });
});

describe('in a run of slots', () => {
  const runs = VARIANTS.filter(({ countBlocked }) => !countBlocked).flatMap((settings) =>
    [1, 3, 5].map((max) => ({ ...settings, max })),
  );
  const runningBefore = (requests, index) =>
    requests
      .slice(0, index)
      .filter(({ end, client }) => end > requests[index].at && client === requests[index].client);

  test('a request is allowed exactly if fewer than max actions of its process run', () => {
    for (const settings of runs) {
      const requests = runSlots(settings);
      requests.forEach((request, i) => {
        const running = runningBefore(requests, i).length;
        const { allowed } = request.decision;
        const expected = {
          allowed: running < settings.max,
          used: Math.min(running + 1, settings.max),
          ends: running < settings.max,
        };
        const found = { allowed, used: request.slot.used, ends: request.end > request.at };
        expect(found).toEqual(expected);
      });
    }
  });

  test('what runs is counted from its begin until its end', () => {
    for (const settings of runs) {
      const [first] = runSlots(settings);
      const counts = [first.at - 1, first.at, first.end - 1, first.end].map((at) =>
        runningAt([first], at),
      );
      expect(counts).toEqual([0, 1, 1, 0]);
      expect([first.at - 1, first.at].map((at) => mostAtOnce([first], at))).toEqual([0, 1]);
    }
  });

  test('the same requests come as in the other lanes', () => {
    for (const settings of runs.filter(({ preset }) => preset !== 'polite')) {
      expect(placesOf(runSlots(settings))).toEqual(placesOf(runLane(settings, LOG)));
    }
  });

  test('bars are in the slots of their process without overlaps, and refusals are below', () => {
    for (const settings of runs) {
      const requests = runSlots(settings);
      const { max } = settings;
      const slots = max * (PRESETS[settings.preset].limiters === undefined ? 1 : 2);
      const xOf = (at) => (at / (WINDOWS * settings.windowMs)) * 350;
      const measure = { xOf, heightForRequests: 45 };
      const { rows, size, barSize, axis } = placeSlots(requests, measure, { max, slots });
      const ends = new Map();
      for (const request of requests) {
        const row = rows.get(request);
        if (request.decision.allowed) {
          expect(Math.floor(row / max)).toBe(request.client);
          expect(ends.get(row) ?? 0).toBeLessThanOrEqual(request.at);
          ends.set(row, request.end);
        } else {
          expect((row + 1) * size).toBeLessThanOrEqual(45 - axis);
        }
      }
      expect(axis).toBe(slots * barSize);
    }
  });
});

test('requests are drawn at their time, each side of the axis without overlaps', () => {
  for (const settings of VARIANTS) {
    const runs = simulate(settings);
    const xOf = (at) => (at / (WINDOWS * settings.windowMs)) * 350;
    const { size, axis, lanes } = placeLanes(runs, xOf, 45);
    runs.forEach((requests, i) => {
      const ends = new Map();
      const wrong = requests.filter((request) => {
        const { allowed } = request.decision;
        const row = lanes[i].get(request);
        const place = `${allowed} ${row}`;
        const x = xOf(request.at);
        const isOver = ends.get(place) > x;
        ends.set(place, x + size);
        return isOver || (row + 1) * size > (allowed ? axis : 45 - axis);
      });
      expect(wrong).toEqual([]);
    });
  }
});

describe('the code for a run', () => {
  /** Runs a program with a package whose limiters have this clock, and regions of their own; its `result`. */
  function runCode(code, result, clock) {
    const withClock = (create) => (options) => {
      const shared = options.shared && { shared: { name: newName(), maxKeys: 1000 } };
      return create({ ...options, ...shared, clock });
    };
    const { concurrencyLimit, ConcurrencyLimiter, rateLimit } = RateLimiter;
    const others = { concurrencyLimit, ConcurrencyLimiter, rateLimit: withClock(rateLimit) };
    const rollgate = Object.assign(withClock(RateLimiter), others);
    const app = { use: (middleware) => Object.assign(app, { middleware }), get() {}, listen() {} };
    const modules = { rollgate, express: () => app };
    return new Function('require', `${code}; return ${result};`)((name) => modules[name]);
  }

  const passes = (middleware) => callDirectly(middleware).calls.length === 1;
  const cases = Object.keys(PRESETS)
    .filter((preset) => !['separate', 'leases'].includes(preset))
    .filter((preset) => preset !== 'shared' || process.platform === 'linux')
    .flatMap((preset) => ALGORITHMS.map((algorithm) => [preset, algorithm.name, algorithm]));

  test.each(cases)('decides on %s as the lane of %s does', (preset, _name, algorithm) => {
    const settings = settingsOf(preset);
    const requests = runLane(settings, algorithm);
    const [{ at: first }, ...others] = requests;
    let now = first;
    const atTimes = (all, ask) =>
      all.map(({ at }) => {
        now = at;
        return ask();
      });

    const program = limiterCode(settings, algorithm);
    const { limiter, timeLeft } = runCode(program, '{ limiter, timeLeft }', () => now);
    const waits = [timeLeft, ...atTimes(others, () => limiter('ada'))];
    expect(waits).toEqual(requests.map(({ decision }) => decision.timeLeft));

    now = first;
    const { middleware } = runCode(expressCode(settings, algorithm), 'app', () => now);
    const passed = atTimes(requests, () => passes(middleware));
    expect(passed).toEqual(requests.map(({ decision }) => decision.allowed));
  });

  test.each([
    ['has the lease of the lane', LOG, false, 5000],
    ['has no lease where refusals count', LOG, true, undefined],
    ['has no lease in a fixed window', FIXED, false, undefined],
  ])('%s', (_what, algorithm, countBlocked, lease) => {
    const make = jest.fn(() => async () => 0);
    const run = (settings) => {
      const code = limiterCode(settings, algorithm);
      new Function('require', 'console', code)(() => make, { log() {} });
      return make.mock.lastCall[0];
    };
    const settings = settingsOf('leases', { countBlocked });
    const options = run(settings);
    expect([options.redis, options.lease]).toEqual(['redis://127.0.0.1:6379', lease]);
    expect(expressCode(settings, algorithm).includes('  lease: 5_000,')).toBe(lease === 5000);
    for (const windowMs of [2000, 20_000]) RateLimiter(run({ ...settings, windowMs })).close();
  });

  test('has the slots of the lane', () => {
    const { actions, slot } = runCode(slotsCode({ max: 2 }), '{ actions, slot }');
    expect([slot.allowed, slot.release(), actions.usage('ada').used]).toEqual([true, false, 0]);
    let running = [];
    const requests = runSlots(settingsOf('attacker', { max: 2 }));
    for (const { at, end, decision } of requests) {
      for (const each of running.filter((action) => action.end <= at)) each.slot.release();
      running = running.filter((action) => action.end > at);
      const next = actions.acquire('ada');
      expect(next.allowed).toBe(decision.allowed);
      if (next.allowed) running.push({ end, slot: next });
    }
    const { middleware } = runCode(slotsExpressCode({ max: 2 }), 'app');
    expect([1, 2, 3].map(() => passes(middleware))).toEqual([true, true, false]);
  });
});

test('docs/playground.html is what npm run page writes today, whatever built its module', async () => {
  const program = String.raw`
    import { page } from './scripts/page.mjs';
    import { readFileSync } from 'node:fs';
    const committed = readFileSync('docs/playground.html', 'utf8');
    const embedded = /'lib\/native\/wasm\/embedded\.js'\(module, exports, require\) \{\n(.*?)\},\n'/s;
    const [, module] = embedded.exec(committed);
    console.log(page(module) === committed || '"npm run page writes another page"');`;
  expect(await askProgram(program, { type: 'module' })).toBe(true);
});
