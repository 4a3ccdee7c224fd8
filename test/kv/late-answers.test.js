// What comes of answers after the deadline: nobody is told, nothing more is written, and nobody else waits for them.
'use strict';

const { createPlainKv } = require('../support/kv-stores');
const { limiterOver, TIMEOUT } = require('../support/limiter-over-kv');
const { outcomeOf } = require('../support/outcome');
const { waitUntil } = require('../support/wait-until');

const never = () => new Promise(() => {});

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
