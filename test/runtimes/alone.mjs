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

const ALGORITHMS = ['sliding-window-log', 'sliding-window-counter', 'fixed-window', 'gcra'];
const MINUTE = 60_000;
const GOOD = { interval: 1000, maxInInterval: 1 };

/** One in a minute, or as `options` say, on a clock moved by hand. */
function handMoved(options) {
  const clock = () => clock.now;
  clock.now = 1_000_000 * MINUTE; // a multiple of every window
  return [RateLimiter({ interval: MINUTE, maxInInterval: 1, clock, ...options }), clock];
}

const folderOf = (name) => path.dirname(require.resolve(`${name}/package.json`));

/** Makes a limiter with a copy of the package whose binary was changed by `change`; with the module, or without. */
function loadWith(change, hasModule = true) {
  const modules = path.join(
    fs.mkdtempSync(path.join(os.tmpdir(), 'rollgate copy-')),
    'node_modules',
  );
  for (const name of ['rollgate', 'node-gyp-build']) {
    fs.cpSync(folderOf(name), path.join(modules, name), { recursive: true });
  }
  const binaries = path.join(modules, 'rollgate/prebuilds');
  const isBinary = (file) => file.endsWith('.node');
  if (!hasModule) fs.rmSync(path.join(modules, 'rollgate/lib/native/wasm/rollgate.wasm'));
  delete process.env.ROLLGATE_BINDING; // this copy chooses
  change(path.join(binaries, fs.readdirSync(binaries, { recursive: true }).find(isBinary)));
  return require(path.join(modules, 'rollgate'))(GOOD);
}

const CHANGES = {
  missing: (file) => fs.rmSync(file),
  'cut off after its header': (file) => fs.truncateSync(file, 1000),
  'no binary': (file) => fs.writeFileSync(file, 'not found'),
};

const programs = {
  /** import and require of every entry point give the same things. */
  async loading() {
    const withDefault = ['rollgate', 'rollgate/fastify', 'rollgate/store'];
    const others = ['fetch', 'metrics', 'nest'].map((name) => `rollgate/${name}`);
    for (const name of [...withDefault, ...others]) {
      const [imported, required] = [await import(name), require(name)];
      if (withDefault.includes(name)) assert.equal(imported.default, required, name);
      const named = Object.entries(imported).filter(
        ([key]) => key !== 'default' && key !== 'module.exports',
      );
      for (const [key, value] of named) assert.equal(required[key], value, key);
    }
    const hidden = Object.keys(RateLimiter).filter((name) => !(name in everything));
    assert.deepEqual(hidden, []);
    assert.equal(require('rollgate/package.json').name, 'rollgate');
    assert.throws(() => require('rollgate/lib/native/addon.js'), {
      code: /^(ERR_PACKAGE_PATH_NOT_EXPORTED|MODULE_NOT_FOUND)$/, // the second is Bun's
    });
    assert.equal(RateLimiter(GOOD)('ada'), 0);
    assert.equal(new RateLimiter(GOOD)('ada'), 0);
  },

  /** Every algorithm and method, ids of all kinds, both clocks. */
  async memory() {
    for (const algorithm of ALGORITHMS) {
      const [limiter, clock] = handMoved({ maxInInterval: 3, countBlocked: false, algorithm });
      for (let i = 0; i < 3; i += 1) assert.equal(limiter('bob'), 0, algorithm);
      clock.now += limiter('bob') - 1;
      assert.equal(limiter('bob'), 1, algorithm);
      clock.now += 1;
      assert.equal(limiter('bob'), 0, algorithm);
    }

    const limits = [
      { ...GOOD, maxInInterval: 2 },
      { interval: MINUTE, maxInInterval: 3 },
    ];
    const [limiter] = handMoved({ limits, minDifference: 1, countBlocked: false });
    const decision = limiter.attempt('ada', { cost: 2 });
    const left = decision.limits.map(({ remaining }) => remaining);
    assert.deepEqual([decision.allowed, left], [true, [0, 1]]);
    assert.equal(limiter.peek('ada').timeLeft, 1000);
    assert.deepEqual([limiter.refund(decision), limiter.refund(decision)], [true, false]);
    const many = limiter.attemptMany(['ada', 'bob', 'ada']);
    assert.deepEqual(
      many.map(({ allowed }) => allowed),
      [true, true, true],
    );
    await limiter.clear('ada');
    assert.equal(await limiter.limit('ada'), false);
    await limiter.clearAll();
    assert.equal(limiter.stats().keys, 0);
    await limiter.close();
    assert.throws(() => limiter('ada'), { code: 'ERR_ROLLGATE_CLOSED' });

    const answers = [];
    const [called] = handMoved();
    const call = () =>
      new Promise((resolve) => called('ada', (...answer) => resolve(answers.push(answer))));
    const calls = [call(), call()];
    assert.deepEqual(answers, []); // a callback comes later
    await Promise.all(calls);
    assert.deepEqual(answers, [
      [null, 0, 0],
      [null, MINUTE, 0],
    ]);

    const [one] = handMoved();
    const megabyte = 'x'.repeat(2 ** 20);
    const ids = ['A', 'Ł', '\ud800', '\ud801', '\ufffd', 'a', 'a\0', '__proto__', 0, undefined];
    for (const id of [...ids, 2n ** 64n, megabyte, `${megabyte}y`]) assert.equal(one(id), 0);
    for (const id of ['0', '', null, '18446744073709551616']) assert.equal(one(id), MINUTE);

    // The built-in clock: never before timeLeft, and then.
    const real = RateLimiter({ ...GOOD, interval: 40, countBlocked: false });
    const startedAt = performance.now();
    assert.equal(real('ada'), 0);
    const timeLeft = real('ada');
    assert.ok(timeLeft >= 1 && timeLeft <= 40, `timeLeft is ${timeLeft}`);
    while (real('ada') > 0);
    const took = performance.now() - startedAt;
    assert.ok(took >= 39, `allowed again after ${took} ms`);

    const warned = once(process, 'warning');
    const full = RateLimiter({ interval: MINUTE, maxInInterval: 1, maxKeys: 1000 });
    for (let id = 0; id < 200_000; id += 1) full(id);
    const { keys, allowed, evicted } = full.stats();
    assert.deepEqual([keys, allowed, evicted], [1000, 200_000, 199_000]);
    assert.equal((await warned)[0].code, 'ROLLGATE_EVICTED');
  },

  /** A limiter that is dropped is freed, though nobody closes it. */
  async dropped() {
    const inner = path.join(folderOf('rollgate'), 'lib/native/index.js');
    const { liveLimiters } = require(inner).loadBinding();
    const count = 20_000;
    let most = 0;
    for (let made = 0; made < count; made += 1) {
      const limiter = RateLimiter({ ...GOOD, maxInInterval: 5 });
      for (let id = 0; id < 20; id += 1) limiter(id);
      if (made % 50 > 0) continue;
      await setImmediate(); // finalizers run between two turns of the event loop
      most = Math.max(most, liveLimiters());
    }
    assert.ok(most >= 1 && most < 0.75 * count, `${most} of ${count} limiters lived at once`);
  },

  /** One after the other, in time, with a deadline, a signal and a bound on those who wait. */
  async wait() {
    const two = RateLimiter({ interval: 30, maxInInterval: 2, countBlocked: false });
    const order = [];
    const startedAt = performance.now();
    const numbers = [0, 1, 2, 3, 4, 5];
    await Promise.all(numbers.map((number) => two.wait('ada').then(() => order.push(number))));
    assert.deepEqual(order, numbers);
    const took = performance.now() - startedAt;
    assert.ok(took >= 59, `six actions with two in 30 ms took ${took} ms`);

    const limiter = RateLimiter({ ...GOOD, interval: 3_600_000 });
    limiter('ada');
    const rejects = (options, error) => assert.rejects(limiter.wait('ada', options), error);
    await rejects({ deadline: 10 }, { code: 'ERR_ROLLGATE_WAIT_DEADLINE' });
    const controller = new AbortController();
    const aborted = rejects({ signal: controller.signal }, { name: 'AbortError' });
    await rejects({ maxQueue: 1 }, { code: 'ERR_ROLLGATE_WAIT_QUEUE' });
    controller.abort();
    await aborted;
    const closed = rejects({}, { code: 'ERR_ROLLGATE_CLOSED' });
    await limiter.close();
    await closed;
  },

  async metrics() {
    const { Registry } = await import('prom-client');
    const { registerMetrics, topBlocked } = await import('rollgate/metrics');
    const limiter = RateLimiter({ interval: MINUTE, maxInInterval: 2 });
    const register = new Registry();
    registerMetrics({ limiters: { api: limiter }, register });
    const blocked = topBlocked({ limiters: { api: limiter } });
    const ids = ['ada', 'ada', 'bob', 'ada', 'ada'];
    const decided = [];
    subscribe('rollgate:decision', ({ id }) => decided.push(id));
    for (const id of ids) limiter(id);
    assert.deepEqual(decided, ids);
    assert.deepEqual(blocked.top(1), [{ limiter: 'api', id: 'ada', blocked: 2, overcount: 0 }]);
    const text = await register.metrics();
    assert.match(text, /^rollgate_decisions_total\{.*outcome="allowed".*\} 3$/m);
    assert.match(text, /^rollgate_decisions_total\{.*outcome="blocked".*\} 2$/m);
    assert.match(text, /^rollgate_keys\{limiter="api"\} 2$/m);
  },

  /** Errors made by the addon and by its loader have their codes. */
  async 'bad-input'() {
    const option = { code: 'ERR_ROLLGATE_OPTION' };
    assert.throws(() => RateLimiter({ ...GOOD, maxInInterval: 1.5 }), option);
    assert.throws(() => RateLimiter.rateLimit({ windowMs: 'soon' }), option);
    const limiter = RateLimiter(GOOD);
    for (const id of [{}, [], true, Number.NaN, Symbol('a'), () => {}]) {
      assert.throws(() => limiter.attempt(id), { code: 'ERR_ROLLGATE_ID' });
    }
    assert.throws(() => limiter('ada', 5), { code: 'ERR_ROLLGATE_CALLBACK' });
    assert.throws(() => limiter.attempt('ada', { cost: 2 }), { code: 'ERR_ROLLGATE_COST' });
    for (const clock of [() => Number.NaN, () => 'now', () => assert.fail('no time')]) {
      assert.throws(() => RateLimiter({ ...GOOD, clock })('ada'), { code: 'ERR_ROLLGATE_CLOCK' });
    }
    assert.equal(limiter('ada'), 0);
    const missing = { code: 'ERR_ROLLGATE_ADDON', message: /install\.mjs/ };
    for (const [name, change] of Object.entries(CHANGES)) {
      const warned = once(process, 'warning');
      assert.equal(loadWith(change)('ada'), 0, name);
      const [{ code, detail }] = await warned;
      assert.equal(code, 'ROLLGATE_WASM', name);
      assert.match(detail, missing.message, name);
      assert.throws(() => loadWith(change, false), missing, name);
    }
  },
};

await programs[process.argv[2]]();
console.log('result: works');
