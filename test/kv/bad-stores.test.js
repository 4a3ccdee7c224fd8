// What comes of stores that fail, hang, lose races or answer nonsense: an error in time, never an admission.
'use strict';

const RateLimiter = require('../..');
const { createPlainKv } = require('../support/kv-stores');
const { errorOf, outcomeOf } = require('../support/outcome');
const { randomFrom } = require('../support/traces');
const { waitUntil } = require('../support/wait-until');

const TIMEOUT = 'ERR_ROLLGATE_KV_TIMEOUT';
const FAILED = 'ERR_ROLLGATE_KV';
const never = () => new Promise(() => {});

/** A plain store some of whose functions are others'. */
const storeWith = (functions) => ({ ...createPlainKv(), ...functions });

const limiterOver = (kv, options) =>
  RateLimiter({
    kv,
    namespace: 'n',
    interval: 60_000,
    maxInInterval: 3,
    countBlocked: false,
    commandTimeout: 100,
    ...options,
  });

/** Looks like an open Deno KV. */
function denoLike({ get = async () => ({ value: null, versionstamp: null }), commit, list }) {
  const operation = { commit };
  for (const name of ['check', 'set', 'delete']) operation[name] = () => operation;
  async function* entries() {
    yield await list();
  }
  return { get, set() {}, delete() {}, list: entries, atomic: () => operation };
}

/** Every kind of call that asks the store. */
const everyCall = (limiter, decision) => [
  limiter('a'),
  limiter.limit('a'),
  limiter.attempt('a'),
  limiter.peek('a'),
  limiter.attemptMany(['a', 'b']),
  limiter.refund(decision),
  limiter.clear('a'),
];

describe.each([
  [
    'throws',
    () => {
      throw new Error('broken');
    },
    FAILED,
    'broken',
  ],
  [
    'throws text',
    () => {
      throw 'broken';
    },
    FAILED,
    'broken',
  ],
  ['rejects', () => Promise.reject(new Error('broken\nat line 1')), FAILED, 'broken'],
  ['rejects with nothing', () => Promise.reject(), FAILED, 'undefined'],
  ['never answers', never, TIMEOUT, 'did not answer within 100 ms'],
  [
    'is busy for ever',
    () => Promise.reject(new Error('database is locked')),
    TIMEOUT,
    'was busy within 100 ms',
  ],
  [
    'is busy by its code',
    () => {
      throw Object.assign(new Error('x'), { code: 'SQLITE_BUSY_SNAPSHOT' });
    },
    TIMEOUT,
    'was busy',
  ],
])('a store that %s', (_name, answer, code, text) => {
  test('in get', async () => {
    const kv = createPlainKv();
    const limiter = limiterOver(kv);
    const decision = await limiter.attempt('a');
    kv.get = answer;
    for (const outcome of await Promise.all(
      everyCall(limiter, decision).map((call) => outcomeOf(call)),
    )) {
      expect(outcome).toBe(code);
    }
    const error = await errorOf(limiter('a'));
    expect(error.message).toContain(text);
    expect(error.message).not.toContain('\n');
    expect(limiter.stats()).toMatchObject({ allowed: 1, blocked: 0, connection: { pending: 0 } });
  });

  test('in set', async () => {
    const kv = createPlainKv();
    const limiter = limiterOver(kv);
    kv.set = answer;
    const calls = [limiter('a'), limiter.limit('b'), limiter.attemptMany(['a', 'b'])];
    for (const outcome of await Promise.all(calls.map((call) => outcomeOf(call)))) {
      expect(outcome).toBe(code);
    }
    expect((await limiter.peek('a')).actionsLeft).toBe(2);
  });

  test('in delete', async () => {
    const limiter = limiterOver(storeWith({ delete: answer }));
    await limiter('a');
    expect(await outcomeOf(limiter.clear('a'))).toBe(code);
    expect(await outcomeOf(limiter.clearAll())).toBe(code);
    expect((await limiter.peek('a')).actionsLeft).toBe(1);
  });

  test('in list', async () => {
    const limiter = limiterOver(storeWith({ list: answer }));
    expect(await outcomeOf(limiter.clearAll())).toBe(code);
  });

  test('of the kind of Deno KV', async () => {
    const inGet = limiterOver(denoLike({ get: answer }));
    const inCommit = limiterOver(denoLike({ commit: answer }));
    const inList = limiterOver(denoLike({ list: answer }));
    expect(await outcomeOf(inGet('a'))).toBe(code);
    expect(await outcomeOf(inCommit('a'))).toBe(code);
    expect(await outcomeOf(inList.clearAll())).toBe(code);
  });
});

test('the error has what the store said as its cause', async () => {
  const cause = new Error('broken');
  const limiter = limiterOver(storeWith({ get: () => Promise.reject(cause) }));
  expect((await errorOf(limiter('a'))).cause).toBe(cause);
  const locked = new Error('database is locked');
  const busy = limiterOver(storeWith({ get: () => Promise.reject(locked) }));
  expect((await errorOf(busy('a'))).cause).toBe(locked);
});

describe('an answer without sense is an error', () => {
  test.each([
    ['get', () => 'text'],
    ['get', () => 5],
    ['get', () => ({ value: new Uint8Array(3) })],
    ['get', () => ({ value: new Uint8Array(3), version: null })],
    ['get', () => ({ value: 'text', version: 1 })],
    ['get', () => ({ value: [1, 2], version: 1 })],
    ['get', () => ({ value: new Uint16Array(4), version: 1 })],
    ['get', () => ({ value: new ArrayBuffer(4), version: 1 })],
    ['get', () => ({ version: 1 })],
    ['set', () => undefined],
    ['set', () => null],
    ['set', () => 1],
    ['set', () => 'true'],
    ['set', () => ({ ok: true })],
  ])('%s: %p', async (name, answer) => {
    const kv = createPlainKv();
    const { set } = kv;
    if (name === 'get')
      kv.set = () => {
        throw new Error('it must not be written');
      };
    kv[name] = answer;
    const limiter = limiterOver(kv);
    const error = await errorOf(limiter('a'));
    expect(error.code).toBe(FAILED);
    expect(error.message).toMatch(
      name === 'set' ? /set gave .*, expected true or false/ : /get gave|key of this id/,
    );
    expect(limiter.stats()).toMatchObject({ allowed: 0, errors: 1 });
    kv.set = set;
  });

  test.each([
    ['get', { get: async () => ({ value: null }) }],
    ['get', { get: async () => null }],
    ['get', { get: async () => ({ value: null, versionstamp: 5 }) }],
    ['commit', { commit: async () => true }],
    ['commit', { commit: async () => undefined }],
    ['commit', { commit: async () => ({ ok: 'yes' }) }],
  ])("of what looks like Deno KV's %s: %#", async (_name, functions) => {
    const limiter = limiterOver(denoLike(functions));
    expect(await outcomeOf(limiter('a'))).toBe(FAILED);
  });

  test('list: what is no key; keys of others are left alone', async () => {
    const kv = createPlainKv();
    const limiter = limiterOver(kv);
    await limiter('a');
    kv.list = () => [5];
    expect(await outcomeOf(limiter.clearAll())).toBe(FAILED);
    const deleted = [];
    kv.list = async () => ['m{a}', 'n{a}', 'na', 'n'];
    kv.delete = (key) => deleted.push(key);
    await limiter.clearAll();
    expect(deleted).toEqual(['n{a}']);
  });
});

test('clearAll without list is ERR_ROLLGATE_UNSUPPORTED', async () => {
  const limiter = limiterOver(storeWith({ list: undefined }));
  expect(await outcomeOf(limiter.clearAll())).toBe('ERR_ROLLGATE_UNSUPPORTED');
});

describe('lost races', () => {
  /** Loses the first `losses` sets; what others wrote instead is `write`'s to say. */
  function losing(losses, write = () => {}) {
    const kv = createPlainKv();
    const { set } = kv;
    kv.set = async (...args) => {
      if (losses-- <= 0) return set(...args);
      kv.calls.set++;
      await write(set, ...args);
      return false;
    };
    return kv;
  }

  test('are tried again until one is won', async () => {
    const kv = losing(4);
    const limiter = limiterOver(kv, { commandTimeout: 5000 });
    expect(await limiter('a')).toBe(0);
    expect(kv.calls).toMatchObject({ get: 5, set: 5 });
    expect(limiter.stats()).toMatchObject({ allowed: 1, connection: { conflicts: 4 } });
  });

  test('are decided anew: what others wrote meanwhile counts', async () => {
    const kv = createPlainKv();
    const other = limiterOver({ ...kv });
    const { set } = kv;
    let lost = 0;
    kv.set = async (...args) => {
      if (lost++ < 3) await other('a');
      return set(...args);
    };
    const limiter = limiterOver(kv, { commandTimeout: 5000 });
    expect(await limiter('a')).toBeGreaterThan(0);
    expect(other.stats().allowed).toBe(3);
  });

  test('without end are a timeout, and nothing was recorded', async () => {
    const kv = losing(Infinity);
    const limiter = limiterOver(kv);
    const before = performance.now();
    const error = await errorOf(limiter('a'));
    expect(error.code).toBe(TIMEOUT);
    expect(error.message).toContain('others wrote this id');
    expect(performance.now() - before).toBeGreaterThan(99);
    expect(kv.entries.size).toBe(0);
    const asked = kv.calls.get;
    await new Promise((resolve) => setTimeout(resolve, 150));
    expect(kv.calls.get).toBe(asked);
  });

  test('a busy store is asked again, too', async () => {
    let busy = 3;
    const kv = createPlainKv();
    const { get } = kv;
    kv.get = (key) => {
      if (busy-- > 0) throw new Error('database is locked\nStack backtrace: ...');
      return get(key);
    };
    const limiter = limiterOver(kv, { commandTimeout: 5000 });
    expect(await limiter('a')).toBe(0);
    busy = 3;
    await limiter.clear('a');
    expect(kv.entries.size).toBe(0);
  });

  test('other failures are not tried again', async () => {
    const kv = createPlainKv();
    let calls = 0;
    kv.set = () => {
      calls++;
      throw new Error('disk full');
    };
    expect(await outcomeOf(limiterOver(kv)('a'))).toBe(FAILED);
    expect(calls).toBe(1);
  });
});

describe('an answer after the deadline', () => {
  /** Holds back the answers of one function until `letGo()`. */
  function holding(name) {
    const kv = createPlainKv();
    const inner = kv[name];
    const held = [];
    kv[name] = async (...args) => {
      const answer = await inner(...args);
      if (held.isOver) return answer;
      await new Promise((resolve) => held.push(resolve));
      return answer;
    };
    const letGo = () => {
      held.isOver = true;
      for (const resolve of held) resolve();
    };
    return { kv, letGo };
  }

  test('of get: nothing is written', async () => {
    const { kv, letGo } = holding('get');
    const limiter = limiterOver(kv);
    expect(await outcomeOf(limiter('a'))).toBe(TIMEOUT);
    letGo();
    expect((await limiter.peek('a')).actionsLeft).toBe(2);
    expect(kv.calls.set).toBe(0);
    expect(limiter.stats()).toMatchObject({ allowed: 0, errors: 1 });
  });

  test('of set: the attempt stays counted, and nobody is told that it was allowed', async () => {
    const { kv, letGo } = holding('set');
    const limiter = limiterOver(kv);
    expect(await outcomeOf(limiter('a'))).toBe(TIMEOUT);
    letGo();
    expect((await limiter.peek('a')).actionsLeft).toBe(1);
    expect(limiter.stats()).toMatchObject({ allowed: 0, errors: 1 });
  });

  test('calls that come later do not wait for it', async () => {
    const { kv, letGo } = holding('get');
    const { get } = kv;
    const limiter = limiterOver(kv, { commandTimeout: 600 });
    const first = outcomeOf(limiter('a'));
    await new Promise((resolve) => setTimeout(resolve, 300));
    const second = outcomeOf(limiter('a'));
    kv.get = createPlainKv().get;
    expect(await first).toBe(TIMEOUT);
    expect(await second).toBe(0);
    kv.get = get;
    letGo();
    expect(await limiter('a')).toBe(0);
  });

  test('of set, in time for some: they are told, and nobody is counted twice', async () => {
    const { kv, letGo } = holding('set');
    const limiter = limiterOver(kv, { maxInInterval: 10, commandTimeout: 600 });
    const first = outcomeOf(limiter('a')); // its set never comes back in time
    await new Promise((resolve) => setTimeout(resolve, 300));
    const late = [outcomeOf(limiter('a')), outcomeOf(limiter('a'))];
    expect(await first).toBe(TIMEOUT); // gives its round up, and the others a round of their own
    letGo();
    expect(await Promise.all(late)).toEqual([0, 0]);
    expect((await limiter.peek('a')).actionsLeft).toBe(6);
    expect(limiter.stats()).toMatchObject({ allowed: 2, connection: { pending: 0 } });
  });

  test('of set, with several calls in it, keeps them from being made again', async () => {
    const kv = createPlainKv();
    const { set } = kv;
    let answer;
    let sets = 0;
    kv.set = async (...args) => {
      sets += 1;
      const isWritten = await set(...args);
      if (sets === 1) return false; // lost, so the next round has calls of different age
      if (sets === 2)
        await new Promise((resolve) => {
          answer = resolve;
        });
      return isWritten;
    };
    const limiter = limiterOver(kv, { maxInInterval: 10, commandTimeout: 150 });
    const old = outcomeOf(limiter('a'));
    await waitUntil('the second set is under way', () => answer !== undefined);
    expect(await old).toBe(TIMEOUT);
    await outcomeOf(limiter('a'));
    answer();
    const used = 10 - 1 - (await limiter.peek('a')).actionsLeft;
    // What the first set wrote in spite of its answer, and one for each call.
    expect(used).toBe(3);
  });

  test('of set, which is waited for no more when a call comes long after', async () => {
    const kv = createPlainKv();
    const { get, set } = kv;
    kv.get = async (key) => {
      await new Promise((resolve) => setTimeout(resolve, 150));
      return get(key);
    };
    kv.set = never;
    const limiter = limiterOver(kv, { commandTimeout: 200 });
    expect(await outcomeOf(limiter('a'))).toBe(TIMEOUT);
    Object.assign(kv, { get, set });
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(await outcomeOf(limiter('a'))).toBe(0);
  });

  test('of get, is no answer to calls that came after it was asked', async () => {
    const kv = createPlainKv();
    const { get } = kv;
    let answer;
    kv.get = async (key) => {
      const found = await get(key);
      await new Promise((resolve) => {
        answer = resolve;
      });
      return found;
    };
    const limiter = limiterOver(kv, { commandTimeout: 5000 });
    const other = limiterOver({ ...kv, get });
    const early = limiter.peek('a');
    await waitUntil('it is asked', () => answer !== undefined);
    await other.attempt('a', { cost: 3 });
    const late = limiter.peek('a');
    kv.get = get;
    answer();
    expect((await early).allowed).toBe(true);
    expect((await late).allowed).toBe(false);
  });

  test('does not hold up other ids', async () => {
    const kv = createPlainKv();
    const { get } = kv;
    kv.get = (key) => (key === 'n{slow}' ? never() : get(key));
    const limiter = limiterOver(kv, { commandTimeout: 1000 });
    const slow = outcomeOf(limiter('slow'));
    expect(await outcomeOf(limiter('a'), 900)).toBe(0);
    expect(await slow).toBe(TIMEOUT);
  });
});

describe('the calls of one process on one id', () => {
  test('do not race with each other: one write for all that wait', async () => {
    const kv = createPlainKv();
    const limiter = limiterOver(kv, { maxInInterval: 500 });
    const calls = Array.from({ length: 500 }, () => limiter('a'));
    expect((await Promise.all(calls)).every((timeLeft) => timeLeft === 0)).toBe(true);
    expect(kv.calls).toMatchObject({ get: 1, set: 1 });
    expect(limiter.stats().connection).toEqual({ pending: 0, conflicts: 0 });
  });

  test('are decided in the order in which they were made, more than one round of them, too', async () => {
    const kv = createPlainKv();
    const limiter = limiterOver(kv, { maxInInterval: 1200, commandTimeout: 10_000 });
    const decisions = await Promise.all(Array.from({ length: 1500 }, () => limiter.attempt('a')));
    expect(decisions.map(({ actionsLeft }) => actionsLeft)).toEqual(
      Array.from({ length: 1500 }, (_, i) => Math.max(0, 1199 - i)),
    );
    expect(kv.calls.set).toBe(2);
  });

  test('fail alone where one cannot be decided', async () => {
    let time = 0;
    const limiter = limiterOver(createPlainKv(), { clock: () => (time++ === 1 ? Number.NaN : 5) });
    const outcomes = await Promise.all([1, 2, 3].map(() => outcomeOf(limiter('a'))));
    expect(outcomes).toEqual([0, 'ERR_ROLLGATE_CLOCK', 0]);
  });
});

test('limiters that race through slow answers admit exactly what they may', async () => {
  const random = randomFrom(5);
  const kv = createPlainKv();
  const slow = Object.fromEntries(
    ['get', 'set'].map((name) => [
      name,
      async (...args) => {
        await new Promise((resolve) => setTimeout(resolve, random.between(0, 4)));
        const answer = await kv[name](...args);
        await new Promise((resolve) => setTimeout(resolve, random.between(0, 4)));
        return answer;
      },
    ]),
  );
  const limiters = Array.from({ length: 5 }, () =>
    limiterOver(slow, { maxInInterval: 40, commandTimeout: 20_000 }),
  );
  const calls = limiters.flatMap((limiter) =>
    Array.from({ length: 30 }, async (_, i) => {
      await new Promise((resolve) => setTimeout(resolve, i * 5));
      return limiter('a');
    }),
  );
  const timesLeft = await Promise.all(calls);
  expect(timesLeft.filter((timeLeft) => timeLeft === 0)).toHaveLength(40);
  const conflicts = limiters.reduce(
    (sum, limiter) => sum + limiter.stats().connection.conflicts,
    0,
  );
  expect(conflicts).toBeGreaterThan(0);
});

describe('expiry', () => {
  test('is passed to set with every write: as long as the state can matter, and a second', async () => {
    const kv = createPlainKv();
    const limiter = limiterOver(kv, { interval: 5000.5 });
    await limiter('a');
    const decision = await limiter.attempt('a');
    await limiter.refund(decision);
    for (const ttlMs of kv.ttls) {
      expect(Number.isInteger(ttlMs)).toBe(true);
      expect(ttlMs).toBeGreaterThanOrEqual(6001);
      expect(ttlMs).toBeLessThanOrEqual(6002);
    }
    expect(kv.ttls).toHaveLength(3);
  });

  test('is that of the longest window or minDifference', async () => {
    const kv = createPlainKv();
    const limits = [
      { interval: 10, maxInInterval: 1 },
      { interval: 1000, maxInInterval: 10, minDifference: 7000 },
    ];
    await limiterOver(kv, { limits })('a');
    expect(kv.ttls[0]).toBe(8000);
  });

  test.each([
    ['sliding-window-log', 1],
    ['sliding-window-counter', 2],
    ['fixed-window', 1],
    ['gcra', 1],
  ])(
    'is that of %s: %i windows, and longer after a clock stepped back',
    async (algorithm, windows) => {
      const kv = createPlainKv();
      let now = 1_000_000_000;
      const clock = () => now;
      const limiter = limiterOver(kv, { algorithm, interval: 10_000, maxInInterval: 2, clock });
      await limiter('a');
      now -= 3_600_000;
      await limiter('a');
      const [usual, ...longer] = kv.ttls;
      expect(usual).toBeLessThanOrEqual(windows * 10_000 + 1000);
      expect(usual).toBeGreaterThan(windows * 10_000 - 5001);
      // An arrival time that is an hour ahead lets nobody pass, and nothing was written.
      if (algorithm === 'gcra') expect(longer).toEqual([]);
      else expect(longer).toEqual([usual + 3_600_000]);
    },
  );

  test('has a bound that stores can add to the time of day', async () => {
    const kv = createPlainKv();
    await limiterOver(kv, { interval: Number.MAX_VALUE })('a');
    expect(new Date(Date.now() + kv.ttls[0]).getFullYear()).toBeGreaterThan(2100);
  });

  test('an id that expired begins anew', async () => {
    let now = 0;
    const kv = createPlainKv({ now: () => now });
    const limiter = limiterOver(kv, { interval: 1000, clock: () => now });
    const decision = await limiter.attempt('a');
    now += 60_000;
    await limiter('a');
    expect(kv.entries.size).toBe(1);
    expect(await limiter.refund(decision)).toBe(false);
  });
});

test('answers that came too late are dropped without a trace', async () => {
  const rejections = [];
  const note = (error) => rejections.push(error);
  process.on('unhandledRejection', note);
  const kv = createPlainKv();
  let reject;
  kv.get = () =>
    new Promise((_, no) => {
      reject = no;
    });
  const limiter = limiterOver(kv);
  expect(await outcomeOf(limiter('a'))).toBe(TIMEOUT);
  expect(await outcomeOf(limiter.clearAll())).toBeUndefined();
  reject(new Error('too late'));
  await waitUntil(
    'a turn has passed',
    () => new Promise((resolve) => setImmediate(() => resolve(true))),
  );
  process.off('unhandledRejection', note);
  expect(rejections).toEqual([]);
});
