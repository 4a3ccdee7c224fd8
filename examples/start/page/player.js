// The time of a run: plays it, steps through it, stops at its end.
'use strict';

/** After a pause of the browser, a run continues where it was. */
const LONGEST_FRAME_MS = 100;
/** With reduced motion, a run goes on in steps of this length. */
const CALM_STEP_MS = 600;

class Player {
  #frame;
  #before;

  speed = 1;
  time = 0;
  end = 0;
  isCalm = () => false;

  /** @param {() => void} onChange is called after each change of `time` or `isPlaying` */
  constructor(onChange) {
    this.onChange = onChange;
    document.addEventListener('visibilitychange', () => {
      if (document.hidden) this.pause();
    });
  }

  get isPlaying() {
    return this.#frame !== undefined;
  }

  get isAtEnd() {
    return this.time >= this.end;
  }

  play() {
    if (this.isPlaying || document.hidden) return;
    if (this.isAtEnd) this.time = 0;
    this.#before = undefined;
    this.#schedule();
    this.onChange();
  }

  pause() {
    if (!this.isPlaying) return;
    cancelAnimationFrame(this.#frame);
    this.#frame = undefined;
    this.onChange();
  }

  seek(time) {
    this.time = Math.min(Math.max(time, 0), this.end);
    this.onChange();
  }

  #schedule() {
    this.#frame = requestAnimationFrame((at) => {
      this.#before ??= at;
      const passed = at - this.#before;
      if (!this.isCalm()) this.#advance(at, Math.min(passed, LONGEST_FRAME_MS));
      else if (passed >= CALM_STEP_MS) this.#advance(at, CALM_STEP_MS);
      else this.#schedule();
    });
  }

  #advance(at, passed) {
    this.#before = at;
    this.time = Math.min(this.time + passed * this.speed, this.end);
    if (this.isAtEnd) this.#frame = undefined;
    else this.#schedule();
    this.onChange();
  }
}

module.exports = { Player };
