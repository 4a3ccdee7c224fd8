// What happens in a simulation, one thing after the other: events in the order of the true time, which nobody waits for.
'use strict';

const { setImmediate: turn } = require('node:timers/promises');

/** The last steps that a failure shows. */
const STEPS_SHOWN = 80;

class Schedule {
  /** The true time, in whole us. */
  now = 0;
  /** How many events there were. */
  count = 0;
  #events = [];
  #steps = [];

  /** Calls `happen`, which may return a promise, at that time. Of events at one time, the one that was added first. */
  at(time, happen) {
    const event = { time: Math.max(time, this.now), happen };
    let place = this.#events.length;
    while (place > 0 && this.#events[place - 1].time > event.time) place -= 1;
    this.#events.splice(place, 0, event);
  }

  after(us, happen) {
    this.at(this.now + Math.ceil(us), happen);
  }

  note(step) {
    this.#steps.push([this.now, step]);
    if (this.#steps.length === 2 * STEPS_SHOWN) this.#steps.splice(0, STEPS_SHOWN);
  }

  get lastSteps() {
    const steps = this.#steps.slice(-STEPS_SHOWN);
    return steps
      .map(([us, step]) => `${(us / 1000).toFixed(3).padStart(11)} ms  ${step}`)
      .join('\n');
  }

  /** Until `end`, or until isOver(). After each event, all that follows from it in the processes happens. */
  async run(end, isOver) {
    while (this.#events.length > 0 && this.#events[0].time <= end && !isOver()) {
      const { time, happen } = this.#events.shift();
      this.now = time;
      this.count += 1;
      await happen();
      await turn();
    }
    this.now = Math.max(this.now, end);
  }
}

module.exports = { Schedule };
