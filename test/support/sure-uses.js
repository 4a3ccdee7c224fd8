// How many uses surely fell into one interval, if of each is known only between which two moments it happened.
'use strict';

/** Clocks of processes of one host differ by some microseconds. */
const SLACK_US = 100;
/** Uses that take as long are in no interval for sure. A number has room for this and for 71 minutes of moments. */
const LONGEST_US = 2 ** 21;
const LATEST_US = 2 ** 32;

/** Numbers in an array that grows. */
class Numbers {
  #values = new Float64Array(1024);
  count = 0;

  push(value) {
    if (this.count === this.#values.length) {
      const larger = new Float64Array(2 * this.count);
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#values[this.count++] = value;
  }

  sorted() {
    return this.#values.slice(0, this.count).sort();
  }
}

/** Uses of one limit, each with the moments that it surely lies between, in us since a moment that all share. */
class SureUses {
  #uses = new Numbers();
  /** All that were noted, also those that took too long to be in an interval for sure. */
  count = 0;

  note(begin, end) {
    if (!(begin >= 0 && end >= begin && end < LATEST_US)) throw new Error(`${begin} to ${end}`);
    this.count += 1;
    const took = Math.ceil(end - begin);
    if (took < LONGEST_US) this.#uses.push(Math.floor(begin) * LONGEST_US + took);
  }

  /** The most uses that began and ended within one interval. `intervalUs` is below two seconds. */
  mostIn(intervalUs) {
    const room = intervalUs - SLACK_US;
    if (!(room > 0 && room < LONGEST_US)) throw new Error(`an interval of ${intervalUs} us`);
    const byBegin = this.#uses.sorted().filter((use) => tookOf(use) < room);
    const byEnd = byBegin
      .map((use) => (beginOf(use) + tookOf(use)) * LONGEST_US + tookOf(use))
      .sort();
    let most = 0;
    let ended = 0; // how many end before the interval does; all that begin before it are among them
    for (const [missed, use] of byBegin.entries()) {
      const end = beginOf(use) + room;
      while (ended < byEnd.length && beginOf(byEnd[ended]) < end) ended += 1;
      most = Math.max(most, ended - missed);
    }
    return most;
  }
}

const beginOf = (use) => Math.floor(use / LONGEST_US);
const tookOf = (use) => use % LONGEST_US;

module.exports = { SLACK_US, SureUses };
