// The types of rollgate for require(): one function with all other exports as properties.

/// <reference types="node" />

import type { IncomingMessage, ServerResponse } from 'node:http';

declare const RateLimiter: RateLimiter.RateLimiterConstructor;

/**
 * A limiter: a function of (id?, callback?) with methods. `new` is optional. The constructor does
 * no I/O. A limiter has no timer and no handle: it does not keep the process alive, and is freed when it is no
 * longer referenced.
 */
interface RateLimiter {
  /**
   * Attempts an action before the call returns, and calls back in a later tick. Every failure reaches the
   * callback. An exception that the callback throws is uncaught.
   *
   * @throws TypeError `ERR_ROLLGATE_CALLBACK`: the callback is neither a function nor undefined
   */
  (id: RateLimiter.Id, callback: RateLimiter.Callback): void;

  /** The same for the id that all calls without an id share. */
  (callback: RateLimiter.Callback): void;

  /**
   * Attempts an action.
   *
   * @param id the client to limit; calls without an id share one count
   * @returns the time left in whole ms, rounded up: 0 if the action is allowed, otherwise at least 1, the
   *   time until an action would be allowed without further attempts. With `countBlocked`, the blocked
   *   attempt itself is included.
   * @throws TypeError `ERR_ROLLGATE_ID`: the id is invalid
   * @throws Error `ERR_ROLLGATE_CLOCK`: the clock threw, or returned no finite number
   * @throws Error `ERR_ROLLGATE_CLOSED`: the limiter is closed
   * @throws Error `ERR_ROLLGATE_MEMORY`: there is no memory for the log of this id
   * @throws Error `ERR_ROLLGATE_SHARED_...`: with `shared`, from every call that uses the region
   */
  (id?: RateLimiter.Id, callback?: undefined): number;

  /**
   * Attempts an action; resolves to whether it was blocked. Source: rolling-rate-limiter 0.4.
   *
   * All methods that return a promise reject with `ERR_ROLLGATE_ID` (TypeError), `ERR_ROLLGATE_CLOCK` or
   * `ERR_ROLLGATE_CLOSED`.
   */
  limit(id?: RateLimiter.Id): Promise<boolean>;

  /** What `limit` would resolve to now. Records nothing. */
  wouldLimit(id?: RateLimiter.Id): Promise<boolean>;

  /** Attempts an action; resolves to the result in the form of rolling-rate-limiter 0.4. */
  limitWithInfo(id?: RateLimiter.Id): Promise<RateLimiter.LimitInfo>;

  /** What `limitWithInfo` would resolve to now. Records nothing. */
  wouldLimitWithInfo(id?: RateLimiter.Id): Promise<RateLimiter.LimitInfo>;

  /**
   * Attempts an action and returns the complete Decision.
   *
   * @throws TypeError `ERR_ROLLGATE_ID`: the id is invalid
   * @throws TypeError `ERR_ROLLGATE_OPTION`: the second argument is not an object, or has an unknown option
   * @throws TypeError `ERR_ROLLGATE_COST`: the cost is of the wrong type, or names a limit that there is not
   * @throws RangeError `ERR_ROLLGATE_COST`: the cost is out of range: see Cost
   * @throws Error `ERR_ROLLGATE_CLOCK`: the clock threw, or returned no finite number
   * @throws Error `ERR_ROLLGATE_CLOSED`: the limiter is closed
   */
  attempt(id?: RateLimiter.Id, options?: RateLimiter.AttemptOptions): RateLimiter.Decision;

  /**
   * What is counted for an id now, without an attempt. Records nothing.
   *
   * @throws TypeError `ERR_ROLLGATE_ID`; Error `ERR_ROLLGATE_CLOCK`, `ERR_ROLLGATE_CLOSED`
   */
  usage(id?: RateLimiter.Id): RateLimiter.Usage;

  /** The Decision that `attempt` would return now. Records nothing. Throws the same errors. */
  peek(id?: RateLimiter.Id, options?: RateLimiter.AttemptOptions): RateLimiter.Decision;

  /**
   * Waits until an action is allowed, and records it. Within this limiter and process, calls that wait for
   * one id are served by priority and in order; calls that do not wait may take a place in between. Waiting records nothing:
   * no refusal is counted, and no block begins. See docs/waiting.md.
   *
   * ```js
   * await limiter.wait('some id', { deadline: 5000 });
   * ```
   *
   * @returns the Decision of the attempt that was allowed, which `settle` and `refund` take
   *
   * Rejects with the `reason` of the signal; `ERR_ROLLGATE_WAIT_DEADLINE`: not allowed within the deadline;
   * `ERR_ROLLGATE_WAIT_QUEUE`: `maxQueue` calls wait already; `ERR_ROLLGATE_CLOSED`: the limiter is or was
   * closed; `ERR_ROLLGATE_OPTION`: an option is invalid; and with the errors of `attempt`.
   */
  wait(id?: RateLimiter.Id, options?: RateLimiter.WaitOptions): Promise<RateLimiter.Decision>;

  /**
   * Attempts an action of cost 1 for each id, in order, at one time, in one native call. An id may
   * occur more than once. If one id is invalid, nothing is recorded.
   *
   * @returns one Decision for each id
   * @throws TypeError `ERR_ROLLGATE_ID`: not an array, or an element is not an id
   * @throws Error `ERR_ROLLGATE_CLOCK`, `ERR_ROLLGATE_CLOSED`
   */
  attemptMany(ids: readonly RateLimiter.Id[]): RateLimiter.Decision[];

  /**
   * Replaces the cost that an allowed attempt reserved by what the action came to, at the time of the attempt. More
   * than was reserved may exceed a maximum: then no attempt is allowed until enough has left the window. A decision is
   * settled or refunded once.
   *
   * @param decision of `attempt`, `wait`, `attemptMany` or `attemptAll` of this limiter
   * @param actual a number if the cost of the attempt was one (or left out), otherwise an object or 0; integers from
   *   0 to 2^53 - 1. Limits that the object does not name keep what was reserved
   * @returns false if there was nothing to settle: after a refusal, a peek, an earlier `settle` or `refund`, or if the
   *   id was cleared or forgotten
   * @throws TypeError | RangeError `ERR_ROLLGATE_COST`: `actual` is wrong; the decision can still be settled
   * @throws TypeError `ERR_ROLLGATE_DECISION`: not a Decision of this limiter
   * @throws Error `ERR_ROLLGATE_CLOSED`: the limiter is closed
   */
  settle(decision: RateLimiter.Decision, actual: RateLimiter.Cost): boolean;

  /**
   * Takes back what an allowed attempt recorded, once; the same as settling at 0. Exact with `countBlocked: false`, except with 'gcra',
   * which gives back only what has not leaked yet. An inexact refund never allows more than an exact one. With
   * all algorithms but the log, `minDifference` still counts from the refunded action.
   *
   * @param decision of `attempt`, `attemptMany`, `wait` or `attemptAll` of this limiter
   * @returns false if there was nothing to take back: after a refusal, a peek, an earlier `settle` or `refund`, or if
   *   the id was cleared or forgotten
   * @throws TypeError `ERR_ROLLGATE_DECISION`: not a Decision of this limiter
   * @throws Error `ERR_ROLLGATE_CLOSED`: the limiter is closed
   */
  refund(decision: RateLimiter.Decision): boolean;

  /**
   * Sets other limits of the same shape: as many, with the same names in the same order. They apply from the next call
   * on; what was counted stays. They replace all limits, `minDifference` included; the other options stay. Calls of
   * `wait` whose cost can never pass then reject with `ERR_ROLLGATE_COST`. See docs/api.md.
   *
   * ```js
   * limiter.setLimits([{ interval: 60_000, maxInInterval: 200 }]);
   * ```
   *
   * @throws TypeError | RangeError `ERR_ROLLGATE_OPTION`: a limit is wrong, or the shape is another; nothing changes
   * @throws Error `ERR_ROLLGATE_SHARED_MISMATCH`: they do not fit into the shared region; nothing changes
   * @throws Error `ERR_ROLLGATE_CLOSED`: the limiter is closed
   */
  setLimits(limits: readonly RateLimiter.WindowLimit[]): void;

  /**
   * Refuses an id for so many ms from now, finite and >= 0. If it is blocked already, the later end counts. 0 ends a
   * block, and so does `clear`. Counts stay.
   *
   * Rejects with `ERR_ROLLGATE_OPTION` if `ms` is wrong, and with the errors of `clear`.
   */
  block(id: RateLimiter.Id, ms: number): Promise<void>;

  /** Forgets one id and its blocks; without an argument, the id that all calls without an id share. */
  clear(id?: RateLimiter.Id): Promise<void>;

  /** Forgets every id of this limiter. The counters in `stats()` stay. */
  clearAll(): Promise<void>;

  /**
   * Counters of this limiter; cheap. With `shared`, `keys` and `bytes` are those of the region.
   *
   * @throws Error `ERR_ROLLGATE_CLOSED`: the limiter is closed
   */
  stats(): RateLimiter.Stats;

  /**
   * Frees the memory; a `shared` region stays. May be called again. All other calls then fail with
   * `ERR_ROLLGATE_CLOSED`.
   */
  close(): Promise<void>;
}

// Inside the namespace the name of the export would mean the export itself.
import Self = RateLimiter;

declare const isMade: unique symbol;

declare namespace RateLimiter {
  type RateLimiter = Self;

  /** The package's main export. */
  interface RateLimiterConstructor {
    /**
     * A limiter in memory, exact over a rolling window. With `shared`, one limiter for all threads and
     * processes of this user on this host.
     *
     * ```js
     * const limiter = RateLimiter({ interval: 1000, maxInInterval: 10 });
     * const timeLeft = limiter('some id'); // 0: allowed; otherwise ms to wait
     * ```
     *
     * @throws TypeError `ERR_ROLLGATE_OPTION`: an option is missing, unknown or of the wrong type
     * @throws RangeError `ERR_ROLLGATE_OPTION`: an option is out of range
     */
    (options: SharedRateLimiterOptions): Self;

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
     * A limiter over a key-value store with compare-and-set, shared by all limiters with its `namespace`. It
     * returns promises.
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
    (options: PerhapsRedisRateLimiterOptions): Self | AsyncRateLimiter;

    /** The same with `new`. */
    new (options: SharedRateLimiterOptions): Self;
    // The type parameter hides these from `extends RateLimiter`, which needs a single instance type.
    new <_>(options: RedisRateLimiterOptions): AsyncRateLimiter;
    new <_>(options: KvRateLimiterOptions): RemoteRateLimiter;
    new <_>(options: PerhapsRedisRateLimiterOptions): Self | AsyncRateLimiter;

    readonly prototype: Self;
    /** The same function, for a named import. */
    readonly RateLimiter: RateLimiterConstructor;
    readonly InMemoryRateLimiter: InMemoryRateLimiterConstructor;
    readonly RedisRateLimiter: RedisRateLimiterConstructor;
    readonly NodeRedisRateLimiter: NodeRedisRateLimiterConstructor;
    readonly IORedisRateLimiter: IORedisRateLimiterConstructor;

    /**
     * Creates a middleware that limits requests: `app.use(rateLimit({ windowMs: 60_000, limit: 100 }))`. A
     * request goes through `skip`, `keyGenerator`, the attempt, the headers, and then `next()` or
     * `handler`. A refusal has `Retry-After` if rate-limit headers are on.
     *
     * @throws TypeError `ERR_ROLLGATE_OPTION`: an option is unknown, of the wrong type, or conflicts with
     *   another
     * @throws RangeError `ERR_ROLLGATE_OPTION`: an option is out of range
     */
    rateLimit<
      Request extends IncomingMessage = LimitedRequest,
      Response extends ServerResponse = LimitedResponse,
    >(options?: RateLimitOptions<Request, Response>): RateLimitMiddleware<Request, Response>;

    /**
     * The key for a client's address. IPv4: the address. IPv6: the subnet, in the form of RFC 5952
     * ('2001:db8:0:100::/56'), because a client can choose any address in it. IPv6 with an embedded IPv4
     * address ('::ffff:192.0.2.1', '::ffff:c000:201', '::192.0.2.1'; not NAT64 or 6to4): that IPv4 address.
     * Any other string is returned unchanged.
     *
     * @param ipv6Subnet prefix length in bits, an integer from 1 to 128, default 56; false: the address
     *   unchanged
     * @throws RangeError `ERR_ROLLGATE_OPTION`: the prefix length is out of range
     */
    ipKeyGenerator(ip: string, ipv6Subnet?: number | false): string;

    /**
     * Removes the shared-memory region of the option `shared`, and the regions derived from its name: `rules`
     * and Fastify routes with their own limits add a '+' and 16 characters. Attached limiters keep the removed
     * region; limiters that attach later get a new one.
     *
     * @returns whether a region existed
     * @throws TypeError or RangeError `ERR_ROLLGATE_OPTION`: the name is invalid
     * @throws Error `ERR_ROLLGATE_SHARED_SYSTEM`, `ERR_ROLLGATE_SHARED_FILE`: one region cannot be removed;
     *   the others are
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
     * @throws TypeError `ERR_ROLLGATE_ID`; TypeError | RangeError `ERR_ROLLGATE_COST`: as `attempt`
     * @throws and rejects with the other errors of `attempt` and `refund`. What was recorded is then refunded; an
     *   attempt that timed out may stay counted
     */
    attemptAll(entries: readonly AttemptAllEntry<Self>[]): AttemptAllResult;
    attemptAll(entries: readonly AttemptAllEntry[]): AttemptAllResult | Promise<AttemptAllResult>;

    /**
     * Makes a connection for several limiters: `RateLimiter({ connection, ... })`. Limiters with equal options
     * share one without this; functions are equal only to themselves. Does no I/O.
     *
     * @throws TypeError | RangeError `ERR_ROLLGATE_OPTION`; Error `ERR_ROLLGATE_UNSUPPORTED` without a native client
     */
    createRedisConnection(redis: string | RedisConnectionOptions): RedisConnection;

    /**
     * The path of the native addon: the loaded one or, before the first limiter, the first one found. Build
     * scripts copy this file next to a bundle: see docs/bundling.md. Places in order: `setAddonPath`, the
     * environment variable ROLLGATE_ADDON, the package's folder, the running script's folder.
     *
     * @throws Error `ERR_ROLLGATE_ADDON`: not found; also in a bundle of ncc, which loads its own copy
     */
    addonPath(): string;

    /**
     * Sets the only file to load the native addon from, for this thread. Call it before the first limiter is
     * created; that is when the addon is loaded, or fails to load.
     *
     * @param file path, relative to the current folder, or `file:` URL of a `rollgate.node`
     * @throws TypeError `ERR_ROLLGATE_OPTION`: not a path
     * @throws Error `ERR_ROLLGATE_ADDON`: another file is loaded already
     */
    setAddonPath(file: string | URL): void;
  }

  /**
   * The client to limit: a string, a finite number or a bigint. `1`, `1n` and `'1'` are the same id.
   * `undefined`, `null` and `''` are one id, which all calls without an id share. Different strings never share
   * a count.
   */
  type Id = string | number | bigint | null | undefined;

  /**
   * The callback of a limiter.
   *
   * @param error null, or why no decision could be made; the other arguments are then undefined
   * @param timeLeft whole ms: 0 if allowed, at least 1 if blocked
   * @param actionsLeft how many more actions are allowed now, an integer >= 0
   */
  type Callback = (error: RateLimiterError | null, timeLeft: number, actionsLeft: number) => void;

  /**
   * The codes of rollgate's errors, each of the class Error unless another is named. docs/errors.md has a
   * section for each.
   */
  type ErrorCode =
    | 'ERR_ROLLGATE_OPTION' // TypeError or RangeError: an option is invalid, missing or unknown
    | 'ERR_ROLLGATE_ID' // TypeError: the id is invalid
    | 'ERR_ROLLGATE_CALLBACK' // TypeError: the callback is not a function
    // TypeError or RangeError: not a cost of this limiter, or not what an attempt can be settled at; from the middleware:
    // the function `cost` returned no cost
    | 'ERR_ROLLGATE_COST'
    | 'ERR_ROLLGATE_DECISION' // TypeError: the argument of `settle` or `refund` is not a Decision of this limiter
    | 'ERR_ROLLGATE_CLOCK' // the clock threw (see `cause`) or returned no finite number
    | 'ERR_ROLLGATE_CLOSED' // the limiter is closed
    | 'ERR_ROLLGATE_MEMORY' // there is no memory for the log of an id
    | 'ERR_ROLLGATE_WAIT_DEADLINE' // `wait` was not allowed within its deadline
    | 'ERR_ROLLGATE_WAIT_QUEUE' // `maxQueue` calls wait for the id already
    // TypeError or RangeError: the function `limit` returned neither an integer >= 0 nor Infinity, or more than a log
    // in shared memory can hold
    | 'ERR_ROLLGATE_LIMIT'
    | 'ERR_ROLLGATE_AUTHENTICATE' // TypeError: `authenticate` returned no object with an id
    | 'ERR_ROLLGATE_URL' // with Fastify and `rules`: the path of a URL is ambiguous
    | 'ERR_ROLLGATE_REDIS_TIMEOUT' // Redis did not answer within `commandTimeout`
    | 'ERR_ROLLGATE_REDIS_UNREACHABLE' // there is no connection, or it was lost (see `cause`)
    | 'ERR_ROLLGATE_REDIS_AUTH' // Redis refuses the user or the password (see `cause`)
    | 'ERR_ROLLGATE_REDIS_REPLY' // another error of Redis (see `cause`), or an invalid reply
    | 'ERR_ROLLGATE_REDIS_QUEUE_FULL' // `maxQueue` calls wait already
    | 'ERR_ROLLGATE_REDIS_CLOSED' // the Redis client was closed by its owner
    // The key-value store did not answer within `commandTimeout`, was busy (see `cause`), or other processes wrote
    // the id each time.
    | 'ERR_ROLLGATE_KV_TIMEOUT'
    | 'ERR_ROLLGATE_KV' // the store failed (see `cause`), or the id's key holds what rollgate did not write
    | 'ERR_ROLLGATE_SHARED_MISMATCH' // the shared limiter has options that do not fit, which the message names
    | 'ERR_ROLLGATE_SHARED_FILE' // the file is not a shared limiter of this user and version
    | 'ERR_ROLLGATE_SHARED_SYSTEM' // a system call failed: no room, no permission, no such directory
    | 'ERR_ROLLGATE_SHARED_FULL' // 1024 limiters are attached already
    | 'ERR_ROLLGATE_SHARED_CORRUPT' // the shared memory holds invalid data
    // This build, runtime or store does not support the feature, or prom-client is missing.
    | 'ERR_ROLLGATE_UNSUPPORTED'
    | 'ERR_ROLLGATE_ADDON' // there is no addon for this system (see `cause`)
    | 'ERR_ROLLGATE_WASM' // the WebAssembly module is missing or forbidden (see `cause`)
    | 'ERR_ROLLGATE_STORE' // `init` of a RollgateStore was not called, or failed; or a `store` returned no count
    // A function given to `rateLimit` threw a value that `next` treats as success (see `cause`).
    | 'ERR_ROLLGATE_THROWN';

  /** An Error, TypeError or RangeError of rollgate. There is no class of this name. */
  interface RateLimiterError extends Error {
    code: ErrorCode;
    /** The error that led to this one, if any. */
    cause?: unknown;
  }

  /** One window: at most `maxInInterval` actions in any `interval`. */
  interface Limit {
    /**
     * Length of the window in ms, finite and > 0, with microsecond precision. An action leaves the window
     * exactly `interval` after it happened.
     */
    interval: number;
    /** How many actions each window allows, an integer >= 1. */
    maxInInterval: number;
    /** Minimum ms between two actions, finite and >= 0. Default 0. */
    minDifference?: number | undefined;
  }

  /** One of several windows. `windowMs` overrides `interval`, `limit` overrides `maxInInterval`. */
  type WindowLimit = (
    | { interval: number; windowMs?: number | undefined }
    | { interval?: number | undefined; windowMs: number }
  ) &
    (
      | { maxInInterval: number; limit?: number | undefined }
      | { maxInInterval?: number | undefined; limit: number }
    ) & {
      /** Minimum ms between two actions, finite and >= 0. Default 0. */
      minDifference?: number | undefined;
      /**
       * What the window counts, so that attempts can have another cost in it than in others: `'tokens'`. A non-empty
       * string of printable characters; not `'__proto__'`, and no name twice. Also the policy name in headers.
       */
      name?: string | undefined;
    };

  /**
   * What an attempt costs, or came to. A number is the cost in every window. An object, only for limiters whose limits
   * have names, has the cost in each named window: `{ requests: 1, tokens: 4000 }`.
   *
   * The cost of an attempt is an integer from 1 to the smallest `maxInInterval`; in an object from 0 to the
   * `maxInInterval` of that window. Windows that it does not name take 1. A window where the cost is 0 is not asked,
   * even if it is full; zeros alone are an error.
   */
  type Cost = number | { readonly [limit: string]: number | undefined };

  /**
   * How actions are counted, whatever the store:
   * - 'sliding-window-log': the times of an id's newest actions. Exact.
   * - 'sliding-window-counter': two counts of consecutive windows aligned to the epoch; the older one is
   *   weighted by its share that is still inside. Source: Cloudflare.
   * - 'fixed-window': one count per window aligned to the epoch. Twice the limit may pass across an edge.
   * - 'gcra': a burst of `maxInInterval`, then one action every interval / maxInInterval, rounded up to whole
   *   nanoseconds above 1000: a limit above 10^9 per second gives the warning `ROLLGATE_GCRA_RATE`. Source: ATM
   *   Forum, redis-cell.
   */
  type Algorithm = 'sliding-window-log' | 'sliding-window-counter' | 'fixed-window' | 'gcra';

  /** Options of every limiter, except its limits. */
  interface CommonOptions {
    /**
     * Whether a blocked attempt counts as an action, as in rolling-rate-limiter. With `false`, a blocked
     * attempt changes nothing. Default true; with 'gcra' false, and true is an error. In `rateLimit`, its rules, the
     * Fastify plugin and `RollgateStore`, the default is false.
     */
    countBlocked?: boolean | undefined;
    /**
     * How actions are counted. Default 'sliding-window-log', which is exact; docs/algorithms.md compares
     * them.
     */
    algorithm?: Algorithm | undefined;
    /**
     * How long an id is blocked after a refusal, in ms > 0: one length, or an array of up to 255 lengths for
     * repeated offences (the last one repeats). Attempts during a block change nothing. Offences are forgotten
     * if, after a block, the longest window passes without a refusal. `block(id, 0)` and `clear` end a block.
     */
    blockFor?: number | readonly number[] | undefined;
    /**
     * Returns the time in ms, with microsecond precision; for tests and simulation. It replaces the host's
     * clock, which goes on while the host sleeps and is the time of day for aligned windows, on Redis the
     * server's clock, in a key-value store the time of day. If it throws or returns no finite number, the call fails
     * with `ERR_ROLLGATE_CLOCK`. A step backwards never allows more; therefore a limiter with its own clock forgets
     * expired ids only when `maxKeys` is reached.
     */
    clock?: (() => number) | undefined;
    /**
     * Maximum number of ids, an integer >= 1. When it is reached, the id nearest to expiry is evicted,
     * counted in `stats()`, and reported once (`process.emitWarning`, code `ROLLGATE_EVICTED`). Default
     * 1,000,000, in shared memory 50,000. On Redis and in a key-value store it limits the memory of
     * `onError: 'memory'` and of `localRefusals`. In shared memory it is the size of the region, at most 200 million; the
     * first limiter that attaches sets it for all.
     */
    maxKeys?: number | undefined;
  }

  /** A limiter with one window. */
  interface OneLimitOptions extends Limit, CommonOptions {
    limits?: undefined;
  }

  /** A Limit in which every member is optional. */
  type OptionalLimit = { [name in keyof Limit]?: Limit[name] | undefined };

  /** A limiter with several windows: an action is allowed if all windows allow it. */
  interface SeveralLimitsOptions extends OptionalLimit, CommonOptions {
    /**
     * At least one, decided and recorded together. Replaces `interval`, `maxInInterval` and
     * `minDifference`, even if both are given. The largest `minDifference` applies.
     */
    limits: readonly WindowLimit[];
  }

  /** The region of a limiter in shared memory. */
  interface SharedOptions {
    /**
     * Limiters with the same name share one region: 1 to 200 letters, digits, '.', '_' and '-', not beginning
     * with '.'; at most 183 with `rules` and on Fastify routes with their own limits.
     */
    name: string;
    /** As `maxKeys` of the limiter; an integer from 1 to 200 million. */
    maxKeys?: number | undefined;
    /**
     * For how many actions of an id a log without names has room at least, an integer from 1 to 1,048,575. The first
     * limiter that attaches sets it for all; limits up to it fit later. Default: the largest `maxInInterval`. It is
     * rounded up to a power of two.
     */
    room?: number | undefined;
    /**
     * Absolute path of the file's directory, which should be in memory and the same for all limiters. Default
     * '/dev/shm'.
     */
    directory?: string | undefined;
  }

  /** The store of a synchronous limiter. */
  interface SharedStoreOptions {
    /**
     * Counts in shared memory: one exact limiter for every worker thread and process of the same user on this
     * host that uses this name, without a server. Linux only. The region has room for `maxKeys` ids, and exists
     * until it is removed (`unlinkShared`) or the host restarts. A limiter with another algorithm, other
     * `countBlocked`, or limits that do not fit cannot attach (`ERR_ROLLGATE_SHARED_MISMATCH`). The first call
     * attaches, and fails with `ERR_ROLLGATE_SHARED_SYSTEM` if the file system or the container's memory limit
     * has too little room. A sliding-window-log holds at most 1,048,575 actions, and 1000 if `limit` is a
     * function.
     */
    shared?: string | SharedOptions | undefined;
  }

  /** Options that a limiter in memory does not have. */
  type NoRedis = NotGiven<'redis' | 'client' | 'connection' | 'kv' | 'shared' | 'commandTimeout'>;

  /** The options of a limiter. Numeric strings and unknown options are errors. */
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

  /** Your Redis client. The limiter neither connects nor closes it. */
  type RedisClient = IORedisClient | NodeRedisClient;

  /** Options of calls to Redis, with any client. */
  interface RedisCallOptions {
    /** Timeout of a call in ms, an integer >= 1; then it fails with `ERR_ROLLGATE_REDIS_TIMEOUT`. Default 500. */
    commandTimeout?: number | undefined;
    /**
     * Maximum number of unanswered calls, an integer >= 1, including calls that have timed out but that the
     * server or your client still holds. Further calls fail with `ERR_ROLLGATE_REDIS_QUEUE_FULL`. Default
     * 10,000.
     */
    maxQueue?: number | undefined;
  }

  /** Your client, and options of calls. */
  interface RedisClientOptions extends RedisCallOptions {
    client: RedisClient;
  }

  /** Options of node:tls for the native client. Certificates and keys are PEM. */
  interface RedisTlsOptions {
    /** Authorities to trust, instead of those that Node trusts. */
    ca?: string | Uint8Array | readonly (string | Uint8Array)[] | undefined;
    /** The client's certificate, with its chain. */
    cert?: string | Uint8Array | undefined;
    /** The private key of `cert`. Neither is given without the other. */
    key?: string | Uint8Array | undefined;
    /** Of an encrypted `key`. */
    passphrase?: string | undefined;
    /** The name or address that the server's certificate must have. Default: the host. */
    servername?: string | undefined;
    /** Whether to reject a server without a valid certificate. Default true. */
    rejectUnauthorized?: boolean | undefined;
    /** Default 'TLSv1.2'. */
    minVersion?: 'TLSv1.2' | 'TLSv1.3' | undefined;
    /** Names as in OpenSSL, separated by colons; those of TLS 1.3 begin with TLS_. Default: OpenSSL's. */
    ciphers?: string | undefined;
  }

  /** A connection of the native client. It opens with the first call. If it is lost, it is made again. */
  interface RedisConnectionOptions extends RedisCallOptions {
    client?: undefined;
    /** redis://, rediss:// or unix://, instead of host, port and path. Other options override its parts. */
    url?: string | undefined;
    /** Default '127.0.0.1'. */
    host?: string | undefined;
    /** Default 6379. */
    port?: number | undefined;
    /** Path of a Unix socket, instead of host and port. */
    path?: string | undefined;
    username?: string | undefined;
    /** Never part of an error message. */
    password?: string | undefined;
    /** Instead of username and password: asked before each connection, within `connectTimeout`. */
    credentials?: (() => RedisCredentials | Promise<RedisCredentials>) | undefined;
    /** Number of the database. Default 0. */
    db?: number | undefined;
    /** Whether to use TLS, or its options. Default false, with rediss:// true. */
    tls?: boolean | RedisTlsOptions | undefined;
    /** Timeout for connecting, in ms, including the lookup of the host, TLS and the login. Default 2000. */
    connectTimeout?: number | undefined;
    /** Delay before reconnecting, in ms: at most `min` at first, growing to `max`; always random. Default 50 and 2000. */
    retry?: { min?: number | undefined; max?: number | undefined } | undefined;
    /** The name in CLIENT LIST. */
    connectionName?: string | undefined;
    /** URLs of some nodes of a Redis Cluster, instead of url, host, port and path. */
    cluster?: readonly string[] | undefined;
    /** Sentinels that know the master `name`, instead of url, host, port and path. Their default port is 26379. */
    sentinels?: readonly (string | { host?: string; port?: number })[] | undefined;
    /** The name of the master. */
    name?: string | undefined;
    sentinelUsername?: string | undefined;
    sentinelPassword?: string | undefined;
    /**
     * Where the nodes of a cluster, or a master, are to be reached, by 'host:port' as the servers announce it:
     * for NAT and containers. An address without an entry fails with `ERR_ROLLGATE_REDIS_UNREACHABLE`.
     */
    addressMap?:
      | Readonly<Record<string, RedisAddress>>
      | ((announced: string) => RedisAddress | undefined)
      | undefined;
  }

  interface RedisAddress {
    host: string;
    port: number;
  }

  interface RedisCredentials {
    username?: string | undefined;
    password: string;
  }

  /**
   * A connection that several limiters share. Made by `createRedisConnection`; opened by the first call of a
   * limiter, closed with the last limiter.
   */
  interface RedisConnection {
    /** Only in types: no other object is a RedisConnection. */
    readonly [isMade]: true;
    /** Maximum number of unanswered calls to each server. */
    readonly maxQueue: number;
    readonly isCluster: boolean;
  }

  /** How to connect to Redis. */
  type RedisOption =
    | string
    | RedisConnectionOptions
    | RedisConnection
    | RedisClientOptions
    | RedisClient;

  /** Options of a limiter on Redis. They have no effect in memory. */
  interface RedisStoreOptions {
    /**
     * Prefix of every key, which is `namespace{id}`: non-empty, without braces. Limiters with the same
     * namespace count together, each by its own limits. Default 'rate-limiter-' and 8 random characters, for this
     * limiter alone.
     */
    namespace?: string | undefined;
    /**
     * How calls are decided if Redis does not answer. 'throw' (default): the call fails. 'allow': allowed, as
     * if the id were new. 'block': blocked for a second. 'memory': by a limiter in this process's memory, until
     * Redis answers again.
     */
    onError?: 'throw' | 'allow' | 'block' | 'memory' | undefined;
    /**
     * Whether refusals are remembered in this process, at most `maxKeys`, and repeated without asking Redis, for
     * the same id and cost, until Redis would decide otherwise. Requires `countBlocked: false` or `blockFor`. A
     * refund or `clear` by this limiter shows at once, one elsewhere after `timeLeft` at the latest. Default false.
     */
    localRefusals?: boolean | undefined;
  }

  /** `redis`, `client` as in rolling-rate-limiter, or a `connection`. */
  type WithRedis<Redis> = NotGiven<'kv' | 'shared' | 'commandTimeout'> &
    (
      | { redis: Redis; client?: undefined; connection?: undefined }
      | { client: Redis; redis?: undefined; connection?: undefined }
      | { connection: RedisConnection; redis?: undefined; client?: undefined }
    );

  /** The options of a limiter on Redis. */
  type RedisRateLimiterOptions<Redis = RedisOption> = (OneLimitOptions | SeveralLimitsOptions) &
    RedisStoreOptions &
    WithRedis<Redis>;

  /** The options of a limiter on Redis, or in memory if `redis` is undefined. */
  type PerhapsRedisRateLimiterOptions = (OneLimitOptions | SeveralLimitsOptions) &
    RedisStoreOptions &
    NotGiven<'kv' | 'shared' | 'commandTimeout'> & {
      redis?: RedisOption | undefined;
      client?: RedisOption | undefined;
      connection?: RedisConnection | undefined;
    };

  /** An open Deno KV, from `Deno.openKv()` or `openKv()` of @deno/kv. */
  interface DenoKv {
    get(...args: never[]): Promise<{ readonly versionstamp: string | null }>;
    list(...args: never[]): AsyncIterable<{ readonly versionstamp: string }>;
    atomic(): { commit(): Promise<{ readonly ok: boolean }> };
  }

  /** An entry of your key-value store. */
  interface KvEntry {
    /** The bytes that were set. */
    value: Uint8Array;
    /** Changes with every set and never repeats for a key. Neither null nor undefined. */
    version: unknown;
  }

  /** Your key-value store. Functions may return promises or values. */
  interface PlainKv {
    /** The entry of a key; null or undefined if there is none, or it has expired. */
    get(key: string): KvEntry | null | undefined | PromiseLike<KvEntry | null | undefined>;
    /**
     * Sets the value, atomically, if the entry's version equals `version`, or if there is no entry and
     * `version` is null.
     *
     * @param ttlMs whole ms after which the entry must expire, and not earlier
     * @returns true, or false if the version differs and nothing was changed
     */
    set(
      key: string,
      value: Uint8Array,
      version: unknown,
      ttlMs: number,
    ): boolean | PromiseLike<boolean>;
    /** Optional. Without it, `clear` sets a one-byte value that expires after a second. */
    delete?(key: string): unknown;
    /** Optional: the keys with this prefix. Without it, `clearAll` rejects with `ERR_ROLLGATE_UNSUPPORTED`. */
    list?(
      prefix: string,
    ):
      | Iterable<string>
      | AsyncIterable<string>
      | PromiseLike<Iterable<string> | AsyncIterable<string>>;
  }

  /** Options of a limiter over a key-value store. */
  interface KvStoreOptions
    extends NotGiven<'redis' | 'client' | 'connection' | 'shared' | 'localRefusals'> {
    /** Your store. The limiter neither opens nor closes it. */
    kv: DenoKv | PlainKv;
    /**
     * Prefix of every key: non-empty, without braces, at most 512 bytes. Limiters with the same namespace
     * count together, each by its own limits.
     */
    namespace: string;
    /** Timeout of a call in ms, an integer >= 1; then it fails with `ERR_ROLLGATE_KV_TIMEOUT`. Default 500. */
    commandTimeout?: number | undefined;
    /** How calls are decided if the store does not answer: see RedisStoreOptions. Default 'throw'. */
    onError?: 'throw' | 'allow' | 'block' | 'memory' | undefined;
  }

  /** The options of a limiter over a key-value store. */
  type KvRateLimiterOptions = (OneLimitOptions | SeveralLimitsOptions) & KvStoreOptions;

  /**
   * A limiter with a store outside the process. It returns promises, and rejects them for invalid arguments. The
   * methods are those of RateLimiter.
   */
  // biome-ignore lint/complexity/noBannedTypes: a limiter is a function
  interface RemoteRateLimiter extends Function {
    /**
     * Attempts an action and calls back in a later tick.
     *
     * @throws TypeError `ERR_ROLLGATE_CALLBACK`: the callback is neither a function nor undefined
     */
    (id: Id, callback: Callback): void;

    /** The same for the id that all calls without an id share. */
    (callback: Callback): void;

    /**
     * Attempts an action; resolves to the time left in ms: 0 if the action is allowed.
     *
     * All methods reject with `ERR_ROLLGATE_ID` (also for strings that are not well-formed Unicode),
     * `ERR_ROLLGATE_CLOCK`, `ERR_ROLLGATE_CLOSED`, and, depending on `onError`, `ERR_ROLLGATE_REDIS_...` or
     * `ERR_ROLLGATE_KV...`.
     */
    (id?: Id, callback?: undefined): Promise<number>;

    limit(id?: Id): Promise<boolean>;
    wouldLimit(id?: Id): Promise<boolean>;
    limitWithInfo(id?: Id): Promise<LimitInfo>;
    wouldLimitWithInfo(id?: Id): Promise<LimitInfo>;
    attempt(id?: Id, options?: AttemptOptions): Promise<Decision>;
    peek(id?: Id, options?: AttemptOptions): Promise<Decision>;
    usage(id?: Id): Promise<Usage>;

    /**
     * As in RateLimiter. Each process has its own queue. If another process takes the place first, the attempt is
     * refused; `countBlocked` and `blockFor` apply to that refusal.
     */
    wait(id?: Id, options?: WaitOptions): Promise<Decision>;

    /**
     * On Redis, one round trip for each 1000 ids, or for each slot in a cluster. In a key-value store, one for
     * each id, in parallel. If one of these fails, the promise rejects, and the others may be recorded.
     */
    attemptMany(ids: readonly Id[]): Promise<Decision[]>;

    /**
     * As in RateLimiter. Rejects if the store does not answer, with any `onError`; the decision cannot be
     * settled again then. A decision of `onError: 'memory'` is settled in memory.
     */
    settle(decision: Decision, actual: Cost): Promise<boolean>;

    /** As in RateLimiter; the same as settling at 0. */
    refund(decision: Decision): Promise<boolean>;

    /** As in RateLimiter: without I/O. Limiters in other processes keep their own limits. */
    setLimits(limits: readonly WindowLimit[]): void;

    /** As in RateLimiter. Rejects if the store does not answer, with any `onError`. */
    block(id: Id, ms: number): Promise<void>;

    /** Rejects if the store does not answer, with any `onError`. */
    clear(id?: Id): Promise<void>;

    /** On Redis, scans all keys of the database, in many round trips. */
    clearAll(): Promise<void>;

    stats(): RemoteStats;

    /**
     * Ends the limiter. With the native client, pending calls fail, and the connection closes with its last
     * limiter. Your own client or store stays open.
     */
    close(): Promise<void>;
  }

  /** A limiter on Redis. */
  interface AsyncRateLimiter extends RemoteRateLimiter {
    /** The kind of client: the native one, or yours. */
    readonly detectedClientType: RedisClientType;
  }

  type RedisClientType = 'hiredis' | 'ioredis' | 'node-redis';

  /** The options of one attempt. */
  interface AttemptOptions {
    /** The number of actions to record, in every window or by name of a limit. Default 1. */
    cost?: Cost | undefined;
  }

  /** The options of one `wait`. */
  interface WaitOptions extends AttemptOptions {
    /** When it aborts, the promise rejects with its `reason`. */
    signal?: AbortSignal | undefined;
    /**
     * Maximum ms to wait, from 0 to below 1e12. The promise rejects at the deadline, or as soon as it is known
     * that the deadline cannot be met. Default: no deadline.
     */
    deadline?: number | undefined;
    /**
     * Maximum number of calls that wait for this id, including this one, an integer >= 1; otherwise the call
     * rejects at once. Default: no maximum.
     */
    maxQueue?: number | undefined;
    /**
     * Calls of level 3 go first; within a level first come, first served. A call begins at the level of its
     * priority, and rises one level, up to 3, for every 10 s that it has waited. Default 0.
     */
    priority?: 0 | 1 | 2 | 3 | undefined;
  }

  /** The result of an attempt or a peek. Durations in whole ms, rounded up. */
  interface Decision {
    readonly allowed: boolean;
    /**
     * 0 if allowed; otherwise at least 1: the time until the same attempt would be allowed without further
     * attempts.
     */
    readonly timeLeft: number;
    /** The smallest `remaining` of all windows. */
    readonly actionsLeft: number;
    /**
     * Time until more is available: if blocked `timeLeft`, otherwise the `resetIn` of the window with the least
     * `remaining`.
     */
    readonly resetIn: number;
    /** Why: 'count' if also by 'minDifference'; 'block' by `blockFor`, `block` or `onError: 'block'`. */
    readonly blockedBy: null | 'count' | 'minDifference' | 'block';
    /** Each window after this attempt, in the order of the options. */
    readonly limits: readonly WindowState[];
  }

  /** What is counted for an id: the numbers of the window with the least `remaining`. Durations in whole ms. */
  interface Usage {
    /** Whether an action of cost 1 would be allowed: false also because of `minDifference` or a block. */
    readonly allowed: boolean;
    readonly used: number;
    readonly remaining: number;
    readonly resetIn: number;
    /** Until an action of cost 1 would be allowed, rounded up; 0 if it would be. */
    readonly timeLeft: number;
    /** Each window, in the order of the options. */
    readonly limits: readonly WindowState[];
  }

  /** An attempt of `attemptAll`. */
  interface AttemptAllEntry<Limiter = Self | RemoteRateLimiter> {
    limiter: Limiter;
    id?: Id;
    /** As in AttemptOptions. */
    cost?: Cost | undefined;
  }

  /** The result of `attemptAll`. */
  type AttemptAllResult =
    | {
        readonly allowed: true;
        /** In the order of the entries. */
        readonly decisions: readonly Decision[];
        readonly refusedBy: null;
      }
    | {
        readonly allowed: false;
        /** In the order of the entries; null where an earlier refusal made the question pointless. */
        readonly decisions: readonly (Decision | null)[];
        /** The index of the first entry that was refused. */
        readonly refusedBy: number;
      };

  /** One window after an attempt. */
  interface WindowState {
    /** The name of the limit, if it has one. */
    readonly name?: string;
    /** ms, as in the options. */
    readonly interval: number;
    readonly maxInInterval: number;
    /**
     * How much of the window is used: recorded actions inside it (log), the count (fixed window, counter), or what has
     * not leaked yet (gcra). Above `maxInInterval` after `settle` at more than was reserved, and where refusals
     * count, except in a log of limits without names.
     */
    readonly used: number;
    /** `maxInInterval` - `used`, at least 0. */
    readonly remaining: number;
    /** ms until `remaining` grows without further attempts; 0 if nothing is used. */
    readonly resetIn: number;
  }

  /** The five members of rolling-rate-limiter 0.4, after the attempt. */
  interface LimitInfo {
    blocked: boolean;
    blockedDueToCount: boolean;
    blockedDueToMinDifference: boolean;
    /**
     * ms until the next action would be allowed; > 0 also after an allowed action that filled the window or
     * started `minDifference`.
     */
    millisecondsUntilAllowed: number;
    /** Integer >= 0. */
    actionsRemaining: number;
  }

  /** Counters of a limiter since it was created. */
  interface Stats {
    /** Ids in the store, including expired ids that are not yet forgotten. */
    keys: number;
    /** Allowed attempts. */
    allowed: number;
    /** Blocked attempts. */
    blocked: number;
    /** Ids evicted before they expired: see `maxKeys`. */
    evicted: number;
    /** Calls that failed because of the clock or the shared memory. */
    errors: number;
    /** Memory of the ids, in bytes. */
    bytes: number;
  }

  /** Counters of a limiter on Redis, in this process. */
  type RedisStats = RemoteStats;

  /** Counters of a limiter with a store outside the process, in this process. */
  interface RemoteStats {
    /** Unknown: counting would need a scan of the database. */
    keys: null;
    /** Allowed attempts, including those that `onError` allowed. */
    allowed: number;
    /** Blocked attempts, including those that `onError` blocked. */
    blocked: number;
    /** Ids that `onError: 'memory'` evicted. */
    evicted: number;
    /** Calls that failed because of the clock or the store, including those that `onError` decided. */
    errors: number;
    /** Unknown. */
    bytes: null;
    /** Decisions that `onError` made. */
    fallbacks: number;
    /** Refusals that were repeated without asking Redis. */
    localRefusals: number;
    /**
     * `pending` is the number of unanswered calls, on Redis of all limiters on the connection. `isUp` is whether there is a connection, null if
     * your client does not report it. In a key-value store, `conflicts` counts how often another process wrote
     * first or the store was busy.
     */
    connection: {
      pending: number;
      isUp?: boolean | null;
      /** Native client: how often it has connected. */
      connections?: number;
      [fact: string]: unknown;
    };
  }

  /** The message of the diagnostics channel `rollgate:decision`, for each attempt: docs/observability.md. */
  interface DecisionMessage {
    limiter: Self | RemoteRateLimiter;
    /** As given; a string for `attemptMany`, and if `onError` decided. */
    id: Id;
    /** An object if the cost of the attempt was one. */
    cost: Cost;
    allowed: boolean;
    /** ms, as in a Decision. */
    timeLeft: number;
  }

  /** The message of the diagnostics channel `rollgate:evicted`, about ids evicted at `maxKeys`. */
  interface EvictedMessage {
    limiter: Self;
    /** Ids in the store. */
    keys: number;
    /** Ids evicted so far. */
    evicted: number;
  }

  /** The messages of the diagnostics channel `rollgate:redis`. */
  type RedisMessage =
    | {
        type: 'call';
        limiter: AsyncRateLimiter;
        command: 'attempt' | 'peek' | 'refund' | 'settle' | 'block' | 'clear';
        /** The number of ids. */
        ids: number;
        /** From the call to its answer, including time in queues. */
        durationMs: number;
        /** null, or why it failed; `onError` may still decide. */
        error: RateLimiterError | null;
      }
    | {
        type: 'connection';
        limiter: AsyncRateLimiter;
        /** Whether there is a connection; in a cluster, to any node. */
        isUp: boolean;
      };

  /** The message of the diagnostics channel `rollgate:shadow`, for each decision of a `shadow` rule. */
  interface ShadowMessage extends ShadowDecision {
    id: Id;
  }

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

  /** Only with `new`. `Redis` is what `redis` or `client` may be. */
  interface RedisRateLimiterConstructor<Limiter = RedisRateLimiter, Redis = RedisOption> {
    new (options: RedisRateLimiterOptions<Redis>): Limiter;
    readonly prototype: Limiter;
    /** null if the client is of an unknown kind. */
    determineRedisClientType(client: unknown): 'ioredis' | 'node-redis' | null;
  }

  /** Takes clients of redis (node-redis) only. */
  interface NodeRedisRateLimiterConstructor
    extends RedisRateLimiterConstructor<
      NodeRedisRateLimiter,
      NodeRedisClient | RedisClientOptions
    > {}

  /** Takes clients of ioredis only. */
  interface IORedisRateLimiterConstructor
    extends RedisRateLimiterConstructor<IORedisRateLimiter, IORedisClient | RedisClientOptions> {}

  /**
   * The request type of `rateLimit`: Node's, with Express's `ip`. Other members are unchecked; use
   * `rateLimit<Request, Response>` with the types of your framework to check them.
   */
  interface LimitedRequest extends IncomingMessage {
    ip?: string | undefined;
    // biome-ignore lint/suspicious/noExplicitAny: req.path and the like, without the types of a framework
    [member: string]: any;
  }

  /** The response type of `rateLimit`: see LimitedRequest. */
  interface LimitedResponse extends ServerResponse {
    // biome-ignore lint/suspicious/noExplicitAny: res.locals and the like
    [member: string]: any;
  }

  /** The value of `req.rateLimit`, with the names of express-rate-limit. */
  interface RateLimitInfo {
    /** The limit of the window with the least left. */
    limit: number;
    /** Requests counted in that window, including this one. */
    used: number;
    /** Requests left in that window. */
    remaining: number;
    /** When more is available; undefined under a limit of Infinity, which counts nothing. */
    resetTime: Date | undefined;
    /** The result of `keyGenerator`, or the id of `authenticate`. */
    key: Id;
    /**
     * Replaces the cost of the request by what it came to, once: `settle` of the limiter that counted it, whose result
     * it returns; false if the request was refused.
     *
     * @throws and rejects with the errors of `settle`; `ERR_ROLLGATE_UNSUPPORTED`: your own limiter has no `settle`
     */
    settle(actual: Cost): boolean | Promise<boolean>;
    /** What `shadow` rules would have decided; undefined if none was reached. */
    shadow?: ShadowDecision[];
    /**
     * The same as `used`; not enumerable.
     * @deprecated the name of express-rate-limit 6
     */
    readonly current?: number;
  }

  /** What a `shadow` rule would have decided: the numbers of its window with the least left. */
  interface ShadowDecision {
    /** The index of the rule in `rules`. */
    rule: number;
    allowed: boolean;
    limit: number;
    /** Requests that the rule has counted, including this one. */
    used: number;
    remaining: number;
  }

  /**
   * Merged into Express's Request; undefined if no middleware counted the request. Declare another
   * `requestPropertyName` in the same way:
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
   * The limiter interface that `rateLimit` needs. getKey uses `peek`, resetKey uses `clear`, `settle` of requests uses
   * `settle`, and skipFailedRequests and skipSuccessfulRequests use `refund`. With the option `cost`, `attempt` gets it, throws
   * `ERR_ROLLGATE_COST` if it can never pass, and `peek` is needed, too.
   */
  interface RateLimitBackend {
    attempt(id: Id, options?: AttemptOptions): Decision | Promise<Decision>;
    settle?(decision: Decision, actual: Cost): boolean | Promise<boolean>;
    refund?(decision: Decision): unknown;
    peek?(id: Id): Decision | Promise<Decision>;
    clear?(id: Id): unknown;
  }

  /** The body of a refusal; an object is sent as JSON. */
  type Message = string | object;

  /** The draft of the RateLimit headers. Source: draft-ietf-httpapi-ratelimit-headers. */
  type HeaderDraft = 'draft-6' | 'draft-7' | 'draft-8' | 'draft-10';

  /** A check for wrong use, with its name in express-rate-limit; docs/middleware.md lists them. */
  type RateLimitCheck =
    | 'creationStack'
    | 'forwardedHeader'
    | 'ip'
    | 'ipv6Subnet'
    | 'keyGeneratorIpFallback'
    | 'singleCount'
    | 'trustProxy'
    | 'undefinedKey'
    | 'unsharedStore'
    | 'xForwardedForHeader';

  /** Checks of express-rate-limit that are not needed here. */
  type NeedlessRateLimitCheck =
    | 'draftPolliHeaders'
    | 'headersDraftVersion'
    | 'headersResetTime'
    | 'ipv6SubnetOrKeyGenerator'
    | 'knownOptions'
    | 'limit'
    | 'onLimitReached'
    | 'positiveHits'
    | 'validationsConfig'
    | 'windowMs';

  /** Turns checks on or off. `default` applies to the others, and is true by default. */
  type RateLimitChecks = {
    [check in RateLimitCheck | NeedlessRateLimitCheck | 'default']?: boolean | undefined;
  };

  /** The logger of a middleware, such as `console` or a pino logger. */
  interface RateLimitLogger {
    /** Receives an Error with a `code` of docs/errors.md, once for each middleware. */
    warn(warning: Error): unknown;
    /** Receives every error that is not passed to `next`, and a message about the request. */
    error(error: unknown, message: string): unknown;
  }

  /**
   * Gives the id that a request has without `keyGenerator`; undefined for a client on a Unix socket. Throws an error
   * with the code `ROLLGATE_CLIENT_GONE` for a client that has left: pass it on, so that the request is refused.
   */
  type ClientKey = () => Id | Promise<Id>;

  /** How a middleware answers. Names and defaults are those of express-rate-limit. */
  interface RateLimitResponseOptions<
    Request extends IncomingMessage = LimitedRequest,
    Response extends ServerResponse = LimitedResponse,
  > {
    /**
     * The id of a request. Default: the client's address (`req.ip` or the socket's), for IPv6 its subnet. May
     * be async. `clientKey()` is that default.
     */
    keyGenerator?:
      | ((req: Request, res: Response, clientKey: ClientKey) => Id | Promise<Id>)
      | undefined;
    /**
     * Identifies the caller, instead of `keyGenerator`. May be async. Its errors go to `onAuthError`, including
     * `ERR_ROLLGATE_AUTHENTICATE` (TypeError) if it returns no object with an id.
     */
    authenticate?: ((req: Request) => Caller | Promise<Caller>) | undefined;
    /**
     * Answers if `authenticate` fails, or passes the request on, uncounted, with `next()`. May be async.
     * Default: errors go to `next`.
     */
    onAuthError?:
      | ((error: unknown, req: Request, res: Response, next: Next) => unknown)
      | undefined;
    /**
     * Prefix length of IPv6 subnets that count as one client, an integer from 1 to 128, outside of 32 to 64 with a
     * warning; default 56; false: the whole address. May be a function or async function. Not with a `keyGenerator`
     * without the parameter `clientKey`.
     */
    ipv6Subnet?:
      | number
      | false
      | ((req: Request, res: Response) => number | false | Promise<number | false>)
      | undefined;
    /**
     * The proxies whose X-Forwarded-For is believed, as Express' setting 'trust proxy', for servers without such a
     * setting: how many proxies; addresses and subnets; a function of a proxy's address and its distance (0 is the
     * nearest); true: all; false: none. Default: the server's setting. Not with a `keyGenerator` without the
     * parameter `clientKey`.
     */
    trustProxy?:
      | boolean
      | number
      | string
      | readonly string[]
      | ((address: string, hop: number) => boolean)
      | undefined;
    /** If it returns true, the request passes uncounted. May be async. */
    skip?: ((req: Request, res: Response) => boolean | Promise<boolean>) | undefined;
    /** Answers a refused request, instead of `message` and `statusCode`. May be async. */
    handler?: RateLimitHandler<Request, Response> | undefined;
    /** Body of a refusal. Default 'Too many requests, please try again later.' */
    message?: Message | ((req: Request, res: Response) => unknown) | undefined;
    /** Status of a refusal, an integer from 200 to 999. Default 429. */
    statusCode?: number | undefined;
    /**
     * Whether a refusal is application/problem+json (RFC 9457) with the type quota-exceeded and the names
     * of the `violated-policies`. A string `message` becomes its `detail`; the members of an object are added.
     * Not with `handler`. Default false.
     */
    problemDetails?: boolean | undefined;
    /** Whether to send X-RateLimit-Limit, -Remaining and -Reset. Default true. */
    legacyHeaders?: boolean | undefined;
    /** The same as `legacyHeaders`, which overrides it. */
    headers?: boolean | undefined;
    /** Which RateLimit headers to send; true means 'draft-6'. Default false. */
    standardHeaders?: boolean | HeaderDraft | undefined;
    /**
     * Name of the policy in drafts 8 and 10 and in problem details: printable ASCII. The default is like
     * '100-in-15min', and is appended if there are several windows. May be a function or async function.
     */
    identifier?: string | ((req: Request, res: Response) => string | Promise<string>) | undefined;
    /** The request's property for the RateLimitInfo; non-empty, not '__proto__'. Default 'rateLimit'. */
    requestPropertyName?: string | undefined;
    /** Whether to refund successful requests, whose response has ended. Default false. */
    skipSuccessfulRequests?: boolean | undefined;
    /**
     * Whether to refund requests that failed, whose client disconnected, or whose response had an error.
     * Refused requests are then not counted. Default false.
     */
    skipFailedRequests?: boolean | undefined;
    /** Decides success for the two options above, after the response. Default: a status below 400. May be async. */
    requestWasSuccessful?:
      | ((req: Request, res: Response) => boolean | Promise<boolean>)
      | undefined;
    /**
     * Whether a request passes, uncounted, if no decision can be made. An invalid key stays an error. Default
     * false.
     */
    passOnStoreError?: boolean | undefined;
    /** Whether to check for wrong use; each finding is reported once. Default true. */
    validate?: boolean | RateLimitChecks | undefined;
    /** Receives warnings and errors, instead of `process.emitWarning`. */
    logger?: RateLimitLogger | undefined;
  }

  /**
   * Maximum requests in a window, an integer >= 0 or Infinity. 0 refuses every request; under Infinity requests pass
   * uncounted and without headers. A function or async function is called for each request; a key has one count,
   * compared with the limit of each request.
   */
  type RequestLimit<
    Request extends IncomingMessage = LimitedRequest,
    Response extends ServerResponse = LimitedResponse,
  > = number | ((req: Request, res: Response) => number | Promise<number>);

  /**
   * What a request costs: an integer >= 1, or costs by name of a limit; or a function or async function that gives it.
   * Anything else is `ERR_ROLLGATE_COST`, which goes to `next`. A cost above a limit refuses the request without Retry-After, and
   * records nothing.
   */
  type RequestCost<
    Request extends IncomingMessage = LimitedRequest,
    Response extends ServerResponse = LimitedResponse,
  > = Cost | ((req: Request, res: Response) => Cost | Promise<Cost>);

  /** Where a middleware counts: in memory, or in one of these stores. */
  interface AnyStoreOptions extends RedisStoreOptions, SharedStoreOptions {
    /** Counts on Redis; set a `namespace` as well; with `rules`, it is the prefix of each zone's namespace. */
    redis?: RedisOption | undefined;
    /** The same as `redis`. */
    client?: RedisOption | undefined;
    /** The same as `redis`, for what `createRedisConnection` returns. */
    connection?: RedisConnection | undefined;
    /** Counts in a key-value store; requires a `namespace`. */
    kv?: DenoKv | PlainKv | undefined;
    /** Timeout of a key-value store in ms. Default 500. */
    commandTimeout?: number | undefined;
  }

  /** The limits of a middleware, or of one of its rules. Default: 5 requests in 60,000 ms. */
  interface RequestLimits<
    Request extends IncomingMessage = LimitedRequest,
    Response extends ServerResponse = LimitedResponse,
  > extends Omit<OptionalLimit, 'maxInInterval'> {
    /** The same as `interval`, and overrides it. */
    windowMs?: number | undefined;
    /** Overrides `max` and `maxInInterval`. */
    limit?: RequestLimit<Request, Response> | undefined;
    /** The same as `limit`. */
    max?: RequestLimit<Request, Response> | undefined;
    /** The same as `limit`. */
    maxInInterval?: RequestLimit<Request, Response> | undefined;
    /** Several windows, instead of the limits above. */
    limits?: readonly WindowLimit[] | undefined;
    /** Default 1. */
    cost?: RequestCost<Request, Response> | undefined;
  }

  /** The limits of a middleware that creates its limiter. */
  interface RateLimitLimits<
    Request extends IncomingMessage = LimitedRequest,
    Response extends ServerResponse = LimitedResponse,
  > extends RequestLimits<Request, Response>,
      CommonOptions,
      AnyStoreOptions {
    limiter?: undefined;
    rules?: undefined;
    store?: undefined;
  }

  /** Options that are not allowed here, except undefined. */
  type NotGiven<Names extends PropertyKey> = { [name in Names]?: undefined };

  /** The options of a middleware with an existing limiter. Limits are not allowed. */
  interface RateLimitExisting<
    Request extends IncomingMessage = LimitedRequest,
    Response extends ServerResponse = LimitedResponse,
  > extends NotGiven<Exclude<keyof RateLimitLimits, 'limiter' | 'cost'>> {
    limiter: RateLimiter | RemoteRateLimiter | RateLimitBackend;
    /** Default 1. */
    cost?: RequestCost<Request, Response> | undefined;
  }

  /** A store for express-rate-limit 6 and newer. */
  interface RateLimitStore {
    /** Called once, when the middleware is created, with its settings. */
    init?(settings: never): void | Promise<void>;
    /** Counts a request; `totalHits` includes it. */
    increment(key: string): RateLimitHits | Promise<RateLimitHits>;
    /** Takes back a request: see `skipFailedRequests` and `skipSuccessfulRequests`. */
    decrement(key: string): void | Promise<void>;
    /** Forgets the count of a key. */
    resetKey(key: string): void | Promise<void>;
    /** For `getKey` of the middleware. */
    get?(key: string): RateLimitHits | undefined | Promise<RateLimitHits | undefined>;
  }

  /** What a store counts for a key. */
  interface RateLimitHits {
    totalHits: number;
    /** When the window ends. */
    resetTime: Date | undefined;
  }

  /** A store for express-rate-limit 5 and older. */
  interface OlderRateLimitStore {
    incr(
      key: string,
      callback: (error: Error | undefined, totalHits: number, resetTime: Date | undefined) => void,
    ): void;
    decrement(key: string): void;
    resetKey(key: string): void;
  }

  type WindowOption = 'windowMs' | 'interval' | 'limit' | 'max' | 'maxInInterval';

  /** The options of a middleware that counts in a store for express-rate-limit. */
  interface RateLimitByStore<
    Request extends IncomingMessage = LimitedRequest,
    Response extends ServerResponse = LimitedResponse,
  > extends Pick<RateLimitLimits<Request, Response>, WindowOption>,
      NotGiven<Exclude<keyof RateLimitLimits, WindowOption | 'store'>> {
    /** Serves this middleware only. */
    store: RateLimitStore | OlderRateLimitStore;
  }

  /** The result of `authenticate`. */
  interface Caller {
    /** The id to count; `null` is the id that all calls without an id share. */
    id: string | number | bigint | null;
    /** The group for rules. Default 'default'. */
    group?: string | undefined;
  }

  /**
   * One of the `rules`: which requests it matches, and their limits. The first matching rule decides; a rule
   * without limits allows everything, and has no default.
   */
  interface RateLimitRule<
    Request extends IncomingMessage = LimitedRequest,
    Response extends ServerResponse = LimitedResponse,
  > extends RequestLimits<Request, Response>,
      Pick<CommonOptions, RuleOption> {
    /**
     * A path prefix of whole segments, ignoring case and encoding: '/api' matches '/api' and '/API/x', not
     * '/apix'; '/' matches every path. Patterns (':id', '*', '(', '{') are errors. Or a RegExp, tested on the
     * path as received, without the query.
     */
    path: string | RegExp;
    /** Default: every method. 'GET' includes HEAD. */
    method?: string | readonly string[] | undefined;
    /** Default: every group. A caller without a group is in 'default'. */
    group?: string | readonly string[] | undefined;
    /**
     * Rules of one zone share one count; limits, countBlocked, algorithm and blockFor must be equal. Its `shadow`
     * rules share another.
     */
    zone?: string | undefined;
    /** Whether each URL has its own count. Default false. */
    perPath?: boolean | undefined;
    /** Whether a block (`blockFor`) applies to every rule with limits. Default false. */
    blockEverywhere?: boolean | undefined;
    /** Whether the rule is only tried out: see docs/rules.md#shadow. Default false. */
    shadow?: boolean | undefined;
  }

  /** The limiter options that each rule has for itself. */
  type RuleOption = 'countBlocked' | 'algorithm' | 'blockFor';

  /** The options of a middleware with rules. The store options apply to all rules. */
  interface RateLimitByRules<
    Request extends IncomingMessage = LimitedRequest,
    Response extends ServerResponse = LimitedResponse,
  > extends Omit<CommonOptions, RuleOption>,
      AnyStoreOptions,
      NotGiven<RuleOption | 'windowMs' | 'limit' | 'max' | 'limits' | 'cost' | keyof Limit> {
    /** At least one. The first matching rule decides; a request that matches none passes. */
    rules: readonly RateLimitRule<Request, Response>[];
    limiter?: undefined;
    store?: undefined;
  }

  /** The options of `rateLimit`. `undefined` means not given. */
  type RateLimitOptions<
    Request extends IncomingMessage = LimitedRequest,
    Response extends ServerResponse = LimitedResponse,
  > = RateLimitResponseOptions<Request, Response> &
    (
      | RateLimitLimits<Request, Response>
      | RateLimitExisting<Request, Response>
      | RateLimitByStore<Request, Response>
      | RateLimitByRules<Request, Response>
    );

  /** The settings for a `handler`: the options for responses, with defaults. */
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
    /** The checks that are on. */
    readonly validate: Readonly<Record<RateLimitCheck, boolean>>;
    /** ms; undefined with `limits`, with `rules` and with an existing limiter. */
    readonly windowMs?: number;
    /** Undefined with `limits`, with `rules` and with an existing limiter. */
    readonly limit?: number | ((...args: never[]) => unknown);
    readonly cost?: Cost | ((...args: never[]) => unknown) | undefined;
    readonly store?: RateLimitStore | OlderRateLimitStore;
  }

  /** Answers a refused request, or passes it on with `next()`. */
  type RateLimitHandler<
    Request extends IncomingMessage = LimitedRequest,
    Response extends ServerResponse = LimitedResponse,
  > = (req: Request, res: Response, next: Next, settings: RateLimitSettings) => unknown;

  /** Continues with the next middleware, or with the error handlers. */
  type Next = (error?: unknown) => void;

  /** A middleware for Express 4 and 5, Connect, Polka and NestJS. */
  interface RateLimitMiddleware<
    Request extends IncomingMessage = LimitedRequest,
    Response extends ServerResponse = LimitedResponse,
  > {
    /** Errors reach `next(error)`. The call is synchronous if all steps are. */
    (req: Request, res: Response, next: Next): void | Promise<void>;
    /** Forgets the count of a key; with `rules` in all zones, except counts with `perPath`. */
    resetKey(key: Id): Promise<void>;
    /**
     * Resolves to the count of a key, or to undefined if there is none. Counts nothing. With `rules`, it is the
     * count in the zone with the least left.
     */
    getKey(key: Id): Promise<{ totalHits: number; resetTime: Date } | undefined>;
  }
}

export = RateLimiter;
