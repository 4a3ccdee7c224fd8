// What befalls the processes and the server of a simulation, within the assumptions of the protocols:
// docs/design/remote-stores.md.
'use strict';

/** In us: how far standstills that no clock shows, and steps forward of the server's clock, may go together. */
const GUARD_US = 1_000_000;
/** How far the rates of clocks may differ. */
const LARGEST_DRIFT = 1 / 8;

const LONGEST_HALTS = [0.2, 1, 2]; // in lifetimes and the guard
const LONGEST_STEP_BACK_US = 2_000_000;
/** In percent. */
const RARELY = 20;
const WALL_STEP_MS = 5000;

/** Standstills and steps that still count against the guard. */
class Guard {
  #used = [];
  #memoryUs;

  /** @param {number} memoryUs how long a lease or slot may be out, at most */
  constructor(memoryUs) {
    this.#memoryUs = memoryUs;
  }

  /** What is left for one process, or for all. */
  left(now, process) {
    this.#used = this.#used.filter(({ end }) => end > now - this.#memoryUs);
    const ofAll = this.#sumOf(undefined);
    const others = process === undefined ? this.#used.map((each) => each.process) : [process];
    const ofEach = [...new Set(others)].filter(Boolean).map((each) => this.#sumOf(each));
    return GUARD_US - ofAll - Math.max(0, ...ofEach);
  }

  #sumOf(process) {
    const own = this.#used.filter((each) => each.process === process);
    return own.reduce((sum, { us }) => sum + us, 0);
  }

  use(us, end, process) {
    this.#used.push({ us, end, process });
  }
}

/** By name: what may happen to a simulation. */
const FAULTS = {
  kill({ running, random, schedule, begin }) {
    if (!random.chance(RARELY)) return;
    const process = random.pick(running);
    schedule.note(`${process.name} is killed`);
    process.kill();
    begin();
  },
  stop(simulation) {
    halt(simulation, 'stopped', simulation.anyHaltUs());
  },
  suspend(simulation) {
    halt(simulation, 'suspended', simulation.anyHaltUs());
  },
  pauseUnseen(simulation) {
    const { running, random, schedule, guard } = simulation;
    if (running.length < 2) return;
    const process = random.pick(running);
    const us = anyPartOf(guard.left(schedule.now, process), random);
    if (us === 0) return;
    guard.use(us, schedule.now + us, process);
    halt(simulation, 'unseen', us, process);
  },
  stepForward({ schedule, random, guard, serverClock }) {
    const us = anyPartOf(guard.left(schedule.now), random);
    if (us === 0) return;
    guard.use(us, schedule.now);
    schedule.note(`the server's clock steps forward by ${us / 1000} ms`);
    serverClock.step(us);
  },
  /** Rarely, because meanwhile everything is full. */
  stepBack({ schedule, random, serverClock }) {
    const us = random.between(1, LONGEST_STEP_BACK_US);
    if (serverClock.behind + us > schedule.now / 10) return;
    schedule.note(`the server's clock steps back by ${us / 1000} ms`);
    serverClock.step(-us);
  },
  stepWall({ running, random, schedule }) {
    const process = random.pick(running);
    const ms = random.between(-WALL_STEP_MS, WALL_STEP_MS);
    schedule.note(`the wall clock of ${process.name} steps by ${ms} ms`);
    process.clocks.stepWall(ms);
  },
  cut(simulation) {
    const { running, random, schedule } = simulation;
    const connected = running.filter(({ cutUntil }) => cutUntil <= schedule.now);
    if (connected.length > 1) cut(simulation, random.pick(connected));
  },
  /** Its replies are late, and then there are none. */
  fade(simulation) {
    const { running, random, schedule, mood } = simulation;
    const process = random.pick(running);
    process.slowUs = random.between(0, mood.lifetimeUs);
    const us = random.between(0, mood.lifetimeUs);
    schedule.note(
      `${process.name} gets replies ${process.slowUs / 1000} ms late for ${us / 1000} ms`,
    );
    schedule.after(us, () => {
      process.slowUs = 0;
      cut(simulation, process);
    });
  },
  drift({ running, random, schedule }) {
    const process = random.pick(running);
    process.clocks.rate = anyRate(random);
    schedule.note(`the clocks of ${process.name} run at ${process.clocks.rate}`);
  },
};

function cut({ schedule, anyHaltUs }, process) {
  const us = anyHaltUs();
  schedule.note(`${process.name} is cut off for ${us / 1000} ms`);
  process.cutUntil = schedule.now + us;
}

function anyRate(random) {
  return 1 + random.pick([-1, -1, 1, random.between(-100, 100) / 100]) * LARGEST_DRIFT;
}

/** All of it as often as less. */
function anyPartOf(left, random) {
  if (left <= 0) return 0;
  return random.chance(50) ? left : random.between(1, left);
}

/** Not all at once. */
function halt({ running, random, schedule }, how, us, process = random.pick(running)) {
  if (running.length < 2) return;
  schedule.note(`${process.name} is ${how} for ${us / 1000} ms`);
  process.halt(how);
  schedule.after(us, () => {
    schedule.note(`${process.name} goes on`);
    process.goOn();
  });
}

/** What a simulation is like: some faults are frequent, and others do not occur. */
function moodOf(random, lifetimeUs) {
  return {
    lifetimeUs,
    late: random.pick([0, 5, 20]),
    latestUs: Math.floor(lifetimeUs * random.pick([0.1, 0.5, 2])),
    lost: random.pick([0, 0, 2, 8]),
    repeated: random.pick([0, 3, 15]),
    longTurns: random.pick([0, 0, 1]),
    faultEveryUs: Math.floor(lifetimeUs * random.pick([0.1, 0.3, 1])),
    longestHaltUs: Math.floor((lifetimeUs + GUARD_US) * random.pick(LONGEST_HALTS)),
    faults: Object.keys(FAULTS).filter(() => random.chance(40)),
  };
}

module.exports = { FAULTS, anyRate, GUARD_US, Guard, moodOf };
