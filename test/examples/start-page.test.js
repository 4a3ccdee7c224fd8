// What the start page computes: runs of traffic against the algorithms, and the code that it shows.
'use strict';

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const RateLimiter = require('../..');
const {
  expressCode,
  limiterCode,
  slotsCode,
  slotsExpressCode,
} = require('../../examples/start/page/code');
const { placeLanes, placeSlots } = require('../../examples/start/page/arrangement');
const { leaseOf, runLeases } = require('../../examples/start/page/leases');
const { PRESETS, WINDOWS } = require('../../examples/start/page/presets');
const {
  ALGORITHMS,
  mostInAnyWindow,
  runLane,
  simulate,
} = require('../../examples/start/page/simulation');
const { mostAtOnce, runningAt, runSlots } = require('../../examples/start/page/slots');
const { callDirectly } = require('../middleware/apps');
const { newName } = require('../support/shared-regions');

const ROOT = path.join(__dirname, '../..');
const EMBEDDED = /'lib\/native\/wasm\/embedded\.js'\(module, exports, require\) \{\n(.*?)\},\n'/s;

const algorithmNamed = (wanted) => ALGORITHMS.find(({ name }) => name === wanted);
const [LOG, COUNTER, FIXED, GCRA] = ALGORITHMS;

const settingsOf = (preset, others) => ({
  preset,
  limit: 5,
  windowMs: 10_000,
  countBlocked: PRESETS[preset].countBlocked ?? false,
  ...others,
});

/** Slowly: each allowed request, and all others less than a window after it. */
function countedMost(requests, windowMs) {
  const times = requests.filter(({ decision }) => decision.allowed).map(({ at }) => at);
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
    for (const limit of [2, 5, 20]) {
      const settings = settingsOf('burst', { limit });
      const most = (algorithm) => mostInAnyWindow(runLane(settings, algorithm), 10_000);
      expect(most(FIXED).count).toBe(2 * limit);
      expect(most(FIXED).from).toBeLessThan(10_000);
      expect(most(FIXED).to).toBeGreaterThan(10_000);
      expect(most(LOG).count).toBe(limit);
      for (const algorithm of [COUNTER, GCRA]) {
        expect(most(algorithm).count).toBeLessThan(1.5 * limit + 1);
      }
    }
  });

  test('all lanes but those of polite clients get the same requests', () => {
    for (const preset of Object.keys(PRESETS).filter((name) => name !== 'polite')) {
      const [first, ...others] = simulate(settingsOf(preset)).map((requests) =>
        requests.map(({ at, client }) => [at, client]),
      );
      for (const other of others) expect(other).toEqual(first);
    }
  });

  test('a polite client is never refused, and gets all that the limit allows', () => {
    for (const settings of VARIANTS.filter(({ preset }) => preset === 'polite')) {
      for (const requests of simulate(settings)) {
        expect(requests.filter(({ decision }) => !decision.allowed)).toEqual([]);
        expect(requests.length).toBeGreaterThanOrEqual(WINDOWS * settings.limit - 1);
      }
    }
  });

  test('refusals that count keep an attacker out of the log and the counter', () => {
    const allowed = (countBlocked) =>
      simulate(settingsOf('attacker', { countBlocked })).map(
        (requests) => requests.filter(({ decision }) => decision.allowed).length,
      );
    expect(allowed(true)).toEqual([5, 5, 15, 19]);
    expect(allowed(false)).toEqual([15, 15, 15, 19]);
  });

  test('two processes get the limit together if they share it, and twice as much if not', () => {
    const most = (preset) =>
      simulate(settingsOf(preset)).map((requests) => mostInAnyWindow(requests, 10_000).count);
    expect(most('shared')).toEqual([5, 5, 5, 9]);
    expect(most('separate')).toEqual([10, 10, 10, 10]);
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

    test('a process holds permits for one lease at most, and uses only what it holds', () => {
      for (const settings of runs) {
        const { requests, lent } = runLeases(settings);
        const held = (at, client) =>
          lent.find(({ from, to }) => from < at && at <= to)?.permits[client] ?? 0;
        for (const { at, client, isLocal, decision } of requests) {
          if (isLocal && decision.allowed) expect(held(at, client)).toBeGreaterThan(0);
        }
        for (const client of [0, 1]) {
          let since;
          for (const { from, to, permits } of lent) {
            if (permits[client] === 0) since = undefined;
            else since ??= from;
            // A lease that is used up is followed by the next one at once.
            const renewed = requests.filter((each) => each.client === client && each.isLocal);
            const isOne = !renewed.some(({ at }) => at > since && at <= to);
            if (isOne) expect(to - (since ?? to)).toBeLessThanOrEqual(leaseOf(settings));
          }
        }
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

  test('one process never runs more than max, and each preset shows how many run', () => {
    for (const settings of runs) {
      const requests = runSlots(settings);
      const most = mostAtOnce(requests);
      const processes = PRESETS[settings.preset].limiters === undefined ? 1 : 2;
      expect(most).toBeGreaterThan(0);
      expect(most).toBeLessThanOrEqual(processes * settings.max);
      const [first] = requests;
      expect([first.at - 1, first.at, first.end].map((at) => mostAtOnce(requests, at) > 0)).toEqual(
        [false, true, true],
      );
      expect(runningAt(requests, first.at - 1)).toBe(0);
      expect(runningAt(requests.slice(0, 1), first.end)).toBe(0);
    }
  });

  test('the same requests come as in the other lanes, and always with the same result', () => {
    for (const settings of runs.filter(({ preset }) => preset !== 'polite')) {
      const places = (requests) => requests.map(({ at, client }) => [at, client]);
      expect(places(runSlots(settings))).toEqual(places(runLane(settings, LOG)));
      expect(runSlots(settings).map(({ end }) => end)).toEqual(
        runSlots(settings).map(({ end }) => end),
      );
    }
  });

  test('a polite client fills all slots, and is never refused', () => {
    for (const settings of runs.filter(({ preset }) => preset === 'polite')) {
      const requests = runSlots(settings);
      expect(requests.filter(({ decision }) => !decision.allowed)).toEqual([]);
      expect(mostAtOnce(requests)).toBe(settings.max);
    }
  });

  test('bursts and attackers are refused while all slots are held', () => {
    const tally = (preset) => {
      const requests = runSlots(settingsOf(preset, { max: 3 }));
      return [requests.length, requests.filter(({ decision }) => decision.allowed).length];
    };
    expect([tally('burst'), tally('attacker')]).toEqual([
      [20, 10],
      [300, 44],
    ]);
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
      let overlaps = 0;
      let outside = 0;
      for (const request of requests) {
        const { allowed } = request.decision;
        const row = lanes[i].get(request);
        const place = `${allowed} ${row}`;
        const x = xOf(request.at);
        if (ends.get(place) > x) overlaps += 1;
        if ((row + 1) * size > (allowed ? axis : 45 - axis)) outside += 1;
        ends.set(place, x + size);
      }
      expect({ overlaps, outside }).toEqual({ overlaps: 0, outside: 0 });
    });
  }
});

describe('the code for a run', () => {
  const isOnLinux = process.platform === 'linux';

  /** Runs a program with a package whose limiters have this clock, and regions of their own; its `result`. */
  function runCode(code, result, clock) {
    const withClock = (create) => (options) => {
      const shared = options.shared && { shared: { name: newName(), maxKeys: 1000 } };
      return create({ ...options, ...shared, clock });
    };
    const rollgate = Object.assign(withClock(RateLimiter), {
      rateLimit: withClock(RateLimiter.rateLimit),
    });
    const app = { use: (middleware) => Object.assign(app, { middleware }), get() {}, listen() {} };
    const modules = { rollgate, express: () => app };
    const program = new Function('require', `${code}; return ${result};`);
    return program((name) => modules[name]);
  }

  const cases = Object.keys(PRESETS)
    .filter((preset) => !['separate', 'leases'].includes(preset))
    .filter((preset) => preset !== 'shared' || isOnLinux)
    .flatMap((preset) => ALGORITHMS.map(({ name }) => [preset, name]));

  test.each(cases)('decides on %s as the lane of %s does', (preset, name) => {
    const settings = settingsOf(preset);
    const algorithm = algorithmNamed(name);
    const requests = runLane(settings, algorithm);
    const [{ at: first }, ...others] = requests;
    let now = first;
    const moveTo = ({ at }) => {
      now = at;
    };

    const program = limiterCode(settings, algorithm);
    const { limiter, timeLeft } = runCode(program, '{ limiter, timeLeft }', () => now);
    const waits = others.map((request) => {
      moveTo(request);
      return limiter('ada');
    });
    expect([timeLeft, ...waits]).toEqual(requests.map(({ decision }) => decision.timeLeft));

    now = first;
    const { middleware } = runCode(expressCode(settings, algorithm), 'app', () => now);
    const passed = requests.map((request) => {
      moveTo(request);
      return callDirectly(middleware).calls.length === 1;
    });
    expect(passed).toEqual(requests.map(({ decision }) => decision.allowed));
  });

  test('has the lease of the lane, for the log alone', () => {
    const settings = settingsOf('leases');
    const make = jest.fn(() => async () => 0);
    const run = (code) => new Function('require', 'console', code)(() => make, { log() {} });
    const optionsOf = (algorithm, countBlocked = false) => {
      run(limiterCode({ ...settings, countBlocked }, algorithm));
      return make.mock.lastCall[0];
    };
    const onRedis = { redis: 'redis://127.0.0.1:6379', namespace: 'my-app' };
    expect(optionsOf(LOG)).toMatchObject({ ...onRedis, countBlocked: false, lease: 5000 });
    for (const [algorithm, counts] of [[LOG, true], [FIXED], [GCRA]]) {
      expect(optionsOf(algorithm, counts)).toMatchObject(onRedis);
      expect(optionsOf(algorithm, counts)).not.toHaveProperty('lease');
    }
    expect(expressCode(settings, LOG)).toContain('  lease: 5_000,');
    for (const windowMs of [2000, 20_000]) {
      run(limiterCode({ ...settings, windowMs }, LOG));
      expect(() => RateLimiter(make.mock.lastCall[0]).close()).not.toThrow();
    }
  });

  test('has the slots of the lane', () => {
    const requests = runSlots(settingsOf('attacker', { max: 2 }));
    const { ConcurrencyLimiter, concurrencyLimit } = RateLimiter;
    const app = { use: (middleware) => Object.assign(app, { middleware }), get() {}, listen() {} };
    const modules = { rollgate: { ConcurrencyLimiter, concurrencyLimit }, express: () => app };
    const run = (code, result) =>
      new Function('require', `${code}; return ${result};`)((name) => modules[name]);

    const { actions, slot } = run(slotsCode({ max: 2 }), '{ actions, slot }');
    expect([slot.allowed, slot.release(), actions.usage('ada').used]).toEqual([true, false, 0]);
    let running = [];
    const allowed = requests.map(({ at, end }) => {
      for (const each of running.filter((action) => action.end <= at)) each.slot.release();
      running = running.filter((action) => action.end > at);
      const next = actions.acquire('ada');
      if (next.allowed) running.push({ end, slot: next });
      return next.allowed;
    });
    expect(allowed).toEqual(requests.map(({ decision }) => decision.allowed));

    const { middleware } = run(slotsExpressCode({ max: 2 }), 'app');
    const passed = [1, 2, 3].map(() => callDirectly(middleware).calls.length === 1);
    expect(passed).toEqual([true, true, false]);
  });
});

test('docs/playground.html is what npm run page writes today, whatever built its module', () => {
  const committed = fs.readFileSync(path.join(ROOT, 'docs/playground.html'), 'utf8');
  const [, module] = EMBEDDED.exec(committed);
  const program = `
    import { page } from './scripts/page.mjs';
    import { readFileSync } from 'node:fs';
    process.stdout.write(page(readFileSync(0, 'utf8')));
  `;
  const options = { cwd: ROOT, input: module, encoding: 'utf8', maxBuffer: 10_000_000 };
  const args = ['--input-type=module', '--eval', program];
  const { stdout, stderr } = spawnSync(process.execPath, args, options);
  expect(stderr).toBe('');
  expect(stdout === committed || 'npm run page writes another page').toBe(true);
});
