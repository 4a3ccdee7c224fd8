// Goes on with a value at once, or once its promise is kept.
'use strict';

const { isPromise } = require('./is-promise');

/** What `step` makes of the value, or a promise of that. */
function whenKnown(value, step) {
  return isPromise(value) ? later(value, step) : step(value);
}

/** Not with then(): what users take for a promise may have one that returns nothing. */
async function later(promise, step) {
  return step(await promise);
}

module.exports = { whenKnown };
