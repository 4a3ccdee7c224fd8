// The Express middleware: reads the options, finds the limiter and puts the parts together.
'use strict';

const { readOptions } = require('./options');
const { limiterFor } = require('./limiter-for');
const { headerWriters } = require('./headers');
const { createMiddleware } = require('./request');
const { createGetKey } = require('./get-key');

/**
 * Limits requests by client: `app.use(rateLimit({ windowMs: 60_000, limit: 100 }))`.
 * lib/index.d.ts lists the options; wrong ones throw here, not at the first request.
 *
 * @param {object} [options]
 * @returns {((req: object, res: object, next: (err?: unknown) => void) => void | Promise<void>) &
 *   { resetKey(key: unknown): Promise<void>, getKey(key: unknown): Promise<object | undefined> }}
 */
function rateLimit(options) {
  const settings = Object.freeze(readOptions(options));
  const limiter = limiterFor(settings);
  const middleware = createMiddleware(settings, limiter, headerWriters(settings));
  middleware.resetKey = async (key) => limiter.clear(key);
  middleware.getKey = createGetKey(limiter);
  return middleware;
}

module.exports = rateLimit;
