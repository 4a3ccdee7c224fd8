// Routes of Fastify: their own options merged with those of the scope, and the path that rules match.
'use strict';

const stores = require('#stores');
const { failure, optionError } = require('../../base/errors');
const concurrency = require('../../concurrency/options');
const limiter = require('../middleware/limiter-options');
const { takesClientKey } = require('../middleware/warnings');
const { withoutUndefined } = require('../../options/values');
const { CHOICES } = require('../../stores/options');

/** Sets of limits, which would override a single limit of the route. */
const SETS_OF_LIMITS = ['limits', 'rules', 'limiter', 'store'];
const LIMIT_NAMES = [...SETS_OF_LIMITS, ...limiter.LIMIT_NAMES];

/** What a route may count in instead of the scope's `store`. */
const STORES = ['store', 'limiter', 'rules', ...CHOICES];

/** Options that identify the caller. */
const CALLER_NAMES = ['authenticate', 'onAuthError'];

/** Options of the client's address, for a keyGenerator that uses it, or none. */
const ADDRESS_NAMES = ['ipv6Subnet', 'trustProxy'];

/** A route with one of `given` does not inherit `instead`: other names of the option, and what excludes it. */
const REPLACEMENTS = [
  { given: limiter.INTERVAL_NAMES, instead: limiter.INTERVAL_NAMES },
  { given: limiter.MAX_NAMES, instead: limiter.MAX_NAMES },
  { given: CHOICES, instead: CHOICES },
  { given: ['redis', 'client', 'connection'], instead: ['commandTimeout'] },
  { given: LIMIT_NAMES, instead: SETS_OF_LIMITS },
  { given: [...SETS_OF_LIMITS, ...limiter.MAX_NAMES], instead: ['cost'] },
  { given: ['rules'], instead: limiter.RULE_OPTIONS },
  { given: ['limiter', 'store'], instead: limiter.LIMITER_OPTIONS },
  { given: CHOICES, instead: ['store'] },
  { given: ['keyGenerator'], instead: CALLER_NAMES },
  { given: ADDRESS_NAMES, instead: CALLER_NAMES },
  { given: ['authenticate'], instead: ['keyGenerator', ...ADDRESS_NAMES] },
  { given: ['handler'], instead: ['problemDetails'] },
  { given: ['problemDetails'], instead: ['handler'] },
];

/** A route's limits, and the scope's other options: unchecked options of rateLimit. */
function mergeRouteOptions(scope, own, route) {
  const has = (name) => own[name] !== undefined;
  if (scope.rules !== undefined && !LIMIT_NAMES.some(has)) throw noLimitsError();
  if (scope.store !== undefined && !STORES.some(has)) throw sharedStoreError();
  const inherited = { ...scope };
  for (const { given, instead } of REPLACEMENTS) {
    if (!given.some(has)) continue;
    for (const name of instead) delete inherited[name];
  }
  const { keyGenerator = inherited.keyGenerator } = own;
  if (typeof keyGenerator === 'function' && !takesClientKey(keyGenerator)) {
    if (own.keyGenerator !== undefined) for (const name of ADDRESS_NAMES) delete inherited[name];
    else if (ADDRESS_NAMES.some(has)) delete inherited.keyGenerator;
  }
  return { ...withOwnCount(inherited, route), ...withoutUndefined(own) };
}

/** The scope's options for a route, which counts in the same store by itself. */
function withOwnCount(scope, route) {
  const inherited = { ...scope };
  const { namespace, shared } = scope;
  if (namespace !== undefined) inherited.namespace = `${namespace} ${tag(route)}`;
  if (shared !== undefined) inherited.shared = stores.shared.partOf(shared, tag(route));
  return inherited;
}

/** The same for what runs at once. */
function mergeConcurrencyOptions(scope, own, route) {
  const has = (name) => own[name] !== undefined;
  const inherited = withOwnCount(scope, route);
  if (has('limiter')) for (const name of concurrency.LIMITER_NAMES) delete inherited[name];
  if (CHOICES.some(has)) for (const name of CHOICES) delete inherited[name];
  return { ...inherited, ...withoutUndefined(own) };
}

/** A store counts in the window of one middleware. */
function sharedStoreError() {
  return optionError(
    'config.rateLimit',
    "the scope's 'store' cannot be shared: give this route its own store, false (no limit) or true (the scope's limit)",
  );
}

/** A copy of the rules would count separately, and would not know the ids that they block everywhere. */
function noLimitsError() {
  return optionError(
    'config.rateLimit',
    "expected limits, rules or a limiter in place of the scope's 'rules', or false, or true for those rules",
  );
}

/**
 * Names the counts of a route, which all its methods share. Braces are escaped, because a namespace must not
 * contain them.
 */
function tag({ methods, url }) {
  const path = (url ?? '*').replace(/[{}]/g, encodeURIComponent);
  return `${[...methods].sort().join()} ${path}`;
}

const ABSOLUTE = /^https?:\/\//i;

/** A function (request) that returns the path by which Fastify routes, without the query: after `rewriteUrl`. */
function createRoutedPath({ initialConfig: { routerOptions, useSemicolonDelimiter } }) {
  // Fastify has two names of this option, and shows the default, false, for the one that was not given.
  const hasSemicolons = routerOptions?.useSemicolonDelimiter || useSemicolonDelimiter;
  const end = hasSemicolons ? /[?#;]/ : /[?#]/;
  return ({ raw: { method, url } }) => {
    const path = ABSOLUTE.test(url) ? withoutHost(url) : url;
    // The router skips a first character that is no slash: `*api` is routed to /api.
    if (!path.startsWith('/') && !(path === '*' && method === 'OPTIONS')) {
      throw urlError('the URL of a request begins with neither a slash nor a host');
    }
    const length = path.search(end);
    return length === -1 ? path : path.slice(0, length);
  };
}

/** `http://host?x=/y` is `/` to some versions of the router and `/y` to others. */
function withoutHost(url) {
  const [host, ...segments] = url.replace(ABSOLUTE, '').split('/');
  if (segments.length > 0 && host.includes('?')) {
    throw urlError('the URL of a request has a host, but no path');
  }
  return `/${segments.join('/')}`;
}

function urlError(message) {
  return Object.assign(failure('ERR_ROLLGATE_URL', message), { statusCode: 400 });
}

module.exports = { createRoutedPath, mergeConcurrencyOptions, mergeRouteOptions };
