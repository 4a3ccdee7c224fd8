// The page's model of one route: the events of the server, and the state of the window at any moment.

/**
 * A refusal is recorded only if refusals count. The limiter remembers the newest `maxInInterval`
 * recorded actions. If all of them are in the window, it is full, and the next action is allowed once the
 * oldest of them has left. All times are ms of the server's clock.
 */
export class RollingWindow {
  #actions = new Map();

  constructor({ interval, maxInInterval, countBlocked }) {
    this.interval = interval;
    this.maxInInterval = maxInInterval;
    this.countBlocked = countBlocked;
  }

  /** The response and the event of one action are the same action. */
  add(action) {
    this.#actions.set(action.n, action);
  }

  forgetBefore(time) {
    for (const [n, { at }] of this.#actions) {
      if (at < time) this.#actions.delete(n);
    }
  }

  at(now) {
    const actions = [...this.#actions.values()].sort((a, b) => a.n - b.n);
    const isInside = ({ at }) => at > now - this.interval;
    const recorded = actions.filter(({ allowed }) => allowed || this.countBlocked);
    const counted = recorded.slice(-this.maxInInterval).filter(isInside);
    const countedNumbers = new Set(counted.map(({ n }) => n));
    const oldest = counted[0];
    const isFull = counted.length === this.maxInInterval;
    return {
      isFull,
      used: counted.length,
      remaining: this.maxInInterval - counted.length,
      oldest,
      timeLeft: isFull ? oldest.at + this.interval - now : 0,
      marks: actions.map((action) => ({ action, state: stateOf(action) })),
    };

    function stateOf(action) {
      if (countedNumbers.has(action.n)) return 'counted';
      return isInside(action) ? 'uncounted' : 'left';
    }
  }
}
