// The server's clock as seen from the page, so that marks stand where the server puts them.

/**
 * A message is read somewhat after it was sent, never before: the smallest difference seen between the
 * two clocks is the truest.
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
