// Whether Redis is out of reach, and asking now and then whether it is back.
'use strict';

const CODES = ['TIMEOUT', 'UNREACHABLE', 'AUTH', 'CLOSED'].map(
  (kind) => `ERR_ROLLGATE_REDIS_${kind}`,
);

/**
 * An outage begins with a failure that the next call would meet as well, and ends when a ping is
 * answered. Pings are started by those who ask `isOn`, one at a time: there is no timer.
 */
class Outage {
  #ping;
  #isOn = false;
  #isAsking = false;

  /** @param {() => Promise<void>} ping */
  constructor(ping) {
    this.#ping = ping;
  }

  note(error) {
    if (CODES.includes(error.code)) this.#isOn = true;
  }

  get isOn() {
    if (this.#isOn && !this.#isAsking) this.#ask();
    return this.#isOn;
  }

  async #ask() {
    this.#isAsking = true;
    try {
      await this.#ping();
      this.#isOn = false;
    } catch {
      // Not back yet: that is the answer.
    } finally {
      this.#isAsking = false;
    }
  }
}

module.exports = { Outage };
