// Costs per window and settle: what is accepted, what is refused and counts nothing, and what decisions show.
'use strict';

const RateLimiter = require('../..');
const { createPlainKv } = require('../support/kv-stores');
const { catchError, handClock } = require('../support/set-up');

const REQUESTS = { name: 'requests', interval: 1000, maxInInterval: 5 };
const TOKENS = { name: 'tokens', interval: 10_000, maxInInterval: 100 };
const NAMED = { limits: [REQUESTS, TOKENS], countBlocked: false };
const UNNAMED = { interval: 1000, maxInInterval: 5, countBlocked: false };

function setUp(options = NAMED) {
  const time = handClock();
  return { time, limiter: RateLimiter({ clock: time.clock, ...options }) };
}

const usedOf = ({ limits }) => limits.map(({ used }) => used);

/** What an attempt at this cost uses. */
function usedBy(cost, options) {
  const { limiter } = setUp(options);
  return usedOf(limiter.attempt('a', { cost }));
}

describe('a cost', () => {
  // Kills: costs in the order of the object; a window that is not named at 0; a name of Object.prototype.
  test('is by name in each window, 1 in windows that are not named', () => {
    expect(usedBy({ tokens: 40, requests: 2 })).toEqual([2, 40]);
    expect(usedBy({ tokens: 40 })).toEqual([1, 40]);
    expect(usedBy({ requests: 5 })).toEqual([5, 1]);
    expect(usedBy({})).toEqual([1, 1]);
    expect(usedBy({ tokens: 100, requests: 0 })).toEqual([0, 100]);
    expect(usedBy({ tokens: 7, requests: -0 })).toEqual([0, 7]);
    expect(usedBy(Object.assign(Object.create(null), { tokens: 3 }))).toEqual([1, 3]);
    const own = { ...TOKENS, name: 'constructor' };
    expect(usedBy({}, { limits: [REQUESTS, own] })).toEqual([1, 1]);
    const some = { limits: [{ ...REQUESTS, name: undefined }, TOKENS] };
    expect(usedBy({ tokens: 0 }, some)).toEqual([1, 0]);
  });

  test('is the same in each window if it is a number or left out', () => {
    expect(usedBy(5)).toEqual([5, 5]);
    expect(usedBy(undefined)).toEqual([1, 1]);
    const { limiter } = setUp();
    limiter('a');
    expect(usedOf(limiter.usage('a'))).toEqual([1, 1]);
  });

  // Kills: a field of a request that is missing and makes it almost free.
  test('of undefined for a name is an error', () => {
    const { limiter } = setUp();
    const error = catchError(() => limiter.attempt('a', { cost: { tokens: undefined } }));
    expect(error).toMatchObject({ name: 'TypeError', code: 'ERR_ROLLGATE_COST' });
    expect(usedOf(limiter.usage('a'))).toEqual([0, 0]);
  });

  test('is nothing that attemptMany takes', () => {
    const { limiter } = setUp();
    const error = catchError(() => limiter.attemptMany(['a'], { cost: 5 }));
    expect(error).toMatchObject({ name: 'TypeError', code: 'ERR_ROLLGATE_OPTION' });
    expect(usedOf(limiter.usage('a'))).toEqual([0, 0]);
  });

  const RANGE = 'an integer from 1 to 5, the smallest maxInInterval';
  const NUMBER = `cost: expected ${RANGE}, or costs by name of a limit, got`;
  const tokens = (shown) =>
    `cost of "tokens" (string): expected an integer from 0 to 100, its maxInInterval, got ${shown}`;
  const known = (shown) => `cost: expected names of limits (requests, tokens), got ${shown}`;
  const zeros = 'cost: expected a cost above 0 for at least one limit, got an object of zeros';

  const BAD = [
    [0, RangeError, `${NUMBER} 0`],
    [-1, RangeError, `${NUMBER} -1`],
    [6, RangeError, `${NUMBER} 6`],
    [1.5, RangeError, `${NUMBER} 1.5`],
    ['1', TypeError, `${NUMBER} "1" (string)`],
    [null, TypeError, `${NUMBER} null`],
    [[1, 1], TypeError, `${NUMBER} an array`],
    [new Map([['tokens', 1]]), TypeError, `${NUMBER} an object`],
    [new Float64Array(2), TypeError, `${NUMBER} an object`],
    [{ tokens: -1 }, RangeError, tokens('-1')],
    [{ tokens: 0.5 }, RangeError, tokens('0.5')],
    [{ tokens: 101 }, RangeError, tokens('101')],
    [{ tokens: 2 ** 53 }, RangeError, tokens('9007199254740992')],
    [{ tokens: Number.NaN }, RangeError, tokens('NaN')],
    [{ tokens: Infinity }, RangeError, tokens('Infinity')],
    [{ tokens: '4' }, TypeError, tokens('"4" (string)')],
    [{ tokens: null }, TypeError, tokens('null')],
    [{ tokens: 4n }, TypeError, tokens('4n')],
    [{ token: 4 }, TypeError, `${known('"token" (string)')}; did you mean 'tokens'?`],
    [{ 1: 4 }, TypeError, expect.stringContaining(known('"1" (string)'))],
    [{ tokens: 1, toString: 1 }, TypeError, expect.stringContaining(known('"toString"'))],
    [{ tokens: 0, requests: 0 }, RangeError, zeros],
  ];

  // Kills: a call that counts before the cost is checked; one call that checks nothing.
  test.each(BAD)(
    '%p is an error with a code, and nothing is counted',
    async (cost, Class, message) => {
      const { limiter } = setUp();
      const all = [
        { limiter, id: 'b' },
        { limiter, id: 'a', cost },
      ];
      const errors = [
        catchError(() => limiter.attempt('a', { cost })),
        catchError(() => limiter.peek('a', { cost })),
        catchError(() => RateLimiter.attemptAll(all)),
        await limiter.wait('a', { cost }).catch((error) => error),
      ];
      for (const error of errors) {
        expect(Object.getPrototypeOf(error)).toBe(Class.prototype);
        expect(error).toMatchObject({ code: 'ERR_ROLLGATE_COST', message });
      }
      expect([usedOf(limiter.usage('a')), usedOf(limiter.usage('b'))]).toEqual([
        [0, 0],
        [0, 0],
      ]);
    },
  );

  test('is no object without names of limits', () => {
    for (const options of [
      UNNAMED,
      { limits: [UNNAMED, UNNAMED].map(({ countBlocked: _, ...limit }) => limit) },
    ]) {
      for (const cost of [{}, { requests: 1 }]) {
        expect(catchError(() => setUp(options).limiter.attempt('a', { cost }))).toMatchObject({
          name: 'TypeError',
          code: 'ERR_ROLLGATE_COST',
          message: `cost: expected ${RANGE}, got an object`,
        });
      }
    }
  });

  test('whose getter throws passes the error on', () => {
    const mine = new Error('mine');
    const cost = {
      get tokens() {
        throw mine;
      },
    };
    expect(catchError(() => setUp().limiter.attempt('a', { cost }))).toBe(mine);
  });

  // Kills: an array that the user's object, or the decision, shares.
  test('is copied as it is read', () => {
    const { limiter } = setUp();
    const cost = { tokens: 40 };
    const decision = limiter.attempt('a', { cost });
    cost.tokens = 1;
    expect(limiter.refund(decision)).toBe(true);
    expect(usedOf(limiter.usage('a'))).toEqual([0, 0]);
  });

  // Kills: one array for the costs of all calls.
  test('stays what it is while the clock calls the limiter', () => {
    let duringClock = () => {};
    const limiter = RateLimiter({
      ...NAMED,
      clock() {
        const call = duringClock;
        duringClock = () => {};
        call();
        return 0;
      },
    });
    duringClock = () => limiter.attempt('b', { cost: { tokens: 7, requests: 3 } });
    const decision = limiter.attempt('a', { cost: { tokens: 40 } });
    expect([usedOf(decision), usedOf(limiter.usage('b'))]).toEqual([
      [1, 40],
      [3, 7],
    ]);
    duringClock = () => limiter.attempt('b', { cost: { tokens: 7, requests: 0 } });
    limiter.settle(decision, { tokens: 30 });
    expect([usedOf(limiter.usage('a')), usedOf(limiter.usage('b'))]).toEqual([
      [1, 30],
      [3, 14],
    ]);
  });

  test('of 0 does not ask its window, full or overdrawn', () => {
    const { limiter } = setUp();
    const overdrawn = limiter.attempt('a', { cost: { tokens: 100 } });
    expect(limiter.attempt('a').blockedBy).toBe('count');
    expect(limiter.attempt('a', { cost: { tokens: 0 } }).allowed).toBe(true);
    limiter.settle(overdrawn, { tokens: 150 });
    expect(limiter.attempt('a', { cost: { tokens: 0 } }).allowed).toBe(true);
    expect(limiter.attempt('a', { cost: { requests: 0 } }).allowed).toBe(false);
  });

  test('is decided by all windows together', () => {
    const { limiter, time } = setUp();
    limiter.attempt('a', { cost: { tokens: 80 } });
    const refusal = limiter.attempt('a', { cost: { requests: 5, tokens: 21 } });
    expect(refusal).toMatchObject({ allowed: false, timeLeft: 10_000 });
    expect(usedOf(refusal)).toEqual([1, 80]);
    time.advance(9999);
    expect(limiter.attempt('a', { cost: { tokens: 21 } }).allowed).toBe(false);
    time.advance(1);
    expect(limiter.attempt('a', { cost: { requests: 5, tokens: 100 } }).allowed).toBe(true);
  });

  test('of several limiters at once is recorded in all of them or in none', () => {
    const user = setUp().limiter;
    const organisation = setUp({ ...NAMED, limits: [{ ...TOKENS, maxInInterval: 150 }] }).limiter;
    const attempt = (id, tokens) =>
      RateLimiter.attemptAll([
        { limiter: user, id, cost: { tokens } },
        { limiter: organisation, id: 'acme', cost: { tokens } },
      ]);
    const first = attempt('ada', 90);
    expect([first, attempt('bob', 70)]).toMatchObject([{ allowed: true }, { refusedBy: 1 }]);
    expect(usedOf(user.usage('bob'))).toEqual([0, 0]);
    organisation.settle(first.decisions[1], { tokens: 50 });
    expect(attempt('bob', 100).allowed).toBe(true);
  });
});

describe('the name of a limit', () => {
  test('is in decisions and usage if there is one', () => {
    const { limiter } = setUp({ limits: [REQUESTS, { ...TOKENS, name: undefined }] });
    const results = [limiter.attempt('a'), limiter.peek('a'), limiter.attemptMany(['a'])[0]];
    for (const { limits } of [...results, limiter.usage('a')]) {
      expect(limits[0].name).toBe('requests');
      expect(Object.keys(limits[1])).toEqual([
        'interval',
        'maxInInterval',
        'used',
        'remaining',
        'resetIn',
      ]);
    }
  });
});

describe('settle', () => {
  test('replaces what was reserved by what it came to, in each window that is named', () => {
    const { limiter } = setUp();
    const settled = (cost, actual) => {
      limiter.clear('a');
      const isFound = limiter.settle(limiter.attempt('a', { cost }), actual);
      return [isFound, ...usedOf(limiter.usage('a'))];
    };
    expect(settled({ tokens: 40 }, { tokens: 25 })).toEqual([true, 1, 25]);
    expect(settled({ tokens: 40 }, { tokens: 0 })).toEqual([true, 1, 0]);
    expect(settled({ tokens: 40 }, { tokens: 90 })).toEqual([true, 1, 90]);
    expect(settled({ tokens: 40 }, {})).toEqual([true, 1, 40]);
    expect(settled({ tokens: 40 }, { requests: 3 })).toEqual([true, 3, 40]);
    expect(settled({ tokens: 40 }, { requests: 0, tokens: 0 })).toEqual([true, 0, 0]);
    expect(settled(2, 4)).toEqual([true, 4, 4]);
    expect(settled(undefined, 3)).toEqual([true, 3, 3]);
    expect(settled(3, -0)).toEqual([true, 0, 0]);
  });

  test('keeps the time of the attempt', () => {
    const { limiter, time } = setUp();
    const decision = limiter.attempt('a', { cost: { tokens: 40 } });
    time.advance(9000);
    limiter.settle(decision, { tokens: 100 });
    expect(limiter.peek('a')).toMatchObject({ allowed: false, timeLeft: 1000 });
    time.advance(1000);
    expect(limiter.peek('a', { cost: { tokens: 100 } }).allowed).toBe(true);
  });

  // Kills: a remaining below 0; a used that hides by how much.
  test('may overdraw a window, which shows by how much', () => {
    const { limiter } = setUp();
    limiter.settle(limiter.attempt('a', { cost: { tokens: 100 } }), { tokens: 250 });
    const window = { name: 'tokens', used: 250, remaining: 0, resetIn: 10_000 };
    expect(limiter.usage('a')).toMatchObject({ allowed: false, used: 250, remaining: 0 });
    expect(limiter.usage('a').limits[1]).toMatchObject(window);
    expect(limiter.attempt('a')).toMatchObject({ allowed: false, actionsLeft: 0 });
  });

  test('works once, also with refund', () => {
    const { limiter } = setUp();
    const decisions = [1, 2, 3].map(() => limiter.attempt('a', { cost: { tokens: 10 } }));
    const [first, second, third] = decisions;
    expect(limiter.settle(first, { tokens: 5 })).toBe(true);
    expect(limiter.settle(first, { tokens: 5 })).toBe(false);
    expect(limiter.refund(first)).toBe(false);
    expect(limiter.refund(second)).toBe(true);
    expect(limiter.settle(second, { tokens: 50 })).toBe(false);
    expect(limiter.settle(third, {})).toBe(true);
    expect(limiter.settle(third, {})).toBe(false);
    expect(usedOf(limiter.usage('a'))).toEqual([2, 15]);
  });

  test('finds nothing after a refusal, a peek, clear, or once the attempt has left', () => {
    const { limiter, time } = setUp({ ...NAMED, countBlocked: true });
    const cost = { tokens: 60 };
    const actual = { tokens: 1 };
    const cleared = limiter.attempt('a', { cost });
    limiter.clear('a');
    limiter.attempt('a', { cost });
    expect(limiter.settle(cleared, actual)).toBe(false);
    expect(limiter.settle(limiter.peek('b', { cost }), actual)).toBe(false);
    expect(limiter.settle(limiter.attempt('a', { cost }), actual)).toBe(false); // a counted refusal
    const left = limiter.attempt('c', { cost });
    time.advance(10_000);
    limiter.attempt('c');
    limiter.settle(left, { tokens: 100 });
    expect(usedOf(limiter.usage('c'))).toEqual([1, 1]);
  });

  const INTEGER = 'an integer from 0 to 9007199254740991';
  const NUMBER = `actual: expected ${INTEGER}, because the cost was a number, got`;
  const OBJECT =
    'actual: expected 0, or amounts by name of a limit, because the cost had them, got';
  const tokens = (shown) => `actual of "tokens" (string): expected ${INTEGER}, got ${shown}`;
  const known = 'actual: expected names of limits (requests, tokens), got "token" (string)';

  // Kills: a decision that is used up by a mistake.
  test.each([
    [1, -1, RangeError, `${NUMBER} -1`],
    [1, 0.5, RangeError, `${NUMBER} 0.5`],
    [1, 2 ** 53, RangeError, `${NUMBER} 9007199254740992`],
    [1, Number.NaN, RangeError, `${NUMBER} NaN`],
    [1, undefined, TypeError, `${NUMBER} undefined`],
    [1, '1', TypeError, `${NUMBER} "1" (string)`],
    [1, { tokens: 1 }, TypeError, `${NUMBER} an object`],
    [{ tokens: 5 }, 5, TypeError, `${OBJECT} 5`],
    [{ tokens: 5 }, undefined, TypeError, `${OBJECT} undefined`],
    [{ tokens: 5 }, { tokens: undefined }, TypeError, tokens('undefined')],
    [{ tokens: 5 }, null, TypeError, `${OBJECT} null`],
    [{ tokens: 5 }, [5], TypeError, `${OBJECT} an array`],
    [{ tokens: 5 }, { tokens: -5 }, RangeError, tokens('-5')],
    [{ tokens: 5 }, { tokens: 2 ** 53 }, RangeError, tokens('9007199254740992')],
    [{ tokens: 5 }, { tokens: '5' }, TypeError, tokens('"5" (string)')],
    [{ tokens: 5 }, { token: 5 }, TypeError, `${known}; did you mean 'tokens'?`],
  ])('a cost of %p at %p is an error, and can be settled later', (cost, actual, Class, message) => {
    const { limiter } = setUp();
    const decision = limiter.attempt('a', { cost });
    const used = usedOf(decision);
    const error = catchError(() => limiter.settle(decision, actual));
    expect(Object.getPrototypeOf(error)).toBe(Class.prototype);
    expect(error).toMatchObject({ code: 'ERR_ROLLGATE_COST', message });
    expect(usedOf(limiter.usage('a'))).toEqual(used);
    expect(limiter.refund(decision)).toBe(true);
    expect(usedOf(limiter.usage('a'))).toEqual([0, 0]);
  });

  test('of the decision of another limiter, of none, or after close is the error of refund', () => {
    const { limiter } = setUp();
    const decision = limiter.attempt('a');
    const messages = ["another limiter's", 'undefined', 'an object'];
    for (const [i, wrong] of [setUp().limiter.attempt('a'), undefined, { ...decision }].entries()) {
      expect(catchError(() => limiter.settle(wrong, 1))).toMatchObject({
        name: 'TypeError',
        code: 'ERR_ROLLGATE_DECISION',
        message: `settle: expected a Decision that this limiter made, got ${messages[i]}`,
      });
    }
    limiter.close();
    expect(catchError(() => limiter.settle(decision, 1)).code).toBe('ERR_ROLLGATE_CLOSED');
  });

  test('rejects on a store outside of the process', async () => {
    const limiter = RateLimiter({ ...UNNAMED, kv: createPlainKv(), namespace: 'n' });
    const decision = await limiter.attempt('a', { cost: 3 });
    const wrong = { code: 'ERR_ROLLGATE_COST' };
    await expect(limiter.settle(decision, -1)).rejects.toMatchObject(wrong);
    await expect(limiter.settle(decision, 0)).resolves.toBe(true);
    await expect(limiter.settle(decision, 0)).resolves.toBe(false);
    await limiter.close();
    await expect(limiter.settle(decision, 0)).rejects.toMatchObject({
      code: 'ERR_ROLLGATE_CLOSED',
    });
  });
});
