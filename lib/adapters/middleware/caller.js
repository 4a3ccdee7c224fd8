// Identifies the caller of a request and its group: by the option authenticate, or by the key of the request.
'use strict';

const { show, typeError } = require('../../base/errors');
const { andThen, orElse } = require('./maybe-async');

/** The group of a request for which no other is given. */
const DEFAULT_GROUP = 'default';

/** Instead of a caller, when authenticate failed. */
class UnknownCaller {
  constructor(error) {
    this.error = error;
  }
}

/** @returns {{ id: unknown, group: string }} */
function readCaller(answer) {
  if (typeof answer !== 'object' || answer === null || answer.id === undefined) {
    throw answerError('an object with an id', show(answer));
  }
  const { id, group = DEFAULT_GROUP } = answer;
  if (typeof group !== 'string') throw answerError('a string as group', show(group));
  return { id, group };
}

function answerError(expected, came) {
  return typeError('ERR_ROLLGATE_AUTHENTICATE', `authenticate: expected ${expected}, got ${came}`);
}

/**
 * A function (req, res) that returns a caller, an UnknownCaller, or a promise of either. Throws what a
 * keyGenerator throws.
 */
function createIdentify({ authenticate, keyGenerator }) {
  if (authenticate !== undefined) return (req) => identifyBy(authenticate, req);
  return (req, res) => andThen(keyGenerator(req, res), callerOf);
}

function callerOf(id) {
  return { id, group: DEFAULT_GROUP };
}

function identifyBy(authenticate, req) {
  const ask = () => andThen(authenticate(req), readCaller);
  return orElse(ask, (error) => new UnknownCaller(error));
}

module.exports = { DEFAULT_GROUP, UnknownCaller, createIdentify };
