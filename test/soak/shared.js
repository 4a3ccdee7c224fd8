// The soak test in shared memory: processes and threads on the same regions, killed at any moment.
'use strict';

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const path = require('node:path');
const { createInterface } = require('node:readline');
const { setTimeout: pause } = require('node:timers/promises');
const RateLimiter = require('../..');
const { filesOf } = require('../support/shared-regions');
const { randomFrom } = require('../support/traces');
const { MAX, createLoad, isOver, optionsFor } = require('./shared-load');
const { isSanitized, main } = require('./soak');

const NAME = `soak-${process.pid}`;
const PROGRAM = path.join(__dirname, 'shared-program.js');
const PROCESSES = 3;
/** Each thread of a killed process may have counted one of which it has not told. */
const LOST_BY_A_KILL = 2;
/** A process has to come to its work. */
const LIFE_MS = isSanitized ? [2000, 5000] : [200, 2000];
const SLICE_MS = 5;
const REST_MS = 10;

/** What passed of each counted id, by what the survivors and the dead have told. */
class Counts {
  #soak;
  #known = new Map();
  #lost = 0;

  constructor(soak) {
    this.#soak = soak;
  }

  /** So many may have been counted of which nobody was told. */
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

  /** Looks at whether the ids that nobody asks for any more could be used up, and forgets them. */
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
    const child = spawn(process.execPath, ['--no-warnings', PROGRAM, NAME], {
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
    const first = Array.from({ length: MAX + 1 }, () => limiter('nobody asked for it') === 0);
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

main('shared memory', async (soak) => {
  const counts = new Counts(soak);
  const random = randomFrom(soak.seed);
  const processes = Array.from({ length: PROCESSES }, () => keepProcess(soak, counts, random));
  await Promise.all([survive(soak, counts), ...processes]);
  counts.settle(
    () => {},
    () => true,
  );
  await expectLeftWhole(soak, filesOf(NAME));
});
