// The types of rollgate/fastify, with meaning, units, defaults and errors.

import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';

import RateLimiter = require('./index');

/**
 * A Fastify 5 plugin. It limits the requests of the scope in which it is registered, of nested scopes, and
 * those without a route:
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
  type OrPromise<Value> = Value | Promise<Value>;
  type Ask<Answer> = (request: FastifyRequest, reply: FastifyReply) => Answer;

  /** The options of `rateLimit`; functions receive Fastify's request and reply. */
  type RollgateFastifyOptions = Omit<
    RateLimiter.RateLimitResponseOptions,
    keyof RollgateFastifyFunctions
  > &
    RollgateFastifyFunctions &
    (
      | RollgateFastifyLimits
      | RollgateFastifyExisting
      | RollgateFastifyByStore
      | RollgateFastifyByRules
    );

  /** The options of the plugin. */
  type RollgateFastifyPluginOptions = RollgateFastifyOptions & {
    /** When requests of the scope are limited: the last two see the body. Default 'onRequest'. */
    hook?: 'onRequest' | 'preValidation' | 'preHandler' | undefined;
  };

  interface RollgateFastifyFunctions {
    /** The id of a request. Default: `request.ip`, for IPv6 its subnet. */
    keyGenerator?:
      | ((
          request: FastifyRequest,
          reply: FastifyReply,
          clientKey: RateLimiter.ClientKey,
        ) => OrPromise<RateLimiter.Id>)
      | undefined;
    ipv6Subnet?: number | false | Ask<OrPromise<number | false>> | undefined;
    /** Identifies the caller, instead of `keyGenerator`. Errors go to `onAuthError`. */
    authenticate?: ((request: FastifyRequest) => OrPromise<RateLimiter.Caller>) | undefined;
    /**
     * Answers if `authenticate` fails. Its result is sent, unless it has sent a reply or calls `next()`, which
     * passes the request on, uncounted. Default: errors go to Fastify's error handler.
     */
    onAuthError?:
      | ((
          error: unknown,
          request: FastifyRequest,
          reply: FastifyReply,
          next: RateLimiter.Next,
        ) => unknown)
      | undefined;
    /** If it returns true, the request passes uncounted. */
    skip?: Ask<OrPromise<boolean>> | undefined;
    /** Answers a refused request. Its result is sent, unless it has sent a reply or calls `next()`. */
    handler?:
      | ((
          request: FastifyRequest,
          reply: FastifyReply,
          next: RateLimiter.Next,
          settings: RateLimiter.RateLimitSettings,
        ) => unknown)
      | undefined;
    message?: RateLimiter.Message | Ask<unknown> | undefined;
    identifier?: string | Ask<OrPromise<string>> | undefined;
    requestWasSuccessful?: Ask<OrPromise<boolean>> | undefined;
  }

  /** Maximum requests in a window: a number, or a function that is called for each request. */
  type RollgateFastifyLimit = number | Ask<OrPromise<number>>;

  interface RollgateFastifyMax {
    /** Overrides `max` and `maxInInterval`. */
    limit?: RollgateFastifyLimit | undefined;
    /** The same as `limit`. */
    max?: RollgateFastifyLimit | undefined;
    /** The same as `limit`. */
    maxInInterval?: RollgateFastifyLimit | undefined;
    /** What a request costs: see `RateLimiter.RequestCost`. Default 1. */
    cost?: RateLimiter.Cost | Ask<OrPromise<RateLimiter.Cost>> | undefined;
  }

  /** Limits for all requests. */
  interface RollgateFastifyLimits
    extends Omit<RateLimiter.RateLimitLimits, keyof RollgateFastifyMax>,
      RollgateFastifyMax {}

  /** An existing limiter. */
  interface RollgateFastifyExisting
    extends Omit<RateLimiter.RateLimitExisting, 'cost'>,
      Pick<RollgateFastifyMax, 'cost'> {}

  /** A store for express-rate-limit. It serves one scope or one route. */
  interface RollgateFastifyByStore
    extends Omit<RateLimiter.RateLimitByStore, keyof RollgateFastifyMax>,
      Omit<RollgateFastifyMax, 'cost'> {
    cost?: undefined;
  }

  /** One of the `rules`. Its `path` is compared with the path that Fastify routes by. */
  interface RollgateFastifyRule
    extends Omit<RateLimiter.RateLimitRule, keyof RollgateFastifyMax>,
      RollgateFastifyMax {}

  /** Limits by rules, instead of limits for all requests. */
  interface RollgateFastifyByRules extends Omit<RateLimiter.RateLimitByRules, 'rules'> {
    /** At least one. The first matching rule decides; a request without one passes. */
    rules: readonly RollgateFastifyRule[];
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The count of the request: see RateLimitInfo. Null if it was not counted. */
    rateLimit: RateLimiter.RateLimitInfo | null;
  }

  interface FastifyContextConfig {
    /**
     * false: no limit. Options override those of the scope. If the scope has `rules`, the route's options must
     * have limits or rules, which replace them.
     */
    rateLimit?: boolean | rollgate.RollgateFastifyOptions | undefined;
  }
}

export = rollgate;
