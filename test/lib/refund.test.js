// refund: what it takes back, and from whom.
'use strict';

const { catchError, setUp } = require('../support/set-up');

describe('refund', () => {
  test('takes back what an allowed attempt recorded, once', () => {
    const { limiter } = setUp({ maxInInterval: 1 });
    const decision = limiter.attempt('a');
    expect(limiter.refund(decision)).toBe(true);
    expect(limiter('a')).toBe(0);
    expect(limiter.refund(decision)).toBe(false);
    expect(limiter('a')).toBe(10);
  });

  test('forgets an id that has nothing left', () => {
    const { limiter } = setUp();
    limiter.refund(limiter.attempt('a'));
    expect(limiter.stats().keys).toBe(0);
  });

  test('takes back that very record, not the newest', () => {
    const { limiter, time } = setUp({ countBlocked: false });
    const first = limiter.attempt('a');
    time.advance(4);
    limiter.attempt('a');
    expect(limiter.refund(first)).toBe(true);
    expect(limiter('a')).toBe(0);
    expect(limiter('a')).toBe(10); // until the second, made at 4, leaves at 14
    time.advance(9.999);
    expect(limiter('a')).toBe(1);
  });

  test('gives back the whole cost', () => {
    const { limiter } = setUp({ maxInInterval: 5 });
    const decision = limiter.attempt('a', { cost: 4 });
    limiter.attempt('a');
    expect(limiter.refund(decision)).toBe(true);
    expect(limiter.peek('a').limits[0].used).toBe(2);
    expect(limiter.attempt('a', { cost: 4 }).allowed).toBe(true);
  });

  test('works on each of the decisions of attemptMany', () => {
    const { limiter } = setUp({ countBlocked: false });
    const decisions = limiter.attemptMany(['a', 'b', 'a', 'a']);
    expect(decisions.map((decision) => limiter.refund(decision))).toEqual([
      true,
      true,
      true,
      false,
    ]);
    expect(limiter.stats().keys).toBe(0);
  });

  test('has nothing to take back of a refusal, with and without countBlocked', () => {
    for (const countBlocked of [true, false]) {
      const { limiter } = setUp({ maxInInterval: 1, countBlocked });
      limiter.attempt('a');
      expect(limiter.refund(limiter.attempt('a'))).toBe(false);
      expect(limiter('a')).toBe(10);
    }
  });

  test('has nothing to take back of a peek', () => {
    const { limiter } = setUp();
    const peeked = limiter.peek('a');
    limiter.attempt('a');
    expect(limiter.refund(peeked)).toBe(false);
    expect(limiter.peek('a').limits[0].used).toBe(2);
  });

  test('after clear, clearAll or expiry there is nothing to take back', async () => {
    const { limiter, time } = setUp({ maxInInterval: 1 });
    const cleared = limiter.attempt('a');
    await limiter.clear('a');
    limiter.attempt('a'); // at the very same moment
    expect(limiter.refund(cleared)).toBe(false);
    expect(limiter('a')).toBe(10);

    const clearedWithAll = limiter.attempt('b');
    await limiter.clearAll();
    limiter.attempt('b');
    expect(limiter.refund(clearedWithAll)).toBe(false);
    expect(limiter('b')).toBe(10);

    const old = limiter.attempt('c');
    time.advance(1000);
    for (let i = 0; i < 100; i++) limiter(`other ${i}`);
    limiter.attempt('c');
    expect(limiter.refund(old)).toBe(false);
    expect(limiter('c')).toBe(10);
  });

  test('does not make room that counted refusals have taken', () => {
    const { limiter, time } = setUp({ maxInInterval: 1 });
    const first = limiter.attempt('a');
    time.advance(1);
    limiter.attempt('a');
    limiter.refund(first);
    expect(limiter('a')).toBeGreaterThan(0);
  });

  test('refuses a Decision of another limiter, also of one just alike', () => {
    const { limiter } = setUp();
    const other = setUp().limiter;
    const decision = other.attempt('a');
    limiter.attempt('a');
    const error = catchError(() => limiter.refund(decision));
    expect(error).toBeInstanceOf(TypeError);
    expect(error.code).toBe('ERR_ROLLGATE_DECISION');
    expect(error.message).toMatch(/another limiter's$/);
    expect(other.refund(decision)).toBe(true);
  });

  const forged = setUp().limiter.attempt('a');
  test.each([
    ['undefined', undefined],
    ['null', null],
    ['a string', 'a'],
    ['an empty object', {}],
    ['a copy', { ...forged }],
    ['an heir', Object.create(forged)],
    ['a proxy', new Proxy(forged, {})],
    ['a promise', Promise.resolve(forged)],
    ['a function', () => forged],
  ])('refuses %s, which is no Decision', (_name, value) => {
    const error = catchError(() => setUp().limiter.refund(value));
    expect(error).toBeInstanceOf(TypeError);
    expect(error.code).toBe('ERR_ROLLGATE_DECISION');
    expect(error.message).toMatch(/^refund: expected a Decision that this limiter made, got ./);
  });

  test('is not deceived by a Decision that was written to', () => {
    const { limiter } = setUp({ maxInInterval: 1 });
    limiter.attempt('a');
    const refusal = limiter.attempt('a');
    refusal.allowed = true;
    expect(limiter.refund(refusal)).toBe(false);
  });
});
