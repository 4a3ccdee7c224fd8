// Goes on with a value at once, or once its promise is kept.
'use strict';

const { isPromise } = require('../is-promise');

/** What `step` makes of the value, or a promise of that. */
function whenKnown(value, step) {
  return isPromise(value) ? value.then(step) : step(value);
}

module.exports = { whenKnown };
