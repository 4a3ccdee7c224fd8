// The types of rollgate for require(): one function with everything else hung on it.

/// <reference types="node" />

import type { IncomingMessage, ServerResponse } from 'node:http';

declare const RateLimiter: RateLimiter.RateLimiterConstructor;

/**
 * A limiter: a function of (id?, callback?) with methods. Works with and without `new`; a constructor does
 * no I/O. It holds no timer and no handle: a program with live limiters exits by itself, and a limiter that
 * is dropped is freed.
 */
interface RateLimiter {
  /**
   * Attempts an action and calls back later, never in the same tick. The attempt itself is made before
   * the call returns. Every failure reaches the callback; an exception that the callback throws is an
   * uncaught exception.
   *
   * @throws TypeError `ERR_ROLLGATE_CALLBACK`: the callback is neither a function nor undefined
   */
  (id: RateLimiter.Id, callback: RateLimiter.Callback): void;

  /** The same for the one bucket of callers without an id. */
  (callback: RateLimiter.Callback): void;

  /**
   * Attempts an action.
   *
   * @param id whom to limit; without one, all callers share one bucket
   * @returns the time left in ms, a whole number: 0 exactly when the action is allowed; when it is
   *   blocked at least 1, rounded up, the time until an action would be allowed if nothing else is
   *   attempted meanwhile. With `countBlocked` the blocked attempt itself counts towards it.
   * @throws TypeError `ERR_ROLLGATE_ID`: the id is none
   * @throws Error `ERR_ROLLGATE_CLOCK`: the clock threw or gave no finite number
   * @throws Error `ERR_ROLLGATE_CLOSED`: the limiter is closed
   * @throws Error `ERR_ROLLGATE_MEMORY`: there is no memory left for the log of this id
   * @throws Error `ERR_ROLLGATE_SHARED_...`: with `shared`, from this call and every other that decides,
   *   clears or counts; see there
   */
  (id?: RateLimiter.Id, callback?: undefined): number;

  /**
   * Attempts an action; resolves to whether it was blocked. Source: rolling-rate-limiter 0.4.
   *
   * Rejects with `ERR_ROLLGATE_ID` (TypeError), `ERR_ROLLGATE_CLOCK` or `ERR_ROLLGATE_CLOSED`, like all
   * methods here that return a promise.
   */
  limit(id?: RateLimiter.Id): Promise<boolean>;

  /** What `limit` would resolve to now. Records nothing and creates nothing. */
  wouldLimit(id?: RateLimiter.Id): Promise<boolean>;

  /** Attempts an action; resolves to what came of it in rolling-rate-limiter's words. */
  limitWithInfo(id?: RateLimiter.Id): Promise<RateLimiter.LimitInfo>;

  /** What `limitWithInfo` would resolve to now. Records nothing and creates nothing. */
  wouldLimitWithInfo(id?: RateLimiter.Id): Promise<RateLimiter.LimitInfo>;

  /**
   * Attempts an action and tells everything about it, synchronously.
   *
   * @throws TypeError `ERR_ROLLGATE_ID`: the id is none
   * @throws TypeError `ERR_ROLLGATE_OPTION`: the second argument is no object, or has an unknown option
   * @throws TypeError `ERR_ROLLGATE_COST`: the cost is no number
   * @throws RangeError `ERR_ROLLGATE_COST`: the cost is no integer from 1 to the smallest `maxInInterval`
   * @throws Error `ERR_ROLLGATE_CLOCK`: the clock threw or gave no finite number
   * @throws Error `ERR_ROLLGATE_CLOSED`: the limiter is closed
   */
  attempt(id?: RateLimiter.Id, options?: RateLimiter.AttemptOptions): RateLimiter.Decision;

  /**
   * The Decision that `attempt` would give now. Records nothing and creates nothing. Throws what
   * `attempt` throws.
   */
  peek(id?: RateLimiter.Id, options?: RateLimiter.AttemptOptions): RateLimiter.Decision;

  /**
   * Waits until an action is allowed, and records it. Who waits for one id is let in first come, first
   * served, by this limiter in this process; calls that do not wait take their chance in between. Waiting
   * records nothing: no refusal is counted and no block begins. docs/waiting.md tells more.
   *
   * ```js
   * await limiter.wait('some id', { deadline: 5000 });
   * ```
   *
   * @returns the Decision of the attempt that was allowed, which `refund` takes
   *
   * Rejects with the `reason` of the signal; `ERR_ROLLGATE_WAIT_DEADLINE`: it cannot be or was not allowed
   * within the deadline; `ERR_ROLLGATE_WAIT_QUEUE`: `maxQueue` wait already; `ERR_ROLLGATE_CLOSED`: the
   * limiter is closed, also meanwhile; `ERR_ROLLGATE_OPTION`: an option is wrong; and with what `attempt`
   * throws.
   */
  wait(id?: RateLimiter.Id, options?: RateLimiter.WaitOptions): Promise<RateLimiter.Decision>;

  /**
   * Attempts an action of cost 1 for each id, in their order and at one moment, in one native call. An
   * id may occur more than once. One wrong id refuses the whole call, and then nothing is recorded.
   *
   * @returns one Decision for each id
   * @throws TypeError `ERR_ROLLGATE_ID`: not an array, or one element is no id
   * @throws Error `ERR_ROLLGATE_CLOCK`, `ERR_ROLLGATE_CLOSED`
   */
  attemptMany(ids: readonly RateLimiter.Id[]): RateLimiter.Decision[];

  /**
   * Takes back what an allowed attempt recorded, once. Exact with `countBlocked: false`; where counted
   * refusals may have displaced older actions it errs on the side of fewer admissions. With 'gcra' it
   * gives back what has not leaked yet; with that and the counts, `minDifference` holds as if the
   * action had stayed.
   *
   * @param decision as `attempt` or `attemptMany` of this very limiter returned it
   * @returns whether there was anything to take back: false after a refusal or a peek, the second time,
   *   and once the id was cleared or forgotten
   * @throws TypeError `ERR_ROLLGATE_DECISION`: no Decision, or another limiter's
   * @throws Error `ERR_ROLLGATE_CLOSED`: the limiter is closed
   */
  refund(decision: RateLimiter.Decision): boolean;

  /** Forgets one id; without an id, the bucket of callers without one. */
  clear(id?: RateLimiter.Id): Promise<void>;

  /** Forgets every id of this limiter. The sums in `stats()` stay. */
  clearAll(): Promise<void>;

  /**
   * What the limiter holds and has done; cheap. With `shared`, `keys` and `bytes` are those of all who
   * have its name; the other sums are this limiter's.
   *
   * @throws Error `ERR_ROLLGATE_CLOSED`: the limiter is closed
   */
  stats(): RateLimiter.Stats;

  /**
   * Gives back the memory at once; what is `shared` stays for others. May be called again. Every other call afterwards fails with
   * `ERR_ROLLGATE_CLOSED`: it throws, rejects or calls back with the error, as that call does with any.
   */
  close(): Promise<void>;
}

// Inside the namespace the name of the export would mean the export itself.
import Self = RateLimiter;

declare namespace RateLimiter {
  type RateLimiter = Self;

  /** What the package is: a function with everything else hung on it. */
  interface RateLimiterConstructor {
    /**
     * A limiter in memory, exact over a rolling window; with `shared`, one for all threads and processes
     * of this user on this host.
     *
     * ```js
     * const limiter = RateLimiter({ interval: 1000, maxInInterval: 10 });
     * const timeLeft = limiter('some id'); // 0: go ahead; else wait this many ms
     * ```
     *
     * @throws TypeError `ERR_ROLLGATE_OPTION`: an option is missing, unknown or of the wrong type
     * @throws RangeError `ERR_ROLLGATE_OPTION`: an option is out of range
     */
    (options: SharedRateLimiterOptions): Self;

    /**
     * A limiter on Redis, which everybody shares who has its `namespace`. It answers with promises.
     *
     * ```js
     * const limiter = RateLimiter({ redis: 'redis://localhost', namespace: 'api', interval: 1000, maxInInterval: 10 });
     * const timeLeft = await limiter('some id');
     * ```
     */
    (options: RedisRateLimiterOptions): AsyncRateLimiter;

    /**
     * A limiter over a key-value store with compare-and-set, which everybody shares who has its
     * `namespace`. It answers with promises.
     *
     * ```js
     * const kv = await openKv('limits.db'); // of @deno/kv; on Deno: await Deno.openKv()
     * const limiter = RateLimiter({ kv, namespace: 'api', interval: 1000, maxInInterval: 10 });
     * ```
     */
    (options: KvRateLimiterOptions): RemoteRateLimiter;

    /**
     * A limiter on Redis if there is one, otherwise in memory. `await` takes the answers of both.
     *
     * ```js
     * const limiter = RateLimiter({ redis: process.env.REDIS_URL, namespace: 'api', interval: 1000, maxInInterval: 10 });
     * const timeLeft = await limiter('some id');
     * ```
     */
    (options: PerhapsRedisRateLimiterOptions): Self | AsyncRateLimiter;

    /** The same with `new`. */
    new (options: SharedRateLimiterOptions): Self;
    // With a type parameter they are not what `extends RateLimiter` extends, which takes one type only.
    new <_>(options: RedisRateLimiterOptions): AsyncRateLimiter;
    new <_>(options: KvRateLimiterOptions): RemoteRateLimiter;
    new <_>(options: PerhapsRedisRateLimiterOptions): Self | AsyncRateLimiter;

    readonly prototype: Self;
    /** The same function, so that it can be imported by its name. */
    readonly RateLimiter: RateLimiterConstructor;
    readonly InMemoryRateLimiter: InMemoryRateLimiterConstructor;
    readonly RedisRateLimiter: RedisRateLimiterConstructor;
    readonly NodeRedisRateLimiter: NodeRedisRateLimiterConstructor;
    readonly IORedisRateLimiter: IORedisRateLimiterConstructor;

    /**
     * Makes a middleware that limits requests: `app.use(rateLimit({ windowMs: 60_000, limit: 100 }))`. A
     * request goes through `skip`, `keyGenerator`, the attempt, the headers, and then `next()` or
     * `handler`. A refusal has `Retry-After` where rate-limit headers are on.
     *
     * @throws TypeError `ERR_ROLLGATE_OPTION`: an option is unknown, of the wrong type, or not allowed
     *   beside another
     * @throws RangeError `ERR_ROLLGATE_OPTION`: an option is out of range
     */
    rateLimit<
      Request extends IncomingMessage = LimitedRequest,
      Response extends ServerResponse = LimitedResponse,
    >(options?: RateLimitOptions<Request, Response>): RateLimitMiddleware<Request, Response>;

    /**
     * A client's address as a key: IPv4 as it is, IPv6 that carries an IPv4 address as that one, other
     * IPv6 as the subnet whose addresses one client can choose from, written as RFC 5952 says:
     * '2001:db8:0:100::/56'. What is no IP address comes back as it is. An IPv4 address is carried by
     * '::ffff:192.0.2.1', '::ffff:c000:201' and '::192.0.2.1', not by NAT64 or 6to4.
     *
     * @param ipv6Subnet prefix length in bits, an integer from 1 to 128, default 56; false: the address
     *   as it came
     * @throws RangeError `ERR_ROLLGATE_OPTION`: the prefix length is out of range
     */
    ipKeyGenerator(ip: string, ipv6Subnet?: number | false): string;

    /**
     * Removes the region of shared memory that the option `shared` means, and those that were made of its
     * name: with `rules`, and on Fastify's routes with limits of their own, each has a region, whose name
     * is this one, a '+' and 16 characters. Limiters that are attached go on among themselves; those that
     * attach later begin anew.
     *
     * @returns whether there was any
     * @throws TypeError or RangeError `ERR_ROLLGATE_OPTION`: that is no name
     * @throws Error `ERR_ROLLGATE_SHARED_SYSTEM`, `ERR_ROLLGATE_SHARED_FILE`: one cannot be removed; the
     *   others are
     * @throws Error `ERR_ROLLGATE_UNSUPPORTED`: the addon was built without shared memory
     */
    unlinkShared(shared: string | SharedOptions): boolean;

    /**
     * The path of the native addon that is loaded or, before the first limiter, that was found first. Build
     * scripts copy this file next to a bundle: docs/bundling.md. The environment variable ROLLGATE_ADDON
     * and `setAddonPath` come first, then the folder of the package and that of the running script.
     *
     * @throws Error `ERR_ROLLGATE_ADDON`: there is none; also in a bundle of ncc, which loads its own copy
     */
    addonPath(): string;

    /**
     * Sets which file is the native addon, in place of all others, for this thread. The addon is loaded when
     * the first limiter is created, so call this before; a path that does not load fails there.
     *
     * @param file path, relative to the current folder, or `file:` URL of a `rollgate.node`
     * @throws TypeError `ERR_ROLLGATE_OPTION`: that is no path
     * @throws Error `ERR_ROLLGATE_ADDON`: another file is loaded already
     */
    setAddonPath(file: string | URL): void;
  }

  /**
   * Whom to limit: a string, a finite number or a bigint. `1`, `1n` and `'1'` are one id. `undefined`,
   * `null` and `''` are the one bucket of callers without an id. Two different strings never share a
   * bucket.
   */
  type Id = string | number | bigint | null | undefined;

  /**
   * What a limiter calls back with.
   *
   * @param error null, or why no decision could be made; the other two are undefined then
   * @param timeLeft ms, an integer: 0 exactly when allowed, at least 1 when blocked
   * @param actionsLeft how many more actions the window has room for, an integer >= 0
   */
  type Callback = (error: RateLimiterError | null, timeLeft: number, actionsLeft: number) => void;

  /**
   * Every code an error of rollgate can have; `docs/errors.md` has a section for each.
   *
   * - `ERR_ROLLGATE_OPTION`: TypeError or RangeError, an option is wrong, missing or unknown
   * - `ERR_ROLLGATE_ID`: TypeError, the id is none
   * - `ERR_ROLLGATE_CALLBACK`: TypeError, the callback is no function
   * - `ERR_ROLLGATE_COST`: TypeError or RangeError, the cost is no integer from 1 to the smallest
   *   `maxInInterval`
   * - `ERR_ROLLGATE_DECISION`: TypeError, `refund` got something that this limiter did not decide
   * - `ERR_ROLLGATE_CLOCK`: Error, the clock threw (see `cause`) or gave no finite number
   * - `ERR_ROLLGATE_CLOSED`: Error, the limiter is closed
   * - `ERR_ROLLGATE_MEMORY`: Error, there is no memory left for the log of an id
   * - `ERR_ROLLGATE_WAIT_DEADLINE`: Error, `wait` cannot be or was not allowed within its deadline
   * - `ERR_ROLLGATE_WAIT_QUEUE`: Error, `maxQueue` wait for the id already
   * - `ERR_ROLLGATE_LIMIT`: TypeError or RangeError, a function given as `limit` gave no integer >= 0, or
   *   more than a log in shared memory has room for
   * - `ERR_ROLLGATE_AUTHENTICATE`: TypeError, `authenticate` gave no object with an id
   * - `ERR_ROLLGATE_URL`: Error, with Fastify and `rules`: a URL that leads to no certain path
   * - `ERR_ROLLGATE_REDIS_TIMEOUT`: Error, Redis did not answer within `commandTimeout`
   * - `ERR_ROLLGATE_REDIS_UNREACHABLE`: Error, there is no connection, or it was lost (see `cause`)
   * - `ERR_ROLLGATE_REDIS_AUTH`: Error, Redis refuses the user or the password (see `cause`)
   * - `ERR_ROLLGATE_REDIS_REPLY`: Error, Redis answered with another error (see `cause`), or with
   *   something that makes no sense
   * - `ERR_ROLLGATE_REDIS_QUEUE_FULL`: Error, `maxQueue` calls wait already
   * - `ERR_ROLLGATE_REDIS_CLOSED`: Error, the Redis client was closed by its owner
   * - `ERR_ROLLGATE_KV_TIMEOUT`: Error, the key-value store did not answer within `commandTimeout`, was
   *   busy (see `cause`), or others wrote the id each time
   * - `ERR_ROLLGATE_KV`: Error, the key-value store failed (see `cause`), or has something under the key
   *   of the id that makes no sense
   * - `ERR_ROLLGATE_SHARED_MISMATCH`: Error, the shared limiter of that name has other options, which the
   *   message names beside these
   * - `ERR_ROLLGATE_SHARED_FILE`: Error, the file of that name is no shared limiter of this user and version
   * - `ERR_ROLLGATE_SHARED_SYSTEM`: Error, the system refuses: no room, no permission, no such directory
   * - `ERR_ROLLGATE_SHARED_FULL`: Error, 1024 limiters are attached to it already
   * - `ERR_ROLLGATE_SHARED_CORRUPT`: Error, what is in shared memory makes no sense
   * - `ERR_ROLLGATE_UNSUPPORTED`: Error, this build, runtime or store cannot do what is asked for, or
   *   prom-client is missing
   * - `ERR_ROLLGATE_ADDON`: Error, at loading: there is no addon for this system (see `cause`)
   * - `ERR_ROLLGATE_STORE`: Error, a RollgateStore has no limits: its `init` was not called, or failed (see
   *   `cause`)
   * - `ERR_ROLLGATE_THROWN`: Error, a function given to `rateLimit` threw what `next` cannot read (see
   *   `cause`)
   */
  type ErrorCode =
    | 'ERR_ROLLGATE_OPTION'
    | 'ERR_ROLLGATE_ID'
    | 'ERR_ROLLGATE_CALLBACK'
    | 'ERR_ROLLGATE_COST'
    | 'ERR_ROLLGATE_DECISION'
    | 'ERR_ROLLGATE_CLOCK'
    | 'ERR_ROLLGATE_CLOSED'
    | 'ERR_ROLLGATE_MEMORY'
    | 'ERR_ROLLGATE_WAIT_DEADLINE'
    | 'ERR_ROLLGATE_WAIT_QUEUE'
    | 'ERR_ROLLGATE_LIMIT'
    | 'ERR_ROLLGATE_AUTHENTICATE'
    | 'ERR_ROLLGATE_URL'
    | 'ERR_ROLLGATE_REDIS_TIMEOUT'
    | 'ERR_ROLLGATE_REDIS_UNREACHABLE'
    | 'ERR_ROLLGATE_REDIS_AUTH'
    | 'ERR_ROLLGATE_REDIS_REPLY'
    | 'ERR_ROLLGATE_REDIS_QUEUE_FULL'
    | 'ERR_ROLLGATE_REDIS_CLOSED'
    | 'ERR_ROLLGATE_KV_TIMEOUT'
    | 'ERR_ROLLGATE_KV'
    | 'ERR_ROLLGATE_SHARED_MISMATCH'
    | 'ERR_ROLLGATE_SHARED_FILE'
    | 'ERR_ROLLGATE_SHARED_SYSTEM'
    | 'ERR_ROLLGATE_SHARED_FULL'
    | 'ERR_ROLLGATE_SHARED_CORRUPT'
    | 'ERR_ROLLGATE_UNSUPPORTED'
    | 'ERR_ROLLGATE_ADDON'
    | 'ERR_ROLLGATE_STORE'
    | 'ERR_ROLLGATE_THROWN';

  /** An Error, TypeError or RangeError that rollgate made. There is no class of this name. */
  interface RateLimiterError extends Error {
    code: ErrorCode;
    /** The error that led to this one, where there was one. */
    cause?: unknown;
  }

  /** One window: at most `maxInInterval` actions in any `interval`. */
  interface Limit {
    /**
     * Length of the window in ms, finite and > 0; fractions are taken to the microsecond. An action
     * leaves the window exactly `interval` after it happened.
     */
    interval: number;
    /** How many actions each window allows, an integer >= 1. */
    maxInInterval: number;
    /** Least ms between two actions, finite and >= 0; that gap itself is enough. Default 0. */
    minDifference?: number | undefined;
  }

  /**
   * How actions are counted, whatever the store:
   * - 'sliding-window-log': by the moments of an id's newest actions. Exact.
   * - 'sliding-window-counter': by two counts for windows that begin at the epoch, the older one by its
   *   share that is still inside (Deno KV, Cloudflare).
   * - 'fixed-window': by one count for the window that began at the epoch or a multiple of `interval`
   *   later. Across an edge twice the limit may pass.
   * - 'gcra': a burst of `maxInInterval`, then one action every interval / maxInInterval (ATM Forum,
   *   redis-cell).
   */
  type Algorithm = 'sliding-window-log' | 'sliding-window-counter' | 'fixed-window' | 'gcra';

  /** What a limiter can be told besides its limits. */
  interface CommonOptions {
    /**
     * Whether a blocked attempt counts as an action, as it does in rolling-rate-limiter. With `false` a
     * blocked attempt leaves no trace. Default true; with 'gcra' it is false, and true is refused.
     */
    countBlocked?: boolean | undefined;
    /**
     * How actions are counted. Default 'sliding-window-log', which is exact; docs/algorithms.md tells
     * what the others are good for.
     */
    algorithm?: Algorithm | undefined;
    /**
     * How long an id is refused after a refusal, in ms > 0: one length, or a list of up to 255 of them
     * for repeated offences (the last one stays). Attempts during a block leave no trace and do not
     * lengthen it. Offences are forgotten once the id has gone without a refusal for the last block and
     * the longest window. `clear` lifts a block.
     */
    blockFor?: number | readonly number[] | undefined;
    /**
     * Tells the time in ms, in place of the monotonic clock; for tests and simulation. Fractions are
     * taken to the microsecond. On Redis it takes the place of the server's clock, in a key-value store
     * that of the time of day. If it throws or gives no finite number, that call fails with
     * `ERR_ROLLGATE_CLOCK` and the limiter lives on. A step backwards never lets more through; to know
     * what to hold against it, a limiter with a clock of its own forgets expired ids only where
     * `maxKeys` asks for room.
     */
    clock?: (() => number) | undefined;
    /**
     * Most ids held at once, an integer >= 1. When full, the id nearest to expiry is dropped, counted
     * in `stats()`, and warned about once (`process.emitWarning`, code `ROLLGATE_EVICTED`). Default
     * 1,000,000, in shared memory 50,000. On Redis and in a key-value store it bounds what
     * `onError: 'memory'` holds. In shared memory it says how much room is taken at once, for good; that
     * of the first to attach counts.
     */
    maxKeys?: number | undefined;
  }

  /** A limiter with one window. */
  interface OneLimitOptions extends Limit, CommonOptions {
    limits?: undefined;
  }

  /** A Limit of which everything may be left out or undefined. */
  type OptionalLimit = { [name in keyof Limit]?: Limit[name] | undefined };

  /** A limiter with several windows: an action passes only if every one lets it pass. */
  interface SeveralLimitsOptions extends OptionalLimit, CommonOptions {
    /**
     * At least one. Decided and recorded at once. Replaces `interval`, `maxInInterval` and
     * `minDifference`, also where both are given. Of several `minDifference`s the largest holds.
     */
    limits: readonly Limit[];
  }

  /** A limiter in shared memory: where, and how large. */
  interface SharedOptions {
    /**
     * One limiter for all who have the same: 1 to 200 letters, digits, '.', '_' and '-', not beginning with
     * '.'; at most 183 with `rules`, and on Fastify's routes with limits of their own.
     */
    name: string;
    /** As at the top; an integer from 1 to 2^32. */
    maxKeys?: number | undefined;
    /**
     * Absolute path of the directory of the file, which should be in memory, the same for all. Default
     * '/dev/shm'.
     */
    directory?: string | undefined;
  }

  /** What a limiter that answers at once can be told of where it counts. */
  interface SharedStoreOptions {
    /**
     * Counts in memory that is shared: one exact limiter for every worker thread and every process of the
     * same user on this host that has this name, with no server. Linux only. It takes room for `maxKeys`
     * ids at once, stays until it is removed (`unlinkShared`) or the host restarts, and is refused to
     * limiters with other limits, algorithm, `countBlocked`, `blockFor`, or a `clock` where it had none
     * (`ERR_ROLLGATE_SHARED_MISMATCH`). The first call attaches, so it may fail where construction did not;
     * too little room in the file system or under the container's memory limit is
     * `ERR_ROLLGATE_SHARED_SYSTEM`.
     * A sliding-window-log holds at most 1,048,575 actions there, and 1000 where `limit` is a function.
     */
    shared?: string | SharedOptions | undefined;
  }

  /** What a limiter in memory does not have. */
  interface NoRedis {
    redis?: undefined;
    client?: undefined;
    kv?: undefined;
    shared?: undefined;
    commandTimeout?: undefined;
  }

  /** The options of a limiter. Numeric strings are refused, and so is what is not listed here. */
  type RateLimiterOptions = (OneLimitOptions | SeveralLimitsOptions) & NoRedis & RedisStoreOptions;

  /** The options of a limiter in memory that may be shared. */
  type SharedRateLimiterOptions =
    | RateLimiterOptions
    | ((OneLimitOptions | SeveralLimitsOptions) &
        Omit<NoRedis, 'shared'> &
        NotGiven<keyof RedisStoreOptions> &
        SharedStoreOptions);

  /** A client or cluster of ioredis, 4 or newer. */
  interface IORedisClient {
    readonly status: string;
    createBuiltinCommand(...args: never[]): unknown;
    sendCommand(...args: never[]): unknown;
  }

  /** A client, pool or cluster of redis (node-redis), 3 or newer. */
  type NodeRedisClient =
    | { readonly isOpen: boolean; sendCommand(...args: never[]): unknown }
    | { readonly connected: boolean; send_command(...args: never[]): unknown };

  /** A client that the limiter uses and leaves to its owner: it neither connects nor closes it. */
  type RedisClient = IORedisClient | NodeRedisClient;

  /** What concerns each call to Redis, whoever connects. */
  interface RedisCallOptions {
    /**
     * ms within which a call gets its answer, an integer >= 1, counted from the call; then it fails
     * with `ERR_ROLLGATE_REDIS_TIMEOUT`. Default 500.
     */
    commandTimeout?: number | undefined;
    /**
     * How many calls may wait for an answer, an integer >= 1, those included whose time is over while the
     * server, or a client of yours, has them still; more fail at once with
     * `ERR_ROLLGATE_REDIS_QUEUE_FULL`. Default 10,000.
     */
    maxQueue?: number | undefined;
  }

  /** A client, with what can be said beside it. */
  interface RedisClientOptions extends RedisCallOptions {
    client: RedisClient;
  }

  /** A connection of the limiter's own, opened with the first call and re-opened by itself. */
  interface RedisConnectionOptions extends RedisCallOptions {
    client?: undefined;
    /** redis://, rediss:// or unix://, in place of host, port and path. What stands beside it wins. */
    url?: string | undefined;
    /** Default '127.0.0.1'. */
    host?: string | undefined;
    /** Default 6379. */
    port?: number | undefined;
    /** Of a unix socket, in place of host and port. */
    path?: string | undefined;
    username?: string | undefined;
    /** Appears in no message. */
    password?: string | undefined;
    /** Number of the database. Default 0. */
    db?: number | undefined;
    /** Whether to use TLS, or options for node:tls. Default false, with rediss:// true. */
    tls?: boolean | object | undefined;
    /** ms to connect within. Default 2000. */
    connectTimeout?: number | undefined;
    /** ms to wait before connecting again: at first `min`, then longer, up to `max`. Default 50 and 2000. */
    retry?: { min?: number | undefined; max?: number | undefined } | undefined;
    /** Shown by CLIENT LIST. */
    connectionName?: string | undefined;
    /** URLs of some nodes of a Redis Cluster, in place of url, host, port and path. */
    cluster?: readonly string[] | undefined;
  }

  /** How to get to Redis. */
  type RedisOption = string | RedisConnectionOptions | RedisClientOptions | RedisClient;

  /** What a limiter on Redis can be told besides its limits. Both have no effect in memory. */
  interface RedisStoreOptions {
    /**
     * Beginning of every key, which is `namespace{id}`: non-empty, without braces. Limiters of one
     * namespace count together and must have the same limits. Default 'rate-limiter-' and 8 random
     * characters, which nobody shares.
     */
    namespace?: string | undefined;
    /**
     * Who decides where Redis gives no answer. 'throw' (default): nobody, the call fails. 'allow': it
     * is allowed, as if the id were new. 'block': it is refused for a second. 'memory': a limiter in
     * this process's memory, until Redis answers again.
     */
    onError?: 'throw' | 'allow' | 'block' | 'memory' | undefined;
  }

  /** Under the name it has here, or that of rolling-rate-limiter. */
  type WithRedis<Redis> = {
    kv?: undefined;
    shared?: undefined;
    commandTimeout?: undefined;
  } & ({ redis: Redis; client?: undefined } | { client: Redis; redis?: undefined });

  /** The options of a limiter on Redis. */
  type RedisRateLimiterOptions<Redis = RedisOption> = (OneLimitOptions | SeveralLimitsOptions) &
    RedisStoreOptions &
    WithRedis<Redis>;

  /** The options of a limiter on Redis whose `redis` may be undefined; it is in memory then. */
  type PerhapsRedisRateLimiterOptions = (OneLimitOptions | SeveralLimitsOptions) &
    RedisStoreOptions &
    Pick<NoRedis, 'kv' | 'shared' | 'commandTimeout'> & {
      redis?: RedisOption | undefined;
      client?: RedisOption | undefined;
    };

  /** An open Deno KV: what `Deno.openKv()` gives, or `openKv()` of @deno/kv. */
  interface DenoKv {
    get(...args: never[]): Promise<{ readonly versionstamp: string | null }>;
    list(...args: never[]): AsyncIterable<{ readonly versionstamp: string }>;
    atomic(): { commit(): Promise<{ readonly ok: boolean }> };
  }

  /** What a key-value store of yours gives for a key. */
  interface KvEntry {
    /** Exactly what was set. */
    value: Uint8Array;
    /** Another one with every set; no key ever has the same one twice. Neither null nor undefined. */
    version: unknown;
  }

  /** A key-value store of yours. Functions may answer with promises, or at once. */
  interface PlainKv {
    /** What is there; null or undefined where there is nothing, or it has expired. */
    get(key: string): KvEntry | null | undefined | PromiseLike<KvEntry | null | undefined>;
    /**
     * Sets the value if its version is still this one, or if there is none where it is null; at once, so
     * that of two who try only one succeeds.
     *
     * @param ttlMs whole ms, after which it is to be gone; not before
     * @returns true, or false where the version is another one and nothing was done
     */
    set(
      key: string,
      value: Uint8Array,
      version: unknown,
      ttlMs: number,
    ): boolean | PromiseLike<boolean>;
    /** Without it, `clear` sets a value of one byte that expires in a second. */
    delete?(key: string): unknown;
    /** The keys that begin with `prefix`. Without it, `clearAll` rejects with `ERR_ROLLGATE_UNSUPPORTED`. */
    list?(
      prefix: string,
    ):
      | Iterable<string>
      | AsyncIterable<string>
      | PromiseLike<Iterable<string> | AsyncIterable<string>>;
  }

  /** What a limiter over a key-value store can be told besides its limits. */
  interface KvStoreOptions {
    /** The store, which the limiter uses and leaves to its owner: it neither opens nor closes it. */
    kv: DenoKv | PlainKv;
    /**
     * Beginning of every key: non-empty, without braces, at most 512 bytes. Limiters of one namespace
     * count together and must have the same limits.
     */
    namespace: string;
    /**
     * ms within which a call gets its answer, an integer >= 1, counted from the call; then it fails
     * with `ERR_ROLLGATE_KV_TIMEOUT`. Default 500.
     */
    commandTimeout?: number | undefined;
    /** Who decides where the store gives no answer: see RedisStoreOptions. Default 'throw'. */
    onError?: 'throw' | 'allow' | 'block' | 'memory' | undefined;
    redis?: undefined;
    client?: undefined;
    shared?: undefined;
  }

  /** The options of a limiter over a key-value store. */
  type KvRateLimiterOptions = (OneLimitOptions | SeveralLimitsOptions) & KvStoreOptions;

  /**
   * A limiter whose store is elsewhere: it answers with promises, and what is wrong with a call rejects
   * them. The methods are those of RateLimiter.
   */
  // biome-ignore lint/complexity/noBannedTypes: a limiter is a function
  interface RemoteRateLimiter extends Function {
    /**
     * Attempts an action and calls back later, never in the same tick.
     *
     * @throws TypeError `ERR_ROLLGATE_CALLBACK`: the callback is neither a function nor undefined
     */
    (id: Id, callback: Callback): void;

    /** The same for the one bucket of callers without an id. */
    (callback: Callback): void;

    /**
     * Attempts an action; resolves to the time left in ms: 0 exactly when the action is allowed.
     *
     * Rejects with `ERR_ROLLGATE_ID` (also for strings that are no well-formed Unicode),
     * `ERR_ROLLGATE_CLOCK`, `ERR_ROLLGATE_CLOSED`, and `ERR_ROLLGATE_REDIS_...` or `ERR_ROLLGATE_KV...`
     * unless `onError` says otherwise; so do all methods.
     */
    (id?: Id, callback?: undefined): Promise<number>;

    limit(id?: Id): Promise<boolean>;
    wouldLimit(id?: Id): Promise<boolean>;
    limitWithInfo(id?: Id): Promise<LimitInfo>;
    wouldLimitWithInfo(id?: Id): Promise<LimitInfo>;
    attempt(id?: Id, options?: AttemptOptions): Promise<Decision>;
    peek(id?: Id, options?: AttemptOptions): Promise<Decision>;

    /**
     * As of RateLimiter, in the order of this process. Other processes that wait for the id are in lines
     * of their own; where one of them is quicker, the attempt is refused, and that refusal counts as
     * `countBlocked` and `blockFor` say.
     */
    wait(id?: Id, options?: WaitOptions): Promise<Decision>;

    /**
     * On Redis in one round trip for each 1000 ids, in a cluster one for each slot among them; in a
     * key-value store one for each id, at the same time. Where one part fails the promise rejects, and
     * others may be recorded.
     */
    attemptMany(ids: readonly Id[]): Promise<Decision[]>;

    /**
     * As of RateLimiter. Always rejects where the store does not answer, whatever `onError` says; the
     * decision is used up then. Decisions that `onError` made are given back where they were made.
     */
    refund(decision: Decision): Promise<boolean>;

    /** Always rejects where the store does not answer, whatever `onError` says. */
    clear(id?: Id): Promise<void>;

    /** On Redis it scans all keys of the database: as many round trips as that takes. */
    clearAll(): Promise<void>;

    stats(): RemoteStats;

    /** Closes a connection of the limiter's own; a client or store of yours stays as it is. */
    close(): Promise<void>;
  }

  /** A limiter on Redis. */
  interface AsyncRateLimiter extends RemoteRateLimiter {
    /** What speaks to Redis: the native client, or yours. */
    readonly detectedClientType: RedisClientType;
  }

  type RedisClientType = 'hiredis' | 'ioredis' | 'node-redis';

  /** The options of one attempt. */
  interface AttemptOptions {
    /** For how many actions it counts, an integer from 1 to the smallest `maxInInterval`. Default 1. */
    cost?: number | undefined;
  }

  /** The options of one `wait`. */
  interface WaitOptions extends AttemptOptions {
    /** Ends waiting when it aborts: the promise rejects with its `reason`. */
    signal?: AbortSignal | undefined;
    /**
     * Within how many ms of the call it has to be allowed, from 0 to below 1e12. The promise rejects at
     * the deadline, or as soon as it is known that it cannot be met. Default: however long it takes.
     */
    deadline?: number | undefined;
    /**
     * How many may wait for this id, this call included, an integer >= 1; it rejects at once if they do
     * already. Default: any number.
     */
    maxQueue?: number | undefined;
  }

  /** What came of one attempt, or would come of it. Durations in whole ms, rounded up. */
  interface Decision {
    readonly allowed: boolean;
    /**
     * 0 when allowed; else at least 1: until the same attempt would pass if nothing else is
     * attempted meanwhile.
     */
    readonly timeLeft: number;
    /** The least `remaining` of all windows. */
    readonly actionsLeft: number;
    /**
     * Until quota grows: when blocked `timeLeft`, else the `resetIn` of the window that has the least
     * left.
     */
    readonly resetIn: number;
    /** Why it was blocked; 'count' where both hold; 'block' by `blockFor` or `onError: 'block'`. */
    readonly blockedBy: null | 'count' | 'minDifference' | 'block';
    /** The state of each window once this attempt is made, in the order of the options. */
    readonly limits: readonly WindowState[];
  }

  /** One window once an attempt is made. */
  interface WindowState {
    /** ms, as in the options. */
    readonly interval: number;
    readonly maxInInterval: number;
    /**
     * What is taken of the window as the algorithm counts it, at most `maxInInterval`: recorded actions
     * inside of it (log), those that count (fixed window, counter), what has not leaked yet (gcra).
     */
    readonly used: number;
    /** `maxInInterval` - `used`. */
    readonly remaining: number;
    /**
     * ms until `used` gets less if nothing else is attempted: the oldest action leaves, the window ends,
     * a share sinks, or an action has leaked; 0 when nothing is used.
     */
    readonly resetIn: number;
  }

  /** Exactly these five, as in rolling-rate-limiter 0.4; all as if the current attempt is made. */
  interface LimitInfo {
    blocked: boolean;
    blockedDueToCount: boolean;
    blockedDueToMinDifference: boolean;
    /**
     * ms until a next action would be allowed; can be > 0 on an allowed call, which filled the window
     * or has to keep `minDifference`.
     */
    millisecondsUntilAllowed: number;
    /** Integer >= 0. */
    actionsRemaining: number;
  }

  /** What a limiter holds and has done since it was made. */
  interface Stats {
    /** Ids held, expired ones included that are not forgotten yet. */
    keys: number;
    /** Allowed attempts. */
    allowed: number;
    /** Blocked attempts. */
    blocked: number;
    /** Ids dropped before they expired, for want of room: see `maxKeys`. */
    evicted: number;
    /** Calls that failed because the clock or the shared memory did. */
    errors: number;
    /** Memory held for ids, in bytes. */
    bytes: number;
  }

  /** What a limiter on Redis has done since it was made, in this process. */
  type RedisStats = RemoteStats;

  /** What a limiter whose store is elsewhere has done since it was made, in this process. */
  interface RemoteStats {
    /** Unknown: to count them would take a scan of the database. */
    keys: null;
    /** Allowed attempts, those included that `onError` allowed. */
    allowed: number;
    /** Blocked attempts, those included that `onError` blocked. */
    blocked: number;
    /** Ids that `onError: 'memory'` dropped for want of room. */
    evicted: number;
    /** Calls that failed because of the clock or the store, those included that `onError` softened. */
    errors: number;
    /** Unknown. */
    bytes: null;
    /** Decisions that `onError` made. */
    fallbacks: number;
    /**
     * What can be told of the connection; `pending` is how many calls wait for an answer, and
     * `conflicts`, in a key-value store, how often somebody else wrote first or it was busy. On Redis
     * `isUp` is whether there is a connection, null where your client does not tell.
     */
    connection: { pending: number; isUp?: boolean | null; [fact: string]: unknown };
  }

  /** What the diagnostics channel `rollgate:decision` tells of each attempt: docs/observability.md. */
  interface DecisionMessage {
    limiter: Self | RemoteRateLimiter;
    /** As the caller gave it; of several, and where `onError` decided, its text. */
    id: Id;
    cost: number;
    allowed: boolean;
    /** ms, as of a Decision. */
    timeLeft: number;
  }

  /** What the diagnostics channel `rollgate:evicted` tells of ids that were dropped for want of room. */
  interface EvictedMessage {
    limiter: Self;
    /** Ids held. */
    keys: number;
    /** Ids dropped so far. */
    evicted: number;
  }

  /** What the diagnostics channel `rollgate:redis` tells. */
  type RedisMessage =
    | {
        type: 'call';
        limiter: AsyncRateLimiter;
        command: 'attempt' | 'peek' | 'refund' | 'clear';
        /** How many ids it was for. */
        ids: number;
        /** From the call to its answer, time in queues included. */
        durationMs: number;
        /** null, or why it failed; `onError` may soften it. */
        error: RateLimiterError | null;
      }
    | {
        type: 'connection';
        limiter: AsyncRateLimiter;
        /** Whether there is a connection now; in a cluster, to any of its nodes. */
        isUp: boolean;
      };

  /** A limiter in memory, under the name it has in rolling-rate-limiter 0.4. */
  interface InMemoryRateLimiter extends Self {}

  /** A limiter on Redis, under the name it has in rolling-rate-limiter 0.4. */
  interface RedisRateLimiter extends AsyncRateLimiter {}

  /** The same through a client of redis (node-redis). */
  interface NodeRedisRateLimiter extends RedisRateLimiter {}

  /** The same through a client of ioredis. */
  interface IORedisRateLimiter extends RedisRateLimiter {}

  /** Only with `new`. */
  interface InMemoryRateLimiterConstructor {
    new (options: RateLimiterOptions): InMemoryRateLimiter;
    readonly prototype: InMemoryRateLimiter;
  }

  /** Only with `new`. */
  interface RedisRateLimiterConstructor {
    new (options: RedisRateLimiterOptions): RedisRateLimiter;
    readonly prototype: RedisRateLimiter;
    /** null for what is no client that is known. */
    determineRedisClientType(client: unknown): 'ioredis' | 'node-redis' | null;
  }

  /** Takes clients of redis (node-redis) only. */
  interface NodeRedisRateLimiterConstructor
    extends Pick<RedisRateLimiterConstructor, 'determineRedisClientType'> {
    new (
      options: RedisRateLimiterOptions<NodeRedisClient | RedisClientOptions>,
    ): NodeRedisRateLimiter;
    readonly prototype: NodeRedisRateLimiter;
  }

  /** Takes clients of ioredis only. */
  interface IORedisRateLimiterConstructor
    extends Pick<RedisRateLimiterConstructor, 'determineRedisClientType'> {
    new (options: RedisRateLimiterOptions<IORedisClient | RedisClientOptions>): IORedisRateLimiter;
    readonly prototype: IORedisRateLimiter;
  }

  /**
   * What `rateLimit` knows of a request: a Node request, where Express has put the client's address.
   * What else a framework puts there is not checked; `rateLimit<Request, Response>` with its types does.
   */
  interface LimitedRequest extends IncomingMessage {
    ip?: string | undefined;
    // biome-ignore lint/suspicious/noExplicitAny: req.path and the like, without the types of a framework
    [member: string]: any;
  }

  /** What `rateLimit` knows of a response: see LimitedRequest. */
  interface LimitedResponse extends ServerResponse {
    // biome-ignore lint/suspicious/noExplicitAny: res.locals and the like
    [member: string]: any;
  }

  /** What `rateLimit` tells the application, in the words of express-rate-limit. */
  interface RateLimitInfo {
    /** Actions allowed in the window that is nearest to its limit. */
    limit: number;
    /** Requests counted in it, this one included. */
    used: number;
    /** Requests left in it. */
    remaining: number;
    /** When quota grows. */
    resetTime: Date;
    /** What `keyGenerator` gave, or the id of `authenticate`. */
    key: Id;
    /** True where the request met a rule on trial, which lets everything pass. */
    shadow?: true;
    /** Beside `shadow`: whether the rule would have refused the request. */
    limited?: boolean;
    /**
     * The same as `used`; not enumerable.
     * @deprecated the name of express-rate-limit 6
     */
    readonly current?: number;
  }

  /**
   * What requests of Express have by declaration merging: undefined where no middleware counted the request.
   * Another `requestPropertyName` is declared in the same way:
   *
   * ```ts
   * declare global {
   *   namespace Express {
   *     interface Request {
   *       quota?: RateLimiter.RateLimitInfo;
   *     }
   *   }
   * }
   * ```
   */
  interface PerhapsRateLimit {
    rateLimit?: RateLimitInfo | undefined;
  }

  /**
   * A request that went through `rateLimit`, with its default `requestPropertyName`:
   *
   * ```ts
   * app.get('/', (req, res) => res.json((req as WithRateLimit<Request>).rateLimit));
   * ```
   */
  type WithRateLimit<Request = LimitedRequest> = Request & { rateLimit: RateLimitInfo };

  /**
   * What `rateLimit` asks of a limiter: `attempt`; `peek` and `clear` are for getKey and resetKey,
   * `refund` for skipFailedRequests and skipSuccessfulRequests.
   */
  interface RateLimitBackend {
    attempt(id: Id): Decision | Promise<Decision>;
    refund?(decision: Decision): unknown;
    peek?(id: Id): Decision | Promise<Decision>;
    clear?(id: Id): unknown;
  }

  /** The body of a refusal; an object becomes JSON. */
  type Message = string | object;

  /** Which RateLimit headers are sent. Source: draft-ietf-httpapi-ratelimit-headers. */
  type HeaderDraft = 'draft-6' | 'draft-7' | 'draft-8' | 'draft-10';

  /** A check on how a middleware is used, under its name in express-rate-limit; docs/middleware.md lists them. */
  type RateLimitCheck =
    | 'creationStack'
    | 'forwardedHeader'
    | 'ip'
    | 'keyGeneratorIpFallback'
    | 'singleCount'
    | 'trustProxy'
    | 'xForwardedForHeader';

  /** Checks of express-rate-limit that are needless here. */
  type NeedlessRateLimitCheck =
    | 'draftPolliHeaders'
    | 'headersDraftVersion'
    | 'headersResetTime'
    | 'ipv6Subnet'
    | 'ipv6SubnetOrKeyGenerator'
    | 'knownOptions'
    | 'limit'
    | 'onLimitReached'
    | 'positiveHits'
    | 'unsharedStore'
    | 'validationsConfig'
    | 'windowMs';

  /** For each check whether to make it; those left out go by `default`, which is true when left out. */
  type RateLimitChecks = {
    [check in RateLimitCheck | NeedlessRateLimitCheck | 'default']?: boolean | undefined;
  };

  /** Where a middleware says what its operator should know. `console` is one, and so is a pino logger. */
  interface RateLimitLogger {
    /** Gets an Error with a `code` of docs/errors.md, once for each middleware. */
    warn(warning: Error): unknown;
    /** Gets every error that was not given to `next`, and what became of the request. */
    error(error: unknown, text: string): unknown;
  }

  /** How a middleware answers. All but the limits have the names and defaults of express-rate-limit. */
  interface RateLimitResponseOptions<
    Request extends IncomingMessage = LimitedRequest,
    Response extends ServerResponse = LimitedResponse,
  > {
    /**
     * Whom a request counts for. Default: the client's address, `req.ip` or the socket's, IPv6 by its
     * subnet. May be async.
     */
    keyGenerator?: ((req: Request, res: Response) => Id | Promise<Id>) | undefined;
    /**
     * Who makes a request, in place of `keyGenerator`; may be async. What it throws goes to `onAuthError`,
     * and so does `ERR_ROLLGATE_AUTHENTICATE` (TypeError) where it gives no object with an id.
     */
    authenticate?: ((req: Request) => Caller | Promise<Caller>) | undefined;
    /**
     * Answers where `authenticate` failed, or lets the request pass, uncounted, with `next()`. May be async.
     * Without it errors go to `next`.
     */
    onAuthError?:
      | ((error: unknown, req: Request, res: Response, next: Next) => unknown)
      | undefined;
    /**
     * Bits of an IPv6 address that tell clients apart, an integer from 32 to 64; false: all. Default 56.
     * May be a function, also an async one, which is asked for IPv6 only. Not beside `keyGenerator`.
     */
    ipv6Subnet?:
      | number
      | false
      | ((req: Request, res: Response) => number | false | Promise<number | false>)
      | undefined;
    /** A request it says true of is not counted and passes. May be async. */
    skip?: ((req: Request, res: Response) => boolean | Promise<boolean>) | undefined;
    /** Answers a refused request in place of `message` and `statusCode`. May be async. */
    handler?: RateLimitHandler<Request, Response> | undefined;
    /** Body of a refusal. Default 'Too many requests, please try again later.' */
    message?: Message | ((req: Request, res: Response) => unknown) | undefined;
    /** Status of a refusal, an integer from 200 to 999. Default 429. */
    statusCode?: number | undefined;
    /**
     * Whether a refusal is application/problem+json (RFC 9457) with the type quota-exceeded and the names
     * of the `violated-policies`. A `message` that is text is its `detail`; the members of an object
     * become its own. Not beside `handler`. Default false.
     */
    problemDetails?: boolean | undefined;
    /** Whether to send X-RateLimit-Limit, -Remaining and -Reset. Default true. */
    legacyHeaders?: boolean | undefined;
    /** Which RateLimit headers to send; true means 'draft-6'. Default false. */
    standardHeaders?: boolean | HeaderDraft | undefined;
    /**
     * Name of the policy in drafts 8 and 10 and in problem details: printable ASCII. Default
     * '100-in-15min'; with several windows that is appended to it. May be a function, also an async one.
     */
    identifier?: string | ((req: Request, res: Response) => string | Promise<string>) | undefined;
    /** Where in the request the RateLimitInfo goes; a non-empty string, not '__proto__'. Default 'rateLimit'. */
    requestPropertyName?: string | undefined;
    /** Whether to take a request back when it was answered successfully. Default false. */
    skipSuccessfulRequests?: boolean | undefined;
    /**
     * Whether to take a request back when it failed, its client left early or its response had an error.
     * Refused requests are not counted then. Default false.
     */
    skipFailedRequests?: boolean | undefined;
    /** What these two go by, once the response is finished. Default: a status below 400. May be async. */
    requestWasSuccessful?:
      | ((req: Request, res: Response) => boolean | Promise<boolean>)
      | undefined;
    /**
     * Whether a request passes, uncounted, where no decision can be made. A key that is no id stays an
     * error. Default false.
     */
    passOnStoreError?: boolean | undefined;
    /** Whether to look for mistakes in how the middleware is used, each told once. Default true. */
    validate?: boolean | RateLimitChecks | undefined;
    /** Is told instead of `process.emitWarning`. */
    logger?: RateLimitLogger | undefined;
  }

  /**
   * How many requests are allowed in a window, an integer >= 0; 0 refuses every one. A function, also an
   * async one, is asked for each request: its key has one count, judged by the limit of the request.
   */
  type RequestLimit<
    Request extends IncomingMessage = LimitedRequest,
    Response extends ServerResponse = LimitedResponse,
  > = number | ((req: Request, res: Response) => number | Promise<number>);

  /** The limits of a middleware, which makes a limiter of its own. Without any: 5 requests in 60,000 ms. */
  interface RateLimitLimits<
    Request extends IncomingMessage = LimitedRequest,
    Response extends ServerResponse = LimitedResponse,
  > extends Omit<OptionalLimit, 'maxInInterval'>,
      CommonOptions,
      RedisStoreOptions,
      SharedStoreOptions {
    /** Counts on Redis; give a `namespace`, too. */
    redis?: RedisOption | undefined;
    /** The same as `redis`. */
    client?: RedisOption | undefined;
    /** Counts in a key-value store; a `namespace` is needed, too. */
    kv?: DenoKv | PlainKv | undefined;
    /** ms within which a key-value store has to answer. Default 500. */
    commandTimeout?: number | undefined;
    /** The same as `interval`; wins over it. */
    windowMs?: number | undefined;
    /** Wins over `max` and `maxInInterval`. */
    limit?: RequestLimit<Request, Response> | undefined;
    /** The same as `limit`. */
    max?: RequestLimit<Request, Response> | undefined;
    /** The same as `limit`. */
    maxInInterval?: RequestLimit<Request, Response> | undefined;
    /** Several windows; replaces all of the above. */
    limits?: readonly Limit[] | undefined;
    limiter?: undefined;
    rules?: undefined;
  }

  /** Options that are not allowed here; undefined is the same as leaving them out. */
  type NotGiven<Names extends PropertyKey> = { [name in Names]?: undefined };

  /** A middleware over a limiter that exists. No limits are allowed beside it. */
  interface RateLimitExisting extends NotGiven<Exclude<keyof RateLimitLimits, 'limiter'>> {
    limiter: RateLimiter | RemoteRateLimiter | RateLimitBackend;
  }

  /** What `authenticate` tells of who makes a request. */
  interface Caller {
    /** Whom the request counts for; `null` is the one bucket of callers without an id. */
    id: string | number | bigint | null;
    /** What rules go by; default 'default'. */
    group?: string | undefined;
  }

  /**
   * One of the `rules`: for which requests it is, and what it allows them. The first that matches decides;
   * without limits it lets pass.
   */
  interface RateLimitRule<
    Request extends IncomingMessage = LimitedRequest,
    Response extends ServerResponse = LimitedResponse,
  > extends Omit<OptionalLimit, 'maxInInterval'>,
      Pick<CommonOptions, RuleOption> {
    /**
     * A path that begins so, by whole segments, however it is spelled: '/api' is '/api' and '/API/x', not
     * '/apix'; '/' is every path; no pattern, so ':id', '*', '(' and '{' are refused. Or a RegExp, tested as
     * it is on the path as it came, without its query.
     */
    path: string | RegExp;
    /** Every one if left out; 'GET' is HEAD, too. */
    method?: string | readonly string[] | undefined;
    /** Every one if left out. Who is told of no group is of 'default'. */
    group?: string | readonly string[] | undefined;
    /** The same as `interval`; wins over it. Default 60,000 where there are limits. */
    windowMs?: number | undefined;
    /** Wins over `max` and `maxInInterval`. Default 5 where there are limits. */
    limit?: RequestLimit<Request, Response> | undefined;
    /** The same as `limit`. */
    max?: RequestLimit<Request, Response> | undefined;
    /** The same as `limit`. */
    maxInInterval?: RequestLimit<Request, Response> | undefined;
    /** Several windows; replaces the limits above. */
    limits?: readonly Limit[] | undefined;
    /** Rules of one zone share one count; they must agree in limits, countBlocked, algorithm and blockFor. */
    zone?: string | undefined;
    /** Whether each URL has a count of its own. Default false. */
    perPath?: boolean | undefined;
    /** Whether the id is refused on every rule with limits while `blockFor` lasts. Default false. */
    blockEverywhere?: boolean | undefined;
    /** Whether requests pass all the same; `req.rateLimit` tells what was decided. Default false. */
    shadow?: boolean | undefined;
  }

  /** What each rule says for itself of what a limiter can be told. */
  type RuleOption = 'countBlocked' | 'algorithm' | 'blockFor';

  /** A middleware whose limits are those of rules. The options of the store serve them all. */
  interface RateLimitByRules<
    Request extends IncomingMessage = LimitedRequest,
    Response extends ServerResponse = LimitedResponse,
  > extends Omit<CommonOptions, RuleOption>,
      RedisStoreOptions,
      SharedStoreOptions,
      NotGiven<RuleOption | 'windowMs' | 'limit' | 'max' | 'limits' | keyof Limit> {
    /** At least one. Of those that match a request the first decides; without any it passes. */
    rules: readonly RateLimitRule<Request, Response>[];
    /** Counts on Redis; give a `namespace`, too: each zone gets one that begins with it. */
    redis?: RedisOption | undefined;
    /** The same as `redis`. */
    client?: RedisOption | undefined;
    /** Counts in a key-value store; a `namespace` is needed, too. */
    kv?: DenoKv | PlainKv | undefined;
    /** ms within which a key-value store has to answer. Default 500. */
    commandTimeout?: number | undefined;
    limiter?: undefined;
  }

  /** The options of `rateLimit`. `undefined` is the same as leaving an option out. */
  type RateLimitOptions<
    Request extends IncomingMessage = LimitedRequest,
    Response extends ServerResponse = LimitedResponse,
  > = RateLimitResponseOptions<Request, Response> &
    (RateLimitLimits<Request, Response> | RateLimitExisting | RateLimitByRules<Request, Response>);

  /** What a `handler` gets to know: every option that decides how to answer, defaults filled in. */
  interface RateLimitSettings {
    readonly message: Message | ((...args: never[]) => unknown);
    readonly statusCode: number;
    readonly problemDetails: boolean;
    readonly legacyHeaders: boolean;
    readonly standardHeaders: false | HeaderDraft;
    readonly identifier?: string | ((...args: never[]) => unknown) | undefined;
    readonly requestPropertyName: string;
    readonly skipSuccessfulRequests: boolean;
    readonly skipFailedRequests: boolean;
    readonly passOnStoreError: boolean;
    /** Which checks are made. */
    readonly validate: Readonly<Record<RateLimitCheck, boolean>>;
    /** ms; undefined with `limits`, with `rules` and with an existing limiter. */
    readonly windowMs?: number;
    /** Undefined with `limits`, with `rules` and with an existing limiter. */
    readonly limit?: number | ((...args: never[]) => unknown);
  }

  /** Answers a refused request, or lets it pass with `next()`. */
  type RateLimitHandler<
    Request extends IncomingMessage = LimitedRequest,
    Response extends ServerResponse = LimitedResponse,
  > = (req: Request, res: Response, next: Next, settings: RateLimitSettings) => unknown;

  /** Goes on with the next middleware, or with the error handlers. */
  type Next = (error?: unknown) => void;

  /** A middleware for Express 4 and 5, Connect, Polka and NestJS. */
  interface RateLimitMiddleware<
    Request extends IncomingMessage = LimitedRequest,
    Response extends ServerResponse = LimitedResponse,
  > {
    /** Errors reach `next(error)`; where all steps are synchronous, so is the call. */
    (req: Request, res: Response, next: Next): void | Promise<void>;
    /** Forgets what was counted for a key; with `rules` in all zones, but for counts with `perPath`. */
    resetKey(key: Id): Promise<void>;
    /**
     * What is counted for a key; undefined if nothing is. Counts nothing. With `rules` it is about the zone
     * that has the least left.
     */
    getKey(key: Id): Promise<{ totalHits: number; resetTime: Date } | undefined>;
  }
}

export = RateLimiter;
