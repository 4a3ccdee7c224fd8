// Costs per window and settle: what is accepted, what is refused and counts nothing, and what decisions show.
'use strict';

const { catchError, setUp: open } = require('../support/set-up');

const REQUESTS = { name: 'requests', interval: 1000, maxInInterval: 5 };
const TOKENS = { name: 'tokens', interval: 10_000, maxInInterval: 100 };
const NAMED = { limits: [REQUESTS, TOKENS], countBlocked: false };
const UNNAMED = { interval: 1000, maxInInterval: 5, countBlocked: false };

const setUp = (options = NAMED) => open(options);

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
    expect(usedBy({})).toEqual([1, 1]);
    expect(usedBy({ tokens: 7, requests: -0 })).toEqual([0, 7]);
    expect(usedBy(Object.assign(Object.create(null), { tokens: 3 }))).toEqual([1, 3]);
    const own = { ...TOKENS, name: 'constructor' };
    expect(usedBy({}, { limits: [REQUESTS, own] })).toEqual([1, 1]);
    const some = { limits: [{ ...REQUESTS, name: undefined }, TOKENS] };
    expect(usedBy({ tokens: 0 }, some)).toEqual([1, 0]);
  });

  const RANGE = 'an integer from 1 to 5, the smallest maxInInterval';
  const NUMBER = `cost: expected ${RANGE}, or costs by name of a limit, got`;
  const tokens = (shown) =>
    `cost of "tokens" (string): expected an integer from 0 to 100, its maxInInterval, got ${shown}`;
  const known = (shown) => `cost: expected names of limits (requests, tokens), got ${shown}`;
  const zeros = 'cost: expected a cost above 0 for at least one limit, got an object of zeros';

  // What fails, and that nothing is counted then, is tested on every store.
  test.each([
    ['1', TypeError, `${NUMBER} "1" (string)`],
    [new Map([['tokens', 1]]), TypeError, `${NUMBER} an object`],
    [{ tokens: 101 }, RangeError, tokens('101')],
    [{ tokens: '4' }, TypeError, tokens('"4" (string)')],
    [{ token: 4 }, TypeError, `${known('"token" (string)')}; did you mean 'tokens'?`],
    [{ tokens: 1, toString: 1 }, TypeError, expect.stringContaining(known('"toString"'))],
    [{ tokens: 0, requests: 0 }, RangeError, zeros],
  ])('%p is an error that says what came', (cost, Class, message) => {
    const error = catchError(() => setUp().limiter.attempt('a', { cost }));
    expect(Object.getPrototypeOf(error)).toBe(Class.prototype);
    expect(error).toMatchObject({ code: 'ERR_ROLLGATE_COST', message });
  });

  test('is no object without names of limits', () => {
    const error = catchError(() => setUp(UNNAMED).limiter.attempt('a', { cost: {} }));
    expect(error).toMatchObject({ code: 'ERR_ROLLGATE_COST', name: 'TypeError' });
    expect(error.message).toBe(`cost: expected ${RANGE}, got an object`);
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
    const { limiter, time } = setUp();
    time.onNextReading(() => limiter.attempt('b', { cost: { tokens: 7, requests: 3 } }));
    const decision = limiter.attempt('a', { cost: { tokens: 40 } });
    expect([usedOf(decision), usedOf(limiter.usage('b'))]).toEqual([
      [1, 40],
      [3, 7],
    ]);
    time.onNextReading(() => limiter.attempt('b', { cost: { tokens: 7, requests: 0 } }));
    limiter.settle(decision, { tokens: 30 });
    expect([usedOf(limiter.usage('a')), usedOf(limiter.usage('b'))]).toEqual([
      [1, 30],
      [3, 14],
    ]);
  });
});

test('the name of a limit is in decisions and usage if there is one', () => {
  const { limiter } = setUp({ limits: [REQUESTS, { ...TOKENS, name: undefined }] });
  const results = [limiter.attempt('a'), limiter.attemptMany(['a'])[0], limiter.usage('a')];
  for (const { limits } of results) {
    expect([limits[0].name, Object.hasOwn(limits[1], 'name')]).toEqual(['requests', false]);
  }
});

describe('settle', () => {
  const INTEGER = 'an integer from 0 to 9007199254740991';
  const NUMBER = `actual: expected ${INTEGER}, because the cost was a number, got`;
  const OBJECT =
    'actual: expected 0, or amounts by name of a limit, because the cost had them, got';
  const tokens = (shown) => `actual of "tokens" (string): expected ${INTEGER}, got ${shown}`;
  const known = 'actual: expected names of limits (requests, tokens), got "token" (string)';

  // Kills: a decision that is used up by a mistake.
  test.each([
    [1, 0.5, RangeError, `${NUMBER} 0.5`],
    [{ tokens: 5 }, 5, TypeError, `${OBJECT} 5`],
    [{ tokens: 5 }, { tokens: -1 }, RangeError, tokens('-1')],
    [{ tokens: 5 }, { tokens: 2 ** 53 }, RangeError, tokens('9007199254740992')],
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

  test('of the decision of another limiter or of none names settle', () => {
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
  });
});
