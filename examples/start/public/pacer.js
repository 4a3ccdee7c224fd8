// Calls a function again and again at a pace that may be changed while it runs.

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
