// How many uses surely fell into one interval, if of each is known only between which two moments it happened.
'use strict';

/** Clocks of processes of one host differ by some microseconds. */
const SLACK_US = 100;
/** Uses that take as long are in no interval for sure. A number has room for this and for 71 minutes of moments. */
const LONGEST_US = 2 ** 21;
const LATEST_US = 2 ** 32;

const beginOf = (use) => Math.floor(use / LONGEST_US);
const tookOf = (use) => use % LONGEST_US;
const endOf = (use) => beginOf(use) + tookOf(use);

/** Uses of one limit, each with the moments that it surely lies between, in us since a moment that all share. */
class SureUses {
  #uses = [];
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
    const byBegin = Float64Array.from(this.#uses)
      .sort()
      .filter((use) => tookOf(use) < room);
    const ends = byBegin.map(endOf).sort();
    let most = 0;
    let ended = 0; // how many end before the interval does; all that begin before it are among them
    for (const [missed, use] of byBegin.entries()) {
      while (ended < ends.length && ends[ended] < beginOf(use) + room) ended += 1;
      most = Math.max(most, ended - missed);
    }
    return most;
  }
}

module.exports = { SureUses };
