// wait() where a store's answers are held back: who leaves meanwhile, and what fails meanwhile.
'use strict';

const RateLimiter = require('../..');
const { createPlainKv } = require('../support/kv-stores');
const { errorOf } = require('../support/outcome');
const { waitUntil } = require('../support/wait-until');

function setUp(options) {
  const kv = createPlainKv();
  const limiter = RateLimiter({
    kv,
    namespace: 'n',
    interval: 60_000,
    maxInInterval: 1,
    countBlocked: false,
    commandTimeout: 15_000,
    ...options,
  });
  return { kv, limiter };
}

/** Holds the next call of `kv[name]` back: `begun` resolves when it is made, `goOn()` lets it happen. */
function holdBack(kv, name) {
  const original = kv[name];
  let goOn;
  let tellBegun;
  const begun = new Promise((resolve) => {
    tellBegun = resolve;
  });
  const released = new Promise((resolve) => {
    goOn = resolve;
  });
  kv[name] = async (...args) => {
    kv[name] = original;
    tellBegun();
    await released;
    return original.apply(kv, args);
  };
  return { begun, goOn };
}

test('who leaves while the attempt is made gets nothing, and the place is given back to the next', async () => {
  const { kv, limiter } = setUp();
  const { begun, goOn } = holdBack(kv, 'set');
  const giveUp = new AbortController();
  const first = limiter.wait('a', { signal: giveUp.signal });
  const second = limiter.wait('a');
  await begun;
  giveUp.abort();
  expect((await errorOf(first)).name).toBe('AbortError');
  goOn();
  expect(await second).toMatchObject({ allowed: true });
  expect(limiter.stats()).toMatchObject({ allowed: 2, blocked: 0 });
});

test('a deadline that passes while the attempt is made gives the place back, too', async () => {
  const { kv, limiter } = setUp();
  const { begun, goOn } = holdBack(kv, 'set');
  const first = limiter.wait('a', { deadline: 20 });
  await begun;
  expect(await errorOf(first)).toMatchObject({ code: 'ERR_ROLLGATE_WAIT_DEADLINE' });
  goOn();
  expect(await limiter.wait('a')).toMatchObject({ allowed: true });
});

test('where the place cannot be given back either, the next waits on', async () => {
  const { kv, limiter } = setUp();
  const { begun, goOn } = holdBack(kv, 'set');
  const giveUp = new AbortController();
  const first = limiter.wait('a', { signal: giveUp.signal });
  const second = limiter.wait('a');
  await begun;
  giveUp.abort();
  await errorOf(first);
  const { set } = kv;
  kv.set = () => {
    kv.set = set;
    throw new Error('broken');
  };
  goOn();
  await waitUntil('giving back has failed', () => limiter.stats().errors === 1);
  await limiter.clear('a');
  expect(await second).toMatchObject({ allowed: true });
});

test('close while the attempt is made ends the wait at once', async () => {
  const { kv, limiter } = setUp();
  const { begun, goOn } = holdBack(kv, 'set');
  const waiting = [limiter.wait('a'), limiter.wait('a')];
  const ends = Promise.allSettled(waiting);
  await begun;
  limiter.close();
  goOn();
  const codes = (await ends).map(({ reason }) => reason.code);
  expect(codes).toEqual(['ERR_ROLLGATE_CLOSED', 'ERR_ROLLGATE_CLOSED']);
});

test('a store that fails rejects the first, and the next has its turn', async () => {
  const { kv, limiter } = setUp();
  const { get } = kv;
  kv.get = () => {
    kv.get = get;
    throw new Error('broken');
  };
  const [first, second] = [limiter.wait('a'), limiter.wait('a')];
  expect(await errorOf(first)).toMatchObject({ code: 'ERR_ROLLGATE_KV' });
  expect(await second).toMatchObject({ allowed: true });
});

test('each action takes the store a read or two and a write, however many wait', async () => {
  const { kv, limiter } = setUp({ interval: 20, maxInInterval: 10 });
  await Promise.all(Array.from({ length: 100 }, () => limiter.wait('a')));
  expect(kv.calls.set).toBe(100);
  expect(kv.calls.get).toBeLessThanOrEqual(3 * 100);
});
