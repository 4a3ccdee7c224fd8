// How a middleware finds the names of its policies for one request.
'use strict';

const { namesPolicies } = require('./headers');
const { policyNames, readIdentifier } = require('./headers/policy-names');
const { rememberForWindows } = require('./headers/same-windows');
const { isPromise } = require('./maybe-async');

/**
 * A function (req, res, decision) that gives the names, or a promise of them where `identifier` does; or
 * undefined where the request needs none.
 */
function createPolicyNaming({ identifier, standardHeaders, problemDetails }) {
  const areInHeaders = namesPolicies(standardHeaders);
  if (!areInHeaders && !problemDetails) return () => undefined;
  const name = namer(identifier);
  if (areInHeaders) return name;
  return (req, res, decision) => (decision.allowed ? undefined : name(req, res, decision));
}

function namer(identifier) {
  if (typeof identifier !== 'function') {
    const namesOf = rememberForWindows((windows) => policyNames(windows, identifier));
    return (_req, _res, { limits }) => namesOf(limits);
  }
  return (req, res, { limits }) => {
    const text = identifier(req, res);
    return isPromise(text)
      ? whenIdentified(text, limits)
      : policyNames(limits, readIdentifier(text));
  };
}

async function whenIdentified(text, limits) {
  return policyNames(limits, readIdentifier(await text));
}

module.exports = { createPolicyNaming };
