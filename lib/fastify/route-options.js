// A route's own options on top of its scope's: limits as the route says, the rest as the scope says.
'use strict';

const { typeError } = require('../errors');
const limiter = require('../middleware/limiter-options');
const { withoutUndefined } = require('../option-values');
const { partOfRegion } = require('../shared/region');
const { CHOICES } = require('../store-options');

/** Whole sets of limits, which would stand above a single limit of the route. */
const SETS_OF_LIMITS = ['limits', 'rules', 'limiter'];
const LIMIT_NAMES = [...SETS_OF_LIMITS, ...limiter.LIMIT_NAMES];

/** Who makes a request, and what if nobody can tell. */
const CALLER_NAMES = ['authenticate', 'onAuthError'];

/** Whoever gives one of `given` does not mean the scope's `instead`: names of one thing, and what excludes it. */
const REPLACEMENTS = [
  { given: limiter.INTERVAL_NAMES, instead: limiter.INTERVAL_NAMES },
  { given: limiter.MAX_NAMES, instead: limiter.MAX_NAMES },
  { given: CHOICES, instead: CHOICES },
  { given: ['redis', 'client'], instead: ['commandTimeout'] },
  { given: LIMIT_NAMES, instead: SETS_OF_LIMITS },
  { given: ['rules'], instead: limiter.RULE_OPTIONS },
  { given: ['limiter'], instead: limiter.LIMITER_OPTIONS },
  { given: ['keyGenerator'], instead: ['ipv6Subnet', ...CALLER_NAMES] },
  { given: ['ipv6Subnet'], instead: ['keyGenerator', ...CALLER_NAMES] },
  { given: ['authenticate'], instead: ['keyGenerator', 'ipv6Subnet'] },
  { given: ['handler'], instead: ['problemDetails'] },
  { given: ['problemDetails'], instead: ['handler'] },
];

/**
 * @param {{ methods: string[], url: string | undefined }} route
 * @returns {object} options of rateLimit, unchecked
 */
function mergeRouteOptions(scope, own, route) {
  const has = (name) => own[name] !== undefined;
  if (scope.rules !== undefined && !LIMIT_NAMES.some(has)) throw withoutLimits();
  const inherited = { ...scope };
  for (const { given, instead } of REPLACEMENTS) {
    if (!given.some(has)) continue;
    for (const name of instead) delete inherited[name];
  }
  const { namespace, shared } = inherited;
  if (namespace !== undefined) inherited.namespace = `${namespace} ${tag(route)}`;
  if (shared !== undefined) inherited.shared = partOfRegion(shared, tag(route));
  return { ...inherited, ...withoutUndefined(own) };
}

/** A copy of the rules would count apart, and know nothing of the ids that they block everywhere. */
function withoutLimits() {
  return typeError(
    'ERR_ROLLGATE_OPTION',
    "option 'config.rateLimit': expected limits, rules or a limiter in place of the scope's 'rules', or " +
      'false, or true for those rules',
  );
}

/**
 * Other limits count elsewhere; those of several methods do together. A namespace has no braces; the path
 * of a route may.
 */
function tag({ methods, url }) {
  const path = (url ?? '*').replace(/[{}]/g, encodeURIComponent);
  return `${[...methods].sort().join()} ${path}`;
}

module.exports = { mergeRouteOptions };
