// One simulation: processes, a network and a server, what befalls them, and whether a promise was broken. All of it
// follows from the seed.
//
// The processes run lib as it is, with clocks, timers and a network of their own (process.js, network.js), against the
// scripts on a real Redis, which see the simulated time (server.js). Nothing waits for real time: one event follows the
// other (schedule.js). Faults stay within what the protocols assume (faults.js): clocks differ in rate by an eighth;
// steps forward of the server's clock and standstills that no clock shows are together at most the guard; no state is
// lost. `clear` is left out, because permits and slots elsewhere may be used once more after it.
'use strict';

const { randomFrom } = require('../../support/traces');
const { ServerClock } = require('./clocks');
const { FAULTS, GUARD_US, Guard, anyRate, moodOf } = require('./faults');
const { Network } = require('./network');
const { SimulatedProcess } = require('./process');
const { Schedule } = require('./schedule');

class Simulation {
  schedule = new Schedule();
  processes = [];
  /** The first broken promise. */
  violation;
  #begun = 0;
  #workload;
  #isOver;

  /**
   * @param {object} options
   * @param {object} options.server what SimulatedServer.forOne gives
   * @param {() => boolean} options.isOver whether nobody wants to know the result any more
   * @param {Function} createWorkload (simulation) gives an object:
   *   - lifetimeUs: how long a lease or a slot lasts
   *   - processes: how many there are
   *   - begin(process, client) starts what the process does
   *   - onReply({ process, words, reference, reply }), called before the process sees a reply
   */
  constructor({ seed, server, isOver }, createWorkload) {
    this.seed = seed;
    this.server = server;
    this.random = randomFrom(seed);
    this.serverClock = new ServerClock(this.schedule);
    this.network = new Network(this);
    this.#isOver = isOver;
    this.#workload = createWorkload(this);
    const { lifetimeUs } = this.#workload;
    this.mood = moodOf(this.random, lifetimeUs);
    this.guard = new Guard(lifetimeUs + 2 * GUARD_US);
    this.begin = this.begin.bind(this);
    this.onReply = (reply) => this.#workload.onReply?.(reply);
  }

  get running() {
    return this.processes.filter((process) => process.isRunning);
  }

  anyHaltUs = () => this.random.between(1000, this.mood.longestHaltUs);

  begin() {
    this.#begun += 1;
    const { process, client } = this.createProcess(`p${this.#begun}`);
    this.processes = [...this.processes.filter(({ isDead }) => !isDead), process];
    if (this.mood.faults.includes('drift')) process.clocks.rate = anyRate(this.random);
    this.schedule.note(`${process.name} begins`);
    this.#workload.begin(process, client);
  }

  /** One that nothing befalls, unless it is one of `processes`. */
  createProcess(name) {
    const process = new SimulatedProcess(name, this);
    return { process, client: this.network.clientOf(process) };
  }

  broken(promise) {
    this.violation ??= `${promise}\nseed ${this.seed}; the last steps:\n${this.schedule.lastSteps}`;
  }

  /** For so many lifetimes of a lease or slot. Promises the workload at the end. */
  async run(lifetimes) {
    for (let i = 0; i < this.#workload.processes; i++) this.begin();
    if (this.mood.faults.length > 0) this.#befall();
    const isOver = () => this.violation !== undefined || this.#isOver();
    await this.schedule.run(lifetimes * this.#workload.lifetimeUs, isOver);
    for (const process of this.processes) process.kill();
    return this.#workload;
  }

  #befall() {
    const { random, mood, schedule } = this;
    schedule.after(random.between(1, 2 * mood.faultEveryUs), () => {
      if (this.running.length > 0) FAULTS[random.pick(mood.faults)](this);
      this.#befall();
    });
  }
}

module.exports = { Simulation };
