// A simulated process: a copy of the program with clocks and timers of its own, which is stopped, suspended and killed.
'use strict';

const crypto = require('node:crypto');
const native = require('../../../lib/native');
const platform = require('../../../lib/base/platform/node');
const { ProcessClocks } = require('./clocks');
const { createProgram } = require('./program');

const LONGEST_TURN_US = 300_000;

/** When memory is collected does not follow from the seed. */
class NothingIsCollected {
  register() {}
  unregister() {}
}

class SimulatedProcess {
  clocks;
  load;
  isDead = false;
  isHalted = false;
  /** Until then it loses all messages and replies. */
  cutUntil = 0;
  /** When it sent its latest message. */
  sentAt = 0;
  /** How much later than usual it gets replies. */
  slowUs = 0;
  #simulation;
  #due = []; // while it is halted
  #timers = new Set();

  constructor(name, simulation) {
    this.name = name;
    this.#simulation = simulation;
    this.clocks = new ProcessClocks(simulation.schedule, simulation.random);
    this.load = createProgram(this.#host());
  }

  get isRunning() {
    return !this.isDead && !this.isHalted;
  }

  /** Something that happens in the process; once it goes on, if it is halted. */
  after(us, happen) {
    const begin = () => {
      if (this.isDead) return undefined;
      if (!this.isHalted) return happen();
      this.#due.push(happen);
      return undefined;
    };
    this.#simulation.schedule.after(us, begin);
  }

  /** `how` is 'stopped', 'suspended' or 'unseen': see ProcessClocks. */
  halt(how) {
    this.isHalted = true;
    this.clocks.halt(how);
  }

  goOn() {
    if (this.isDead) return;
    this.isHalted = false;
    this.clocks.halt('no more');
    const { random } = this.#simulation;
    for (const happen of this.#due.splice(0)) this.after(random.between(0, 1000), happen);
  }

  kill() {
    this.isDead = true;
    this.#timers.clear();
  }

  #setTimer(call, ms, again) {
    const { random } = this.#simulation;
    const delay = Math.max(1, Math.floor(ms || 1));
    const timer = { ref: () => timer, unref: () => timer, hasRef: () => false };
    let due = this.clocks.steady() + delay;
    const arm = () => {
      const left = (due - this.clocks.steady()) / this.clocks.rate;
      this.after(left * 1000 + random.between(0, 1000), fire);
    };
    const fire = () => {
      if (!this.#timers.has(timer)) return;
      if (this.clocks.steady() < due) {
        arm();
        return;
      }
      due = this.clocks.steady() + delay;
      if (again) arm();
      else this.#timers.delete(timer);
      call();
    };
    this.#timers.add(timer);
    arm();
    return timer;
  }

  /** A turn of the event loop may be long. */
  #setImmediate(call) {
    const { random, mood } = this.#simulation;
    this.after(random.chance(mood.longTurns) ? random.between(0, LONGEST_TURN_US) : 0, call);
  }

  #host() {
    const { clocks } = this;
    const { random } = this.#simulation;
    const performance = { now: () => clocks.steady() };
    const clear = (timer) => this.#timers.delete(timer);
    const timers = {
      setTimeout: (call, ms, ...given) => this.#setTimer(() => call(...given), ms, false),
      setInterval: (call, ms, ...given) => this.#setTimer(() => call(...given), ms, true),
      setImmediate: (call, ...given) => this.#setImmediate(() => call(...given)),
      clearTimeout: clear,
      clearInterval: clear,
    };
    class OwnDate extends Date {
      static now() {
        return Math.floor(clocks.wall());
      }
    }
    const unit = () => random.between(0, 2 ** 30 - 1) / 2 ** 30;
    const randomBytes = (count) =>
      Buffer.from(Array.from({ length: count }, () => random.between(0, 255)));
    return {
      globals: {
        ...timers,
        performance,
        Date: OwnDate,
        Math: Object.create(Math, { random: { value: unit } }),
        FinalizationRegistry: NothingIsCollected,
      },
      modules: {
        'node:crypto': { ...crypto, randomBytes },
        'node:perf_hooks': { performance },
        'node:timers': timers,
        'lib/native/index.js': { ...native, bootClock: () => () => clocks.boot() },
        'lib/base/platform/node.js': {
          ...platform,
          afterTurn: timers.setImmediate,
          monotonicMs: () => clocks.boot(),
          nextTurn: () => new Promise((resolve) => this.#setImmediate(resolve)),
          random32: () => random.between(0, 2 ** 32 - 1),
          randomBytes,
        },
      },
    };
  }
}

module.exports = { SimulatedProcess };
