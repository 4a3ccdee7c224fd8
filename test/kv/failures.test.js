// Key-value stores that fail, hang or answer nonsense: an error in time, and what onError makes of it. Processes
// over one store share counts, end by themselves, and keep nothing.
'use strict';

const { FAILED, TIMEOUT, createPlainKv, limiterOver, openDenoKv } = require('../support/kv-stores');
const { errorOf, outcomeOf } = require('../support/outcome');
const { askProgram } = require('../support/run-program');
const { slow } = require('../support/tiers');

const TIMEOUT_MS = 100;

beforeEach(() => jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] }));
afterEach(() => jest.useRealTimers());

const pass = (ms) => jest.advanceTimersByTimeAsync(ms);

/** The outcomes of calls when every deadline has passed. */
async function outcomesOf(...calls) {
  const outcomes = calls.map((call) => outcomeOf(call));
  await pass(TIMEOUT_MS);
  return Promise.all(outcomes);
}

const throws = (error) => () => {
  throw error;
};
const never = () => new Promise(() => {});
const fails = () => Promise.reject(new Error('broken'));
const BUSY = new Error('database is locked');
const BUSY_BY_CODE = Object.assign(new Error('x'), { code: 'SQLITE_BUSY_SNAPSHOT' });

/** A plain store with some functions replaced. */
const storeWith = (functions) => ({ ...createPlainKv(), ...functions });

/** Looks like an open Deno KV. */
function denoLike({ get = async () => ({ value: null, versionstamp: null }), commit, list }) {
  const operation = { commit };
  for (const name of ['check', 'set', 'delete']) operation[name] = () => operation;
  async function* entries() {
    yield await list();
  }
  return { get, set() {}, delete() {}, list: entries, atomic: () => operation };
}

describe.each([
  ['throws', throws(new Error('broken')), FAILED, 'broken'],
  ['throws a string', throws('broken'), FAILED, 'broken'],
  ['rejects', () => Promise.reject(new Error('broken\nat line 1')), FAILED, 'broken'],
  ['rejects with nothing', () => Promise.reject(), FAILED, 'undefined'],
  ['never answers', never, TIMEOUT, 'did not answer within 100 ms'],
  ['is always busy', () => Promise.reject(BUSY), TIMEOUT, 'was busy within 100 ms'],
  ['is busy by its code', throws(BUSY_BY_CODE), TIMEOUT, 'was busy'],
])('a store that %s', (_name, answer, code, message) => {
  test('in get', async () => {
    const kv = createPlainKv();
    const limiter = limiterOver(kv);
    const decision = await limiter.attempt('a');
    kv.get = answer;
    const error = errorOf(limiter('a'));
    const calls = [limiter.limit('a'), limiter.attempt('a'), limiter.peek('a')];
    calls.push(limiter.attemptMany(['a', 'b']), limiter.refund(decision), limiter.clear('a'));
    expect(await outcomesOf(...calls)).toEqual(calls.map(() => code));
    expect((await error).message).toContain(message);
    expect((await error).message).not.toContain('\n');
    expect(limiter.stats()).toMatchObject({ allowed: 1, blocked: 0, connection: { pending: 0 } });
  });

  test('in set, delete and list', async () => {
    const limiter = limiterOver(storeWith({ set: answer }));
    const calls = [limiter('a'), limiter.attemptMany(['a', 'b'])];
    expect(await outcomesOf(...calls)).toEqual([code, code]);
    expect(await outcomesOf(limiter.peek('a'))).toMatchObject([{ actionsLeft: 2 }]);
    const clearing = limiterOver(storeWith({ delete: answer }));
    await clearing('a');
    const listing = limiterOver(storeWith({ list: answer }));
    const ends = [clearing.clear('a'), clearing.clearAll(), listing.clearAll()];
    expect(await outcomesOf(...ends)).toEqual([code, code, code]);
    expect(await outcomesOf(clearing.peek('a'))).toMatchObject([{ actionsLeft: 1 }]);
  });

  test('of the kind of Deno KV', async () => {
    const [inGet, inCommit] = [{ get: answer }, { commit: answer }].map((kv) =>
      limiterOver(denoLike(kv)),
    );
    const inList = limiterOver(denoLike({ list: answer }));
    const outcomes = await outcomesOf(inGet('a'), inCommit('a'), inList.clearAll());
    expect(outcomes).toEqual([code, code, code]);
  });
});

test.each([new Error('broken'), BUSY])('the error of the store is the cause: %s', async (cause) => {
  const error = errorOf(limiterOver(storeWith({ get: () => Promise.reject(cause) }))('a'));
  await pass(TIMEOUT_MS);
  expect((await error).cause).toBe(cause);
});

describe('an invalid answer is an error', () => {
  const VALUES = [new Uint8Array(3), 'text', [1, 2], new Uint16Array(4), new ArrayBuffer(4)];
  test.each([
    ...VALUES.slice(1).map((value) => ['get', { value, version: 1 }]),
    ...['text', 5, { value: VALUES[0] }, { value: VALUES[0], version: null }, { version: 1 }].map(
      (answer) => ['get', answer],
    ),
    ...[undefined, null, 1, 'true', { ok: true }].map((answer) => ['set', answer]),
  ])('%s: %p', async (name, answer) => {
    const set = jest.fn();
    const kv = storeWith({ set, [name]: () => answer });
    const limiter = limiterOver(kv);
    const error = await errorOf(limiter('a'));
    const ofSet = /set gave .*, expected true or false/;
    expect(error.code).toBe(FAILED);
    expect(error.message).toMatch(name === 'set' ? ofSet : /get gave|key of this id/);
    expect(set).not.toHaveBeenCalled();
    expect(limiter.stats()).toMatchObject({ allowed: 0, errors: 1 });
  });

  test.each([
    ...[{ value: null }, null, { value: null, versionstamp: 5 }].map((found) => ['get', found]),
    ...[true, undefined, { ok: 'yes' }].map((done) => ['commit', done]),
  ])("of what looks like Deno KV's %s: %j", async (name, answer) => {
    const limiter = limiterOver(denoLike({ [name]: async () => answer }));
    expect(await outcomeOf(limiter('a'))).toBe(FAILED);
  });

  test('of list; keys of others are left alone', async () => {
    const deleted = [];
    const kv = storeWith({ list: () => [5], delete: (key) => deleted.push(key) });
    const limiter = limiterOver(kv);
    await limiter('a');
    expect(await outcomeOf(limiter.clearAll())).toBe(FAILED);
    kv.list = async () => ['m{a}', 'n{a}', 'na', 'n'];
    await limiter.clearAll();
    expect(deleted).toEqual(['n{a}']);
    kv.list = undefined;
    const without = limiterOver(kv);
    expect(await outcomeOf(without.clearAll())).toBe('ERR_ROLLGATE_UNSUPPORTED');
  });
});

// What each kind of decision is, and when an outage is over: test/redis/on-error.test.js.
describe('onError', () => {
  function setUp(onError) {
    const kv = createPlainKv();
    return { kv, limiter: limiterOver(kv, { onError }) };
  }

  test('an error of one id is no outage: the store still decides on the others', async () => {
    const { kv, limiter } = setUp('block');
    const foreign = { value: Buffer.from('foreign'), version: -1, expiresAt: Infinity };
    kv.entries.set('n{foreign}', foreign);
    expect((await limiter.attempt('foreign')).blockedBy).toBe('block');
    expect((await limiter.attempt('a')).allowed).toBe(true);
    const { set } = kv;
    kv.set = async (key, ...rest) => key !== 'n{contended}' && set(key, ...rest);
    const contended = limiter.attempt('contended');
    await pass(TIMEOUT_MS);
    expect((await contended).blockedBy).toBe('block');
    expect((await limiter.attempt('a')).allowed).toBe(true);
    expect(limiter.stats().fallbacks).toBe(2);
  });

  // Kills: a timeout that is one of this id alone, so that each call waits for the next.
  test.each([
    ['fails', fails],
    ['does not answer', never],
  ])(
    'a store that %s does not decide until it answers, and attemptMany is decided as a whole',
    async (...row) => {
      const { kv, limiter } = setUp('memory');
      kv.get = async (key) => (key === 'n{b}' ? row[1]() : null);
      const [decisions] = await outcomesOf(limiter.attemptMany(['a', 'a', 'b', 'a', 'a']));
      expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, true, true, false]);
      await outcomesOf(limiter('b'));
      expect(limiter.stats()).toMatchObject({ errors: 1, fallbacks: 6 });
      kv.get = () => null;
      await pass(TIMEOUT_MS);
      await limiter.peek('starts a probe');
      await pass(0);
      expect((await limiter.peek('a')).actionsLeft).toBe(2);
      expect(limiter.stats()).toMatchObject({ errors: 1, fallbacks: 7 });
    },
  );
});

slow.describe('a process', () => {
  beforeEach(() => jest.useRealTimers());

  test('counts with others on one database file, whose locks it waits for', async () => {
    const store = await openDenoKv();
    const racer = `
      const { openKv } = require('@deno/kv');
      const RateLimiter = require('rollgate');
      (async () => {
        const kv = await openKv(${JSON.stringify(store.file)});
        const limit = { interval: 86_400_000, maxInInterval: 60, commandTimeout: 60_000 };
        const limiter = RateLimiter({ kv, namespace: 'n', ...limit });
        let allowed = 0;
        for (let i = 0; i < 40; i++) if ((await limiter('a')) === 0) allowed++;
        kv.close();
        console.log(allowed);
      })();
    `;
    const allowed = await Promise.all([1, 2, 3, 4].map(() => askProgram(racer)));
    await store.close();
    expect(allowed.reduce((sum, count) => sum + count)).toBe(60);
  });

  const SET_UP = `
  const RateLimiter = require('rollgate');
  const { createPlainKv } = require('./test/support/kv-stores');
  const kv = createPlainKv();
  const LIMIT = { namespace: 'n', interval: 60_000, maxInInterval: 3, commandTimeout: 300 };
  const limiter = RateLimiter({ kv, ...LIMIT });
  `;

  test('ends by itself when its calls are answered', async () => {
    const timers = "process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length";
    const run = `limiter('a').then(() => limiter.clearAll()).then(() => console.log(${timers}));`;
    expect(await askProgram(SET_UP + run)).toBe(0);
  });

  const HANG = '() => new Promise(() => {})';
  test.each([
    ['get that hangs', `kv.get = ${HANG}; const call = limiter('a');`],
    ['set that hangs', `kv.set = ${HANG}; const call = limiter('a');`],
    ['lost race after another', "kv.set = async () => false; const call = limiter('a');"],
    ['list that hangs', `kv.list = ${HANG}; const call = limiter.clearAll();`],
  ])('ends only when a call has settled: a %s', async (_name, run) => {
    const print = 'call.catch((error) => console.log(JSON.stringify(error.code)));';
    expect(await askProgram(SET_UP + run + print)).toBe('ERR_ROLLGATE_KV_TIMEOUT');
  });

  test('frees a dropped limiter and its store', async () => {
    const run = `
    (async () => {
      const refs = [];
      for (let i = 0; i < 20; i++) {
        const own = createPlainKv();
        const dropped = RateLimiter({ kv: own, ...LIMIT });
        await dropped('a');
        refs.push(new WeakRef(dropped), new WeakRef(own));
      }
      for (let i = 0; i < 20; i++) {
        await new Promise((resolve) => setTimeout(resolve, 5));
        global.gc();
      }
      console.log(refs.filter((ref) => ref.deref() !== undefined).length);
    })();
  `;
    expect(await askProgram(SET_UP + run, { flags: ['--expose-gc'] })).toBeLessThanOrEqual(2);
  });

  test('keeps nothing of an idle id', async () => {
    const run = `
    (async () => {
      kv.set = async () => true; // keeps nothing itself
      for (let i = 0; i < 2000; i++) await limiter('warm ' + i);
      global.gc();
      const before = process.memoryUsage().heapUsed;
      for (let i = 0; i < 50_000; i++) await limiter('id ' + i);
      global.gc();
      console.log(process.memoryUsage().heapUsed - before);
    })();
  `;
    expect(await askProgram(SET_UP + run, { flags: ['--expose-gc'] })).toBeLessThan(2_000_000);
  });
});
