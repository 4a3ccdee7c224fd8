// What the parts of the soak test share: time, progress, violations, growth, and loads that two of them make.
'use strict';

const fs = require('node:fs');
const { setTimeout: pause } = require('node:timers/promises');
const { parseArgs } = require('node:util');
const RateLimiter = require('../..');
const { liveLimiters } = require('../../lib/native/addon').loadAddon();
const { ALGORITHM_NAMES } = require('../conformance/oracle');
const { SHORT_UNITS, randomPolicy, randomTrace } = require('../conformance/random-traces');
const { expectTrace } = require('../conformance/replay');
const { patient } = require('../support/tiers');
const { randomFrom } = require('../support/traces');

/** The share of the time in which caches fill. */
const WARM_UP = 0.25;

const median = (numbers) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1];

/** Whether something that is weighed again and again has stopped growing. */
class Plateau {
  #samples = [];

  /**
   * `weigh()` gives a number; its median in the later half may be above that in the earlier half by
   * `share` of it and by `slack`.
   */
  constructor(what, weigh, { share, slack }) {
    Object.assign(this, { what, weigh, share, slack });
  }

  sample() {
    this.#samples.push(this.weigh());
  }

  /** The medians of both halves behind the warm-up, rounded, and whether that is a plateau. */
  verdict() {
    const warm = this.#samples.slice(Math.floor(this.#samples.length * WARM_UP));
    const half = warm.length >> 1;
    const [earlier, later] = [warm.slice(0, half), warm.slice(half)].map(median);
    const isPlateau = later <= earlier * (1 + this.share) + this.slack;
    return { isPlateau, text: `${this.what}: ${Math.round(earlier)}, then ${Math.round(later)}` };
  }
}

const PROGRESS_MS = 10_000;
const SAMPLE_MS = 250;
/** Warnings of limiters that are full, or whose limits are drawn at random. */
const EXPECTED = ['ROLLGATE_EVICTED', 'ROLLGATE_GCRA_RATE'];
/** A shorter run is not yet warm. */
const JUDGED_FROM_SECONDS = 20;
const VIOLATIONS_SHOWN = 10;
const VIOLATIONS_BORNE = 1000;
/** How long what should have ended may take. */
const PATIENCE_MS = patient(10_000);

const isSanitized = Boolean(process.env.ROLLGATE_SANITIZED);
const OPEN_FILES = '/proc/self/fd';

function plateaus() {
  const rss = () => process.memoryUsage.rss() / 1e6;
  const files = () => fs.readdirSync(OPEN_FILES).length;
  const all = [new Plateau('RSS in MB', rss, { share: 0.1, slack: 15 })];
  if (fs.existsSync(OPEN_FILES)) {
    all.push(new Plateau('open files', files, { share: 0.1, slack: 10 }));
  }
  return all;
}

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

  /** Counts something that must never happen. */
  violate(message) {
    this.violations += 1;
    if (this.violations <= VIOLATIONS_SHOWN) console.error(`VIOLATION (${this.name}): ${message}`);
    if (this.violations >= VIOLATIONS_BORNE) this.#end = 0;
  }

  /** Repeats a slice of work until time is over, with a turn of the event loop after each. */
  async repeat(slice) {
    while (!this.isOver) {
      await slice();
      await new Promise(setImmediate);
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

/** The addon must free every limiter that was dropped. */
async function expectAllFreed(soak) {
  const deadline = performance.now() + PATIENCE_MS;
  while (liveLimiters() > 0 && performance.now() < deadline) {
    global.gc();
    await pause(10);
  }
  if (liveLimiters() > 0) soak.violate(`${liveLimiters()} limiters were dropped and not freed`);
}

/** A violation if something keeps the process alive. */
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
    if (!EXPECTED.includes(code)) soak.violate(`a warning: ${message}`);
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

/** The oracle looks at its whole history in each step, so traces are short. */
const STEPS = 80;

/** Limiters that come and go, each with a random trace beside the oracle. */
function followTraces(soak) {
  let seed = soak.seed;
  return soak.repeat(async () => {
    seed += 1;
    const random = randomFrom(seed);
    const algorithm = random.pick(ALGORITHM_NAMES);
    const policy = randomPolicy(random, { algorithm, units: SHORT_UNITS });
    const trace = randomTrace(random, { policy, steps: STEPS });
    try {
      await expectTrace(trace, (options) => RateLimiter(options), { algorithm, seed });
    } catch (error) {
      soak.violate(error.message);
    }
    soak.count('operations beside the oracle', trace.operations.length);
  });
}

module.exports = { followTraces, main, patient };
