// What onError makes of a key-value store that fails: who decides meanwhile, and for which ids.
'use strict';

const RateLimiter = require('../..');
const { createPlainKv } = require('../support/kv-stores');
const { outcomeOf } = require('../support/outcome');
const { waitUntil } = require('../support/wait-until');

const never = () => new Promise(() => {});
const fails = () => Promise.reject(new Error('broken'));

/** A store whose functions can be taken away and put back. */
function setUp(onError, options) {
  const kv = createPlainKv();
  const { get, set } = kv;
  const limiter = RateLimiter({
    kv,
    namespace: 'n',
    interval: 60_000,
    maxInInterval: 3,
    countBlocked: false,
    commandTimeout: 60,
    onError,
    ...options,
  });
  const mend = () => Object.assign(kv, { get, set });
  return { kv, limiter, mend };
}

/** Whether the store decides: a fallback would be counted. */
const isBack = (limiter) => async () => {
  const { fallbacks } = limiter.stats();
  await limiter.peek('back?');
  return limiter.stats().fallbacks === fallbacks;
};

test("'throw' is the default", async () => {
  const { kv, limiter } = setUp(undefined);
  kv.get = fails;
  expect(await outcomeOf(limiter('a'))).toBe('ERR_ROLLGATE_KV');
  kv.get = never;
  expect(await outcomeOf(limiter.attempt('a'))).toBe('ERR_ROLLGATE_KV_TIMEOUT');
  expect(limiter.stats()).toMatchObject({ errors: 2, fallbacks: 0 });
});

test.each([
  ['allow', [true, true, true, true, true]],
  ['block', [false, false, false, false, false]],
  ['memory', [true, true, true, false, false]],
])("'%s' decides in its way until the store is back", async (onError, expected) => {
  const { kv, limiter, mend } = setUp(onError);
  await limiter('a');
  for (const trouble of [fails, never]) {
    kv.get = trouble;
    const allowed = [];
    for (let i = 0; i < 5; i++) allowed.push((await limiter.attempt(`a ${trouble}`)).allowed);
    expect(allowed).toEqual(expected);
    mend();
    await waitUntil('the store decides again', isBack(limiter));
  }
  expect((await limiter.peek('a')).actionsLeft).toBe(1);
  expect(limiter.stats().fallbacks).toBeGreaterThanOrEqual(10);
});

test('nobody waits for a store that is known to hang', async () => {
  const { kv, limiter } = setUp('allow', { commandTimeout: 200 });
  kv.get = never;
  await limiter('a');
  const before = performance.now();
  for (let i = 0; i < 50; i++) await limiter(`id ${i}`);
  expect(performance.now() - before).toBeLessThan(150);
});

test('refund, clear and clearAll are not softened', async () => {
  const { kv, limiter } = setUp('allow');
  const decision = await limiter.attempt('a');
  kv.get = fails;
  kv.list = fails;
  expect(await outcomeOf(limiter.refund(decision))).toBe('ERR_ROLLGATE_KV');
  expect(await outcomeOf(limiter.clear('a'))).toBe('ERR_ROLLGATE_KV');
  expect(await outcomeOf(limiter.clearAll())).toBe('ERR_ROLLGATE_KV');
});

test('what concerns one id is no outage: the store goes on deciding on the others', async () => {
  const { kv, limiter } = setUp('block');
  kv.entries.set('n{foreign}', { value: Buffer.from('foreign'), version: -1, expiresAt: Infinity });
  expect((await limiter.attempt('foreign')).blockedBy).toBe('block');
  expect((await limiter.attempt('a')).allowed).toBe(true);
  const { set } = kv;
  kv.set = async (key, ...rest) => key !== 'n{contended}' && set(key, ...rest);
  expect((await limiter.attempt('contended')).blockedBy).toBe('block');
  expect((await limiter.attempt('a')).allowed).toBe(true);
  expect(limiter.stats().fallbacks).toBe(2);
});

test('attemptMany is decided together', async () => {
  const { kv, limiter } = setUp('memory');
  kv.get = fails;
  const decisions = await limiter.attemptMany(['a', 'a', 'b', 'a', 'a']);
  expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, true, true, false]);
});

test('a mistake of the program is never softened', async () => {
  const { limiter } = setUp('allow');
  expect(await outcomeOf(limiter({}))).toBe('ERR_ROLLGATE_ID');
  expect(await outcomeOf(limiter.attempt('a', { cost: 4 }))).toBe('ERR_ROLLGATE_COST');
});
