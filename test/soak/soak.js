// What the parts of the soak test have in common: time, progress, what went wrong, how it ends.
'use strict';

const fs = require('node:fs');
const { setTimeout: pause } = require('node:timers/promises');
const { parseArgs } = require('node:util');
const { liveLimiters } = require('../../lib/native').loadAddon();
const { Plateau } = require('./plateau');

const PROGRESS_MS = 10_000;
const SAMPLE_MS = 250;
/** A shorter run is not yet warm. */
const JUDGED_FROM_SECONDS = 20;
const VIOLATIONS_SHOWN = 10;
const VIOLATIONS_BORNE = 1000;
/** For what should have ended to end. */
const PATIENCE_MS = 10_000;

const isSanitized = Boolean(process.env.ROLLGATE_SANITIZED);
const OPEN_FILES = '/proc/self/fd';

const plateaus = () => [
  new Plateau('RSS in MB', () => process.memoryUsage.rss() / 1e6, { share: 0.1, slack: 15 }),
  ...(fs.existsSync(OPEN_FILES)
    ? [
        new Plateau('open files', () => fs.readdirSync(OPEN_FILES).length, {
          share: 0.1,
          slack: 10,
        }),
      ]
    : []),
];

/** One turn of the event loop. */
const turn = () => new Promise(setImmediate);

class Soak {
  #counts = new Map();
  #started = performance.now();
  #end;
  violations = 0;

  constructor(name, { seconds, seed }) {
    this.name = name;
    this.seed = seed;
    this.#end = this.#started + seconds * 1000;
  }

  get isOver() {
    return performance.now() >= this.#end;
  }

  count(what, by = 1) {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + by);
  }

  /** Something that must never be. */
  violate(message) {
    this.violations += 1;
    if (this.violations <= VIOLATIONS_SHOWN) console.error(`VIOLATION (${this.name}): ${message}`);
    if (this.violations >= VIOLATIONS_BORNE) this.#end = 0;
  }

  /** Runs until time is over; nobody is delayed by more than a slice of it. */
  async repeat(slice) {
    while (!this.isOver) {
      await slice();
      await turn();
    }
  }

  report() {
    const seconds = Math.round((performance.now() - this.#started) / 1000);
    const counts = [...this.#counts].map(([what, n]) => `${what} ${n.toLocaleString('en')}`);
    const rss = Math.round(process.memoryUsage.rss() / 1e6);
    console.log(
      `${this.name}, ${seconds} s: violations ${this.violations}, RSS ${rss} MB; ${counts.join(', ')}`,
    );
  }
}

/** Natively nothing is left of limiters that nobody holds any more. */
async function expectAllFreed(soak) {
  const deadline = performance.now() + PATIENCE_MS;
  while (liveLimiters() > 0 && performance.now() < deadline) {
    global.gc();
    await pause(10);
  }
  if (liveLimiters() > 0) soak.violate(`${liveLimiters()} limiters were dropped and not freed`);
}

/** Whoever keeps the process alive keeps this from being forgotten. */
function expectToExit(soak) {
  const impatience = setTimeout(() => {
    soak.violate(`the process is kept alive by ${process.getActiveResourcesInfo()}`);
    process.exit(1);
  }, PATIENCE_MS);
  impatience.unref();
}

function judge(soak, weighed, seconds) {
  if (isSanitized || seconds < JUDGED_FROM_SECONDS) {
    console.log(`${soak.name}: sanitized or too short, so growth is not judged`);
    return;
  }
  for (const plateau of weighed) {
    const { isPlateau, text } = plateau.verdict();
    console.log(`${soak.name}: ${text}`);
    if (!isPlateau) soak.violate(`still growing: ${text}`);
  }
}

/** Runs a part of the soak test as this program: `load(soak)` has to end when soak.isOver. */
async function main(name, load) {
  const { values } = parseArgs({
    options: { seconds: { type: 'string' }, seed: { type: 'string', default: '1' } },
  });
  const seconds = Number(values.seconds);
  const soak = new Soak(name, { seconds, seed: Number(values.seed) });
  const weighed = plateaus();
  const sampling = setInterval(() => {
    for (const plateau of weighed) plateau.sample();
  }, SAMPLE_MS);
  const telling = setInterval(() => soak.report(), PROGRESS_MS);
  process.removeAllListeners('warning'); // it would be printed, too
  process.on('warning', ({ code, message }) => {
    if (code !== 'ROLLGATE_EVICTED') soak.violate(`a warning: ${message}`);
  });
  try {
    await load(soak);
  } catch (error) {
    soak.violate(error.stack);
  }
  clearInterval(sampling);
  clearInterval(telling);
  judge(soak, weighed, seconds);
  await expectAllFreed(soak);
  soak.report();
  process.exitCode = soak.violations === 0 ? 0 : 1;
  expectToExit(soak);
}

module.exports = { isSanitized, main, turn };
