// Floods of ids beyond maxKeys, and a few ids among them that an oracle follows through evictions.
'use strict';

const { isDeepStrictEqual } = require('node:util');
const RateLimiter = require('../..');
const { ALGORITHM_NAMES, Oracle } = require('../conformance/oracle');
const { decisionOf } = require('../conformance/oracle/public-answers');
const { randomCost, randomPolicy } = require('../conformance/random-operations');
const { optionsFor } = require('../conformance/replay');
const { randomFrom } = require('../support/traces');

const MAX_KEYS = 3000;
const FOLLOWED = 6;
/** An oracle keeps all that ever was, so it is replaced in time. */
const LONGEST_STORY = 60;
const STEPS_AT_ONCE = 40;
const STEPS_IN_ALL = 4000;

/** One limiter, flooded. */
class Flood {
  #soak;
  #random;
  #policy;
  #nowUs = 1_700_000_000_000_000;
  #flooded = 0;
  #floodedBeforeNow = 0; // when the clock last moved
  #followed = new Map(); // by id
  steps = 0;

  constructor(soak, random) {
    this.#soak = soak;
    this.#random = random;
    const algorithm = random.pick(ALGORITHM_NAMES);
    this.#policy = randomPolicy(random, { algorithm, units: [10, 1000], largestMax: 40 });
    const options = optionsFor(this.#policy);
    this.limiter = RateLimiter({ ...options, maxKeys: MAX_KEYS, clock: () => this.#nowUs / 1000 });
  }

  /** Some ids that are never seen again. */
  #pour(count) {
    const ids = Array.from({ length: count }, (_, i) => `flood ${this.#flooded + i}`);
    if (this.#random.chance(50)) this.limiter.attemptMany(ids);
    else for (const id of ids) this.limiter(id);
    this.#flooded += count;
    this.#soak.count('ids poured in', count);
    const { keys } = this.limiter.stats();
    if (keys > MAX_KEYS) this.#soak.violate(`${keys} ids are held, above ${MAX_KEYS}`);
  }

  #advance() {
    const { unit } = this.#policy;
    const us = this.#random.chance(30) ? 0 : this.#random.between(1, 3 * unit);
    if (us === 0) return;
    this.#nowUs += us;
    this.#floodedBeforeNow = this.#flooded;
  }

  /** One that is followed already, or a new one. */
  #pick() {
    if (this.#followed.size >= FOLLOWED) {
      const [id, story] = this.#random.pick([...this.#followed]);
      if (story.length < LONGEST_STORY) return [id, story];
      this.#followed.delete(id);
    }
    const id = `followed ${this.steps}`;
    const oracles = [new Oracle(this.#policy)];
    const story = { oracles, length: 0, floodedBefore: this.#floodedBeforeNow };
    this.#followed.set(id, story);
    return [id, story];
  }

  /**
   * An id may have been dropped only if all that is held instead is no nearer to expiry: so many ids came
   * since its newest action. Then it may have begun anew; the answers tell.
   */
  #mayBeEvicted({ floodedBefore }) {
    return this.#flooded - floodedBefore + FOLLOWED + 1 >= MAX_KEYS;
  }

  #act(id, story) {
    const random = this.#random;
    const largestCost = Math.min(...this.#policy.limits.map((limit) => limit.maxInInterval));
    const cost = randomCost(random, largestCost);
    const kind = random.chance(25) ? 'peek' : 'attempt';
    if (this.#mayBeEvicted(story)) story.oracles.push(new Oracle(this.#policy));
    const decision = this.limiter[kind](id, { cost });
    const told = story.oracles.map((oracle) => ({
      oracle,
      answer: oracle[kind](this.#nowUs, cost),
    }));
    const right = told.filter(({ answer }) =>
      isDeepStrictEqual({ ...decision }, decisionOf(answer, this.#policy)),
    );
    story.length += 1;
    this.#soak.count('decisions among floods');
    if (right.length === 0) {
      const seen = JSON.stringify({ kind, cost, policy: this.#policy, decision });
      const wanted = told.map(({ answer }) => JSON.stringify(decisionOf(answer, this.#policy)));
      this.#soak.violate(`${seen} in place of ${wanted.join(' or ')}`);
      this.#followed.delete(id);
      return;
    }
    story.oracles = right.map(({ oracle }) => oracle);
    if (kind === 'peek' || !decision.allowed) return;
    story.floodedBefore = this.#floodedBeforeNow;
    if (random.chance(15)) this.#takeBack(story, decision, right);
  }

  #takeBack(story, decision, right) {
    const expected = right.map(({ oracle, answer }) => oracle.refund(answer.attempt, this.#nowUs));
    if (expected.includes(undefined)) return; // that is for the store to say
    const found = this.limiter.refund(decision);
    if (!expected.includes(found)) this.#soak.violate(`a refund came to ${found}`);
    // Who knows how near to expiry that leaves it.
    story.floodedBefore = Number.NEGATIVE_INFINITY;
  }

  #forgetSome() {
    if (this.#random.chance(90)) {
      const [id, story] = this.#pick();
      this.limiter.clear(id);
      story.oracles = [new Oracle(this.#policy)];
    } else {
      this.limiter.clearAll();
      for (const story of this.#followed.values()) story.oracles = [new Oracle(this.#policy)];
    }
  }

  step() {
    this.steps += 1;
    this.#advance();
    if (this.#random.chance(1)) this.#pour(MAX_KEYS + 500);
    else if (this.#random.chance(50)) this.#pour(this.#random.between(1, 60));
    if (this.#random.chance(1)) this.#forgetSome();
    this.#act(...this.#pick());
  }
}

/** One flooded limiter after the other; some are closed, the others just dropped. */
function flood(soak) {
  const random = randomFrom(soak.seed);
  let current = new Flood(soak, random);
  return soak.repeat(async () => {
    for (let i = 0; i < STEPS_AT_ONCE; i++) current.step();
    if (current.steps < STEPS_IN_ALL) return;
    if (random.chance(50)) await current.limiter.close();
    current = new Flood(soak, random);
  });
}

module.exports = { flood };
