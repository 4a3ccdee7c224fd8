// Random traces: every store and algorithm gives the oracle's answers, and so does each script, to the
// microsecond. A failure prints its seed and a short trace; ROLLGATE_SEED=<seed> runs that seed alone.
'use strict';

const Redis = require('ioredis');
const SCRIPTS = require('../../lib/redis/scripts');
const { expectEqual } = require('../support/outcome');
const { startRedis } = require('../support/redis-server');
const { casesOf } = require('../support/tiers');
const { randomFrom } = require('../support/traces');
const { ALGORITHM_NAMES } = require('./oracle');
const {
  LONG_UNITS,
  SHORT_UNITS,
  expectTrace,
  randomPolicy,
  randomTrace,
} = require('./random-traces');
const { EACH_STORE } = require('./stores');
const { tracesOf } = require('./write-traces');

const STEPS = 50;
const AT_ONCE = 20;
const ONLY_SEED = process.env.ROLLGATE_SEED;

function seedsFor({ pace }) {
  if (ONLY_SEED !== undefined) return [Number(ONLY_SEED)];
  const count = casesOf(Math.ceil(pace / STEPS));
  return Array.from({ length: count }, (_, i) => i + 1);
}

/** Calls `check` for each case, `atOnce` of them at the same time. */
async function forEach(cases, atOnce, check) {
  for (let i = 0; i < cases.length; i += atOnce) {
    await Promise.all(cases.slice(i, i + atOnce).map(check));
  }
}

describe.each(EACH_STORE)('%s', (_, store) => {
  let place;
  beforeAll(async () => {
    place = await store.open();
  });
  afterAll(() => place.close());

  test.each(ALGORITHM_NAMES)('answers as the oracle: %s', async (algorithm) => {
    const units = store.expires ? LONG_UNITS : SHORT_UNITS;
    await forEach(seedsFor(store), store.isSync ? 1 : AT_ONCE, (seed) => {
      const random = randomFrom(seed);
      const policy = randomPolicy(random, { algorithm, units });
      const trace = randomTrace(random, { policy, steps: STEPS });
      return expectTrace(trace, place.open, { store: store.name, algorithm, seed });
    });
  });
});

describe.each(ALGORITHM_NAMES)('the traces for C++ and the scripts: %s', (algorithm) => {
  const traces = tracesOf(algorithm);
  const answersTo = (wanted) =>
    traces.flatMap(({ operations, answers }) =>
      answers.filter((_, i) => operations[i].kind === wanted),
    );

  test('contain answers of every kind', () => {
    const reasons = answersTo('attempt').map(({ blockedBy }) => blockedBy);
    expect(new Set(reasons)).toEqual(new Set([0, 1, 2, 3, 4]));
    expect(reasons.filter((blockedBy) => blockedBy === 0).length).toBeGreaterThan(200);
    expect(new Set(answersTo('refund'))).toEqual(new Set([true, false]));
    expect(traces.some(({ policy }) => policy.limits.length === 3)).toBe(true);
    expect(traces.some(({ policy }) => policy.blockFor.length > 1)).toBe(true);
  });
});

/** A trace on a script, with keys of its own. */
class OnScript {
  #redis;
  #prefix;
  #sha1;
  #policyWords;
  #replies = new Map();

  constructor(redis, prefix, { algorithm, countBlocked, minDifference, limits, blockFor }) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.#sha1 = SCRIPTS[algorithm].sha1;
    const windows = limits.flatMap(({ interval, maxInInterval }) => [interval, maxInInterval]);
    this.#policyWords = [countBlocked ? 1 : 0, minDifference, blockFor.join(), ...windows];
  }

  #run(id, ...words) {
    return this.#redis.evalsha(
      this.#sha1,
      1,
      `${this.#prefix}{${id}}`,
      ...words,
      ...this.#policyWords,
    );
  }

  /** The reply in the form of `answerOf`. */
  async perform({ kind, id, now, cost, of }, place) {
    switch (kind) {
      case 'attempt':
      case 'peek': {
        const reply = await this.#run(id, kind, 'full', now, cost);
        if (kind === 'attempt') this.#replies.set(place, { reply, cost });
        // What comes before the windows is for refunds.
        return [...reply.slice(0, 5), ...reply.slice(7)];
      }
      case 'usage':
        return (await this.#run(id, 'peek', 'full', now, 0)).slice(7);
      case 'refund':
        return this.#refund(id, now, of);
      case 'clear':
        await this.#redis.del(`${this.#prefix}{${id}}`);
        return null;
      default: {
        const keys = await this.#redis.keys(`${this.#prefix}{*`);
        if (keys.length > 0) await this.#redis.del(...keys);
        return null;
      }
    }
  }

  /** As the package does it: once, and only what was allowed. */
  async #refund(id, now, of) {
    const { reply, cost } = this.#replies.get(of);
    const [blockedBy, , , , , at, generation] = reply;
    if (blockedBy !== 0) return false;
    const [found] = await this.#run(id, 'refund', `${at},${generation}`, now, cost);
    if (found === 1) reply[0] = -1;
    return found === 1;
  }
}

const usesOf = (windows) => windows.flatMap(({ used, resetIn }) => [used, resetIn]);

function answerOf({ kind }, answer) {
  if (kind === 'usage') return usesOf(answer);
  if (kind !== 'attempt' && kind !== 'peek') return answer;
  const { blockedBy, timeLeft, actionsLeft, resetIn, wait, windows } = answer;
  return [blockedBy, timeLeft, actionsLeft, resetIn, wait, ...usesOf(windows)];
}

describe('the script of', () => {
  let redis;
  beforeAll(async () => {
    const server = await startRedis();
    redis = new Redis(server.url).on('error', () => {});
    for (const { source } of Object.values(SCRIPTS)) await redis.script('LOAD', source);
  });
  afterAll(() => {
    redis.disconnect();
  });

  test.each(ALGORITHM_NAMES)('%s answers as the oracle, to the microsecond', async (algorithm) => {
    const traces = [...tracesOf(algorithm).entries()];
    await forEach(traces, AT_ONCE, async ([n, { policy, operations, answers }]) => {
      const script = new OnScript(redis, `${algorithm}${n}`, policy);
      for (const [place, operation] of operations.entries()) {
        const came = await script.perform(operation, place);
        const context = { trace: n, policy, place, operation };
        expectEqual(came, answerOf(operation, answers[place]), context);
      }
    });
  });
});
