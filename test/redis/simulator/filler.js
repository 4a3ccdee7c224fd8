// A process without leases that takes all that is free, shortly before a use of somebody else's lease may leave a window:
// what the server has forgotten too early is used twice then.
'use strict';

/** One after the other, as long as there is room. */
const COSTS = [16, 16, 8, 8, 4, 4, 2, 2, 1, 1];

/** Parts of a lease. */
const LONGEST_BEFORE = [1 / 4, 1 / 16, 1 / 64];
const OLD = 3 / 4;
const LATENCY_US = 2000;

class Filler {
  #simulation;
  #take;
  #windows;
  #lifetimeUs;
  #nextAt = 0;

  /**
   * @param {Function} options.take (id, cost) makes an attempt in that process
   * @param {{ interval: number }[]} options.windows interval in us
   */
  constructor(simulation, { take, windows, lifetimeUs }) {
    this.#simulation = simulation;
    this.#take = take;
    this.#windows = windows;
    this.#lifetimeUs = lifetimeUs;
  }

  /** Not often, so that there is room for leases at other times; but if the process has long been silent. */
  used(id, { sentAt }) {
    const { schedule, random } = this.#simulation;
    const isOld = schedule.now - sentAt > OLD * this.#lifetimeUs;
    if (!isOld && (schedule.now < this.#nextAt || !random.chance(20))) return;
    const { interval } = random.pick(this.#windows);
    const longest = Math.ceil(this.#lifetimeUs * random.pick(LONGEST_BEFORE));
    const before = random.between(1, longest) + LATENCY_US;
    schedule.after(Math.max(0, interval - before), () => {
      schedule.note('the filler takes what is free');
      for (const cost of COSTS) this.#take(id, cost);
    });
    this.#nextAt = schedule.now + random.between(interval, 3 * interval);
  }
}

module.exports = { Filler };
