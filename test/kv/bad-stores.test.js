// What comes of stores that fail, hang or answer nonsense: an error in time, never an admission.
'use strict';

const { createPlainKv } = require('../support/kv-stores');
const { FAILED, limiterOver, TIMEOUT } = require('../support/limiter-over-kv');
const { errorOf, outcomeOf } = require('../support/outcome');

const never = () => new Promise(() => {});

/** A plain store some of whose functions are others'. */
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
