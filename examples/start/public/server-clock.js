// An estimate of the server's clock, so that marks are at the server's times.

/**
 * A message is never received before it was sent. So the smallest observed difference of the two
 * clocks is the best estimate.
 */
export class ServerClock {
  #offset = Infinity;

  reset() {
    this.#offset = Infinity;
  }

  observe(serverTime) {
    this.#offset = Math.min(this.#offset, performance.now() - serverTime);
  }

  now() {
    return performance.now() - this.#offset;
  }
}
