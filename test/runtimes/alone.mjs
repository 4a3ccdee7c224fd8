// Programs of limiters by themselves, chosen by the first argument; the last line is the result.
import assert from 'node:assert/strict';
import { subscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import RateLimiter, * as everything from 'rollgate';

const require = createRequire(import.meta.url);

const MINUTE = 60_000;
const LIMITERS = 20_000;
const GOOD = { interval: 1000, maxInInterval: 1 };

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
const wrong = [
  undefined,
  {},
  { interval: '1000', maxInInterval: 1 },
  { interval: 1000, maxInInterval: 1.5 },
  { ...GOOD, algorithm: 'leaky' },
  { ...GOOD, maxKey: 5 },
  { ...GOOD, shared: 'a/b' },
  { ...GOOD, kv: {}, namespace: 'api' },
  { ...GOOD, redis: 'http://127.0.0.1' },
  { ...GOOD, shared: 'a', kv: { get() {}, set() {} } },
];

/** Loads a copy of the package whose binary was changed by `change`. */
function loadWith(change) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'rollgate copy-'));
  const installed = path.dirname(require.resolve('rollgate/package.json'));
  const copy = path.join(folder, 'node_modules/rollgate');
  fs.cpSync(installed, copy, { recursive: true });
  const loader = path.dirname(require.resolve('node-gyp-build/package.json'));
  fs.cpSync(loader, path.join(folder, 'node_modules/node-gyp-build'), { recursive: true });
  const binaries = path.join(copy, 'prebuilds');
  const [name] = fs
    .readdirSync(binaries, { recursive: true })
    .filter((file) => /\.node$/.test(file));
  change(path.join(binaries, name));
  return require(copy)(GOOD); // the addon is loaded by the first limiter
}

/** The machine that an ELF file is for stands at offset 18; 0xb7 is arm64, 0x3e is x64. */
function exchangeMachine(file) {
  const binary = fs.readFileSync(file);
  binary[18] = process.arch === 'x64' ? 0xb7 : 0x3e;
  fs.writeFileSync(file, binary);
}

const changes = {
  missing: (file) => fs.rmSync(file),
  'cut off after its header': (file) => fs.truncateSync(file, 1000),
  'without its last byte': (file) => fs.truncateSync(file, fs.statSync(file).size - 1),
  'for another machine': exchangeMachine,
  'no binary': (file) => fs.writeFileSync(file, 'not found'),
};

const programs = {
  /** import and require of every entry point give the same things. */
  async loading() {
    const { default: rollgate } = await import('rollgate/fastify');
    const { registerMetrics, topBlocked } = await import('rollgate/metrics');
    const { default: RollgateStore, RollgateStore: named } = await import('rollgate/store');
    assert.equal(require('rollgate'), RateLimiter);
    assert.equal(everything.RateLimiter, RateLimiter);
    for (const [name, value] of Object.entries(everything)) {
      if (name !== 'default') assert.equal(RateLimiter[name], value, name);
    }
    assert.deepEqual(
      Object.keys(RateLimiter).filter((name) => !(name in everything)),
      [],
    );
    assert.equal(require('rollgate/fastify'), rollgate);
    assert.equal(require('rollgate/store'), RollgateStore);
    assert.equal(named, RollgateStore);
    assert.equal(require('rollgate/metrics').registerMetrics, registerMetrics);
    assert.equal(require('rollgate/metrics').topBlocked, topBlocked);
    assert.equal(require('rollgate/package.json').name, 'rollgate');
    assert.throws(() => require('rollgate/lib/native.js'), {
      code: /^(ERR_PACKAGE_PATH_NOT_EXPORTED|MODULE_NOT_FOUND)$/, // the second is Bun's
    });

    assert.equal(RateLimiter({ interval: 1000, maxInInterval: 1 })('ada'), 0);
    assert.equal(new RateLimiter({ interval: 1000, maxInInterval: 1 })('ada'), 0);
  },

  /** Every algorithm, every method, ids of all kinds, both clocks. */
  async memory() {
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
      const limiter = RateLimiter({ interval: MINUTE, maxInInterval: 1, clock: handClock() });
      const answers = [];
      const call = () =>
        new Promise((resolve) => {
          const returned = limiter('ada', (...answer) => resolve(answers.push(answer)));
          assert.equal(returned, undefined);
        });
      const calls = [call(), call()];
      assert.deepEqual(answers, []);
      await Promise.all(calls);
      assert.deepEqual(answers, [
        [null, 0, 0],
        [null, MINUTE, 0],
      ]);
    }

    {
      const limiter = RateLimiter({ interval: MINUTE, maxInInterval: 1, clock: handClock() });
      const megabyte = 'x'.repeat(2 ** 20);
      const ids = ['A', 'Ł', '\ud800', '\ud801', '\ufffd', 'a', 'a\0', '__proto__', 0, undefined];
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
      assert.deepEqual(
        { keys, allowed, evicted },
        { keys: 1000, allowed: 200_000, evicted: 199_000 },
      );
      const [warning] = await warned;
      assert.equal(warning.code, 'ROLLGATE_EVICTED');
    }
  },

  /** A limiter that is dropped is freed, though nobody closes it. */
  async dropped() {
    const installed = path.dirname(require.resolve('rollgate/package.json'));
    const { liveLimiters } = require(path.join(installed, 'lib/native.js')).loadAddon();
    let most = 0;
    for (let made = 0; made < LIMITERS; made += 1) {
      const limiter = RateLimiter({ interval: 60_000, maxInInterval: 5 });
      for (let id = 0; id < 20; id += 1) limiter(id);
      if (made % 50 > 0) continue;
      await setImmediate(); // finalizers run between two turns of the event loop
      most = Math.max(most, liveLimiters());
    }
    assert.ok(most >= 1 && most < 0.75 * LIMITERS, `${most} of ${LIMITERS} limiters lived at once`);
  },

  /** One after the other, in time, with a deadline, a signal and a bound on those who wait. */
  async wait() {
    {
      const limiter = RateLimiter({ interval: 30, maxInInterval: 2, countBlocked: false });
      const order = [];
      const startedAt = performance.now();
      const waiting = [0, 1, 2, 3, 4, 5].map(async (number) => {
        const decision = await limiter.wait('ada');
        assert.equal(decision.allowed, true);
        order.push(number);
      });
      await Promise.all(waiting);
      assert.deepEqual(order, [0, 1, 2, 3, 4, 5]);
      const took = performance.now() - startedAt;
      assert.ok(took >= 59, `six actions with two in 30 ms took ${took} ms`);
    }

    const limiter = RateLimiter({ interval: 600_000, maxInInterval: 1, countBlocked: false });
    limiter('ada');
    await assert.rejects(limiter.wait('ada', { deadline: 10 }), {
      code: 'ERR_ROLLGATE_WAIT_DEADLINE',
    });

    const controller = new AbortController();
    const aborted = assert.rejects(limiter.wait('ada', { signal: controller.signal }), {
      name: 'AbortError',
    });
    const refused = limiter.wait('ada', { maxQueue: 1 });
    await assert.rejects(refused, { code: 'ERR_ROLLGATE_WAIT_QUEUE' });
    controller.abort();
    await aborted;

    const closed = assert.rejects(limiter.wait('ada'), { code: 'ERR_ROLLGATE_CLOSED' });
    await limiter.close();
    await closed;
  },

  async metrics() {
    const { Registry } = await import('prom-client');
    const { registerMetrics, topBlocked } = await import('rollgate/metrics');
    const limiter = RateLimiter({ interval: 60_000, maxInInterval: 2 });
    const register = new Registry();
    registerMetrics({ limiters: { api: limiter }, register });
    const blocked = topBlocked({ limiters: { api: limiter } });
    const decisions = [];
    subscribe('rollgate:decision', ({ id }) => decisions.push(id));

    for (const id of ['ada', 'ada', 'bob', 'ada', 'ada']) limiter(id);

    assert.deepEqual(decisions, ['ada', 'ada', 'bob', 'ada', 'ada']);
    assert.deepEqual(blocked.top(1), [{ limiter: 'api', id: 'ada', blocked: 2, overcount: 0 }]);
    const text = await register.metrics();
    assert.match(text, /^rollgate_decisions_total\{.*outcome="allowed".*\} 3$/m);
    assert.match(text, /^rollgate_decisions_total\{.*outcome="blocked".*\} 2$/m);
    assert.match(text, /^rollgate_keys\{limiter="api"\} 2$/m);
  },

  /** Wrong options, ids and callbacks, a missing or damaged addon: errors with a code. */
  async 'bad-input'() {
    for (const options of wrong) {
      assert.throws(() => RateLimiter(options), { code: /^ERR_ROLLGATE_(OPTION|URL)$/ });
    }
    assert.throws(() => everything.rateLimit({ windowMs: 'soon' }), {
      code: 'ERR_ROLLGATE_OPTION',
    });

    const limiter = RateLimiter(GOOD);
    for (const id of [{}, [], true, Number.NaN, Symbol('a'), () => {}]) {
      assert.throws(() => limiter.attempt(id), { code: 'ERR_ROLLGATE_ID' });
    }
    assert.throws(() => limiter('ada', 5), { code: 'ERR_ROLLGATE_CALLBACK' });
    assert.throws(() => limiter.attempt('ada', { cost: 2 }), { code: 'ERR_ROLLGATE_COST' });
    const clocks = [() => Number.NaN, () => 'now', () => assert.fail('no time')];
    for (const clock of clocks) {
      assert.throws(() => RateLimiter({ ...GOOD, clock })('ada'), { code: 'ERR_ROLLGATE_CLOCK' });
    }
    assert.equal(limiter('ada'), 0);

    for (const [name, change] of Object.entries(changes)) {
      assert.throws(
        () => loadWith(change),
        { code: 'ERR_ROLLGATE_ADDON', message: /install\.mjs/ },
        name,
      );
    }
  },
};

await programs[process.argv[2]]();
console.log('result: works');
