// The soak test in memory: everything that one process can do to limiters, at once.
'use strict';

const { once } = require('node:events');
const path = require('node:path');
const { setTimeout: pause } = require('node:timers/promises');
const { Worker } = require('node:worker_threads');
const RateLimiter = require('../..');
const { ALGORITHM_NAMES } = require('../conformance/oracle');
const { SHORT_UNITS, optionsFor, randomPolicy } = require('../conformance/random-traces');
const { outcomeOf } = require('../support/outcome');
const { randomFrom } = require('../support/traces');
const { followTraces, main, patient } = require('./soak');

const MAX_KEYS = 3000;
const POURED_AT_MOST = 60;
const POURS = 4000;

/** Limiters flooded with ids beyond maxKeys, one after the other; some are closed, the others just dropped. */
function flood(soak) {
  const random = randomFrom(soak.seed);
  let limiter;
  let made = 0;

  /** Adds ids that never come again. */
  function pour(count) {
    const ids = Array.from({ length: count }, () => `flood ${made++}`);
    if (random.chance(50)) limiter.attemptMany(ids);
    else for (const id of ids) limiter(id);
    soak.count('ids poured in', count);
    const { keys } = limiter.stats();
    if (keys > MAX_KEYS) soak.violate(`${keys} ids are held, above ${MAX_KEYS}`);
  }

  return soak.repeat(async () => {
    const algorithm = random.pick(ALGORITHM_NAMES);
    const policy = randomPolicy(random, { algorithm, units: SHORT_UNITS, largestMax: 40 });
    let nowMs = 1_700_000_000_000;
    limiter = RateLimiter({ ...optionsFor(policy), maxKeys: MAX_KEYS, clock: () => nowMs });
    for (let i = 0; i < POURS && !soak.isOver; i++) {
      if (random.chance(70)) nowMs += (random.between(1, 3) * policy.unit) / 1000;
      pour(random.chance(1) ? MAX_KEYS + 500 : random.between(1, POURED_AT_MOST));
      if (random.chance(1)) limiter.clearAll();
      if (i % 40 === 0) await new Promise(setImmediate);
    }
    if (random.chance(50)) await limiter.close();
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
  Promise.all([followTraces(soak), flood(soak), startAndTerminate(soak), keepWaiting(soak)]),
);
