// The soak test in shared memory: processes and threads on the same regions, killed at any moment.
'use strict';

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { writeSync } = require('node:fs');
const { createInterface } = require('node:readline');
const { setTimeout: pause } = require('node:timers/promises');
const { Worker, isMainThread, workerData } = require('node:worker_threads');
const RateLimiter = require('../..');
const { ALGORITHMS } = require('../../lib/options/algorithms');
const { filesOf } = require('../support/shared-regions');
const { randomFrom } = require('../support/traces');

/** How often each counted id passes, in all threads and processes together. */
const MAX = 200;
/** New ids are counted from then on; those of the last few are kept in use. */
const EPOCH_MS = 1000;
const EPOCHS_IN_USE = 3;
const IDS = 4;
const POURED = 20;
/** One window of the epoch, whenever the test runs: the second begins in the year 2255. */
const INTERVAL = 9_007_199_254_740;

const epochNow = () => Math.floor(Date.now() / EPOCH_MS);

/** `${name}-${algorithm}`: small, so that each new id has to drop another. */
const optionsFor = (name) =>
  ALGORITHMS.map((algorithm) => ({
    shared: { name: `${name}-${algorithm}`, maxKeys: 1000 },
    algorithm,
    interval: INTERVAL,
    maxInInterval: MAX,
  }));

/**
 * A step on all regions. `tell(key, isAllowed)` is told each time a counted id passed, and the first time
 * that this thread saw it refused. Among all ids the counted ones are never the nearest to expiry, for they are
 * asked for all the time, and other ids are poured in only so fast. `forget(key)` is for those that are over:
 * the more of them there are, the fewer places are left to the others, for nothing here expires.
 */
function createLoad(name, tell) {
  const options = optionsFor(name);
  const limiters = options.map((each) => RateLimiter(each));
  const refused = new Set();
  const who = `${process.pid} ${Math.random()}`;
  let steps = 0;

  function attempt(limiter, region, epoch, i) {
    const key = `${region}.${epoch}.${i}`;
    const isAllowed = limiter(key) === 0;
    // It was halted so long that the id may have been dropped.
    if (epochNow() >= epoch + EPOCHS_IN_USE) return;
    if (isAllowed) tell(key, true);
    if (isAllowed || refused.has(key)) return;
    refused.add(key);
    tell(key, false);
  }

  function pour(limiter) {
    for (let i = 0; i < POURED; i++) {
      const decision = limiter.attempt(`${who} ${steps} ${i}`);
      if (i % 5 === 0) limiter.refund(decision);
    }
    limiter.attemptMany([`${who} ${steps} a`, `${who} ${steps} b`]);
    limiter.clear(`${who} ${steps} a`);
  }

  function forget(key) {
    limiters[Number(key.split('.')[0])].clear(key);
  }

  function step() {
    steps += 1;
    for (const [region, limiter] of limiters.entries()) {
      for (let age = 0; age < EPOCHS_IN_USE; age++) {
        for (let i = 0; i < IDS; i++) attempt(limiter, region, epochNow() - age, i);
      }
      pour(limiter);
    }
    if (refused.size > 1000) refused.clear();
    if (steps % 100 > 0) return;
    const guest = RateLimiter(options[(steps / 100) % options.length]);
    guest(`${who} ${steps}`);
    guest.close();
  }

  return { step, forget };
}

/** Whether no thread has used this key for a while. */
const isOver = (key) => Number(key.split('.')[1]) < epochNow() - EPOCHS_IN_USE - 1;

const THREADS = 2;
const SLICE_MS = 5;
/** A pipe that is no stream of Node's: writing waits until there is room. */
const OUT = 3;

/** What is written is whole, or not there: lines are short, and a kill comes before or after. */
const tell = (key, isAllowed) => writeSync(OUT, `${isAllowed ? '+' : '-'}${key}\n`);

async function keepWorker(name) {
  for (;;) {
    const worker = new Worker(__filename, { workerData: name });
    await pause(100 + Math.random() * 1000);
    writeSync(OUT, '0\n');
    await worker.terminate();
  }
}

async function run(name) {
  process.stdin.on('end', () => process.exit()); // its parent has ended
  process.stdin.resume();
  for (let i = 1; i < THREADS; i++) keepWorker(name);
  const { step } = createLoad(name, tell);
  for (;;) {
    const until = performance.now() + SLICE_MS;
    while (performance.now() < until) step();
    await pause(1);
  }
}

const NAME = `soak-${process.pid}`;
const PROCESSES = 3;
/** Each thread of a killed process may have counted one of which it has not told. */
const LOST_BY_A_KILL = 2;
/** A process has to come to its work. */
const LIFE_MS = process.env.ROLLGATE_SANITIZED ? [2000, 5000] : [200, 2000];
const REST_MS = 10;

/** What passed of each counted id, by what the survivors and the dead have told. */
class Counts {
  #soak;
  #known = new Map();
  #lost = 0;

  constructor(soak) {
    this.#soak = soak;
  }

  /** At most so many may have been counted but not reported. */
  lose(most) {
    this.#lost += most;
  }

  tell(key, isAllowed) {
    if (isOver(key) && !this.#known.has(key)) return; // it was settled without this
    const known = this.#known.get(key) ?? { passed: 0, isUsedUp: false, lostBefore: this.#lost };
    this.#known.set(key, known);
    if (!isAllowed) known.isUsedUp = true;
    else known.passed += 1;
    if (known.passed > MAX) this.#soak.violate(`${known.passed} of ${MAX} passed for ${key}`);
  }

  /** Checks and forgets the ids that are no longer used. */
  settle(forget, isSettled = isOver) {
    for (const [key, { passed, isUsedUp, lostBefore }] of this.#known) {
      if (!isSettled(key)) continue;
      this.#known.delete(key);
      forget(key);
      this.#soak.count('ids counted');
      if (isUsedUp && passed + this.#lost - lostBefore < MAX) {
        this.#soak.violate(`only ${passed} of ${MAX} passed for ${key}`);
      }
    }
  }
}

/** A process after the other, each killed some time later. */
async function keepProcess(soak, counts, random) {
  while (!soak.isOver) {
    const child = spawn(process.execPath, ['--no-warnings', __filename, NAME], {
      stdio: ['pipe', 'ignore', 'inherit', 'pipe'],
    });
    const ended = once(child, 'close');
    createInterface({ input: child.stdio[3] }).on('line', (line) => {
      if (line === '0') counts.lose(1);
      else counts.tell(line.slice(1), line[0] === '+');
    });
    await pause(random.between(...LIFE_MS));
    counts.lose(LOST_BY_A_KILL);
    child.kill('SIGKILL');
    const [code, signal] = await ended;
    if (signal !== 'SIGKILL') soak.violate(`a process ended with ${code ?? signal}`);
    soak.count('kills');
  }
}

/** This process takes part, too, and is not killed. */
function survive(soak, counts) {
  const { step, forget } = createLoad(NAME, (key, isAllowed) => counts.tell(key, isAllowed));
  return soak.repeat(async () => {
    const until = performance.now() + SLICE_MS;
    while (performance.now() < until) step();
    soak.count('rounds of the survivor');
    counts.settle(forget);
    await pause(REST_MS);
  });
}

/** What is left when all are dead is whole, and gone when it is removed. */
async function expectLeftWhole(soak, files) {
  for (const options of optionsFor(NAME)) {
    const limiter = RateLimiter(options);
    const first = Array.from({ length: MAX + 1 }, () => limiter('a new id') === 0);
    if (first.indexOf(false) !== MAX) soak.violate(`${options.algorithm}: passed ${first}`);
    await limiter.clearAll();
    const { keys } = limiter.stats();
    if (keys !== 0) soak.violate(`${options.algorithm}: ${keys} ids are left after clearAll`);
    await limiter.close();
    if (!RateLimiter.unlinkShared(options.shared.name)) soak.violate('there was no region');
  }
  if (files.length !== optionsFor(NAME).length) soak.violate(`the regions were ${files}`);
  const left = filesOf(NAME);
  if (left.length > 0) soak.violate(`still there: ${left}`);
}

async function load(soak) {
  const counts = new Counts(soak);
  const random = randomFrom(soak.seed);
  const processes = Array.from({ length: PROCESSES }, () => keepProcess(soak, counts, random));
  await Promise.all([survive(soak, counts), ...processes]);
  counts.settle(
    () => {},
    () => true,
  );
  await expectLeftWhole(soak, filesOf(NAME));
}

/** This file is three programs: the soak test, a process that it starts and kills, and a thread of that process. */
const [argument] = process.argv.slice(2);
if (!isMainThread) {
  const { step } = createLoad(workerData, tell);
  for (;;) step();
} else if (argument.startsWith('--')) {
  require('./soak').main('shared memory', load);
} else {
  run(argument);
}
