// Who makes a request, and of which group: what authenticate says, or else the key of the request alone.
'use strict';

const { show, typeError } = require('../errors');
const { isPromise, andThen } = require('./maybe-async');
const { DEFAULT_GROUP } = require('./rules/pattern');

/** In place of a caller: why nobody could tell who it is. */
class UnknownCaller {
  constructor(error) {
    this.error = error;
  }
}

/** @returns {{ id: unknown, group: string }} */
function readCaller(answer) {
  if (typeof answer !== 'object' || answer === null || answer.id === undefined) {
    throw refuse('an object with an id', show(answer));
  }
  const { id, group = DEFAULT_GROUP } = answer;
  if (typeof group !== 'string') throw refuse('a string as group', show(group));
  return { id, group };
}

function refuse(expected, came) {
  return typeError('ERR_ROLLGATE_AUTHENTICATE', `authenticate: expected ${expected}, got ${came}`);
}

/**
 * A function (req, res) that gives a caller or an UnknownCaller, or a promise of either. What a
 * keyGenerator throws is thrown.
 */
function createIdentify({ authenticate, keyGenerator }) {
  if (authenticate !== undefined) return (req) => identifyBy(authenticate, req);
  return (req, res) => andThen(keyGenerator(req, res), callerOf);
}

function callerOf(id) {
  return { id, group: DEFAULT_GROUP };
}

function identifyBy(authenticate, req) {
  try {
    const answer = authenticate(req);
    return isPromise(answer) ? identifyLater(answer) : readCaller(answer);
  } catch (error) {
    return new UnknownCaller(error);
  }
}

async function identifyLater(promise) {
  try {
    return readCaller(await promise);
  } catch (error) {
    return new UnknownCaller(error);
  }
}

module.exports = { UnknownCaller, createIdentify };
