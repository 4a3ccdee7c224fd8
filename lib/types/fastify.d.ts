// The types of rollgate/fastify, with meaning, units, defaults and errors.

import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';

import RateLimiter = require('./index');

/**
 * A Fastify 5 plugin. It limits the requests of the scope in which it is registered, of nested scopes, and those
 * without a route:
 *
 * ```ts
 * await fastify.register(rollgate, { windowMs: 60_000, limit: 100 });
 * ```
 *
 * Invalid options reject `fastify.ready()` with `ERR_ROLLGATE_OPTION`.
 */
declare const rollgate: FastifyPluginAsync<rollgate.RollgateFastifyPluginOptions> & {
  /** The same plugin, for a named import. */
  readonly rollgate: FastifyPluginAsync<rollgate.RollgateFastifyPluginOptions>;
};

declare namespace rollgate {
  type ResponseOptions = RateLimiter.RateLimitResponseOptions<FastifyRequest, FastifyReply>;

  /** The options of `rateLimit`; functions receive Fastify's request and reply. */
  type RollgateFastifyOptions = RollgateFastifyResponseOptions &
    RateLimiter.RateLimitCounting<FastifyRequest, FastifyReply>;

  /** The options of the plugin. */
  type RollgateFastifyPluginOptions = RollgateFastifyOptions & {
    /** When requests of the scope are limited: the last two see the body. Default 'onRequest'. */
    hook?: 'onRequest' | 'preValidation' | 'preHandler' | undefined;
  };

  interface RollgateFastifyResponseOptions extends ResponseOptions {
    /**
     * The id of a request. Default: `request.ip`, for IPv6 its subnet. May be async. `clientKey()` is that default.
     */
    keyGenerator?: ResponseOptions['keyGenerator'];
    /**
     * Answers if `authenticate` fails. Its result is sent, unless it has sent a reply or calls `next()`, which passes
     * the request on, uncounted. Default: errors go to Fastify's error handler.
     */
    onAuthError?: ResponseOptions['onAuthError'];
    /** Answers a refused request. Its result is sent, unless it has sent a reply or calls `next()`. */
    handler?: ResponseOptions['handler'];
  }

  /** One of the `rules`. Its `path` is compared with the path that Fastify routes by. */
  interface RollgateFastifyRule extends RateLimiter.RateLimitRule<FastifyRequest, FastifyReply> {}
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The count of the request: see RateLimitInfo. Null if it was not counted. */
    rateLimit: RateLimiter.RateLimitInfo | null;
  }

  interface FastifyContextConfig {
    /**
     * false: no limit. Options override those of the scope. If the scope has `rules`, the route's options must have
     * limits or rules, which replace them.
     */
    rateLimit?: boolean | rollgate.RollgateFastifyOptions | undefined;
  }
}

export = rollgate;
