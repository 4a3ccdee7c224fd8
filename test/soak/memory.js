// The soak test in memory: everything that one process can do to limiters, at once.
'use strict';

const { once } = require('node:events');
const path = require('node:path');
const { setTimeout: pause } = require('node:timers/promises');
const { isDeepStrictEqual } = require('node:util');
const { Worker } = require('node:worker_threads');
const RateLimiter = require('../..');
const { ALGORITHM_NAMES, Oracle, decisionOf } = require('../conformance/oracle');
const { optionsFor, randomCost, randomPolicy } = require('../conformance/random-traces');
const { outcomeOf } = require('../support/outcome');
const { randomFrom } = require('../support/traces');
const { Admissions, followTraces, main, patient } = require('./soak');

const MAX_KEYS = 3000;
const FOLLOWED = 6;
/** An oracle keeps its whole history, so it is replaced after so many steps. */
const LONGEST_STORY = 60;
const STEPS_AT_ONCE = 40;
const STEPS_IN_ALL = 4000;

/** One limiter flooded with ids beyond maxKeys; an oracle follows a few of them through evictions. */
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

  /** Adds ids that never come again. */
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
   * since its newest action. Then it may have started again; the answers show which.
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

const LIMITS = [
  { interval: 50, maxInInterval: 7 },
  { interval: 400, maxInInterval: 30 },
];
/** Between the two clocks. */
const TOLERANCE_MS = 1;
const IDS = 5;
const SLICE_MS = 5;

/** Ids that are hammered by the built-in clock, compared with the clock of the process. */
function hammer(soak) {
  const limiter = RateLimiter({ limits: LIMITS, countBlocked: false });
  const known = Array.from({ length: IDS }, (_, i) => ({
    id: `hammered ${i}`,
    windows: LIMITS.map((limit) => new Admissions(limit, TOLERANCE_MS)),
    allowedFrom: Number.POSITIVE_INFINITY, // as the refusals since the last admission tell
  }));
  let passers = 0;

  function attempt(one) {
    const start = performance.now();
    const timeLeft = limiter(one.id);
    const end = performance.now();
    if (timeLeft > 0) {
      if (start > one.allowedFrom) soak.violate(`refused for ${timeLeft} ms after it had waited`);
      one.allowedFrom = Math.min(one.allowedFrom, end + timeLeft + TOLERANCE_MS);
      return;
    }
    one.allowedFrom = Number.POSITIVE_INFINITY;
    for (const window of one.windows) {
      if (window.add(start, end)) continue;
      const { maxInInterval, interval } = window.limit;
      soak.violate(`more than ${maxInInterval} passed in ${interval} ms`);
    }
  }

  return soak.repeat(() => {
    const until = performance.now() + SLICE_MS;
    while (performance.now() < until) {
      for (const one of known) attempt(one);
      limiter(`passer-by ${passers++}`);
      soak.count('attempts in real time', IDS + 1);
    }
  });
}

const WAIT_LIMIT = { interval: 20, maxInInterval: 4, countBlocked: false };
const AT_ONCE = 40;
const WAIT_IDS = 3;
const PATIENCE_MS = patient(15_000);
const ENDS = [
  'ABORTED',
  'ERR_ROLLGATE_WAIT_DEADLINE',
  'ERR_ROLLGATE_WAIT_QUEUE',
  'ERR_ROLLGATE_CLOSED',
];
const after = (ms, act) => setTimeout(act, ms);

function startWaiting(limiter, random) {
  const giveUp = new AbortController();
  const options = { signal: giveUp.signal, cost: random.between(1, 2) };
  if (random.chance(20)) options.deadline = random.between(0, 100);
  if (random.chance(20)) options.maxQueue = random.between(1, AT_ONCE);
  const waiting = limiter.wait(random.between(1, WAIT_IDS), options);
  const reason = Object.assign(new Error('enough'), { code: 'ABORTED' });
  if (random.chance(40)) after(random.between(0, 200), () => giveUp.abort(reason));
  return waiting;
}

/** Many calls that wait for a few ids, and leave, miss a deadline, or see their limiter closed. */
function keepWaiting(soak) {
  const random = randomFrom(soak.seed);
  return soak.repeat(async () => {
    const limiter = RateLimiter(WAIT_LIMIT);
    const all = Array.from({ length: AT_ONCE }, () => startWaiting(limiter, random));
    if (random.chance(30)) after(random.between(0, 100), () => limiter.close());
    for (const outcome of await Promise.allSettled(all.map((one) => outcomeOf(one, PATIENCE_MS)))) {
      const end = outcome.value?.allowed ? 'allowed' : (outcome.value ?? outcome.reason.message);
      if (end !== 'allowed' && !ENDS.includes(end)) soak.violate(`waiting ended with ${end}`);
      soak.count(end === 'allowed' ? 'waits' : 'waits that ended otherwise');
    }
  });
}

const PROGRAM = path.join(__dirname, '../support/worker-program.js');
const TASKS = [{ task: 'use' }, { task: 'spin' }, { task: 'spin', clock: true }, { task: 'make' }];
/** Leaves most of the time to the other loads. */
const REST_MS = 200;

/** Worker threads that use limiters and are terminated at any moment. */
function startAndTerminate(soak) {
  const random = randomFrom(soak.seed);
  return soak.repeat(async () => {
    const workerData = random.pick(TASKS);
    const worker = new Worker(PROGRAM, { workerData });
    const ended = once(worker, 'exit');
    worker.on('error', (error) => soak.violate(`in a thread: ${error.stack}`));
    if (random.chance(80)) await Promise.race([once(worker, 'message'), ended]);
    await pause(random.between(0, 100));
    if (workerData.task !== 'use' || random.chance(50)) worker.terminate();
    await ended;
    soak.count('threads');
    await pause(random.between(0, 2 * REST_MS));
  });
}

main('memory', (soak) =>
  Promise.all([
    followTraces(soak),
    flood(soak),
    hammer(soak),
    startAndTerminate(soak),
    keepWaiting(soak),
  ]),
);
