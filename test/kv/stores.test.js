// What a limiter does with each kind of key-value store: its keys, values and expiry, and the options.
'use strict';

const { createHash } = require('node:crypto');
const { openKv } = require('@deno/kv');
const { createClient } = require('redis');
const RateLimiter = require('../..');
const { catchError, handClock } = require('../support/set-up');
const { createPlainKv, limiterOver, openDenoKv } = require('../support/kv-stores');
const { outcomeOf } = require('../support/outcome');

let inMemory = 0;

/** Each kind of store: `keys()` in it, and `put(namespace, id, value)` as another program would. */
const STORES = {
  'a plain object': () => {
    const kv = createPlainKv();
    return { kv, keys: async () => [...kv.entries.keys()], put: putPlain(kv), close() {} };
  },
  'a plain object that cannot delete': () => {
    const { entries, get, set, list } = createPlainKv();
    const isState = (key) => entries.get(key).value.length > 1;
    const keys = async () => [...entries.keys()].filter(isState);
    return { kv: { get, set, list }, keys, put: putPlain({ entries }), close() {} };
  },
  'Deno KV in a file': async () => {
    const { kv, close } = await openDenoKv();
    return { ...denoPlace(kv), close };
  },
  'Deno KV in memory': async () => {
    const kv = await openKv(`memory ${++inMemory}`, { implementation: 'in-memory' });
    return { ...denoPlace(kv), close: () => kv.close() };
  },
};

function denoPlace(kv) {
  async function keys() {
    const found = [];
    for await (const { key } of kv.list({ prefix: [] })) found.push(key.join('|'));
    return found;
  }
  return { kv, keys, put: (...key) => kv.set(key.slice(0, -1), key.at(-1)) };
}

function putPlain({ entries }) {
  return async (namespace, id, value) => {
    entries.set(`${namespace}{${id}}`, { value, version: -1, expiresAt: Infinity });
  };
}

describe.each(Object.keys(STORES))('%s', (name) => {
  let store;
  let time;
  beforeEach(async () => {
    store = await STORES[name]();
    time = handClock();
  });
  afterEach(() => store.close());

  const limiterWith = (options) =>
    limiterOver(store.kv, { interval: 1000, clock: time.clock, commandTimeout: 5000, ...options });

  test('clear forgets one id, between the calls before and after it', async () => {
    const limiter = limiterWith({ maxInInterval: 1 });
    const calls = [limiter('a'), limiter('a'), limiter.clear('a'), limiter('a'), limiter('b')];
    expect(await Promise.all(calls)).toEqual([0, 1000, undefined, 0, 0]);
    await Promise.all([limiter.clear('a'), limiter.clear('a'), limiter.clear('never')]);
    expect(await store.keys()).toHaveLength(1);
  });

  test('clearAll forgets the ids of the namespace and no others', async () => {
    const limiter = limiterWith();
    const others = [limiterWith({ namespace: 'n2' }), limiterWith({ namespace: 'm' })];
    const ids = Array.from({ length: 100 }, (_, i) => `id ${i}`);
    const long = 'x'.repeat(3000);
    await limiter.attemptMany([...ids, long, '']);
    for (const other of others) await other('a');
    await limiter.clearAll();
    expect(await store.keys()).toHaveLength(2);
    for (const id of ['id 0', 'id 99', long, '']) {
      expect((await limiter.peek(id)).actionsLeft).toBe(2);
    }
    for (const other of others) expect((await other.peek('a')).actionsLeft).toBe(1);
  });

  test('two ids never share a count, however odd or long', async () => {
    const limiter = limiterWith({ maxInInterval: 1 });
    const long = 'x'.repeat(300);
    const hash = createHash('sha256').update(long).digest('hex');
    const hashed = ['sha256', hash, `sha256}${hash}`, `sha256|${hash}`, long, `${long}x`];
    const odd = ['', 'a', 'a}', '{a}', '}', '{', '\0', 'ä', 'a\u0308'];
    odd.push('日'.repeat(86), '日'.repeat(85));
    const lengths = ['\0'.repeat(256), 'x'.repeat(256), 'y'.repeat(1e6), 'y'.repeat(1e6 + 1)];
    const ids = [...hashed, ...odd, ...lengths];
    const first = await limiter.attemptMany(ids);
    expect(first.filter(({ allowed }) => !allowed)).toEqual([]);
    const again = await limiter.attemptMany(ids);
    expect(again.filter(({ allowed }) => allowed)).toEqual([]);
  });

  test('a foreign value is an error and is left alone until it is cleared', async () => {
    const limiter = limiterWith();
    const foreign = [Buffer.from('not a state of rollgate'), new Uint8Array(0), 'string', { a: 1 }];
    for (const [i, value] of foreign.entries()) {
      const id = `foreign ${i}`;
      await store.put('n', id, value);
      const decision = await limiter.attempt('good');
      for (const call of [limiter(id), limiter.peek(id), limiter.attemptMany(['good', id])]) {
        expect(await outcomeOf(call)).toBe('ERR_ROLLGATE_KV');
      }
      await limiter.clear(id);
      expect(await limiter(id)).toBe(0);
      await limiter.refund(decision);
      await limiter.clear('good');
    }
  });
});

test('takes 255 limits, and no more', async () => {
  const limitsOf = (length) =>
    Array.from({ length }, (_, i) => ({ interval: 1000, maxInInterval: 2, name: `n${i}` }));
  const over = (length) =>
    RateLimiter({ limits: limitsOf(length), kv: createPlainKv(), namespace: 'n', clock: () => 0 });
  const limiter = over(255);
  const timesLeft = [await limiter('a'), await limiter('a'), await limiter('a')];
  expect(timesLeft).toEqual([0, 0, 1000]);
  expect(catchError(() => over(256))).toMatchObject({
    code: 'ERR_ROLLGATE_OPTION',
    message: "option 'limits': expected at most 255 limits with a key-value store, got 256",
  });
});

describe('the time to live', () => {
  test('is passed with every write: the lifetime of the state plus a second', async () => {
    const kv = createPlainKv();
    const limiter = limiterOver(kv, { interval: 5000.5, clock: handClock(0).clock });
    await limiter('a');
    await limiter.refund(await limiter.attempt('a'));
    expect(kv.ttls).toEqual([6001, 6001, 6001]);
    const limits = [{ interval: 1000, maxInInterval: 10, minDifference: 7000 }];
    await limiterOver(kv, { limits })('b');
    expect(kv.ttls.at(-1)).toBe(8000);
  });

  test('has a bound that stores can add to the time of day', async () => {
    const kv = createPlainKv();
    await limiterOver(kv, { interval: Number.MAX_VALUE })('a');
    expect(new Date(Date.now() + kv.ttls[0]).getFullYear()).toBeGreaterThan(2100);
  });

  test('an id that expired starts as a new one, which an old decision cannot refund', async () => {
    const time = handClock(0);
    const kv = createPlainKv({ now: time.clock });
    const limiter = limiterOver(kv, { interval: 1000, clock: time.clock });
    const decision = await limiter.attempt('a');
    time.advance(60_000);
    await limiter('a');
    expect(kv.entries.size).toBe(1);
    expect(await limiter.refund(decision)).toBe(false);
  });
});

describe('limits of calls', () => {
  const LIMIT = { interval: 1000, maxInInterval: 1 };

  // Kills: limits of the call that was made last.
  test('judge each of several calls made at once', async () => {
    const limiter = limiterOver(createPlainKv(), LIMIT);
    const calls = [2, 1, 3, 2, 9].map((limits) => limiter.attempt('a', { limits }));
    const decisions = await Promise.all(calls);
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, false, true, false, true]);
    expect(decisions.map(({ limits }) => limits[0].maxInInterval)).toEqual([2, 1, 3, 2, 9]);
  });
});

describe('options', () => {
  const kv = createPlainKv();
  const GOOD = { interval: 1000, maxInInterval: 1, kv, namespace: 'n' };

  function refusalOf(options, Class = RateLimiter) {
    const error = catchError(() => new Class({ ...GOOD, ...options }));
    expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
    return error;
  }

  test('good ones do not touch the store, be it a class or a function with properties', () => {
    class Kv {
      get() {}
      set() {}
    }
    for (const good of [kv, new Kv(), Object.assign(() => {}, kv)]) {
      RateLimiter({ ...GOOD, kv: good, commandTimeout: 1, onError: 'allow' });
    }
    expect(kv.calls).toEqual({ get: 0, set: 0, delete: 0, list: 0 });
  });

  test.each([
    [null, 'got null'],
    ['file.db', 'got "file.db" (string)'],
    [{ get() {} }, 'got an object'],
    [new Map(), 'got a Map, which has no compare-and-set'],
    [Promise.resolve(kv), 'got a promise: await it first'],
    [createClient(), "got a client of Redis, which belongs in 'redis'"],
  ])('a wrong kv: %#', (wrong, message) => {
    const error = refusalOf({ kv: wrong });
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).toContain("option 'kv': expected an open Deno KV, or an object");
    expect(error.message).toContain(message);
  });

  test.each([
    ['namespace', undefined, TypeError, 'got undefined'],
    ['namespace', 'a{b', RangeError, 'without braces'],
    ['namespace', 'ä'.repeat(257), RangeError, 'at most 512 bytes'],
    ['commandTimeout', '500', TypeError, 'got "500"'],
    ['commandTimeout', 0, RangeError, 'got 0'],
    ['commandTimeout', 2 ** 31, RangeError, 'got 2147483648'],
  ])('%s: %j', (name, value, Class, message) => {
    const error = refusalOf({ [name]: value });
    expect(error).toBeInstanceOf(Class);
    expect(error.message).toMatch(new RegExp(`^option '${name}': expected `));
    expect(error.message).toContain(message);
  });

  test('combinations that contradict each other', () => {
    const redis = 'redis://localhost';
    for (const [more, message] of [
      [{ redis }, "option 'kv': conflicts with 'redis'"],
      [{ client: createClient() }, "option 'kv': conflicts with 'client'"],
      [{ kv: undefined, commandTimeout: 5, namespace: undefined }, "requires 'kv'"],
      [{ kv: undefined, redis, commandTimeout: 5 }, "'commandTimeout': expected inside of 'redis'"],
    ]) {
      expect(refusalOf(more).message).toContain(message);
    }
    const { InMemoryRateLimiter, RedisRateLimiter } = RateLimiter;
    const ofMemory = "option 'kv': not allowed for a limiter in memory";
    expect(refusalOf({}, InMemoryRateLimiter).message).toBe(ofMemory);
    expect(refusalOf({}, RedisRateLimiter).message).toMatch(/^option 'client'/);
  });

  describe('a log that may outgrow a value of Deno KV', () => {
    const HOUR = 3_600_000;
    const TOO_MANY = { interval: 2 * HOUR, maxInInterval: 10_000 };
    let deno;
    beforeAll(async () => {
      deno = await openDenoKv();
    });
    afterAll(() => deno.close());

    // Kills: setLimits without the check, or one that has already taken the limits which it refuses.
    test('is refused by setLimits as well, which then changes nothing', async () => {
      const options = { interval: HOUR, maxInInterval: 1, clock: () => 0, namespace: 'grows' };
      const limiter = RateLimiter({ ...options, kv: deno.kv });
      expect(() => limiter.setLimits([TOO_MANY])).toThrow(/expected a log that fits/);
      expect(await limiter.attempt('a')).toMatchObject({ limits: [{ maxInInterval: 1 }] });
      expect(await limiter.attempt('a')).toMatchObject({ allowed: false });
      await limiter.close();
    });

    test('is refused there, and only there', () => {
      const error = refusalOf({ ...TOO_MANY, kv: deno.kv });
      expect(error).toBeInstanceOf(RangeError);
      const message = /^option 'maxInInterval': expected a log that fits .* got one of \d+;/;
      expect(error.message).toMatch(message);
      refusalOf({ kv: deno.kv, limits: [TOO_MANY, { interval: 5, maxInInterval: 1 }] });
      RateLimiter({ ...GOOD, ...TOO_MANY });
      for (const algorithm of ['sliding-window-counter', 'fixed-window', 'gcra']) {
        RateLimiter({ ...GOOD, ...TOO_MANY, kv: deno.kv, algorithm });
      }
    });

    test.each([2 * HOUR, HOUR])(
      'in %i ms is accepted up to what can be written',
      async (interval) => {
        const common = { ...GOOD, kv: deno.kv, interval, commandTimeout: 5000 };
        const make = (maxInInterval) => RateLimiter({ ...common, maxInInterval });
        let [most, tooMany] = [1, 1e6];
        while (tooMany - most > 1) {
          const middle = Math.floor((most + tooMany) / 2);
          if (catchError(() => make(middle)) === undefined) most = middle;
          else tooMany = middle;
        }
        expect(most).toBeGreaterThan(8000);
        const limiter = make(most);
        expect((await limiter.attempt(String(interval), { cost: most })).allowed).toBe(true);
        expect((await limiter.attempt(String(interval))).allowed).toBe(false);
      },
    );
  });
});
