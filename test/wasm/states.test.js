// States as bytes: the addon and the module write the same ones, read each other's, and refuse the same bytes.
'use strict';

const { RECORDS, decisionLength } = require('../../lib/base/decision');
const { readLimiterOptions } = require('../../lib/limiter/options');
const { nativePolicy } = require('../../lib/native/policy');
const { ALGORITHM_NAMES } = require('../conformance/oracle');
const { optionsFor, randomCost, randomPolicy } = require('../conformance/random-traces');
const { addonBinding, newWasmBinding } = require('../support/bindings');
const { expectEqual } = require('../support/outcome');
const { casesOf } = require('../support/tiers');
const { randomFrom, randomStep } = require('../support/traces');

const EPISODES = casesOf(1500);
const STEPS = 150;
const UNITS = [1, 10, 1000, 60_000_000];
/** Those that stores outside of the process ask for. */
const KINDS = [RECORDS.NOTHING, RECORDS.ATTEMPT, RECORDS.IF_ALLOWED];

const whereBoth = addonBinding() === undefined ? describe.skip : describe;

/** What both write for the same call, with what they report. */
function openBoth(bindings, checked) {
  const parts = bindings.map((binding) => {
    const numbers = new Float64Array(decisionLength(checked.windows.length));
    const exhausted = () => {
      throw new Error('there is no memory');
    };
    return {
      core: binding.createPortableLimiter(nativePolicy(checked), { numbers, exhausted }),
      numbers,
    };
  });
  return (context, method, ...args) => {
    const [expected, found] = parts.map(({ core, numbers }) => {
      numbers.fill(0);
      const result = core[method](...args);
      const state = typeof result === 'object' && result ? Buffer.from(result) : result;
      return { state, report: [...numbers] };
    });
    expectEqual(found, expected, { method, ...context });
    return expected;
  };
}

/** Bytes that are no state, or one that was damaged. */
function damaged(random, state) {
  const any = (low, high) =>
    Buffer.from(Array.from({ length: random.between(low, high) }, () => random.between(0, 255)));
  if (state === undefined || random.chance(15)) return any(0, 80);
  if (random.chance(25)) return state.subarray(0, random.between(0, state.length));
  if (random.chance(33)) return Buffer.concat([state, any(1, 20)]);
  const bytes = Buffer.from(state);
  const first = random.chance(50) ? Math.min(bytes.length, 40) : bytes.length;
  for (let i = random.between(1, 3); i > 0; i--) {
    const at = random.between(0, first - 1);
    bytes[at] = random.chance(50)
      ? bytes[at] ^ (1 << random.between(0, 7))
      : random.pick([0, 127, 255]);
  }
  return bytes;
}

/** The checked form of a random policy, whose windows may have costs of their own; `algorithm` and `count` as given. */
function randomLimits(random, { algorithm, count, isWeighted }) {
  let policy;
  do policy = randomPolicy(random, { algorithm, units: UNITS });
  while (count !== undefined && policy.limits.length !== count);
  const { limits, ...options } = optionsFor(policy);
  const named = limits.map((limit, i) => ({ ...limit, ...(isWeighted && { name: `n${i}` }) }));
  return { checked: readLimiterOptions({ ...options, limits: named }), unit: policy.unit };
}

/** One for all windows, or one for each. */
function costOf(random, { windows }, isWeighted) {
  const costs = windows.map(({ maxInInterval }) => randomCost(random, maxInInterval));
  return isWeighted && random.chance(60) ? Float64Array.from(costs) : Math.min(...costs);
}

whereBoth('the addon and the module', () => {
  const bindings = [addonBinding(), newWasmBinding()];

  /** Random calls on one id, whose state is damaged now and then if `damages`; counts what came of them in `seen`. */
  function walk(seed, damages, seen) {
    const random = randomFrom(seed);
    const isWeighted = random.chance(40);
    const algorithm = random.pick(ALGORITHM_NAMES);
    let { checked, unit } = randomLimits(random, { algorithm, isWeighted });
    let both = openBoth(bindings, checked);
    let now = random.pick([1_700_000_000_000_000, 0, -50 * unit]);
    let state;
    const made = [];
    for (let step = 0; step < STEPS; step++) {
      now += random.chance(5) ? -random.between(1, 10) * unit : randomStep(random, unit);
      const generation = random.pick([0, 1, 2 ** 32 - 1, random.between(0, 2 ** 32 - 1)]);
      const given = damages && random.chance(25) ? damaged(random, state) : state;
      const context = { seed, step, given };
      const kind = random.between(1, 10);
      let answer;
      if (kind <= 6) {
        const cost = costOf(random, checked, isWeighted);
        const records = random.pick(KINDS);
        answer = both(context, 'decide', given, cost, records, now, generation);
        const [blocked, , , , , at, token] = answer.report;
        if (answer.state !== null && records !== RECORDS.NOTHING && blocked === 0)
          made.push({ cost, at, token });
      } else if (kind <= 8 && made.length > 0) {
        const { cost, at, token } = random.pick(made);
        const actual = random.chance(30) ? 0 : costOf(random, checked, typeof cost === 'object');
        answer = both(context, 'settle', given, at, token, cost, actual, now);
      } else if (kind === 9) {
        const duration = random.pick([0, 1, 50 * unit, 2 ** 61]);
        answer = both(context, 'block', given, duration, now, generation);
      } else if (random.chance(70)) {
        const count = checked.windows.length;
        checked = {
          ...checked,
          windows: randomLimits(random, { algorithm, count, isWeighted }).checked.windows,
        };
        both = openBoth(bindings, checked);
        answer = both(context, 'largestState');
      } else answer = both(context, 'lifetime', given, now);
      if (answer.state === null) seen.foreign++;
      if (Buffer.isBuffer(answer.state)) {
        seen.changed++;
        state = answer.state;
        both(context, 'lifetime', state, now);
      }
      if (random.chance(3)) state = undefined;
    }
  }

  test('write the same bytes, whoever wrote the state before', () => {
    const seen = { changed: 0, foreign: 0 };
    for (let seed = 1; seed <= EPISODES; seed++) walk(seed, false, seen);
    expect(seen.foreign).toBe(0);
    expect(seen.changed).toBeGreaterThan(EPISODES * 30);
  });

  test('refuse the same bytes, and read others alike', () => {
    const seen = { changed: 0, foreign: 0 };
    for (let seed = 1; seed <= EPISODES; seed++) walk(-seed, true, seen);
    expect(seen.foreign).toBeGreaterThan(EPISODES);
    expect(seen.changed).toBeGreaterThan(EPISODES * 10);
  });
});
