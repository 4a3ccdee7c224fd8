// The types of rollgate/fastify, with meaning, units, defaults and errors.

import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';

import RateLimiter = require('./index');

/**
 * A Fastify 5 plugin: `await fastify.register(rollgate, { windowMs: 60_000, limit: 100 })`. It limits the requests of
 * its scope and nested scopes, and those without a route. Invalid options reject `fastify.ready()` with
 * `ERR_ROLLGATE_OPTION`.
 */
declare const rollgate: FastifyPluginAsync<rollgate.RollgateFastifyPluginOptions> & {
  /** The same plugin, for a named import. */
  readonly rollgate: FastifyPluginAsync<rollgate.RollgateFastifyPluginOptions>;
};

declare namespace rollgate {
  /**
   * The options of `rateLimit`; functions receive Fastify's request and reply. The results of `handler` and
   * `onAuthError` are sent, unless they have sent a reply or call `next()`; other errors go to Fastify's error handler.
   */
  type RollgateFastifyOptions = RateLimiter.RateLimitOptions<FastifyRequest, FastifyReply>;

  type RollgateFastifyPluginOptions = RollgateFastifyOptions & {
    /** When requests of the scope are limited: the last two see the body. Default 'onRequest'. */
    hook?: 'onRequest' | 'preValidation' | 'preHandler' | undefined;
    /** Limits what runs at once, after the rate limit. Without other options than these, there is no rate limit. */
    concurrency?: RollgateFastifyConcurrency | undefined;
  };

  /** The options of `concurrencyLimit`; functions receive Fastify's request and reply. */
  type RollgateFastifyConcurrency = RateLimiter.ConcurrencyLimitOptions<
    FastifyRequest,
    FastifyReply
  >;

  /** One of the `rules`. Its `path` is compared with the path that Fastify routes by. */
  interface RollgateFastifyRule extends RateLimiter.RateLimitRule<FastifyRequest, FastifyReply> {}
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The count of the request: see RateLimitInfo. Null if it was not counted. */
    rateLimit: RateLimiter.RateLimitInfo | null;
    /** The slot of the request, or its refusal; null or undefined if it holds none. */
    concurrency?: RateLimiter.Slot | RateLimiter.RemoteSlot | RateLimiter.SlotRefusal | null;
  }

  interface FastifyContextConfig {
    /** false: no limit. Options override the scope's. If it has `rules`, these need limits, which replace them. */
    rateLimit?: boolean | rollgate.RollgateFastifyOptions | undefined;
    /** false: no slot. Options override the scope's; without those, `max` is needed. */
    concurrency?: boolean | Partial<rollgate.RollgateFastifyConcurrency> | undefined;
  }
}

export = rollgate;
