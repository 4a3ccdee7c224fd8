// Times that a limiter reads in the corpus' runs: moved by hand, never slept.
'use strict';

const { performance } = require('node:perf_hooks');

/** After all promises that are settled by now. It is never faked. */
const nextTick = () => new Promise(process.nextTick);

/** For limiters that take a clock: `elapsed()` and `wall()`, of which only the latter steps. In ms. */
function handTime(startMs) {
  let elapsedMs = 0;
  let stepped = 0;
  return {
    goTo: (ms) => {
      elapsedMs = ms;
    },
    step: (ms) => {
      stepped += ms;
    },
    elapsed: () => elapsedMs,
    monotonic: () => startMs + elapsedMs,
    wall: () => startMs + elapsedMs + stepped,
  };
}

let passedMs = performance.now();

/** For limiters that read Date.now and performance.now by themselves, without timers. */
function stubbedTime(startMs) {
  const time = handTime(startMs);
  const { now } = Date;
  passedMs += 1e9; // never goes back, as no monotonic clock does
  const base = passedMs;
  Date.now = time.wall;
  Object.defineProperty(performance, 'now', {
    configurable: true,
    value: () => {
      passedMs = base + time.elapsed();
      return passedMs;
    },
  });
  return {
    ...time,
    end() {
      Date.now = now;
      delete performance.now;
    },
  };
}

const FAKED = ['Date', 'performance', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'];

/** For limiters that read Date and performance and have timers: each timer runs at its moment, then what it resolved. */
function fakedTime(FakeTimers, startMs) {
  const clock = FakeTimers.install({ now: startMs, toFake: FAKED });
  const origin = clock.performance.now();
  const elapsed = () => clock.performance.now() - origin;
  return {
    elapsed,
    async goTo(ms) {
      let isThere = false;
      setTimeout(() => {
        isThere = true;
      }, ms - elapsed());
      while (!isThere) {
        clock.next();
        await nextTick();
      }
    },
    step: (ms) => clock.setSystemTime(Date.now() + ms),
    end: () => clock.uninstall(),
  };
}

module.exports = { fakedTime, handTime, stubbedTime };
