// The functions that both bindings have, called as lib calls them but with extreme values, and from within a clock.
'use strict';

const { NUMBERS, RECORDS, decisionLength } = require('../../lib/base/decision');
const { NEVER } = require('../../lib/base/channels');
const { throwInvalidId } = require('../../lib/base/errors');
const { readLimiterOptions } = require('../../lib/limiter/options');
const { nativePolicy } = require('../../lib/native/policy');
const { addonBinding, newWasmBinding, packageOn } = require('../support/bindings');
const { expectEqual } = require('../support/outcome');
const { catchError } = require('../support/set-up');
const { casesOf } = require('../support/tiers');
const { randomFrom } = require('../support/traces');
const calls = require('./random-calls');

/** The modes of a decision that record nothing, whatever it is. */
const RECORDS_NOTHING = [RECORDS.NOTHING, RECORDS.ASKING];

const whereBoth = addonBinding() === undefined ? describe.skip : describe;

/** Times in us: of the years 1898 to 2041, and of a clock that returns any finite number of ms. */
const TIMES = [0, 1, -1, 2 ** 31, 2 ** 32, 2 ** 51, -(2 ** 51)];
const ANY_TIMES = [...TIMES, 2 ** 53, 2 ** 61, -(2 ** 61), 2 ** 63, 1e300, Infinity, -Infinity];
const DURATIONS = [0, 1, 1000, 2 ** 32, 2 ** 61];
const COUNTS = [0, 1, 2, 255, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1];

function throwCoded(code) {
  return () => {
    throw Object.assign(new Error(code), { code });
  };
}

/** Removes the token from a decision: it differs where a form of the log has forgotten an id earlier. */
function takeToken(numbers, start = 0) {
  const token = numbers[start + NUMBERS.GENERATION];
  numbers[start + NUMBERS.GENERATION] = 0;
  return token;
}

/** The functions of one limiter of a binding; `now()` is its time, `report` what it wrote. */
function open(binding, checked, now) {
  const length = decisionLength(checked.windows.length);
  const keep = {
    numbers: new Float64Array(Math.max(length, 8)),
    refuse: throwInvalidId,
    closed: throwCoded('closed'),
    exhausted: throwCoded('exhausted'),
    callBack() {},
    evicted() {},
    decided() {},
    observesDecisions: NEVER,
    observesEvictions: NEVER,
    clock: now,
  };
  const options = { policy: nativePolicy(checked), maxKeys: checked.maxKeys };
  return { ...binding.createMemoryLimiter(options, keep), report: keep.numbers, length, keep };
}

whereBoth('the addon and the module, with any values', () => {
  const bindings = [addonBinding(), newWasmBinding()];

  function randomCall(random, { checked, unit, names, made, spec }) {
    const { windows, isWeighted } = checked;
    const id = random.chance(1) ? random.pick(calls.NO_IDS) : spec.id;
    const amount = () => (random.chance(70) ? random.between(0, 5) : random.pick(COUNTS));
    const each = () => Float64Array.from(windows, amount);
    // Costs are checked: something, and at most what the limits allow.
    const most = Float64Array.from(windows, ({ maxInInterval }) => maxInInterval);
    const own = each().map((n, i) => Math.min(n, most[i]));
    if (own.every((n) => n === 0)) own[0] = 1;
    const single = Math.min(Math.max(1, amount()), ...most);
    const cost = isWeighted && random.chance(60) ? own : single;
    switch (random.between(1, 8)) {
      case 1:
        return (limiter) => limiter.check(id);
      case 2:
      case 3: {
        const records = random.pick(Object.values(RECORDS));
        return (limiter) => {
          limiter.decide(id, cost, records);
          const [blocked, , , , , at] = limiter.report;
          if (blocked !== 0 || RECORDS_NOTHING.includes(records)) return; // lib settles what was recorded
          made.next ??= { id, cost, at, tokens: new Map() };
          made.next.tokens.set(limiter, takeToken(limiter.report));
        };
      }
      case 4: {
        const ids = Array.from({ length: random.between(0, 40) }, () => spec.id);
        return (limiter) => {
          const numbers = new Float64Array(ids.length * limiter.length);
          limiter.decideMany(ids, numbers);
          for (let i = 0; i < ids.length; i++) takeToken(numbers, i * limiter.length);
          return [...numbers];
        };
      }
      case 5:
      case 6: {
        // Each is settled once, as lib does.
        const isMade = random.chance(80) && made.length > 0;
        const one = isMade ? made.splice(random.between(0, made.length - 1), 1)[0] : undefined;
        const at = one?.at ?? random.pick(TIMES);
        const actual = typeof (one?.cost ?? cost) === 'number' ? amount() : each();
        // What it returns for an attempt outside of all windows depends on the form of the log.
        return (limiter) => {
          const token = one?.tokens.get(limiter) ?? 2 ** 53 - 1; // of no attempt
          limiter.settle(one?.id ?? spec.id, at, token, one?.cost ?? cost, actual);
        };
      }
      case 7: {
        const duration = random.pick(DURATIONS);
        return (limiter) => limiter.block(id, duration);
      }
      default: {
        if (random.chance(80)) return (limiter) => void limiter.clear(id);
        if (random.chance(50)) return (limiter) => void limiter.clear();
        const limits = calls.otherLimits(random, { options: spec.options, unit, names });
        const policy = nativePolicy(readLimiterOptions({ ...spec.options, limits }));
        return (limiter) => limiter.setLimits(policy);
      }
    }
  }

  test.each([
    ['answer alike', TIMES, true],
    ['never end by a trap', ANY_TIMES, false],
  ])('%s', (_, times, areAlike) => {
    let decided = 0;
    for (let seed = 1; seed <= casesOf(1000); seed++) {
      const random = randomFrom(seed);
      // One id: of several, a clock that steps back shows which expired ones are forgotten already.
      const spec = { ...calls.randomOptions(random), id: random.pick(calls.IDS) };
      const checked = readLimiterOptions(spec.options);
      let now = random.pick(times);
      const limiters = bindings.map((binding) => open(binding, checked, () => now));
      const made = [];
      for (let step = 0; step < 100; step++) {
        if (random.chance(50)) now += random.between(0, 5) * spec.unit;
        // Back by far only where answers may differ: in an expired log, one form has dropped more than another.
        const next = random.pick(times);
        if (random.chance(6) && (next > now || !areAlike)) now = next;
        const call = randomCall(random, { ...spec, checked, made, spec });
        made.next = undefined;
        const outcomes = limiters.map((limiter) => {
          limiter.report.fill(0);
          try {
            const value = call(limiter);
            takeToken(limiter.report);
            return { value, report: [...limiter.report] };
          } catch (error) {
            if (error.code === undefined) throw error; // a trap
            return { code: error.code };
          }
        });
        if (areAlike) {
          expectEqual(outcomes[1], outcomes[0], { seed, step, now, spec, call: String(call) });
        }
        if (made.next) {
          made.push(made.next);
          decided++;
        }
      }
      for (const limiter of limiters) limiter.close();
    }
    expect(decided).toBeGreaterThan(casesOf(1000));
  });
});

describe.each(addonBinding() ? ['native', 'wasm'] : ['wasm'])('a clock on %s', (binding) => {
  const RateLimiter = packageOn(binding);
  const LONG = 'a long id, which needs the area of bytes';

  /** A limiter whose clock calls `within(limiter)` once, after it was set. */
  function make(options) {
    const once = { call: undefined };
    const clock = () => {
      const { call } = once;
      once.call = undefined;
      call?.();
      return 0;
    };
    const limiter = RateLimiter({ interval: 1000, maxInInterval: 3, clock, ...options });
    const within = (call) => {
      once.call = call;
    };
    return { limiter, within };
  }

  test('may call the same limiter, with other ids and costs', () => {
    const { limiter, within } = make();
    const nested = [];
    within(() => nested.push(limiter(LONG), limiter.attempt('b', { cost: 3 }).allowed));
    expect(limiter.attempt('a', { cost: 2 })).toMatchObject({ allowed: true, actionsLeft: 1 });
    expect(nested).toEqual([0, true]);
    const used = ['a', 'b', LONG].map((id) => limiter.usage(id).used);
    expect(used).toEqual([2, 3, 1]);
    within(() => limiter.clearAll());
    expect(limiter.attempt('b')).toMatchObject({ allowed: true, actionsLeft: 2 });
  });

  test('may call one with more windows, whose costs are others', () => {
    const names = Array.from({ length: 40 }, (_, i) => `n${i}`);
    const limits = names.map((name) => ({ name, interval: 1000, maxInInterval: 50 }));
    const outer = make({ limits: limits.slice(0, 2) });
    const inner = RateLimiter({ limits, clock: () => 0 });
    const costs = Object.fromEntries(names.map((name, i) => [name, i]));
    outer.within(() => inner.attempt(LONG, { cost: costs }));
    const decision = outer.limiter.attempt('a', { cost: { n0: 7, n1: 9 } });
    expect(decision.limits.map(({ used }) => used)).toEqual([7, 9]);
    expect(inner.usage(LONG).limits.map(({ used }) => used)).toEqual(names.map((_, i) => i));
    outer.within(() => inner.attempt('x', { cost: costs }));
    expect(outer.limiter.settle(decision, { n0: 1, n1: 2 })).toBe(true);
    expect(outer.limiter.usage('a').limits.map(({ used }) => used)).toEqual([1, 2]);
  });

  test('may set other limits, for the call itself', () => {
    const { limiter, within } = make({ countBlocked: false });
    limiter('a');
    within(() => limiter.setLimits([{ interval: 1000, maxInInterval: 1 }]));
    expect(limiter('a')).toBe(1000);
    within(() => limiter.setLimits([{ interval: 1000, maxInInterval: 9 }]));
    limiter.setLimits([{ interval: 1000, maxInInterval: 2 }]);
    expect([limiter('a'), limiter('a') > 0]).toEqual([0, true]);
    expect(limiter.stats()).toMatchObject({ allowed: 2, blocked: 2 });
  });

  test.each([
    ['the function itself', (limiter) => limiter('a')],
    ['attempt', (limiter) => limiter.attempt('a')],
    ['peek', (limiter) => limiter.peek('a')],
    ['attemptMany', (limiter) => limiter.attemptMany(['a', LONG])],
    ['setLimits', (limiter) => limiter.setLimits([{ interval: 9, maxInInterval: 2 }])],
  ])('may close the limiter, or throw: %s', async (_, call) => {
    const { limiter, within } = make();
    limiter('other');
    within(() => {
      throw new Error('no time');
    });
    expect(catchError(() => call(limiter))).toMatchObject({ code: 'ERR_ROLLGATE_CLOCK' });
    expect(limiter.stats()).toMatchObject({ keys: 1, allowed: 1, errors: 1 });
    within(() => limiter.close());
    expect(catchError(() => call(limiter))).toMatchObject({ code: 'ERR_ROLLGATE_CLOSED' });
    expect(catchError(() => limiter('a'))).toMatchObject({ code: 'ERR_ROLLGATE_CLOSED' });
    await limiter.close();
  });

  test('may close it on the first call, before it has a store', () => {
    const { limiter, within } = make();
    within(() => limiter.close());
    expect(catchError(() => limiter(LONG))).toMatchObject({ code: 'ERR_ROLLGATE_CLOSED' });
  });
});
