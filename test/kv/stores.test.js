// What a limiter over a key-value store does with it, on each kind: a plain object and Deno KV.
'use strict';

const { openKv } = require('@deno/kv');
const RateLimiter = require('../..');
const { handClock } = require('../support/hand-clock');
const { createPlainKv, openDenoKv } = require('../support/kv-stores');
const { outcomeOf } = require('../support/outcome');

let inMemory = 0;

/** Each kind of store, and its keys as the tests look at them. */
const STORES = {
  'a plain object': async () => {
    const kv = createPlainKv();
    return { kv, keys: async () => [...kv.entries.keys()], put: putPlain(kv), close() {} };
  },
  'a plain object that cannot delete': async () => {
    const kv = createPlainKv();
    const { get, set, list } = kv;
    return {
      kv: { get, set, list },
      keys: async () =>
        [...kv.entries.keys()].filter((key) => kv.entries.get(key).value.length > 1),
      put: putPlain(kv),
      close() {},
    };
  },
  'a plain object that answers at once': async () => {
    const { entries, ...kv } = createPlainKv();
    const own = new Map();
    let version = 0;
    kv.get = (key) => own.get(key);
    kv.set = (key, value, expected) => {
      if ((own.get(key)?.version ?? null) !== expected) return false;
      own.set(key, { value, version: ++version });
      return true;
    };
    kv.delete = (key) => own.delete(key);
    kv.list = (prefix) => [...own.keys()].filter((key) => key.startsWith(prefix));
    const put = async (namespace, id, value) => kv.set(`${namespace}{${id}}`, value, null);
    return { kv, keys: async () => [...own.keys()], put, close() {} };
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

function putPlain(kv) {
  return async (namespace, id, value) => {
    kv.entries.set(`${namespace}{${id}}`, { value, version: -1, expiresAt: Infinity });
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
    RateLimiter({
      kv: store.kv,
      namespace: 'n',
      interval: 1000,
      maxInInterval: 3,
      countBlocked: false,
      clock: time.clock,
      commandTimeout: 5000,
      ...options,
    });

  test('counts, refuses until timeLeft and allows exactly at it', async () => {
    const limiter = limiterWith();
    expect([await limiter('a'), await limiter('a'), await limiter('a')]).toEqual([0, 0, 0]);
    time.advance(400);
    expect(await limiter('a')).toBe(600);
    expect(await limiter('b')).toBe(0);
    time.advance(599.999);
    expect(await limiter('a')).toBe(1);
    time.advance(0.001);
    expect(await limiter('a')).toBe(0);
  });

  test('limiters of one namespace count together, those of others apart', async () => {
    const [one, two, other] = [limiterWith(), limiterWith(), limiterWith({ namespace: 'm' })];
    expect(
      await Promise.all([one('a'), two('a'), one('a'), two('a')].map((call) => outcomeOf(call))),
    ).toContain(1000);
    expect((await one.peek('a')).actionsLeft).toBe(0);
    expect((await other.peek('a')).actionsLeft).toBe(2);
  });

  test('a hundred calls at once on one id allow exactly as many as there are', async () => {
    const limiter = limiterWith({ maxInInterval: 40 });
    const timesLeft = await Promise.all(Array.from({ length: 100 }, () => limiter('a')));
    expect(timesLeft.map((timeLeft) => timeLeft === 0)).toEqual([
      ...Array(40).fill(true),
      ...Array(60).fill(false),
    ]);
  });

  test('attemptMany decides in order and at one moment, ids that repeat included', async () => {
    const limiter = limiterWith({ clock: undefined });
    const decisions = await limiter.attemptMany(['a', 'b', 'a', 'a', 'a', 1, '1']);
    expect(decisions.map(({ allowed }) => allowed)).toEqual([
      true,
      true,
      true,
      true,
      false,
      true,
      true,
    ]);
    expect(decisions.map(({ actionsLeft }) => actionsLeft)).toEqual([2, 2, 1, 0, 0, 2, 1]);
    expect(await limiter.attemptMany([])).toEqual([]);
  });

  test('calls back later', async () => {
    const limiter = limiterWith();
    const args = await new Promise((resolve) => limiter('a', (...came) => resolve(came)));
    expect(args).toEqual([null, 0, 2]);
  });

  test('a refund takes back that very attempt, once', async () => {
    const limiter = limiterWith();
    const decision = await limiter.attempt('a', { cost: 2 });
    await limiter('a');
    expect(await limiter.refund(decision)).toBe(true);
    expect(await limiter.refund(decision)).toBe(false);
    expect((await limiter.peek('a')).actionsLeft).toBe(1);
  });

  test('a refund after clear takes nothing', async () => {
    const limiter = limiterWith();
    const decision = await limiter.attempt('a');
    await limiter.clear('a');
    expect(await limiter.refund(decision)).toBe(false);
    await limiter('a');
    const other = await limiter.attempt('b');
    await limiter.clear('b');
    await limiter('b');
    expect(await limiter.refund(other)).toBe(false);
    expect((await limiter.peek('b')).actionsLeft).toBe(1);
  });

  test('clear forgets one id, between the calls before and after it', async () => {
    const limiter = limiterWith({ maxInInterval: 1 });
    const calls = [limiter('a'), limiter('a'), limiter.clear('a'), limiter('a'), limiter('b')];
    expect(await Promise.all(calls)).toEqual([0, 1000, undefined, 0, 0]);
    await Promise.all([limiter.clear('a'), limiter.clear('a'), limiter.clear('never')]);
    expect(await store.keys()).toHaveLength(1);
  });

  test("clearAll forgets the namespace's ids and nobody else's", async () => {
    const limiter = limiterWith();
    const others = [limiterWith({ namespace: 'n2' }), limiterWith({ namespace: 'm' })];
    const ids = Array.from({ length: 100 }, (_, i) => `id ${i}`);
    const long = 'x'.repeat(3000);
    await limiter.attemptMany([...ids, long, '']);
    for (const other of others) await other('a');
    await limiter.clearAll();
    expect((await store.keys()).sort()).toHaveLength(2);
    for (const id of ['id 0', 'id 99', long, '']) {
      expect((await limiter.peek(id)).actionsLeft).toBe(2);
    }
    for (const other of others) expect((await other.peek('a')).actionsLeft).toBe(1);
  });

  test('peeks write nothing, and neither do refusals with countBlocked: false', async () => {
    const limiter = limiterWith({ maxInInterval: 1 });
    await limiter.peek('a');
    await limiter.wouldLimit('a');
    expect(await store.keys()).toEqual([]);
    await limiter('a');
    const before = await limiter.peek('a');
    for (let i = 0; i < 3; i++) expect(await limiter('a')).toBe(1000);
    expect(await limiter.peek('a')).toEqual(before);
  });

  test('two ids never share a count, however odd or long', async () => {
    const limiter = limiterWith({ maxInInterval: 1 });
    const long = 'x'.repeat(300);
    const hash = require('node:crypto').createHash('sha256').update(long).digest('hex');
    const ids = [
      '',
      'a',
      'A',
      ' a',
      'a}',
      '{a}',
      '}',
      '{',
      'sha256',
      hash,
      `sha256}${hash}`,
      `sha256|${hash}`,
      '__proto__',
      'constructor',
      '\0',
      '\0\0',
      '\0'.repeat(256),
      'ä',
      'a\u0308',
      '😀',
      '日本',
      long,
      `${long}x`,
      'x'.repeat(256),
      '日'.repeat(86),
      '日'.repeat(85),
      'y'.repeat(1_000_000),
      'y'.repeat(1_000_001),
      '-0',
      '1e21',
    ];
    const decisions = await limiter.attemptMany(ids);
    expect(decisions.filter(({ allowed }) => !allowed)).toEqual([]);
    const again = await limiter.attemptMany(ids);
    expect(again.filter(({ allowed }) => allowed)).toEqual([]);
    expect(await limiter.limit(0)).toBe(false);
    expect(await limiter.limit('0')).toBe(true);
    expect(await limiter.limit(undefined)).toBe(true);
  });

  test.each([[{}], [Number.NaN], ['\ud800'], [Symbol('s')], [true]])('%p is no id', async (id) => {
    const limiter = limiterWith();
    expect(await outcomeOf(limiter(id))).toBe('ERR_ROLLGATE_ID');
    expect(await outcomeOf(limiter.attemptMany(['a', id]))).toBe('ERR_ROLLGATE_ID');
    expect(await store.keys()).toEqual([]);
  });

  test("what is not rollgate's is an error, left alone, until it is cleared", async () => {
    const limiter = limiterWith();
    const foreign = [Buffer.from('not a state of rollgate'), new Uint8Array(0), 'text', { a: 1 }];
    for (const [i, value] of foreign.entries()) {
      const id = `foreign ${i}`;
      await store.put('n', id, value);
      const decision = await limiter.attempt('good');
      expect(await outcomeOf(limiter(id))).toBe('ERR_ROLLGATE_KV');
      expect(await outcomeOf(limiter.peek(id))).toBe('ERR_ROLLGATE_KV');
      expect(await outcomeOf(limiter.attemptMany(['good', id]))).toBe('ERR_ROLLGATE_KV');
      await limiter.clear(id);
      expect(await limiter(id)).toBe(0);
      await limiter.refund(decision);
      await limiter.clear('good');
    }
  });

  test('a limiter that is closed says so; the store stays open', async () => {
    const limiter = limiterWith();
    const pending = limiter('a');
    await limiter.close();
    await limiter.close();
    expect(await pending).toBe(0);
    const calls = [
      limiter('a'),
      limiter.peek('a'),
      limiter.attemptMany([]),
      limiter.clear(),
      limiter.clearAll(),
    ];
    for (const outcome of await Promise.all(calls.map((call) => outcomeOf(call)))) {
      expect(outcome).toBe('ERR_ROLLGATE_CLOSED');
    }
    expect(await limiterWith()('a')).toBe(0);
  });

  test('stats tell what was decided', async () => {
    const limiter = limiterWith({ maxInInterval: 1 });
    await limiter('a');
    await limiter('a');
    await limiter.peek('a');
    expect(limiter.stats()).toEqual({
      keys: null,
      allowed: 1,
      blocked: 1,
      evicted: 0,
      errors: 0,
      bytes: null,
      fallbacks: 0,
      connection: { pending: 0, conflicts: 0 },
    });
  });

  test('a broken clock fails the call, and nothing is recorded', async () => {
    const limiter = limiterWith({ clock: () => Number.NaN });
    expect(await outcomeOf(limiter('a'))).toBe('ERR_ROLLGATE_CLOCK');
    expect(await store.keys()).toEqual([]);
  });

  test('without a clock of its own, time is the time of day', async () => {
    const limiter = limiterWith({ clock: undefined, interval: 60_000 });
    const atNow = limiterWith({ clock: Date.now, interval: 60_000 });
    await limiter('a');
    const { resetIn } = await atNow.peek('a');
    expect(resetIn).toBeGreaterThan(50_000);
    expect(resetIn).toBeLessThanOrEqual(60_001);
  });
});
