// Times and timers: exact sums of real time, timeouts of any length, one abort listener per signal.
'use strict';

/** The longest delay of Node's timers, in ms. They turn a longer one into 1 ms. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** Real time in whole us, so that sums are exact. */
const now = () => Math.round(performance.now() * 1000);

const fromNow = (ms) => now() + Math.round(ms * 1000);

/** Whole ms, rounded up, at least 1. */
const msUntil = (moment) => Math.max(1, Math.ceil((moment - now()) / 1000));

/** A timeout of any length; returns a function that cancels it. Keeps the process alive, unless in the background. */
function longTimeout(callback, ms, isInBackground = false) {
  let left = ms;
  let timer;
  function begin() {
    const step = Math.min(left, LONGEST_TIMER);
    left -= step;
    timer = setTimeout(left > 0 ? begin : callback, step);
    if (isInBackground) timer.unref?.(); // a number where there are no modules of Node
  }
  begin();
  return () => clearTimeout(timer);
}

/** Callbacks by signal: adding a listener to a signal takes longer the more listeners it has. */
const callbacksOf = new WeakMap();

function listen(signal) {
  const callbacks = new Set();
  const listener = () => {
    callbacksOf.delete(signal);
    for (const callback of callbacks) callback();
  };
  callbacksOf.set(signal, { callbacks, listener });
  signal.addEventListener('abort', listener, { once: true });
}

/** Calls back once when the signal aborts; returns a function that cancels that. */
function onAbort(signal, callback) {
  if (!callbacksOf.has(signal)) listen(signal);
  const { callbacks, listener } = callbacksOf.get(signal);
  callbacks.add(callback);
  return () => {
    callbacks.delete(callback);
    if (callbacks.size > 0 || callbacksOf.get(signal)?.callbacks !== callbacks) return;
    callbacksOf.delete(signal);
    signal.removeEventListener('abort', listener);
  };
}

/** What a call rejects with once its signal has aborted. Signals of older polyfills have no reason. */
function reasonOf({ reason }) {
  if (reason !== undefined) return reason;
  return new DOMException('This operation was aborted', 'AbortError');
}

module.exports = { LONGEST_TIMER, fromNow, longTimeout, msUntil, now, onAbort, reasonOf };
