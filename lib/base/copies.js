// What all copies of this package in a program share. Clearing the module cache makes a copy, and so does a bundler.
'use strict';

/** The object of this name, which the first copy creates. */
function sharedByCopies(name, create) {
  const key = Symbol.for(`rollgate.${name}`);
  if (globalThis[key] === undefined) Object.defineProperty(globalThis, key, { value: create() });
  return globalThis[key];
}

module.exports = { sharedByCopies };
