// The types of rollgate/fastify. Beside each: what it means, its unit, its default, what goes wrong.

import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';

import RateLimiter = require('./index');

/**
 * A Fastify 5 plugin that limits the requests of the scope it is registered in, with those of the scopes
 * within it and those without a route:
 *
 * ```ts
 * await fastify.register(rollgate, { windowMs: 60_000, limit: 100 });
 * ```
 *
 * Wrong options reject `fastify.ready()` with `ERR_ROLLGATE_OPTION`.
 */
declare const rollgate: FastifyPluginAsync<rollgate.RollgateFastifyOptions> & {
  /** The same plugin, so that it can be imported by its name. */
  readonly rollgate: FastifyPluginAsync<rollgate.RollgateFastifyOptions>;
};

declare namespace rollgate {
  type OrPromise<Value> = Value | Promise<Value>;
  type Ask<Answer> = (request: FastifyRequest, reply: FastifyReply) => Answer;

  /** The options of `rateLimit`; their functions get Fastify's request and reply. */
  type RollgateFastifyOptions = Omit<
    RateLimiter.RateLimitResponseOptions,
    keyof RollgateFastifyFunctions
  > &
    RollgateFastifyFunctions &
    (RollgateFastifyLimits | RateLimiter.RateLimitExisting | RollgateFastifyByRules);

  interface RollgateFastifyFunctions {
    /** Whom a request counts for. Default: `request.ip`, IPv6 by its subnet. */
    keyGenerator?: Ask<OrPromise<RateLimiter.Id>> | undefined;
    ipv6Subnet?: number | false | Ask<OrPromise<number | false>> | undefined;
    /** Who makes a request, in place of `keyGenerator`. What it throws goes to `onAuthError`. */
    authenticate?: ((request: FastifyRequest) => OrPromise<RateLimiter.Caller>) | undefined;
    /**
     * Answers where `authenticate` failed; what it returns is sent, unless it has sent something or calls
     * `next()`, which lets the request pass, uncounted. Without it errors go to Fastify's error handler.
     */
    onAuthError?:
      | ((
          error: unknown,
          request: FastifyRequest,
          reply: FastifyReply,
          next: RateLimiter.Next,
        ) => unknown)
      | undefined;
    /** A request it says true of is not counted and passes. */
    skip?: Ask<OrPromise<boolean>> | undefined;
    /** Answers a refused request; what it returns is sent, unless it has sent something or calls `next()`. */
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

  /** How many requests are allowed in a window: a number, or for each request what a function says. */
  type RollgateFastifyLimit = number | Ask<OrPromise<number>>;

  interface RollgateFastifyMax {
    /** Wins over `max` and `maxInInterval`. */
    limit?: RollgateFastifyLimit | undefined;
    /** The same as `limit`. */
    max?: RollgateFastifyLimit | undefined;
    /** The same as `limit`. */
    maxInInterval?: RollgateFastifyLimit | undefined;
  }

  /** Limits for all requests. */
  interface RollgateFastifyLimits
    extends Omit<RateLimiter.RateLimitLimits, keyof RollgateFastifyMax>,
      RollgateFastifyMax {}

  /** One of the `rules`. Its `path` is matched with the one that Fastify routes by. */
  interface RollgateFastifyRule
    extends Omit<RateLimiter.RateLimitRule, keyof RollgateFastifyMax>,
      RollgateFastifyMax {}

  /** The limits of rules, in place of limits for all. */
  interface RollgateFastifyByRules extends Omit<RateLimiter.RateLimitByRules, 'rules'> {
    /** At least one. Of those that match a request the first decides; without any it passes. */
    rules: readonly RollgateFastifyRule[];
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Where the request was counted: see RateLimitInfo. Null where it was not. */
    rateLimit: RateLimiter.RateLimitInfo | null;
  }

  interface FastifyContextConfig {
    /**
     * false: no limit. Options: in place of those of the scope, which hold where these say nothing. Where
     * the scope has `rules` they must have limits, or rules, of their own, and the scope's do not hold.
     */
    rateLimit?: boolean | rollgate.RollgateFastifyOptions | undefined;
  }
}

export = rollgate;
