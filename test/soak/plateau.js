// Whether something that is weighed again and again has stopped growing.
'use strict';

/** Of the time: what is filled then stays filled. */
const WARM_UP = 0.25;

const median = (numbers) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1];

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

module.exports = { Plateau };
