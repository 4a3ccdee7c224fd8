// Random calls: any value anywhere gives an answer or a documented error, and every answer is that of
// rolling-rate-limiter 0.4.2.
'use strict';

const mockTime = { us: 5_000_000_001 };
jest.mock('microtime', () => ({ __esModule: true, default: { now: () => mockTime.us } }));

const fc = require('fast-check');
const theirs = require('rolling-rate-limiter');
const RateLimiter = require('../..');
const { casesOf } = require('../support/tiers');
const { randomFrom, randomStep } = require('../support/traces');

// Full limiters warn, and thousands of them would be noise.
beforeAll(() => jest.spyOn(process, 'emitWarning').mockImplementation(() => {}));
afterAll(() => jest.restoreAllMocks());

const CODES = new Set([
  'ERR_ROLLGATE_OPTION',
  'ERR_ROLLGATE_ID',
  'ERR_ROLLGATE_CALLBACK',
  'ERR_ROLLGATE_COST',
  'ERR_ROLLGATE_DECISION',
  'ERR_ROLLGATE_CLOCK',
  'ERR_ROLLGATE_CLOSED',
]);

/** Made anew for each run: a revoked proxy and its like cannot be shrunk or printed. */
const ODDITIES = {
  'a revoked proxy': () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    return proxy;
  },
  'a revoked function': () => {
    const { proxy, revoke } = Proxy.revocable(() => {}, {});
    revoke();
    return proxy;
  },
  'a proxy of an array': () => new Proxy(['a', 'b'], {}),
  'a proxy of a function': () => new Proxy(() => 5, {}),
  'a function': () => () => 5,
  'an async function': () => async () => 5,
  'a class': () => class {},
  'a symbol': () => Symbol('any'),
  'an object that converts': () => ({
    toString: () => 'a',
    valueOf: () => 1,
    [Symbol.toPrimitive]: () => 'a',
  }),
  'an object that throws when converted': () => ({
    [Symbol.toPrimitive]() {
      throw new Error('converted');
    },
  }),
  'an ArrayBuffer': () => new ArrayBuffer(8),
  'a detached Float64Array': () => {
    const array = new Float64Array(8);
    structuredClone(array.buffer, { transfer: [array.buffer] });
    return array;
  },
  'an Error': () => new Error('any'),
  'a promise': () => Promise.resolve('a'),
  'a Map': () => new Map([['cost', 1]]),
  arguments: () =>
    (function list() {
      // biome-ignore lint/complexity/noArguments: the object itself is what is wanted
      return arguments;
    })('a'),
  globalThis: () => globalThis,
  'another limiter': () => RateLimiter({ interval: 1, maxInInterval: 1 }),
  'a rope': () => 'x'.repeat(1000) + 'y'.repeat(1000),
};

const oddity = fc.constantFrom(...Object.keys(ODDITIES)).map((name) => ({ oddity: name }));
const anything = fc.anything({
  withBigInt: true,
  withBoxedValues: true,
  withDate: true,
  withMap: true,
  withNullPrototype: true,
  withObjectString: true,
  withSet: true,
  withSparseArray: true,
  withTypedArray: true,
  withUnicodeString: true,
  maxDepth: 2,
});
const primitive = fc.oneof(fc.string(), fc.double(), fc.integer(), fc.bigInt(), fc.boolean());
const anyValue = fc.oneof(
  { arbitrary: anything.map((plain) => ({ plain })), weight: 4 },
  { arbitrary: primitive.map((plain) => ({ plain })), weight: 2 },
  { arbitrary: oddity, weight: 2 },
  {
    arbitrary: fc.constantFrom(undefined, null, '', 0, -0, Number.NaN).map((plain) => ({ plain })),
    weight: 1,
  },
);
const materialize = (spec) => ('plain' in spec ? spec.plain : ODDITIES[spec.oddity]());

/** The answer, or a documented error; any other error fails the test. */
function answerOf(call) {
  try {
    return { value: call() };
  } catch (error) {
    // A revoked proxy as a whole bag of options throws for itself.
    const isTheirs =
      error instanceof TypeError && /proxy that has been revoked/.test(error.message);
    if (!isTheirs && !CODES.has(error.code)) throw error;
    return { error };
  }
}

const isId = (value) =>
  value === undefined ||
  value === null ||
  typeof value === 'string' ||
  typeof value === 'bigint' ||
  (typeof value === 'number' && Number.isFinite(value));

const limiterOfOnes = () => RateLimiter({ interval: 1000, maxInInterval: 1, clock: () => 0 });

const check = (...args) => fc.assert(fc.property(...args), { numRuns: casesOf(2000) });
const checkLater = (...args) => fc.assert(fc.asyncProperty(...args), { numRuns: casesOf(500) });

test('any value as an id is that id or is refused, alike in every form', async () => {
  await checkLater(anyValue, async (spec) => {
    const id = materialize(spec);
    const limiter = limiterOfOnes();
    const codes = [];
    for (const call of [
      () => limiter.attempt(id),
      () => limiter.peek(id),
      () => limiter.attemptMany([id]),
      ...(typeof id === 'function' ? [] : [() => limiter(id)]),
    ]) {
      codes.push(answerOf(call).error?.code);
    }
    for (const name of ['limit', 'wouldLimit', 'limitWithInfo', 'wouldLimitWithInfo', 'clear']) {
      codes.push((await limiter[name](id).catch((error) => error))?.code);
    }
    codes.push((await new Promise((resolve) => limiter(id, resolve)))?.code);
    expect(new Set(codes)).toEqual(new Set([isId(id) ? undefined : 'ERR_ROLLGATE_ID']));
    if (!isId(id)) expect(limiter.stats()).toMatchObject({ keys: 0, allowed: 0, blocked: 0 });
  });
});

test('values share a bucket exactly when they are one id as text', () => {
  check(fc.array(anyValue, { maxLength: 20 }), (specs) => {
    const limiter = limiterOfOnes();
    const seen = new Set();
    for (const id of specs.map(materialize).filter(isId)) {
      const text = String(id ?? '');
      expect(limiter(id)).toBe(seen.has(text) ? 1000 : 0);
      seen.add(text);
    }
    expect(limiter.stats().keys).toBe(seen.size);
  });
});

test('any arguments at all', () => {
  check(fc.array(anyValue, { maxLength: 5 }), (specs) => {
    const values = specs.map(materialize);
    fc.pre(!values.some((value) => typeof value === 'function'));
    const limiter = limiterOfOnes();
    for (const name of ['attempt', 'peek', 'attemptMany', 'refund', 'stats']) {
      answerOf(() => limiter[name](...values));
    }
    answerOf(() => limiter(...values));
    limiter.clearAll(...values);
    expect(limiter('a')).toBe(0);
  });
});

test('any value as each option makes a limiter that limits, or is refused', () => {
  const counts = ['interval', 'maxInInterval', 'minDifference', 'maxKeys'];
  const names = [...counts, 'limits', 'countBlocked', 'algorithm'];
  check(fc.constantFrom(...names), anyValue, (name, spec) => {
    const options = { interval: 1000, maxInInterval: 2, clock: () => 0, [name]: materialize(spec) };
    const { value: limiter, error } = answerOf(() => new RateLimiter(options));
    if (limiter === undefined) {
      if (error.code) expect(error.message).toContain(name);
      return;
    }
    expect(limiter('a')).toBe(0);
    const { maxInInterval } = limiter.peek('a').limits[0];
    if (maxInInterval < 1000) {
      for (let i = 1; i < maxInInterval; i++) limiter('a');
      expect(limiter('a')).toBeGreaterThan(0);
    }
  });
});

test('any bag of known options makes a limiter that works, or is refused', () => {
  const limit = { interval: fc.double(), maxInInterval: fc.oneof(fc.integer(), fc.double()) };
  const bag = fc.record(
    {
      ...limit,
      minDifference: fc.double(),
      limits: fc.array(fc.record(limit), { maxLength: 3 }),
      countBlocked: fc.boolean(),
      maxKeys: fc.oneof(fc.integer(), fc.double()),
    },
    { requiredKeys: [] },
  );
  check(bag, fc.array(fc.double({ noNaN: true, noDefaultInfinity: true })), (options, times) => {
    let now = 0;
    const { value: limiter } = answerOf(() => RateLimiter({ ...options, clock: () => now }));
    if (limiter === undefined) return;
    expect(limiter('a')).toBe(0);
    for (now of times) {
      const decision = limiter.attempt('a');
      expect(decision.timeLeft === 0).toBe(decision.allowed);
      for (const count of [decision.timeLeft, decision.resetIn, decision.actionsLeft]) {
        expect(count >= 0 && Number.isInteger(count)).toBe(true);
      }
    }
  });
});

test('any value as attempt options, a cost, a list of ids or a decision', () => {
  check(anyValue, (spec) => {
    const value = materialize(spec);
    const limiter = RateLimiter({ interval: 1000, maxInInterval: 5, clock: () => 0 });
    limiter('kept');
    answerOf(() => limiter.attempt('a', value));
    answerOf(() => limiter.peek('a', { cost: value }));
    const { value: decision, error } = answerOf(() => limiter.attempt('b', { cost: value }));
    expect(error === undefined || error.code === 'ERR_ROLLGATE_COST').toBe(true);
    if (decision) expect(decision.limits[0].used).toBe(value ?? 1);
    answerOf(() => limiter.attemptMany(value));
    expect(answerOf(() => limiter.refund(value)).error?.code).toBe('ERR_ROLLGATE_DECISION');
    expect(limiter.peek('kept').limits[0].used).toBe(2);
  });
});

test('any value as a reading of the clock, or thrown by it', () => {
  check(anyValue, fc.boolean(), (spec, throws) => {
    const value = materialize(spec);
    const state = { isOdd: false };
    const limiter = RateLimiter({
      interval: 1000,
      maxInInterval: 2,
      clock: () => {
        if (!state.isOdd) return 0;
        if (throws) throw value;
        return value;
      },
    });
    limiter('a');
    state.isOdd = true;
    const { error } = answerOf(() => limiter('b'));
    const isReading = !throws && typeof value === 'number' && Number.isFinite(value);
    expect(error?.code).toBe(isReading ? undefined : 'ERR_ROLLGATE_CLOCK');
    state.isOdd = false;
    expect(limiter.stats().errors).toBe(isReading ? 0 : 1);
    expect(limiter('a')).toBe(0);
  });
});

test('any order of calls, also after close', async () => {
  const ids = fc.constantFrom('a', 'b', 1, undefined, {}, Number.NaN);
  const call = fc.oneof(
    fc.tuple(
      fc.constantFrom('', 'callback', 'attempt', 'peek', 'limit', 'limitWithInfo', 'clear', 'many'),
      ids,
    ),
    fc.tuple(fc.constantFrom('refund', 'clearAll', 'stats', 'tick'), ids),
    { arbitrary: fc.tuple(fc.constant('close'), ids), weight: 1 },
  );
  await checkLater(fc.array(call, { maxLength: 40 }), async (calls) => {
    let now = 0;
    let isClosed = false;
    const decisions = [];
    const pending = [];
    const limiter = RateLimiter({ interval: 10, maxInInterval: 3, maxKeys: 2, clock: () => now });
    const steps = {
      '': (id) => limiter(id),
      callback: (id) => limiter(id, () => {}),
      attempt: (id) => decisions.push(limiter.attempt(id)),
      peek: (id) => decisions.push(limiter.peek(id)),
      limit: (id) => pending.push(limiter.limit(id)),
      limitWithInfo: (id) => pending.push(limiter.limitWithInfo(id)),
      clear: (id) => pending.push(limiter.clear(id)),
      many: (id) => decisions.push(...limiter.attemptMany([id, 'a', id])),
      refund: () => decisions.length > 0 && limiter.refund(decisions.pop()),
      clearAll: () => pending.push(limiter.clearAll()),
      stats: () => expect(limiter.stats().keys).toBeLessThanOrEqual(2),
      tick: () => {
        now += 4;
      },
      close: () => {
        isClosed = true;
        pending.push(limiter.close());
      },
    };
    for (const [name, id] of calls) {
      const { error } = answerOf(() => steps[name](id));
      if (error?.code === 'ERR_ROLLGATE_CLOSED') expect(isClosed).toBe(true);
    }
    for (const { reason } of await Promise.allSettled(pending)) {
      if (reason !== undefined) expect(CODES).toContain(reason.code);
    }
  });
});

describe('rolling-rate-limiter', () => {
  // It forgets ids by timers of real time.
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  const METHODS = ['limit', 'wouldLimit', 'limitWithInfo', 'wouldLimitWithInfo', 'clear'];

  test('answers as a limiter in memory on random traces', async () => {
    for (let seed = 1; seed <= casesOf(100); seed++) {
      const random = randomFrom(seed);
      const unit = random.pick([1, 1000]);
      const steps = random.between(1, 40);
      // It forgets actions after `interval`, and so does not keep a minDifference that is longer.
      const gapSteps = random.chance(40) ? random.between(1, Math.min(steps, 12)) : 0;
      const options = {
        interval: (steps * unit) / 1000,
        maxInInterval: random.between(1, 7),
        minDifference: (gapSteps * unit) / 1000,
      };
      const clock = () => mockTime.us / 1000;
      const limiters = [
        new theirs.InMemoryRateLimiter(options),
        new RateLimiter.InMemoryRateLimiter({ ...options, clock }),
      ];
      for (let step = 0; step < 100; step++) {
        mockTime.us += randomStep(random, unit);
        const id = random.pick(['a', 'b', 1, '1']);
        const method = random.chance(3) ? 'clear' : random.pick(METHODS.slice(0, 4));
        const answers = await Promise.all(limiters.map((limiter) => limiter[method](id)));
        expect({ seed, step, method, answer: answers[1] }).toEqual({
          seed,
          step,
          method,
          answer: answers[0],
        });
      }
    }
  });

  test('has the same promises with the same facts', async () => {
    const options = { interval: 1000, maxInInterval: 2, minDifference: 1 };
    const limiters = [theirs, RateLimiter].map((each) => new each.InMemoryRateLimiter(options));
    for (const method of METHODS) expect(limiters[1][method]('a')).toBeInstanceOf(Promise);
    const [their, our] = await Promise.all(limiters.map((each) => each.limitWithInfo('b')));
    expect(Object.keys(our).sort()).toEqual(Object.keys(their).sort());
  });
});
