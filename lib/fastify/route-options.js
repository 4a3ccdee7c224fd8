// A route's own options on top of its scope's: limits as the route says, the rest as the scope says.
'use strict';

/** Whole sets of limits, which would stand above a single limit of the route. */
const SETS_OF_LIMITS = ['limits', 'rules', 'limiter'];
const INTERVAL_NAMES = ['windowMs', 'interval'];
const MAX_NAMES = ['limit', 'max', 'maxInInterval'];
const LIMIT_NAMES = [...SETS_OF_LIMITS, ...INTERVAL_NAMES, ...MAX_NAMES, 'minDifference'];
const REDIS_NAMES = ['redis', 'client'];

/** What an existing limiter has for itself. */
const LIMITERS_OWN = [
  ...LIMIT_NAMES,
  ...REDIS_NAMES,
  'algorithm',
  'blockFor',
  'clock',
  'countBlocked',
  'kv',
  'maxKeys',
  'namespace',
  'onError',
  'shared',
];

/** Whoever gives one of `given` does not mean the scope's `instead`: names of one thing, and what excludes it. */
const REPLACEMENTS = [
  { given: INTERVAL_NAMES, instead: INTERVAL_NAMES },
  { given: MAX_NAMES, instead: MAX_NAMES },
  { given: REDIS_NAMES, instead: REDIS_NAMES },
  { given: LIMIT_NAMES, instead: SETS_OF_LIMITS },
  { given: ['limiter'], instead: LIMITERS_OWN },
  { given: ['keyGenerator'], instead: ['ipv6Subnet'] },
  { given: ['ipv6Subnet'], instead: ['keyGenerator'] },
  { given: ['handler'], instead: ['problemDetails'] },
  { given: ['problemDetails'], instead: ['handler'] },
];

/** @returns {object} options of rateLimit, unchecked */
function mergeRouteOptions(scope, own, url) {
  const inherited = { ...scope };
  for (const { given, instead } of REPLACEMENTS) {
    if (!given.some((name) => own[name] !== undefined)) continue;
    for (const name of instead) delete inherited[name];
  }
  if (inherited.namespace !== undefined) inherited.namespace = `${inherited.namespace} ${tag(url)}`;
  return { ...inherited, ...withoutUndefined(own) };
}

/** Other limits count elsewhere. A namespace has no braces; the path of a route may. */
function tag(url) {
  return (url ?? '*').replace(/[{}]/g, encodeURIComponent);
}

function withoutUndefined(options) {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

module.exports = { mergeRouteOptions };
