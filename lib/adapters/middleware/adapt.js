// The options of the middleware for a framework whose functions get something else than (req, res).
'use strict';

const { MAX_NAMES } = require('./limiter-options');

/** The options that may be functions of a request and its response. */
const OF_REQUEST = [
  ...MAX_NAMES,
  'cost',
  'identifier',
  'ipv6Subnet',
  'keyGenerator',
  'message',
  'requestWasSuccessful',
  'skip',
];

/**
 * Options whose functions are adapted: `ofRequest(own)` returns the function (req, res) for a user's one; `others` has
 * the same for other options, by name.
 */
function adaptFunctions(options, { ofRequest, ...others }) {
  if (typeof options !== 'object' || options === null) return options; // the middleware refuses it
  const adapters = { ...adaptersOf(OF_REQUEST, ofRequest), ...others };
  const adapted = adaptBy(adapters, options);
  if (Array.isArray(options.rules)) adapted.rules = adaptRules(options.rules, ofRequest);
  return adapted;
}

/** A function in several rules is adapted once, because rules of one zone must have equal limits. */
function adaptRules(rules, ofRequest) {
  const adapted = new Map();
  const adaptOnce = (own) => {
    if (!adapted.has(own)) adapted.set(own, ofRequest(own));
    return adapted.get(own);
  };
  const adapters = { cost: ofRequest, ...adaptersOf(MAX_NAMES, adaptOnce) };
  const isObject = (rule) => typeof rule === 'object' && rule !== null && !Array.isArray(rule);
  return Array.from(rules, (rule) => (isObject(rule) ? adaptBy(adapters, rule) : rule));
}

function adaptersOf(names, adapt) {
  return Object.fromEntries(names.map((name) => [name, adapt]));
}

function adaptBy(adapters, options) {
  const adapted = { ...options };
  for (const [name, value] of Object.entries(adapted)) {
    if (typeof value !== 'function' || !Object.hasOwn(adapters, name)) continue;
    adapted[name] = adapters[name](value);
  }
  return adapted;
}

module.exports = { adaptFunctions };
