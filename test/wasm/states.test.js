// States as bytes: the addon and the module write the same ones, read each other's, and refuse the same bytes.
'use strict';

const { RECORDS, decisionLength } = require('../../lib/base/decision');
const { readLimiterOptions } = require('../../lib/limiter/options');
const { nativePolicy } = require('../../lib/native/policy');
const { readActual, readCost } = require('../../lib/options/costs');
const { addonBinding, newWasmBinding } = require('../support/bindings');
const { expectEqual } = require('../support/outcome');
const { casesOf } = require('../support/tiers');
const { randomFrom } = require('../support/traces');
const calls = require('./random-calls');

const STEPS = 150;
/** Those that stores outside of the process ask for. */
const KINDS = [RECORDS.NOTHING, RECORDS.ATTEMPT, RECORDS.IF_ALLOWED];

const whereBoth = addonBinding() === undefined ? describe.skip : describe;
const bytesOf = (state) => (state ? new Uint8Array(state) : state);

/** The same core on both: each call gives the results of both, with what they reported. */
function openBoth(bindings, checked) {
  const parts = bindings.map((binding) => {
    const report = new Float64Array(decisionLength(checked.windows.length));
    const exhausted = () => {
      throw new Error('there is no memory');
    };
    const core = binding.createPortableLimiter(nativePolicy(checked), {
      numbers: report,
      exhausted,
    });
    return { core, report };
  });
  return (method, ...args) =>
    parts.map(({ core, report }) => {
      report.fill(0);
      const result = core[method](...args);
      return { result: typeof result === 'object' ? bytesOf(result) : result, report: [...report] };
    });
}

/** The checked form of a random value; undefined if it is refused. */
function checkedOr(read) {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** Bytes that are no state, or one that was damaged. */
function damaged(random, state) {
  if (state === undefined || random.chance(15)) {
    return Uint8Array.from({ length: random.between(0, 80) }, () => random.between(0, 255));
  }
  const bytes = Uint8Array.from(state);
  const kind = random.between(1, 4);
  if (kind === 1) return bytes.subarray(0, random.between(0, bytes.length));
  if (kind === 2) return Uint8Array.from([...bytes, ...bytes.subarray(0, random.between(1, 20))]);
  const first = random.chance(50) ? Math.min(bytes.length, 40) : bytes.length;
  for (let i = random.between(1, 3); i > 0; i--) {
    const at = random.between(0, first - 1);
    bytes[at] = kind === 3 ? bytes[at] ^ (1 << random.between(0, 7)) : random.pick([0, 127, 255]);
  }
  return bytes;
}

whereBoth('the addon and the module', () => {
  const bindings = [addonBinding(), newWasmBinding()];

  function expectSame([expected, found], context) {
    // Quicker than a deep comparison.
    const same =
      Buffer.compare(
        Buffer.from(found.result instanceof Uint8Array ? found.result : []),
        Buffer.from(expected.result instanceof Uint8Array ? expected.result : []),
      ) === 0 &&
      `${typeof found.result}${found.report}` === `${typeof expected.result}${expected.report}` &&
      (typeof found.result === 'object' || found.result === expected.result);
    if (!same) expectEqual(found, expected, context);
  }

  /** Walks through random calls on one id; `mutate` says whether its state is damaged now and then. */
  function walk(seed, mutate, seen) {
    const random = randomFrom(seed);
    const { options, unit, names } = calls.randomOptions(random);
    let checked = readLimiterOptions(options);
    let both = openBoth(bindings, checked);
    let limits = options.limits;
    let now = calls.randomStart(random, unit);
    let state;
    const made = [];
    for (let step = 0; step < STEPS; step++) {
      now = calls.nextMoment(random, now, { unit, waits: [], stepsBack: true });
      const generation = random.pick([0, 1, 2 ** 32 - 1, random.between(0, 2 ** 32 - 1)]);
      const given = mutate && random.chance(25) ? damaged(random, state) : state;
      const context = { seed, step, options, given };
      const kind = random.between(1, 10);
      let results;
      if (kind <= 6) {
        const raw = calls.randomCost(random, limits);
        const cost = checkedOr(() => readCost(raw, checked)) ?? 1;
        const records = random.pick(KINDS);
        results = both('decide', given, cost, records, now, generation);
        const { result, report } = results[0];
        if (result !== null && records !== RECORDS.NOTHING && report[0] === 0) {
          made.push({ cost, at: report[5], token: report[6] });
        }
      } else if (kind <= 8 && made.length > 0) {
        const { cost, at, token } = random.pick(made);
        const raw = random.chance(30) ? 0 : calls.randomCost(random, limits);
        const actual = checkedOr(() => readActual(raw, cost, checked.windows)) ?? cost;
        results = both('settle', given, at, token, cost, actual, now);
      } else if (kind === 9) {
        const duration = random.pick([0, 1, 50 * unit, 2 ** 61]);
        results = both('block', given, duration, now, generation);
      } else if (random.chance(70)) {
        limits = calls.otherLimits(random, { options, unit, names });
        checked = { ...checked, ...readLimiterOptions({ ...options, limits }) };
        both = openBoth(bindings, checked);
        results = both('largestState');
      } else results = both('lifetime', given, now);
      expectSame(results, context);
      const [{ result }] = results;
      if (result === null) seen.foreign++;
      if (result instanceof Uint8Array) {
        seen.changed++;
        state = result;
        expectSame(both('lifetime', state, now), context);
      }
      if (random.chance(3)) state = undefined;
    }
  }

  test('write the same bytes, whoever wrote the state before', () => {
    const seen = { changed: 0, foreign: 0 };
    for (let seed = 1; seed <= casesOf(3000); seed++) walk(seed, false, seen);
    expect(seen.foreign).toBe(0);
    expect(seen.changed).toBeGreaterThan(casesOf(3000) * 30);
  });

  test('refuse the same bytes, and read others alike', () => {
    const seen = { changed: 0, foreign: 0 };
    for (let seed = 1; seed <= casesOf(3000); seed++) walk(-seed, true, seen);
    expect(seen.foreign).toBeGreaterThan(casesOf(3000));
    expect(seen.changed).toBeGreaterThan(casesOf(3000) * 10);
  });
});
