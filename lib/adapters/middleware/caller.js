// Identifies the caller of a request and its group: by the option authenticate, or by the key of the request.
'use strict';

const { show, typeError } = require('../../base/errors');
const { andThen, orElse } = require('./maybe-async');

/** The group of a request for which no other is given. */
const DEFAULT_GROUP = 'default';

/** Thrown with the error of authenticate, which goes to onAuthError. */
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
 * A function (req, res) that returns a caller, or a promise of it. Throws what a keyGenerator or authenticate throws,
 * with onAuthError an UnknownCaller.
 */
function createIdentify({ authenticate, keyGenerator, onAuthError }) {
  if (authenticate === undefined) {
    return (req, res) => andThen(keyGenerator(req, res), (id) => ({ id, group: DEFAULT_GROUP }));
  }
  const ask = (req) => andThen(authenticate(req), readCaller);
  if (onAuthError === undefined) return ask;
  const fail = (error) => {
    throw new UnknownCaller(error);
  };
  return (req) => orElse(() => ask(req), fail);
}

module.exports = { DEFAULT_GROUP, UnknownCaller, createIdentify };
