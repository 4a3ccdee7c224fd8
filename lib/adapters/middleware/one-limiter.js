// Without rules: every request counts in one limiter.
'use strict';

const { READ_COST } = require('../../base/internal-methods');
const { createIdentify } = require('./caller');
const { createCountingLimiter, getFrom, initStore } = require('./foreign-store');
const { createPolicyNaming } = require('./headers');
const { assertIsCost } = require('./limiter-options');
const {
  attemptAt,
  countOf,
  createCostOf,
  createLimitOf,
  limiterFor,
  passOnStoreError,
  storeIdentity,
} = require('./limiters');
const { andThen } = require('./maybe-async');

/**
 * `count` for createMiddleware, and the methods of the middleware.
 *
 * @param {object} settings see options.js
 * @param {{ logger: object, publisher: Publisher }} parts
 */
function createOneLimiter(settings, { logger, publisher }) {
  const { store } = settings;
  if (store !== undefined) initStore(settings, logger);
  const limiter = store === undefined ? limiterFor(settings) : createCountingLimiter(settings);
  assertIsCost(settings.cost, (cost) => limiter[READ_COST]?.(cost));
  const zone = {
    limiter,
    store: store ?? storeIdentity(settings.limiterOptions, limiter),
    namePolicies: createPolicyNaming(settings),
  };
  const idOf = settings.authenticate === undefined ? settings.keyGenerator : createIdOf(settings);
  const costOf = createCostOf(settings.cost);
  const limitOf = createLimitOf(settings.limit, store === undefined);
  const attempt = passOnStoreError(settings, logger, attemptAt);

  function askCost(id, request) {
    request.id = id;
    return andThen(costOf?.(request.req, request.res), askLimit, request);
  }

  function askLimit(cost, request) {
    request.cost = cost;
    return andThen(limitOf?.(request.req, request.res), askLimiter, request);
  }

  function askLimiter(limits, request) {
    return andThen(attempt(limiter, request.id, request.cost, limits), publish, request);
  }

  function publish(decision, request) {
    return publisher.publish(decision, request.id, zone, request.cost, request);
  }

  return {
    count: (request) => andThen(idOf(request.req, request.res), askCost, request),
    resetKey: async (key) => limiter.clear(key),
    getKey: (key) => (store === undefined ? countOf([limiter], key) : getFrom(store, key)),
  };
}

/** A function (req, res) that returns the id of the caller, or a promise of it. */
function createIdOf(settings) {
  const identify = createIdentify(settings);
  return (req, res) => andThen(identify(req, res), ({ id }) => id);
}

module.exports = { createOneLimiter };
