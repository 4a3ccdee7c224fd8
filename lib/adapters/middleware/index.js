// The Express middleware: reads the options, creates the limiter and connects the parts.
'use strict';

const { inAdapter, typeError } = require('../../base/errors');
const { createOneLimiter } = require('./one-limiter');
const { readOptions } = require('./options');
const { createOutcomes } = require('./outcome');
const { Publisher } = require('./publisher');
const { createMiddleware } = require('./request');
const { Rules } = require('./rules');
const { PATH_OF, pathOf: pathByExpress } = require('./rules/paths');
const { createLogger, readKeyGenerator } = require('./warnings');

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
  const logger = createLogger(given.logger);
  const settings = Object.freeze({ ...given, keyGenerator: readKeyGenerator(given, logger) });
  const outcomes = createOutcomes(settings, logger);
  const publisher = new Publisher(settings, outcomes, logger);
  const pathOf = options?.[PATH_OF] ?? pathByExpress;
  const counter =
    settings.rules === undefined
      ? createOneLimiter(settings, { logger, publisher })
      : new Rules(settings, { logger, publisher, pathOf });
  const middleware = createMiddleware(settings, { counter, outcomes, logger });
  middleware.resetKey = (key) => counter.resetKey(key);
  middleware.getKey = (key) => counter.getKey(key);
  return middleware;
}

module.exports = rateLimit;
