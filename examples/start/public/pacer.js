// Calls a function repeatedly at a pace that can change while it runs.

export class Pacer {
  #timer;
  #pauseMs = 1000;

  constructor(action) {
    this.action = action;
  }

  get isRunning() {
    return this.#timer !== undefined;
  }

  set pauseMs(ms) {
    this.#pauseMs = ms;
    if (!this.isRunning) return;
    this.stop();
    this.#schedule();
  }

  start() {
    if (this.isRunning) return;
    this.action();
    this.#schedule();
  }

  stop() {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #schedule() {
    this.#timer = setInterval(() => this.action(), this.#pauseMs);
  }
}
