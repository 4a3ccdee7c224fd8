// The Express middleware: reads the options, finds the limiter and puts the parts together.
'use strict';

const { readOptions } = require('./options');
const { limiterFor } = require('./limiter-for');
const { headerWriters } = require('./headers');
const { createAddressChecks } = require('./address-checks');
const { createIdentify } = require('./authentication');
const { createClientKey } = require('./client-key');
const { countingPlace } = require('./counting-place');
const { createMiddleware } = require('./request');
const { createGetKey } = require('./get-key');
const { createNotices } = require('./notices');
const { createOutcomes } = require('./outcome');
const { passOnStoreError } = require('./pass-on-store-error');
const { createPolicyNaming } = require('./policy-naming');
const { createLimitOf } = require('./request-limit');
const { createRules } = require('./rules/by-rules');
const { PATH_OF, pathOf: pathByExpress } = require('./rules/path');
const { checkSetUp } = require('./set-up-checks');

/**
 * Limits requests by client: `app.use(rateLimit({ windowMs: 60_000, limit: 100 }))`.
 * lib/index.d.ts lists the options; wrong ones throw here, not at the first request.
 *
 * @param {object} [options]
 * @returns {((req: object, res: object, next: (err?: unknown) => void) => void | Promise<void>) &
 *   { resetKey(key: unknown): Promise<void>, getKey(key: unknown): Promise<object | undefined> }}
 */
function rateLimit(options) {
  const given = readOptions(options);
  const notices = createNotices(given.logger);
  checkSetUp(given, notices);
  const settings = Object.freeze({ ...given, keyGenerator: keyGeneratorFor(given, notices) });
  const common = {
    headerWriters: headerWriters(settings),
    onCountedAgain: settings.validate.singleCount ? () => warnOfDoubleCount(notices) : undefined,
    outcomes: takesBack(settings) ? createOutcomes(settings, notices) : undefined,
  };
  return settings.rules === undefined
    ? byOneLimiter(settings, notices, common)
    : byRules(settings, notices, { common, pathOf: options[PATH_OF] ?? pathByExpress });
}

function byOneLimiter(settings, notices, common) {
  const limiter = limiterFor(settings);
  const zone = {
    limiter,
    store: countingPlace(settings.limiterOptions, limiter),
    namePolicies: createPolicyNaming(settings),
  };
  const middleware = createMiddleware(settings, {
    ...common,
    limiter: settings.passOnStoreError ? passOnStoreError(limiter, notices) : limiter,
    place: { zone, isShadow: false },
    limitOf: createLimitOf(settings.limit),
    identify: settings.authenticate === undefined ? undefined : createIdentify(settings),
  });
  middleware.resetKey = async (key) => limiter.clear(key);
  middleware.getKey = createGetKey(() => [limiter]);
  return middleware;
}

function byRules(settings, notices, { common, pathOf }) {
  const rules = createRules(settings, { identify: createIdentify(settings), notices, pathOf });
  const middleware = createMiddleware(settings, { ...common, rules });
  middleware.resetKey = rules.resetKey;
  middleware.getKey = createGetKey(rules.limitersById);
  return middleware;
}

function keyGeneratorFor({ keyGenerator, ipv6Subnet, validate }, notices) {
  return keyGenerator ?? createClientKey(ipv6Subnet, createAddressChecks(validate, notices));
}

function takesBack({ skipFailedRequests, skipSuccessfulRequests }) {
  return skipFailedRequests || skipSuccessfulRequests;
}

function warnOfDoubleCount(notices) {
  notices.warn('ROLLGATE_DOUBLE_COUNT', 'one request was counted twice in one limiter.');
}

module.exports = rateLimit;
