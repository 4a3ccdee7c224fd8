// Whether a function of the user's answers later: anything with then() does.
'use strict';

function isPromise(value) {
  return typeof value === 'object' && value !== null && typeof value.then === 'function';
}

module.exports = { isPromise };
