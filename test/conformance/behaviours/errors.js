// Behaviours: what is wrong with a call is an error, and nothing is counted.
'use strict';

const RateLimiter = require('../../..');
const { errorOf } = require('../../support/outcome');
const { catchError } = require('../../support/set-up');
const { NAMED, usedOf } = require('../usage');

const ONE = { maxInInterval: 2 };
const [NOT_WHOLE, HUGE] = [[-1, 1.5, Number.NaN, Infinity, -Infinity], 2 ** 53];
const NO_NUMBERS = ['1', 1n, null, true, [1], {}, Symbol('1')];
const DECIDING = 'attempt peek wait';

const byName = (name) => (value) => ({ [name]: value });
const inOptions = (name) => (value) => ['a', { [name]: value }];
const inCalendar = (name) => (value) => ['a', { calendar: { [name]: value } }];

/**
 * The options of a limiter, calls by their names, their arguments for a value, wrong values whose error is a RangeError
 * and such whose error is a TypeError, its code and what its message names.
 */
const WRONG = [
  [ONE, DECIDING, inOptions('cost'), [0, 3, HUGE, ...NOT_WHOLE], NO_NUMBERS, 'COST', 'cost'],
  [ONE, 'record', inOptions('cost'), [0, 2 ** 31, ...NOT_WHOLE], NO_NUMBERS, 'COST', 'cost'],
  [
    ...[NAMED, DECIDING, inOptions('cost')],
    [{ requests: -1 }, { tokens: 3001 }, { requests: 0, tokens: 0 }],
    [{ token: 1 }, { requests: '1' }],
    ...['COST', 'cost'],
  ],
  [
    ...[NAMED, 'record', inOptions('cost')],
    [{ requests: -1 }, { tokens: 2 ** 31 }, { requests: 0, tokens: 0 }],
    [{ token: 1 }],
    ...['COST', 'cost'],
  ],
  // Only a window whose limit the call brings refuses a cost above it.
  [
    ...[NAMED, 'attempt', (tokens) => ['a', { limits: { requests: 9 }, cost: { tokens } }]],
    ...[[3001], [], 'COST', 'cost'],
  ],
  [ONE, `${DECIDING} usage`, inOptions('limits'), NOT_WHOLE, NO_NUMBERS, 'LIMIT', 'limits'],
  [
    ...[NAMED, `${DECIDING} usage`, inOptions('limits')],
    [5, ...NOT_WHOLE.map(byName('requests'))],
    [
      ...['5', {}, { requests: undefined }, { request: 5 }, { requests: 5, other: 5 }],
      ...NO_NUMBERS.map(byName('tokens')),
    ],
    ...['LIMIT', 'limits'],
  ],
  [ONE, 'wait', inOptions('deadline'), [-1], ['1'], 'OPTION', 'deadline'],
  [ONE, `${DECIDING} usage record`, (value) => ['a', value], [], [1, 'a', null, []], 'OPTION', ''],
  [ONE, 'attempt peek record', inOptions('price'), [], [1], 'OPTION', 'price'],
  [ONE, 'usage', inOptions('cost'), [], [5], 'OPTION', 'cost'],
  [ONE, 'record', inOptions('limits'), [], [5], 'OPTION', 'limits'],
  [ONE, 'attemptMany', (limits) => [['a'], { limits }], [], [5], 'OPTION', ''],
  [
    ...[ONE, 'block', (ms) => ['a', ms]],
    ...[[-1, Number.NaN, Infinity], [undefined, null, '5', 5n, {}], 'OPTION'],
    "'block': expected a finite number of ms >= 0, got ",
  ],
  [
    ...[ONE, 'attempt peek limit wouldLimit limitWithInfo clear record usage wait'],
    ...[(id) => [id], [], [{}, ['a'], true, Symbol('a'), Number.NaN, Infinity], 'ID', ''],
  ],
  [ONE, 'block', (id) => [id, 5], [], [{}, true, Number.NaN], 'ID', ''],
  [ONE, 'attemptMany', (id) => [['a', 'b', id]], [], [{}, Number.NaN], 'ID', ''],
  [
    ...[ONE, 'attemptMany', (ids) => [ids], []],
    ...[['abc', undefined, null, { 0: 'a', length: 1 }, new Set(['a'])], 'ID', ''],
  ],
  [
    ...[ONE, 'refund settle', (decision) => [decision, 1], []],
    ...[[{}, null, undefined, 'a', true, 5], 'DECISION', ''],
  ],
];

const ZONE =
  "option 'calendar.timeZone': expected the IANA name of a time zone that this host knows, got";
const OF_CALENDARS = [
  [inCalendar('timeZone'), ['Mars/Olympus', '+01:00', ''], [1], ZONE],
  [inCalendar('startsOn'), [0, 32, 1.5, Number.NaN], ['17', '01-17', null], "startsOn': expected"],
  [inCalendar('zone'), [], ['UTC'], 'unknown option "zone" in calendar'],
  [inOptions('calendar'), [], ['month'], 'calendar'],
];
const MONTH = { limits: [{ calendar: 'month', maxInInterval: 2 }] };
const DAY = { limits: [{ calendar: 'day', maxInInterval: 2 }] };
const WITH_CALENDAR = `${DECIDING} usage record`;

async function expectErrors({ make, store, failureOf }, cases) {
  for (const [options, calls, argumentsOf, ranges, types, code, named] of cases) {
    const limiter = make(options);
    const values = [...ranges.map((value) => [value, RangeError])];
    values.push(...types.map((value) => [value, TypeError]));
    for (const call of calls.split(' ')) {
      for (const [value, type] of values) {
        const ask = () => limiter[call](...argumentsOf(value));
        const error = await (store.isSync ? failureOf(ask) : errorOf(ask())); // others never throw
        expect([call, value, error.code]).toEqual([call, value, `ERR_ROLLGATE_${code}`]);
        expect(error).toBeInstanceOf(type);
        expect(error.message).toContain(named);
      }
    }
    const { allowed, blocked, recorded } = limiter.stats();
    expect([allowed, blocked, recorded]).toEqual([0, 0, 0]);
    expect(await usedOf(limiter)).toEqual((await usedOf(limiter, 'unknown')).map(() => 0));
  }
}

module.exports = {
  'a wrong argument is an error, and nothing is counted': (suite) => expectErrors(suite, WRONG),

  async 'an argument that is undefined is one that is left out'({ make }) {
    const limiter = make();
    const terms = { limits: undefined, calendar: undefined };
    const decision = await limiter.attempt('a', { cost: undefined, ...terms });
    expect(decision).toMatchObject({ actionsLeft: 1, limits: [{ maxInInterval: 2 }] });
    expect(await limiter.usage('a', terms)).toMatchObject({ used: 1 });
    expect(await limiter.attempt('a', undefined)).toMatchObject({ actionsLeft: 0 });
  },

  async 'a wrong function or id of a call with a callback is an error'({
    make,
    failureOf,
    codeOf,
  }) {
    const limiter = make();
    expect(await codeOf(() => limiter({}))).toBe('ERR_ROLLGATE_ID');
    expect(await codeOf(() => limiter.attempt(() => {}))).toBe('ERR_ROLLGATE_ID');
    for (const noCallback of [5, {}]) {
      expect(await failureOf(() => limiter('a', noCallback))).toBeInstanceOf(TypeError);
    }
  },

  async "another limiter's decision is refused, and a copy of its own, also where one settles by name"(
    suite,
  ) {
    const { make, codeOf } = suite;
    for (const [options, actual] of [
      [ONE, 1],
      [NAMED, {}],
    ]) {
      const [mine, other] = [make(options), make(options)];
      const decision = await other.attempt('a');
      const copy = { ...(await mine.attempt('a')) };
      for (const wrong of [decision, { ...decision }, copy]) {
        expect(await codeOf(() => mine.refund(wrong))).toBe('ERR_ROLLGATE_DECISION');
        expect(await codeOf(() => mine.settle(wrong, actual))).toBe('ERR_ROLLGATE_DECISION');
      }
      expect(await other.refund(decision)).toBe(true);
    }
  },

  async 'limits that do not fit those of the limiter throw an error'({ make }) {
    const limiter = make();
    const limit = { interval: 60_000, maxInInterval: 5 };
    for (const limits of [
      ...[undefined, limit, [], [{ ...limit, maxInInterval: 0 }]],
      ...[[{ ...limit, name: 'tokens' }], [limit, limit]],
    ]) {
      const error = catchError(() => limiter.setLimits(limits));
      expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
    }
    expect(await limiter.attempt('a')).toMatchObject({ actionsLeft: 1 });
    await limiter.close();
    for (const limits of [[limit], []]) {
      const error = catchError(() => limiter.setLimits(limits));
      expect(error).toMatchObject({ code: 'ERR_ROLLGATE_CLOSED' });
    }
  },

  async 'a wrong list of attemptAll is an error, and nothing is recorded'({ make, codeOf }) {
    const limiter = make();
    const entry = { limiter, id: 'a' };
    const entries = [
      undefined,
      null,
      1,
      {},
      { id: 1 },
      { limiter: () => 0 },
      { ...entry, price: 1 },
    ];
    for (const [list, code] of [
      ...[undefined, 'a', {}, []].map((one) => [one, 'OPTION']),
      ...[...entries, { limiter: RateLimiter.prototype }].map((one) => [[entry, one], 'OPTION']),
      [[entry, { ...entry, cost: 2 }], 'OPTION'], // one id twice
      [[1, '1'].map((id) => ({ limiter, id })), 'OPTION'],
      [[entry, { limiter, id: {} }], 'ID'],
      ...[0, 3, 1.5, '1', null].map((cost) => [[entry, { limiter, id: 'b', cost }], 'COST']),
      ...[-1, '5'].map((limits) => [[{ ...entry, limits }], 'LIMIT']),
      [[entry, { limiter, id: 'b', calendar: {} }], 'OPTION'],
    ]) {
      const codes = [list, await codeOf(() => RateLimiter.attemptAll(list))];
      expect(codes).toEqual([list, `ERR_ROLLGATE_${code}`]);
    }
    expect(limiter.stats()).toMatchObject({ allowed: 0, blocked: 0 });
  },

  async 'a calendar is an error for a window that has none'(suite) {
    await expectErrors(suite, [
      [ONE, WITH_CALENDAR, inCalendar('timeZone'), [], ['UTC'], 'OPTION', 'calendar'],
    ]);
  },

  'fixed-window': {
    async 'a wrong calendar is an error, and nothing is counted'(suite) {
      const ofMonths = OF_CALENDARS.map(([argumentsOf, ranges, types, named]) => {
        return [MONTH, WITH_CALENDAR, argumentsOf, ranges, types, 'OPTION', named];
      });
      const ofDays = [DAY, WITH_CALENDAR, inCalendar('startsOn'), [], [1], 'OPTION', 'startsOn'];
      await expectErrors(suite, [...ofMonths, ofDays]);
    },
  },
};
