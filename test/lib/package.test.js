// The package as users load it: require and import, named exports, subclasses, a limiter as a function.
'use strict';

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const nodeGypBuild = require('node-gyp-build');
const RateLimiter = require('../..');
const { askProgram, runProgram } = require('../support/run-program');

const NAMES = [
  'IORedisRateLimiter',
  'InMemoryRateLimiter',
  'NodeRedisRateLimiter',
  'RateLimiter',
  'RedisRateLimiter',
  'addonPath',
  'ipKeyGenerator',
  'rateLimit',
  'setAddonPath',
  'unlinkShared',
];
const OPTIONS = { interval: 10, maxInInterval: 1, clock: () => 0 };

describe('loading', () => {
  test('require gives the function RateLimiter with everything hung on it', async () => {
    const found = await askProgram(`
      const RateLimiter = require('rollgate');
      console.log(JSON.stringify({
        type: typeof RateLimiter,
        name: RateLimiter.name,
        self: RateLimiter.RateLimiter === RateLimiter,
        names: Object.keys(RateLimiter).sort(),
        works: RateLimiter({ interval: 1e6, maxInInterval: 1 })('a'),
      }));
    `);
    expect(found).toEqual({
      type: 'function',
      name: 'RateLimiter',
      self: true,
      names: NAMES,
      works: 0,
    });
  });

  test('import gives a default export and the same names', async () => {
    const found = await askProgram(
      `
      import RateLimiter, * as all from 'rollgate';
      import { InMemoryRateLimiter, ipKeyGenerator, rateLimit, RateLimiter as named } from 'rollgate';
      import { createRequire } from 'node:module';
      const required = createRequire(import.meta.url)('rollgate');
      console.log(JSON.stringify({
        names: Object.keys(all).sort(),
        same: [RateLimiter, named, all.default, required.RateLimiter].every((one) => one === required),
        parts: [InMemoryRateLimiter, ipKeyGenerator, rateLimit].map((part) => required[part.name] === part),
        works: RateLimiter({ interval: 1e6, maxInInterval: 1 })('a'),
      }));
    `,
      { type: 'module' },
    );
    expect(found).toEqual({
      names: [...NAMES, 'default'].sort(),
      same: true,
      parts: [true, true, true],
      works: 0,
    });
  });

  test('dynamic import works from CommonJS', async () => {
    const found = await askProgram(`
      import('rollgate').then(({ default: RateLimiter, rateLimit }) => {
        console.log(JSON.stringify([RateLimiter.rateLimit === rateLimit, typeof rateLimit]));
      });
    `);
    expect(found).toEqual([true, 'function']);
  });

  test('package.json can be read, inner files cannot', async () => {
    const found = await askProgram(`
      const codes = ['rollgate/package.json', 'rollgate/lib/limiter.js', 'rollgate/lib/index.js'].map((name) => {
        try { return require(name).name ?? 'loaded'; } catch (error) { return error.code; }
      });
      console.log(JSON.stringify(codes));
    `);
    const closed = 'ERR_PACKAGE_PATH_NOT_EXPORTED';
    expect(found).toEqual(['rollgate', closed, closed]);
  });

  test.each([
    ['rollgate/fastify', 'rollgate'],
    ['rollgate/store', 'RollgateStore'],
  ])('%s gives %s, by require and import, as the default and by name', async (path, name) => {
    const required = await askProgram(`
      const it = require('${path}');
      console.log(JSON.stringify([typeof it, it.name, it.${name} === it]));
    `);
    expect(required).toEqual(['function', name, true]);
    const imported = await askProgram(
      `
      import it, * as all from '${path}';
      import { ${name} } from '${path}';
      import { createRequire } from 'node:module';
      const same = [${name}, createRequire(import.meta.url)('${path}')].every((one) => one === it);
      console.log(JSON.stringify([same, Object.keys(all).sort()]));
    `,
      { type: 'module' },
    );
    expect(imported).toEqual([true, [name, 'default'].sort()]);
  });

  test('rollgate/metrics gives registerMetrics and topBlocked, by require and import', async () => {
    const found = await askProgram(
      `
      import * as all from 'rollgate/metrics';
      import { createRequire } from 'node:module';
      const required = createRequire(import.meta.url)('rollgate/metrics');
      const same = required.registerMetrics === all.registerMetrics;
      console.log(JSON.stringify([same, Object.keys(all), Object.keys(required)]));
    `,
      { type: 'module' },
    );
    const names = ['registerMetrics', 'topBlocked'];
    expect(found).toEqual([true, names, names]);
  });

  test('an addon that is cut off is an error, not the end of the process', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'rollgate-cut-off-'));
    try {
      const whole = fs.readFileSync(nodeGypBuild.path(path.join(__dirname, '../..')));
      const file = path.join(folder, 'build/Release/rollgate.node');
      fs.mkdirSync(path.dirname(file), { recursive: true });
      for (const bytes of [0, 1000, whole.length / 2, whole.length - 1]) {
        fs.writeFileSync(file, whole.subarray(0, bytes));
        const found = await askProgram(
          "try { require('rollgate')({ interval: 1, maxInInterval: 1 }); } catch (error) { console.log(JSON.stringify(error.code)); }",
          { env: { ROLLGATE_PREBUILD: folder } },
        );
        expect(found).toBe('ERR_ROLLGATE_ADDON');
      }
    } finally {
      fs.rmSync(folder, { recursive: true });
    }
  });

  test('loading changes nothing that belongs to others', async () => {
    const found = await askProgram(`
      const snapshot = () => [
        Object.getOwnPropertyNames(globalThis),
        Reflect.ownKeys(Function.prototype),
        Reflect.ownKeys(Object.prototype),
        process.listenerCount('exit') + process.listenerCount('warning'),
      ].map((part) => [part].flat().map(String).join());
      const before = snapshot();
      const RateLimiter = require('rollgate');
      RateLimiter({ interval: 10, maxInInterval: 1 })('a');
      console.log(JSON.stringify(snapshot().every((part, i) => part === before[i])));
    `);
    expect(found).toBe(true);
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
  class Counting extends RateLimiter {
    calls = 0;
    #secret = 5;

    constructor(options) {
      super({ ...OPTIONS, ...options });
      this.extra = 'mine';
    }

    attempt(id, options) {
      this.calls += 1;
      return super.attempt(id, options);
    }

    get secret() {
      return this.#secret;
    }

    static make() {
      return new Counting();
    }
  }

  test('of RateLimiter are callable and have fields, accessors, overrides and statics', async () => {
    const limiter = Counting.make();
    expect(limiter).toBeInstanceOf(Counting);
    expect(limiter).toBeInstanceOf(RateLimiter);
    expect(limiter.constructor).toBe(Counting);
    expect([limiter('a'), limiter('a'), await limiter.limit('b')]).toEqual([0, 10, false]);
    limiter.attempt('c');
    expect([limiter.calls, limiter.secret, limiter.extra]).toEqual([1, 5, 'mine']);
  });

  test('of InMemoryRateLimiter do as well', async () => {
    class Mine extends RateLimiter.InMemoryRateLimiter {
      limit(id) {
        return super.limit(`prefix ${id}`);
      }
    }
    const limiter = new Mine(OPTIONS);
    expect(limiter).toBeInstanceOf(Mine);
    expect(limiter).toBeInstanceOf(RateLimiter.InMemoryRateLimiter);
    expect(limiter).toBeInstanceOf(RateLimiter);
    expect([await limiter.limit('a'), limiter('prefix a')]).toEqual([false, 10]);
  });

  test('whose constructor fails throw what it throws', () => {
    expect(() => new Counting({ interval: -1 })).toThrow(RangeError);
  });

  test('InMemoryRateLimiter itself needs new, as a class does', () => {
    const { InMemoryRateLimiter } = RateLimiter;
    expect(() => InMemoryRateLimiter(OPTIONS)).toThrow(TypeError);
    const limiter = new InMemoryRateLimiter(OPTIONS);
    expect(limiter).toBeInstanceOf(RateLimiter);
    expect(limiter.constructor).toBe(InMemoryRateLimiter);
    expect(RateLimiter(OPTIONS)).not.toBeInstanceOf(InMemoryRateLimiter);
  });
});

describe('a limiter is a function', () => {
  test('with call, apply, bind and toString', () => {
    const limiter = RateLimiter({ ...OPTIONS, maxInInterval: 2 });
    expect(limiter.call(undefined, 'a')).toBe(0);
    expect(limiter.apply({}, ['a'])).toBe(0);
    expect(limiter.bind(null, 'a')()).toBe(10);
    expect(Reflect.apply(limiter, null, ['a'])).toBe(10);
    expect(Function.prototype.call.call(limiter, null, 'b')).toBe(0);
    expect(typeof limiter.toString()).toBe('string');
    expect(Object.prototype.toString.call(limiter)).toBe('[object Function]');
  });

  test('that goes where functions go', async () => {
    const limiter = RateLimiter(OPTIONS);
    expect(['a', 'b'].map((id) => limiter(id))).toEqual([0, 0]);
    const { promisify } = require('node:util');
    expect(await promisify(limiter)('a')).toBe(10);
    await expect(promisify(limiter)(true)).rejects.toMatchObject({ code: 'ERR_ROLLGATE_ID' });
    expect(await Promise.resolve('c').then((id) => limiter(id))).toBe(0);
  });

  test('that can carry properties, be frozen and be shown', () => {
    const limiter = RateLimiter(OPTIONS);
    limiter.label = 'login';
    Object.freeze(limiter);
    expect([limiter('a'), limiter('a'), limiter.label]).toEqual([0, 10, 'login']);
    expect(require('node:util').inspect(limiter)).toContain('login');
    expect(JSON.stringify({ limiter })).toBe('{}');
  });

  test('that is no promise: it can be returned from async functions', async () => {
    const limiter = RateLimiter(OPTIONS);
    expect(await (async () => limiter)()).toBe(limiter);
    expect(limiter.then).toBeUndefined();
  });

  test('a method without its limiter throws a plain TypeError', async () => {
    const { attempt, limit } = RateLimiter(OPTIONS);
    expect(() => attempt('a')).toThrow(TypeError);
    await expect(limit('a')).rejects.toThrow(TypeError);
  });
});
