// The addon and the WebAssembly module give the same answer to every call. A failure prints its seed.
'use strict';

const { addonBinding, packageOn } = require('../support/bindings');
const { expectEqual } = require('../support/outcome');
const { casesOf } = require('../support/tiers');
const { randomFrom } = require('../support/traces');
const calls = require('./random-calls');

const { IDS, NO_IDS } = calls;
const STEPS = 200;
/** In the fast tier a tenth: the module's own functions are few, and the core is tested elsewhere. */
const EPISODES = casesOf(2000);

const whereBoth = addonBinding() === undefined ? describe.skip : describe;

const LISTED = ['allowed', 'timeLeft', 'actionsLeft', 'resetIn', 'blockedBy', 'limits'];
const TALLY = ['keys', 'allowed', 'blocked', 'evicted', 'errors'];

/** What can be compared by its JSON. A decision is shown without the limiter that it refers to. */
function shown(value) {
  if (Array.isArray(value)) return value.map(shown);
  if (typeof value !== 'object' || value === null) return value;
  return 'timeLeft' in value && 'allowed' in value && 'actionsLeft' in value
    ? LISTED.map((name) => value[name])
    : value;
}

/** The result of a call, or the name, code and message of its error. */
function outcomeOf(call) {
  try {
    return { value: call() };
  } catch ({ name, code, message }) {
    return { error: [name, code, message] };
  }
}

/** In us. */
const longestOf = (limits) => Math.max(...limits.map(({ interval }) => interval)) * 1000;

/** One limiter on both, on one clock moved by hand; counts how often each reads it. */
function openBoth(packages, { options, start }) {
  const time = { us: start };
  const readings = [0, 0];
  const limiters = packages.map((RateLimiter, i) => {
    const clock = () => {
      readings[i]++;
      return time.us / 1000;
    };
    return RateLimiter({ ...options, clock });
  });
  for (const limiter of limiters) limiter.stats(); // creates the module's store, for which setLimits asks the time
  return { time, readings, limiters };
}

/** Functions of a limiter and of its decisions, which are in `made` by their number. */
function drawCall(random, { limits, unit, names, options, made, ids, isBack, longest }) {
  const id = random.chance(2) ? random.pick(NO_IDS) : random.pick(ids);
  const kind = random.between(1, 100);
  if (kind <= 30) return ['call', (limiter) => limiter(id)];
  if (kind <= 60) {
    const options = random.chance(50) ? { cost: calls.randomCost(random, limits.now) } : undefined;
    return ['attempt', (limiter) => limiter.attempt(id, options)];
  }
  if (kind <= 66) {
    const cost = calls.randomCost(random, limits.now);
    return ['peek', (limiter) => limiter.peek(id, { cost })];
  }
  if (kind <= 69) return ['usage', (limiter) => limiter.usage(id)];
  if (kind <= 73) {
    const many = Array.from({ length: random.between(0, 6) }, () => random.pick(ids));
    if (random.chance(5)) many.push(random.pick(NO_IDS));
    return ['attemptMany', (limiter) => limiter.attemptMany(many)];
  }
  // Behind its latest time, gcra has forgotten what leaked until then, to the precision of its state.
  const settles = made.length > 0 && !(isBack && options.algorithm === 'gcra');
  if (kind <= 85 && settles) {
    const one = random.pick(made.slice(-8));
    if (random.chance(40)) return ['refund', (limiter, i) => limiter.refund(one[i]), one];
    const actual = calls.randomCost(random, limits.now);
    return ['settle', (limiter, i) => limiter.settle(one[i], actual), one];
  }
  if (kind <= 89) {
    const ms = random.pick([0, 0, unit / 1000, (7 * unit) / 1000, 2 ** 70, -1]);
    return ['block', (limiter) => limiter.block(id, ms)];
  }
  if (kind <= 92) return ['clear', (limiter) => limiter.clear(id)];
  if (kind === 93) return ['clearAll', (limiter) => limiter.clearAll()];
  if (kind <= 97) {
    const given = calls.otherLimits(random, { options, unit, names });
    // Longer windows would show what is left by chance of actions that had left the shorter ones.
    if (longestOf(given) > longest) given.length = 0;
    if (random.chance(10)) given.pop();
    else if (given.length > 0) limits.next = given;
    return ['setLimits', (limiter) => limiter.setLimits(given)];
  }
  return ['stats', (limiter) => TALLY.slice(1).map((name) => limiter.stats()[name])];
}

/** The outcomes of one call on both, once they are there. */
async function outcomesOf(limiters, call) {
  const outcomes = limiters.map((limiter, i) => outcomeOf(() => call(limiter, i)));
  return Promise.all(
    outcomes.map(async (outcome) => {
      if (typeof outcome.value?.then !== 'function') return outcome;
      try {
        return { resolved: await outcome.value };
      } catch ({ name, code, message }) {
        return { rejected: [name, code, message] };
      }
    }),
  );
}

whereBoth('the addon and the module', () => {
  let packages;
  beforeAll(() => {
    packages = ['native', 'wasm'].map(packageOn);
  });

  test('answer every call alike, and read the clock as often', async () => {
    const kinds = new Map();
    let refusals = 0;
    for (let seed = 1; seed <= EPISODES; seed++) {
      const random = randomFrom(seed);
      const { options, unit, names } = calls.randomOptions(random);
      const both = openBoth(packages, { options, start: calls.randomStart(random, unit) });
      const limits = { now: options.limits };
      let longest = longestOf(options.limits);
      let latest = -Infinity;
      const ids = Array.from({ length: random.chance(40) ? 1 : random.between(2, 6) }, () =>
        random.pick(IDS),
      );
      // With several it would show which expired ones are forgotten already.
      const stepsBack = new Set(ids.map((id) => String(id ?? ''))).size === 1;
      const made = [];
      let waits = [];
      for (let step = 0; step < STEPS; step++) {
        both.time.us = calls.nextMoment(random, both.time.us, { unit, waits, stepsBack });
        latest = Math.max(latest, both.time.us);
        const isBack = both.time.us < latest;
        const drawn = drawCall(random, {
          limits,
          unit,
          names,
          options,
          made,
          ids,
          isBack,
          longest,
        });
        const [kind, call, settled] = drawn;
        kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
        const [one, other] = await outcomesOf(both.limiters, call);
        const [expected, found] = [one, other].map((each) => ({
          ...each,
          value: shown(each.value),
        }));
        const same = JSON.stringify(found) === JSON.stringify(expected);
        // An id with nothing left in any window is forgotten by chance.
        const mayBeForgotten = settled !== undefined && both.time.us - settled.madeAt >= longest;
        if (!same && !mayBeForgotten) expectEqual(found, expected, { seed, step, kind, options });
        if (limits.next && one.error === undefined) {
          limits.now = limits.next;
          longest = Math.max(longest, longestOf(limits.now));
        }
        limits.next = undefined;
        if (kind === 'attempt' && one.value) {
          made.push(Object.assign([one.value, other.value], { madeAt: both.time.us }));
          const { allowed, timeLeft, resetIn } = one.value;
          waits = [timeLeft, resetIn].filter((ms) => ms > 0 && ms < 1e12);
          if (!allowed) refusals++;
        }
      }
      expectEqual(both.readings[1], both.readings[0], { seed, readings: both.readings });
      for (const limiter of both.limiters) limiter.close();
    }
    expect(kinds.size).toBe(12);
    expect(refusals).toBeGreaterThan(EPISODES);
  });

  test('drop the ids nearest to expiry, and report it alike', () => {
    for (let seed = 1; seed <= casesOf(200); seed++) {
      const random = randomFrom(seed);
      const maxKeys = random.pick([1, 2, 15, 16, 40, 500]);
      const options = { interval: 1e9, maxInInterval: 2, countBlocked: false, maxKeys };
      const { time, limiters } = openBoth(packages, { options, start: 0 });
      for (let step = 0; step < 4 * maxKeys + 50; step++) {
        time.us += random.between(1, 2000); // no two ids expire at once, so one is nearest
        const id = random.between(0, 2 * maxKeys);
        const many = random.chance(5) ? [id, id] : undefined;
        const [expected, found] = limiters.map((limiter) =>
          many ? limiter.attemptMany(many).map(shown) : limiter(id),
        );
        expectEqual(found, expected, { seed, step });
      }
      const [expected, found] = limiters.map((limiter) =>
        TALLY.map((name) => limiter.stats()[name]),
      );
      expectEqual(found, expected, { seed });
      expect(found[TALLY.indexOf('evicted')]).toBeGreaterThan(0);
      for (const limiter of limiters) limiter.close();
    }
  });
});
