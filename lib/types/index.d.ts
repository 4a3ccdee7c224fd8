// The types of rollgate: the main export. limiter, redis, kv and middleware add their types to its namespace.

/// <reference types="node" />

import './limiter';
import './concurrency';
import './redis';
import './kv';
import './middleware';

import type { IncomingMessage, ServerResponse } from 'node:http';

declare const RateLimiter: RateLimiter.RateLimiterConstructor;
type RateLimiter = RateLimiter.RateLimiter;

declare namespace RateLimiter {
  /** The package's main export. */
  interface RateLimiterConstructor {
    /**
     * A limiter in memory; with `shared`, one for all threads and processes of this user on this host.
     *
     * ```js
     * const limiter = RateLimiter({ interval: 1000, maxInInterval: 10 });
     * const timeLeft = limiter('some id'); // 0: allowed; otherwise ms to wait
     * ```
     *
     * @throws TypeError or RangeError `ERR_ROLLGATE_OPTION`: an option is missing, unknown, of the wrong type or value
     */
    (options: SharedRateLimiterOptions): RateLimiter;

    /**
     * A limiter on Redis, shared by all limiters with its `namespace`:
     * `RateLimiter({ redis: 'redis://localhost', namespace: 'api', interval: 1000, maxInInterval: 10 })`.
     */
    (options: RedisRateLimiterOptions): AsyncRateLimiter;

    /** A limiter over a key-value store with compare-and-set, shared by all limiters with its `namespace`. */
    (options: KvRateLimiterOptions): RemoteRateLimiter;

    /** A limiter on Redis if `redis` is given, otherwise in memory. `await` works with both. */
    (options: PerhapsRedisRateLimiterOptions): RateLimiter | AsyncRateLimiter;

    /** The same with `new`. */
    new (options: SharedRateLimiterOptions): RateLimiter;
    // The type parameter hides these from `extends RateLimiter`, which needs a single instance type.
    new <_>(options: RedisRateLimiterOptions): AsyncRateLimiter;
    new <_>(options: KvRateLimiterOptions): RemoteRateLimiter;
    new <_>(options: PerhapsRedisRateLimiterOptions): RateLimiter | AsyncRateLimiter;

    readonly prototype: RateLimiter;
    /** The same function, for a named import. */
    readonly RateLimiter: RateLimiterConstructor;
    readonly ConcurrencyLimiter: ConcurrencyLimiterConstructor;
    readonly InMemoryRateLimiter: InMemoryRateLimiterConstructor;
    readonly RedisRateLimiter: RedisRateLimiterConstructor;
    readonly NodeRedisRateLimiter: NodeRedisRateLimiterConstructor;
    readonly IORedisRateLimiter: IORedisRateLimiterConstructor;

    /**
     * Creates a middleware that limits requests: `app.use(rateLimit({ windowMs: 60_000, limit: 100 }))`. A request
     * goes through `skip`, `keyGenerator`, the attempt, the headers, and then `next()` or `handler`. A refusal has
     * `Retry-After` if rate-limit headers are on.
     *
     * @throws TypeError or RangeError `ERR_ROLLGATE_OPTION`: an option is wrong, or conflicts with another
     */
    rateLimit<
      Request extends IncomingMessage = LimitedRequest,
      Response extends ServerResponse = LimitedResponse,
    >(options?: RateLimitOptions<Request, Response>): RateLimitMiddleware<Request, Response>;

    /**
     * Creates a middleware that limits how many requests of a key run at once: `app.use(concurrencyLimit({ max: 10 }))`.
     * A request holds its slot until its response has closed, whoever closed it. A refusal has no `Retry-After`: nobody
     * knows when a slot will be free.
     *
     * @throws TypeError or RangeError `ERR_ROLLGATE_OPTION`: an option is wrong, or conflicts with another
     */
    concurrencyLimit<
      Request extends IncomingMessage = LimitedRequest,
      Response extends ServerResponse = LimitedResponse,
    >(
      options: ConcurrencyLimitOptions<Request, Response> & WithRemoteSlots,
    ): ConcurrencyLimitMiddleware<Request, Response, RemoteConcurrencyLimiter>;
    concurrencyLimit<
      Request extends IncomingMessage = LimitedRequest,
      Response extends ServerResponse = LimitedResponse,
    >(
      options: ConcurrencyLimitOptions<Request, Response>,
    ): ConcurrencyLimitMiddleware<Request, Response>;

    /**
     * The key for a client's address: of IPv6 the subnet, in the form of RFC 5952 ('2001:db8:0:100::/56'), or the IPv4
     * address embedded in it ('::ffff:192.0.2.1'; not NAT64 or 6to4). Any other string is returned unchanged.
     *
     * @param ipv6Subnet prefix length in bits, an integer from 1 to 128, default 56; false: the address unchanged
     * @throws RangeError `ERR_ROLLGATE_OPTION`: the prefix length is out of range
     */
    ipKeyGenerator(ip: string, ipv6Subnet?: number | false): string;

    /**
     * Removes the region of the option `shared`, and those of `rules` and Fastify routes with that name. Attached
     * limiters keep the removed region; limiters that attach later get a new one. Returns whether a region existed.
     *
     * @throws TypeError or RangeError `ERR_ROLLGATE_OPTION`: the name is invalid
     * @throws Error `ERR_ROLLGATE_SHARED_SYSTEM`, `..._FILE`: one region cannot be removed; the others are
     * @throws Error `ERR_ROLLGATE_UNSUPPORTED`: the addon was built without shared memory
     */
    unlinkShared(shared: string | SharedOptions): boolean;

    /**
     * Attempts actions on several limiters and ids (a user, an organisation, everybody): all or nothing. After a
     * refusal nothing is counted on any of them, whatever `countBlocked` and `blockFor` say. If one is on Redis or in a
     * key-value store, attempts are made in the order of the list and refunded after a refusal, so others may be
     * refused for a moment; `minDifference` still counts from them, except with the log. The decision of a
     * ConcurrencyLimiter is a Slot, which is released after a refusal of another one.
     *
     * @throws TypeError `ERR_ROLLGATE_OPTION`: no list, an empty one, no limiter, or one id of one limiter twice
     * @throws the errors of `attempt` and `refund`, or rejects with them; an attempt that timed out may stay counted
     */
    attemptAll<Entries extends readonly (AttemptAllEntry<RateLimiter> | SlotEntry)[]>(
      entries: readonly [...Entries],
    ): AttemptAllResultOf<Entries>;
    attemptAll<Entries extends readonly (AttemptAllEntry | AnySlotEntry)[]>(
      entries: readonly [...Entries],
    ): AttemptAllResultOf<Entries> | Promise<AttemptAllResultOf<Entries>>;

    /**
     * Makes a connection for several limiters, without I/O. Limiters with equal options share one without this;
     * functions are equal only to themselves.
     *
     * @throws TypeError or RangeError `ERR_ROLLGATE_OPTION`; Error `ERR_ROLLGATE_UNSUPPORTED` without a native client
     */
    createRedisConnection(redis: string | RedisConnectionOptions): RedisConnection;

    /**
     * The path of the native addon: the loaded one or, before the first limiter, the first one found: by
     * `setAddonPath`, the environment variable ROLLGATE_ADDON, in the package's folder or the running script's.
     *
     * @throws Error `ERR_ROLLGATE_ADDON`: not found; also in a bundle of ncc, which loads its own copy
     */
    addonPath(): string;

    /**
     * Sets the only file to load the native addon from, for this thread, when the first limiter is created: a path,
     * relative to the current folder, or `file:` URL of a `rollgate.node`.
     *
     * @throws TypeError `ERR_ROLLGATE_OPTION`: not a path
     * @throws Error `ERR_ROLLGATE_ADDON`: another file is loaded already
     */
    setAddonPath(file: string | URL): void;
  }
}

export = RateLimiter;
