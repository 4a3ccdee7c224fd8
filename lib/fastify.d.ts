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
    | 'handler'
    | 'identifier'
    | 'ipv6Subnet'
    | 'keyGenerator'
    | 'message'
    | 'requestWasSuccessful'
    | 'skip'
  > &
    RollgateFastifyFunctions &
    (RateLimiter.RateLimitLimits | RateLimiter.RateLimitExisting);

  interface RollgateFastifyFunctions {
    /** Whom a request counts for. Default: `request.ip`, IPv6 by its subnet. */
    keyGenerator?: Ask<OrPromise<RateLimiter.Id>> | undefined;
    ipv6Subnet?: number | false | Ask<OrPromise<number | false>> | undefined;
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
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Where the request was counted: see RateLimitInfo. Null where it was not. */
    rateLimit: RateLimiter.RateLimitInfo | null;
  }

  interface FastifyContextConfig {
    /** false: no limit. Options: in place of those of the scope, which hold where these say nothing. */
    rateLimit?: boolean | rollgate.RollgateFastifyOptions | undefined;
  }
}

export = rollgate;
