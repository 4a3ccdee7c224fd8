// The types of rollgate: the main export. limiter, redis, kv and middleware add their types to its namespace.

/// <reference types="node" />

import './limiter';
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
     * A limiter in memory, exact over a rolling window. With `shared`, one limiter for all threads and processes of
     * this user on this host.
     *
     * ```js
     * const limiter = RateLimiter({ interval: 1000, maxInInterval: 10 });
     * const timeLeft = limiter('some id'); // 0: allowed; otherwise ms to wait
     * ```
     *
     * @throws TypeError `ERR_ROLLGATE_OPTION`: an option is missing, unknown or of the wrong type; RangeError: out of
     *   range
     */
    (options: SharedRateLimiterOptions): RateLimiter;

    /**
     * A limiter on Redis, shared by all limiters with its `namespace`. It returns promises.
     *
     * ```js
     * const limiter = RateLimiter({ redis: 'redis://localhost', namespace: 'api', interval: 1000, maxInInterval: 10 });
     * const timeLeft = await limiter('some id');
     * ```
     */
    (options: RedisRateLimiterOptions): AsyncRateLimiter;

    /**
     * A limiter over a key-value store with compare-and-set, shared by all limiters with its `namespace`. It returns
     * promises.
     *
     * ```js
     * const kv = await openKv('limits.db'); // of @deno/kv; on Deno: await Deno.openKv()
     * const limiter = RateLimiter({ kv, namespace: 'api', interval: 1000, maxInInterval: 10 });
     * ```
     */
    (options: KvRateLimiterOptions): RemoteRateLimiter;

    /**
     * A limiter on Redis if `redis` is given, otherwise in memory. `await` works with both.
     *
     * ```js
     * const limiter = RateLimiter({ redis: process.env.REDIS_URL, namespace: 'api', interval: 1000, maxInInterval: 10 });
     * const timeLeft = await limiter('some id');
     * ```
     */
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
     * The key for a client's address. IPv4: the address. IPv6: the subnet, in the form of RFC 5952
     * ('2001:db8:0:100::/56'), because a client can choose any address in it. IPv6 with an embedded IPv4 address
     * ('::ffff:192.0.2.1', '::ffff:c000:201', '::192.0.2.1'; not NAT64 or 6to4): that IPv4 address. Any other string
     * is returned unchanged.
     *
     * @param ipv6Subnet prefix length in bits, an integer from 1 to 128, default 56; false: the address unchanged
     * @throws RangeError `ERR_ROLLGATE_OPTION`: the prefix length is out of range
     */
    ipKeyGenerator(ip: string, ipv6Subnet?: number | false): string;

    /**
     * Removes the shared-memory region of the option `shared`, and the regions derived from its name: `rules` and
     * Fastify routes with their own limits add a '+' and 16 characters. Attached limiters keep the removed region;
     * limiters that attach later get a new one.
     *
     * @returns whether a region existed
     * @throws TypeError or RangeError `ERR_ROLLGATE_OPTION`: the name is invalid
     * @throws Error `ERR_ROLLGATE_SHARED_SYSTEM`, `ERR_ROLLGATE_SHARED_FILE`: one region cannot be removed; the
     *   others are
     * @throws Error `ERR_ROLLGATE_UNSUPPORTED`: the addon was built without shared memory
     */
    unlinkShared(shared: string | SharedOptions): boolean;

    /**
     * Attempts actions on several limiters and ids (a user, an organisation, everybody): all or nothing. After a
     * refusal nothing is counted on any of them, whatever `countBlocked` and `blockFor` say. Limiters that answer at
     * once are all asked first and then recorded, in memory in one step. If one is on Redis or in a key-value store,
     * attempts are made in the order of the list and refunded after a refusal, so others may be refused for a moment;
     * `minDifference` still counts from them, except with the log.
     *
     * @throws TypeError `ERR_ROLLGATE_OPTION`: no list, an empty one, no limiter, or one id of one limiter twice
     * @throws the errors of `attempt` and `refund`, or rejects with them. What was recorded is then refunded; an
     *   attempt that timed out may stay counted.
     */
    attemptAll(entries: readonly AttemptAllEntry<RateLimiter>[]): AttemptAllResult;
    attemptAll(entries: readonly AttemptAllEntry[]): AttemptAllResult | Promise<AttemptAllResult>;

    /**
     * Makes a connection for several limiters: `RateLimiter({ connection, ... })`. Limiters with equal options share
     * one without this; functions are equal only to themselves. Does no I/O.
     *
     * @throws TypeError or RangeError `ERR_ROLLGATE_OPTION`; Error `ERR_ROLLGATE_UNSUPPORTED` without a native client
     */
    createRedisConnection(redis: string | RedisConnectionOptions): RedisConnection;

    /**
     * The path of the native addon: the loaded one or, before the first limiter, the first one found. Build scripts
     * copy this file next to a bundle: see docs/bundling.md. Places in order: `setAddonPath`, the environment
     * variable ROLLGATE_ADDON, the package's folder, the running script's folder.
     *
     * @throws Error `ERR_ROLLGATE_ADDON`: not found; also in a bundle of ncc, which loads its own copy
     */
    addonPath(): string;

    /**
     * Sets the only file to load the native addon from, for this thread. Call it before the first limiter is created;
     * that is when the addon is loaded, or fails to load.
     *
     * @param file path, relative to the current folder, or `file:` URL of a `rollgate.node`
     * @throws TypeError `ERR_ROLLGATE_OPTION`: not a path
     * @throws Error `ERR_ROLLGATE_ADDON`: another file is loaded already
     */
    setAddonPath(file: string | URL): void;
  }
}

export = RateLimiter;
