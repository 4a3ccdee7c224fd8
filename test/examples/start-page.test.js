// What the start page computes: runs of traffic against the algorithms, and the code that it shows.
'use strict';

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const RateLimiter = require('../..');
const { expressCode, limiterCode } = require('../../examples/start/page/code');
const { placeLanes } = require('../../examples/start/page/arrangement');
const { PRESETS, WINDOWS } = require('../../examples/start/page/presets');
const {
  ALGORITHMS,
  mostInAnyWindow,
  runLane,
  simulate,
} = require('../../examples/start/page/simulation');
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
    .filter((preset) => preset !== 'separate' && (preset !== 'shared' || isOnLinux))
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
