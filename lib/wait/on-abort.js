// Tells any number of waiters when their signals abort, with one listener for each signal.
'use strict';

/** By signal: the functions to call. A signal's own list of listeners is searched from its beginning. */
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

/** Calls back once, if the signal aborts before the function that this returns is called. */
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

module.exports = { onAbort };
