// The clocks of a simulation: those of a process, by which the true time passes at another rate or not at all, and that
// of the server, which steps.
'use strict';

/** The server's clock at the beginning, in us. Far in the future, so that no key expires by the real clock. */
const BEGINNING = Date.UTC(2100, 0) * 1000;

/** In ms. `steady` is CLOCK_MONOTONIC, `boot` CLOCK_BOOTTIME, `wall` the time of the day. */
class ProcessClocks {
  #schedule;
  #at;
  #rate = 1;
  #isSuspended = false;
  #isUnseen = false;
  #times;

  constructor(schedule, random) {
    this.#schedule = schedule;
    this.#at = schedule.now;
    const steady = random.between(0, 1e6);
    const boot = steady + random.between(0, 1e6);
    this.#times = { steady, boot, wall: BEGINNING / 1000 + random.between(-1e6, 1e6) };
  }

  #go() {
    const ms = ((this.#schedule.now - this.#at) / 1000) * this.#rate;
    this.#at = this.#schedule.now;
    if (this.#isUnseen) return this.#times;
    this.#times.boot += ms;
    this.#times.wall += ms;
    if (!this.#isSuspended) this.#times.steady += ms;
    return this.#times;
  }

  get rate() {
    return this.#rate;
  }

  set rate(rate) {
    this.#go();
    this.#rate = rate;
  }

  /** In suspend only `steady` stands still; in a standstill that is unseen all do. */
  halt(how) {
    this.#go();
    this.#isSuspended = how === 'suspended';
    this.#isUnseen = how === 'unseen';
  }

  stepWall(ms) {
    this.#go().wall += ms;
  }

  steady = () => this.#go().steady;
  boot = () => this.#go().boot;
  wall = () => this.#go().wall;
}

/** In us. `reference` has the steps forward of the server's time, and not those backward, which `behind` has. */
class ServerClock {
  #schedule;
  behind = 0;
  #ahead = 0;

  constructor(schedule) {
    this.#schedule = schedule;
  }

  step(us) {
    if (us > 0) this.#ahead += us;
    else this.behind -= us;
  }

  get now() {
    return BEGINNING + this.reference - this.behind;
  }

  get reference() {
    return this.#schedule.now + this.#ahead;
  }
}

module.exports = { ProcessClocks, ServerClock };
