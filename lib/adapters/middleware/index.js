// The Express middleware: reads the options, creates the limiter and connects the parts.
'use strict';

const { inAdapter, typeError } = require('../../base/errors');
const { READ_COST } = require('../../base/internal-methods');
const { createIdentify } = require('./caller');
const { createClientKey } = require('./client');
const { createCountingLimiter, createGetKeyOf, initStore } = require('./foreign-store');
const { createPolicyNaming, headerWriters } = require('./headers');
const {
  attemptAtCost,
  createCostOf,
  createGetKey,
  createLimitOf,
  limiterFor,
  passOnStoreError,
  storeIdentity,
} = require('./limiters');
const { assertIsCost } = require('./limiter-options');
const { readOptions } = require('./options');
const { createOutcomes } = require('./outcome');
const { createMiddleware } = require('./request');
const { createRules } = require('./rules');
const { PATH_OF, pathOf: pathByExpress } = require('./rules/paths');
const { checkKeys, checkSetUp, createReporter } = require('./warnings');

/** For a framework that calls this function as a middleware, with several arguments. */
const IS_NOT_MIDDLEWARE =
  'rateLimit is not a middleware: it returns one, as in app.use(rateLimit({ limit: 100 }))';

/**
 * Limits requests by client: `app.use(rateLimit({ windowMs: 60_000, limit: 100 }))`.
 * lib/types/middleware.d.ts documents the options; invalid ones throw here, not at the first request.
 */
function rateLimit(options, ...more) {
  if (more.length > 0) throw typeError('ERR_ROLLGATE_OPTION', IS_NOT_MIDDLEWARE);
  return inAdapter('rateLimit', () => createRateLimit(options));
}

function createRateLimit(options) {
  const given = readOptions(options);
  const reporter = createReporter(given.logger);
  checkSetUp(given, reporter);
  const clientKey = createClientKey(given, reporter);
  const keyGenerator =
    given.keyGenerator === undefined ? clientKey : checkKeys(given, clientKey, reporter);
  const settings = Object.freeze({ ...given, keyGenerator });
  const common = {
    headerWriters: headerWriters(settings),
    onCountedAgain() {
      const what = 'one request was counted twice in one limiter.';
      if (settings.validate.singleCount) reporter.warn('ROLLGATE_DOUBLE_COUNT', what);
    },
    onClientGone() {
      const what = 'a client left before its request was counted, so the request was dropped.';
      if (settings.validate.ip) reporter.warn('ROLLGATE_CLIENT_GONE', what);
    },
    outcomes: createOutcomes(settings, reporter),
  };
  return settings.rules === undefined
    ? byOneLimiter(settings, reporter, common)
    : byRules(settings, reporter, { common, pathOf: options[PATH_OF] ?? pathByExpress });
}

function byOneLimiter(settings, reporter, common) {
  const { store } = settings;
  if (store !== undefined) initStore(settings, reporter);
  const limiter = store === undefined ? limiterFor(settings) : createCountingLimiter(settings);
  assertIsCost(settings.cost, (cost) => limiter[READ_COST]?.(cost));
  const zone = {
    limiter,
    store: store ?? storeIdentity(settings.limiterOptions, limiter),
    namePolicies: createPolicyNaming(settings),
  };
  const costOf = createCostOf(settings.cost);
  const counting =
    costOf === undefined ? limiter : { attempt: attemptAtCost.bind(undefined, limiter) };
  const middleware = createMiddleware(settings, {
    ...common,
    limiter: settings.passOnStoreError ? passOnStoreError(counting, reporter) : counting,
    zone,
    limitOf: createLimitOf(settings.limit),
    costOf,
    identify: settings.authenticate === undefined ? undefined : createIdentify(settings),
  });
  middleware.resetKey = async (key) => limiter.clear(key);
  middleware.getKey = store === undefined ? createGetKey(() => [limiter]) : createGetKeyOf(store);
  return middleware;
}

function byRules(settings, reporter, { common, pathOf }) {
  const rules = createRules(settings, { identify: createIdentify(settings), reporter, pathOf });
  const middleware = createMiddleware(settings, { ...common, rules });
  middleware.resetKey = rules.resetKey;
  middleware.getKey = createGetKey(rules.limitersById);
  return middleware;
}

module.exports = rateLimit;
