// The uses of ids in a simulation, and whether they are within the limits in each interval.
'use strict';

/** Of one id. Times are those of the reference clock, in us. */
class Uses {
  #windows;
  #longest;
  /** { time, cost }, the earliest first. */
  #uses = [];

  /** @param {{ interval: number, max: number }[]} windows interval in us */
  constructor(windows) {
    this.#windows = windows;
    this.#longest = Math.max(...windows.map(({ interval }) => interval));
  }

  /** Adds one, which may be earlier than others. Returns it. */
  add(time, cost) {
    const use = { time, cost };
    const uses = this.#uses;
    let place = uses.length;
    while (place > 0 && uses[place - 1].time > time) place -= 1;
    uses.splice(place, 0, use);
    return use;
  }

  /** Others are too old for an interval with `time`, or with a later one. */
  forgetBefore(time) {
    const kept = this.#uses.findIndex((use) => use.time > time - 2 * this.#longest);
    if (kept > 0) this.#uses.splice(0, kept);
  }

  /** A window that has more uses in one of the intervals with this one than it may: { interval, max, used }. */
  excessAround({ time }) {
    for (const { interval, max } of this.#windows) {
      const near = this.#uses.filter((use) => Math.abs(use.time - time) < interval);
      for (const { time: first } of near) {
        if (first > time) break;
        const inside = near.filter((use) => use.time >= first && use.time - first < interval);
        const used = inside.reduce((sum, { cost }) => sum + cost, 0);
        if (used > max) return { interval, max, used };
      }
    }
    return undefined;
  }
}

module.exports = { Uses };
