// The package as programs load it: entry points, subclasses, several realms in one process, more than one copy.
'use strict';

const RateLimiter = require('../..');
const { hasAddon } = require('../support/bindings');
const { LOAD_IN, askProgram, runProgram } = require('../support/run-program');
const { catchError } = require('../support/set-up');

const { InMemoryRateLimiter } = RateLimiter;

const NAMES =
  'ConcurrencyLimiter IORedisRateLimiter InMemoryRateLimiter NodeRedisRateLimiter RateLimiter ' +
  'RedisRateLimiter addonPath attemptAll concurrencyLimit createRedisConnection ipKeyGenerator ' +
  'rateLimit setAddonPath unlinkShared';

/** Each entry point, the name of what require returns if that is a function, and its named exports. */
const ENTRY_POINTS = [
  ['rollgate', 'RateLimiter', NAMES.split(' ')],
  ['rollgate/fastify', 'rollgate', ['rollgate']],
  ['rollgate/fetch', null, ['concurrencyLimitFetch', 'rateLimitFetch']],
  ['rollgate/store', 'RollgateStore', ['RollgateStore']],
  ['rollgate/nest', null, ['RollgateThrottlerStorage']],
  ['rollgate/metrics', null, ['registerMetrics', 'topBlocked']],
];

describe('loading', () => {
  test.each(ENTRY_POINTS)('%s gives %s by require and import', async (from, main, names) => {
    const found = await askProgram(
      `
      import * as all from '${from}';
      import { createRequire } from 'node:module';
      const required = createRequire(import.meta.url)('${from}');
      const dynamic = await import('${from}');
      console.log(JSON.stringify({
        main: required.name ?? null,
        hidden: Object.keys(required).filter((name) => !(name in all)),
        imported: Object.keys(all).filter((name) => name !== 'module.exports').sort(), // of newer versions of Node
        isOne: dynamic === all && all.default === required && ${JSON.stringify(names)}.every((name) =>
          all[name] === required[name]),
      }));
    `,
      { type: 'module' },
    );
    expect(found).toEqual({
      main,
      hidden: [],
      imported: [...names, 'default'].sort(),
      isOne: true,
    });
  });

  test('package.json can be read, inner files cannot', async () => {
    const found = await askProgram(`
      const codes = ['rollgate/package.json', 'rollgate/lib/limiter/index.js', 'rollgate/lib/index.js'].map((name) => {
        try { return require(name).name ?? 'loaded'; } catch (error) { return error.code; }
      });
      console.log(JSON.stringify(codes));
    `);
    const closed = 'ERR_PACKAGE_PATH_NOT_EXPORTED';
    expect(found).toEqual(['rollgate', closed, closed]);
  });

  test('loading and limiters change nothing of others, and leave no handle or listener', async () => {
    const found = await askProgram(`
      const events = ['exit', 'beforeExit', 'warning', 'uncaughtException', 'SIGINT'];
      const snapshot = () => [
        Object.getOwnPropertyNames(globalThis),
        Reflect.ownKeys(Function.prototype),
        Reflect.ownKeys(Object.prototype),
        process.getActiveResourcesInfo().sort(),
        process._getActiveHandles().length,
        events.map((event) => process.listenerCount(event)),
      ].map((part) => [part].flat().map(String).join());
      const before = snapshot();
      const RateLimiter = require('rollgate');
      const options = { interval: 10, maxInInterval: 1 };
      const limiters = Array.from({ length: 100 }, () => RateLimiter(options));
      for (const limiter of limiters) { limiter('a'); limiter.attempt('b'); limiter.limit('c'); }
      setImmediate(() => console.log(JSON.stringify([before, snapshot()])));
    `);
    expect(found[1]).toEqual(found[0]);
  });

  test('runs with frozen intrinsics and without Object.prototype.__proto__', async () => {
    for (const flags of [['--frozen-intrinsics'], ['--disable-proto=throw']]) {
      const { code, stdout } = await runProgram(
        `
        const RateLimiter = require('rollgate');
        const limiter = new RateLimiter({ interval: 1e6, maxInInterval: 1 });
        console.log(limiter('__proto__'), limiter('__proto__') > 0, limiter.attempt('a').allowed);
      `,
        { flags },
      );
      expect([code, stdout]).toEqual([0, '0 true true\n']);
    }
  });
});

describe('subclasses', () => {
  const OPTIONS = { interval: 10, maxInInterval: 1, clock: () => 0 };

  test('of RateLimiter are callable and have fields, private ones and overrides', async () => {
    class Counting extends RateLimiter {
      calls = 0;
      #secret = 5;

      attempt(id, options) {
        this.calls += this.#secret;
        return super.attempt(id, options);
      }
    }
    const limiter = new Counting(OPTIONS);
    for (const Class of [Counting, RateLimiter]) expect(limiter).toBeInstanceOf(Class);
    expect(limiter.constructor).toBe(Counting);
    expect([limiter('a'), limiter('a'), await limiter.limit('b')]).toEqual([0, 10, false]);
    limiter.attempt('c');
    expect(limiter.calls).toBe(5);
    expect(() => new Counting({ interval: -1 })).toThrow(RangeError);
  });

  test('of InMemoryRateLimiter are limiters, too; this one itself needs new', async () => {
    class Mine extends InMemoryRateLimiter {
      limit(id) {
        return super.limit(`prefix ${id}`);
      }
    }
    const limiter = new Mine(OPTIONS);
    for (const Class of [Mine, InMemoryRateLimiter, RateLimiter]) {
      expect(limiter).toBeInstanceOf(Class);
    }
    expect([await limiter.limit('a'), limiter('prefix a')]).toEqual([false, 10]);
    expect(() => InMemoryRateLimiter(OPTIONS)).toThrow(TypeError);
    expect(new InMemoryRateLimiter(OPTIONS).constructor).toBe(InMemoryRateLimiter);
    expect(RateLimiter(OPTIONS)).not.toBeInstanceOf(InMemoryRateLimiter);
  });
});

const PRELUDE = `
  ${LOAD_IN}
  const OPTIONS = { interval: 1e6, maxInInterval: 1 };
  const codeOf = (call) => { try { call(); } catch (error) { return error; } };
  const print = (value) => console.log(JSON.stringify(value));
`;
const ask = (program, options) => askProgram(PRELUDE + program, options);

test('inside Jest errors, functions and results are of its realm', async () => {
  const limiter = RateLimiter({ interval: 10, maxInInterval: 1, clock: () => 0 });
  expect(await new Promise((resolve) => limiter({}, resolve))).toBeInstanceOf(TypeError);
  expect(limiter).toBeInstanceOf(Function);
  const many = limiter.attemptMany(['a']);
  for (const list of [many, many[0].limits]) expect(list).toBeInstanceOf(Array);
  for (const object of [many[0], limiter.stats()]) expect(object).toBeInstanceOf(Object);
  limiter.close();
  expect(catchError(() => limiter('a'))).toBeInstanceOf(Error);
});

test('ids, options, clocks and callbacks may come from another realm', async () => {
  const found = await ask(`
    const RateLimiter = require('rollgate');
    const context = vm.createContext({ answers: [] });
    const foreign = (code) => vm.runInContext(code, context);
    const options = foreign('({ limits: [{ interval: 10, maxInInterval: 1 }], clock: () => 0 })');
    const limiter = RateLimiter(options);
    const answers = [limiter(foreign('"a"')), limiter(foreign('"a" + ""')), limiter(foreign('1n')), limiter(1)];
    answers.push(limiter.attemptMany(foreign('["x", "x"]')).map(({ allowed }) => allowed));
    answers.push(limiter.attempt('y', foreign('({ cost: 1 })')).allowed);
    answers.push(codeOf(() => limiter(foreign('Object("a")'))).code);
    limiter('z', foreign('(...results) => { answers.push(...results); }'));
    setImmediate(() => print([answers, context.answers]));
  `);
  expect(found).toEqual([
    [0, 10, 0, 10, [true, false], true, 'ERR_ROLLGATE_ID'],
    [null, 0, 0],
  ]);
});

test('a context that is dropped takes its limiters along', async () => {
  const live = await ask(
    `
    const { liveLimiters } = require('./lib/native').loadBinding();
    const dropped = [];
    async function main() {
      for (let i = 0; i < 10; i++) {
        (() => {
          const limiter = loadIn(vm.createContext({}))(OPTIONS);
          limiter('a');
          limiter('b', () => {});
          dropped.push(new WeakRef(limiter));
        })();
      }
      const during = liveLimiters();
      for (let i = 0; i < 20; i++) { gc(); await new Promise((resolve) => setImmediate(resolve)); }
      print([during > 0, dropped.filter((limiter) => limiter.deref()).length, liveLimiters()]);
    }
    main();
  `,
    { flags: ['--expose-gc'] },
  );
  // A copy of the package has a WebAssembly instance of its own, so other copies do not see its limiters.
  expect(live).toEqual([hasAddon, 0, 0]);
});

test('the package can be loaded several times in one realm', async () => {
  const found = await ask(`
    const limiters = [];
    for (let i = 0; i < 5; i++) {
      for (const file of Object.keys(require.cache)) if (!file.endsWith('.node')) delete require.cache[file];
      limiters.push(require('rollgate')(OPTIONS));
    }
    // And the addon as well.
    for (const file of Object.keys(require.cache)) delete require.cache[file];
    limiters.push(require('rollgate')(OPTIONS));
    const [first, second] = limiters;
    const foreign = codeOf(() => first.refund(second.attempt('b')));
    print([limiters.map((limiter) => [limiter('a'), limiter('a') > 0]), foreign.code]);
  `);
  expect(found).toEqual([Array(6).fill([0, true]), 'ERR_ROLLGATE_DECISION']);
});
