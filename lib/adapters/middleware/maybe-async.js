// Values that may be promises: goes on at once where it can, so that synchronous requests stay synchronous.
'use strict';

/** Whether a user's function answers later: anything with then() does. */
function isPromise(value) {
  return typeof value === 'object' && value !== null && typeof value.then === 'function';
}

/**
 * step(value, context), or a promise of it where the value is a promise. With a context, a step that every request
 * takes needs no closure.
 */
function andThen(value, step, context) {
  return isPromise(value) ? later(value, step, context) : step(value, context);
}

/** Not with then(): a user's thenable may have a then() that returns nothing. */
async function later(promise, step, context) {
  return step(await promise, context);
}

/** The result of ask(), or that of rescue(error) if it throws or its promise is rejected. */
function orElse(ask, rescue) {
  try {
    const value = ask();
    return isPromise(value) ? laterOrElse(value, rescue) : value;
  } catch (error) {
    return rescue(error);
  }
}

async function laterOrElse(promise, rescue) {
  try {
    return await promise;
  } catch (error) {
    return rescue(error);
  }
}

/** An array of the values, or a promise of it. */
function together(values) {
  return values.some(isPromise) ? Promise.all(values) : values;
}

module.exports = { andThen, isPromise, orElse, together };
