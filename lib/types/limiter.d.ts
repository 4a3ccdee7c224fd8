// The types of limiters in memory and shared memory, and of what all limiters have: options, methods, results, errors.

import './index';

declare module './index' {
  /**
   * A limiter: a function of (id?, callback?) with methods. `new` is optional. The constructor does no I/O. A limiter
   * has no timer and no handle: it does not keep the process alive, and is freed when it is no longer referenced.
   */
  interface RateLimiter {
    /**
     * Attempts an action before the call returns, and calls back in a later tick. Every failure reaches the callback.
     * An exception that the callback throws is uncaught.
     *
     * @throws TypeError `ERR_ROLLGATE_CALLBACK`: the callback is neither a function nor undefined
     */
    (id: Id, callback: Callback): void;

    /** The same for the id that all calls without an id share. */
    (callback: Callback): void;

    /**
     * Attempts an action.
     *
     * @param id the client to limit; calls without an id share one count
     * @returns the time left in whole ms, rounded up: 0 if the action is allowed, otherwise at least 1, the time
     *   until an action would be allowed without further attempts. With `countBlocked`, the blocked attempt itself is
     *   included.
     * @throws TypeError `ERR_ROLLGATE_ID`: the id is invalid
     * @throws Error `ERR_ROLLGATE_CLOCK`, `ERR_ROLLGATE_CLOSED`, `ERR_ROLLGATE_MEMORY`, with `shared`
     *   `ERR_ROLLGATE_SHARED_...`
     */
    (id?: Id, callback?: undefined): number;

    /**
     * Attempts an action; resolves to whether it was blocked. Source: rolling-rate-limiter 0.4.
     *
     * All methods that return a promise reject with the errors of the call without a callback.
     */
    limit(id?: Id): Promise<boolean>;

    /** What `limit` would resolve to now. Records nothing. */
    wouldLimit(id?: Id): Promise<boolean>;

    /** Attempts an action; resolves to the result in the form of rolling-rate-limiter 0.4. */
    limitWithInfo(id?: Id): Promise<LimitInfo>;

    /** What `limitWithInfo` would resolve to now. Records nothing. */
    wouldLimitWithInfo(id?: Id): Promise<LimitInfo>;

    /**
     * Attempts an action and returns the complete Decision.
     *
     * @throws the errors of the call without a callback
     * @throws TypeError `ERR_ROLLGATE_OPTION`: the second argument is not an object, or has an unknown option
     * @throws TypeError or RangeError `ERR_ROLLGATE_COST`: not a cost of this limiter
     */
    attempt(id?: Id, options?: AttemptOptions): Decision;

    /**
     * What is counted for an id now, without an attempt. Records nothing.
     *
     * @throws the errors of the call without a callback
     */
    usage(id?: Id): Usage;

    /** The Decision that `attempt` would return now. Records nothing. Throws the same errors. */
    peek(id?: Id, options?: AttemptOptions): Decision;

    /**
     * Waits until an action is allowed, and records it. Within this limiter and process, calls that wait for one id
     * are served by priority and in order; calls that do not wait may take a place in between. Waiting records
     * nothing: no refusal is counted, and no block begins. See docs/waiting.md.
     *
     * ```js
     * await limiter.wait('some id', { deadline: 5000 });
     * ```
     *
     * @returns the Decision of the attempt that was allowed, which `settle` and `refund` take
     *
     * Rejects with the `reason` of the signal, `ERR_ROLLGATE_WAIT_DEADLINE`, `ERR_ROLLGATE_WAIT_QUEUE`, and the
     * errors of `attempt`, `ERR_ROLLGATE_CLOSED` also when the limiter is closed meanwhile.
     */
    wait(id?: Id, options?: WaitOptions): Promise<Decision>;

    /**
     * Attempts an action of cost 1 for each id, in order, at one time, in one native call. An id may occur more than
     * once. If one id is invalid, nothing is recorded.
     *
     * @returns one Decision for each id
     * @throws the errors of the call without a callback; TypeError `ERR_ROLLGATE_ID` also if it is not an array
     */
    attemptMany(ids: readonly Id[]): Decision[];

    /**
     * Replaces the cost that an allowed attempt reserved by its actual cost, at the time of the attempt. More than
     * was reserved may exceed a maximum: then no attempt is allowed until enough has left the window. A decision is
     * settled or refunded once.
     *
     * @param decision of `attempt`, `wait`, `attemptMany` or `attemptAll` of this limiter
     * @param actual a number if the cost of the attempt was one (or left out), otherwise an object or 0; integers
     *   from 0 to 2^53 - 1. Limits that the object does not name keep what was reserved
     * @returns false if there was nothing to settle: after a refusal, a peek, an earlier `settle` or `refund`, or if
     *   the id was cleared or forgotten
     * @throws TypeError or RangeError `ERR_ROLLGATE_COST`: `actual` is wrong; the decision can still be settled
     * @throws TypeError `ERR_ROLLGATE_DECISION`: not a Decision of this limiter
     * @throws Error `ERR_ROLLGATE_CLOSED`
     */
    settle(decision: Decision, actual: Cost): boolean;

    /**
     * Takes back what an allowed attempt recorded, once: `settle(decision, 0)`. Exact with `countBlocked: false`,
     * except with 'gcra', which gives back only what has not leaked yet. An inexact refund never allows more than an
     * exact one. With all algorithms but the log, `minDifference` still counts from the refunded action.
     *
     * @returns false if there was nothing to take back, as `settle`, which has the same errors
     */
    refund(decision: Decision): boolean;

    /**
     * Sets other limits of the same shape: as many, with the same names in the same order. They apply from the next
     * call on; what was counted stays. They replace all limits, `minDifference` included; the other options stay.
     * Calls of `wait` whose cost can never pass then reject with `ERR_ROLLGATE_COST`. See docs/api.md.
     *
     * ```js
     * limiter.setLimits([{ interval: 60_000, maxInInterval: 200 }]);
     * ```
     *
     * If it throws, nothing has changed.
     *
     * @throws TypeError or RangeError `ERR_ROLLGATE_OPTION`: a limit is wrong, or the shape is another
     * @throws Error `ERR_ROLLGATE_SHARED_MISMATCH`: they do not fit into the shared region
     * @throws Error `ERR_ROLLGATE_CLOSED`
     */
    setLimits(limits: readonly WindowLimit[]): void;

    /**
     * Refuses an id for `ms` from now, finite and >= 0. If it is blocked already, the later end counts. 0 ends a
     * block, and so does `clear`. Counts stay.
     *
     * Rejects with `ERR_ROLLGATE_OPTION` if `ms` is wrong, and with the errors of `clear`.
     */
    block(id: Id, ms: number): Promise<void>;

    /** Forgets one id and its blocks; without an argument, the id that all calls without an id share. */
    clear(id?: Id): Promise<void>;

    /** Forgets every id of this limiter. The counters in `stats()` stay. */
    clearAll(): Promise<void>;

    /** Counters of this limiter; cheap. With `shared`, `keys` and `bytes` are those of the region. */
    stats(): Stats;

    /**
     * Frees the memory; a `shared` region stays. May be called again. All other calls then fail with
     * `ERR_ROLLGATE_CLOSED`.
     */
    close(): Promise<void>;
  }

  /**
   * A limiter with a store outside the process. It returns promises, and rejects them for invalid arguments. The
   * methods are those of RateLimiter.
   */
  interface RemoteRateLimiter
    extends Pick<
      RateLimiter,
      'limit' | 'wouldLimit' | 'limitWithInfo' | 'wouldLimitWithInfo' | 'block' | 'clear'
    > {
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
     * `ERR_ROLLGATE_KV...`. `settle`, `refund`, `block`, `clear` and `clearAll` reject if the store does not answer,
     * with any `onError`.
     */
    (id?: Id, callback?: undefined): Promise<number>;

    attempt(id?: Id, options?: AttemptOptions): Promise<Decision>;
    peek(id?: Id, options?: AttemptOptions): Promise<Decision>;
    usage(id?: Id): Promise<Usage>;

    /**
     * As in RateLimiter. Each process has its own queue. If another process takes the place first, the attempt is
     * refused; `countBlocked` and `blockFor` apply to that refusal.
     */
    wait(id?: Id, options?: WaitOptions): Promise<Decision>;

    /**
     * On Redis, one round trip for each 1000 ids, or for each slot in a cluster. In a key-value store, one for each
     * id, in parallel. If one of these fails, the promise rejects, and the others may be recorded.
     */
    attemptMany(ids: readonly Id[]): Promise<Decision[]>;

    /** After an error, it cannot be settled again. A decision of `onError: 'memory'` is settled in memory. */
    settle(decision: Decision, actual: Cost): Promise<boolean>;

    /** The same as `settle(decision, 0)`. */
    refund(decision: Decision): Promise<boolean>;

    /** As in RateLimiter: without I/O. Limiters in other processes keep their own limits. */
    setLimits(limits: readonly WindowLimit[]): void;

    /** Forgets every id of this limiter. On Redis, scans all keys of the database, in many round trips. */
    clearAll(): Promise<void>;

    stats(): RemoteStats;

    /**
     * Ends the limiter. With the native client, pending calls fail, and the connection closes with its last limiter.
     * Your own client or store stays open.
     */
    close(): Promise<void>;
  }

  /** A limiter in memory, under the name it has in rolling-rate-limiter 0.4. */
  interface InMemoryRateLimiter extends RateLimiter {}

  /** Only with `new`. */
  interface InMemoryRateLimiterConstructor {
    new (options: RateLimiterOptions): InMemoryRateLimiter;
    readonly prototype: InMemoryRateLimiter;
  }

  /**
   * The client to limit: a string, a finite number or a bigint. `1`, `1n` and `'1'` are the same id. `undefined`,
   * `null` and `''` are one id, which all calls without an id share. Different strings never share a count.
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

  /** One window: at most `maxInInterval` actions in any `interval`. */
  interface Limit {
    /**
     * Length of the window in ms, finite and > 0, with microsecond precision. An action leaves the window exactly
     * `interval` after it happened.
     */
    interval: number;
    /** How many actions each window allows, an integer >= 1. */
    maxInInterval: number;
    /** Minimum ms between two actions, finite and >= 0. Default 0. */
    minDifference?: number | undefined;
  }

  /** A Limit in which every member is optional. */
  type OptionalLimit = { [name in keyof Limit]?: Limit[name] | undefined };

  /** One of several windows. `windowMs` overrides `interval`, `limit` overrides `maxInInterval`. */
  type WindowLimit = Pick<Limit, 'minDifference'> &
    (
      | { interval: number; windowMs?: number | undefined }
      | { interval?: number | undefined; windowMs: number }
    ) &
    (
      | { maxInInterval: number; limit?: number | undefined }
      | { maxInInterval?: number | undefined; limit: number }
    ) & {
      /**
       * What the window counts, so that attempts can have another cost in it than in others: `'tokens'`. A non-empty
       * string of printable characters; not `'__proto__'`, and no name twice. Also the policy name in headers.
       */
      name?: string | undefined;
    };

  /**
   * The cost of an attempt, reserved or actual. A number is the cost in every window. An object, only for limiters
   * whose limits have names, has the cost in each named window: `{ requests: 1, tokens: 4000 }`.
   *
   * The cost of an attempt is an integer from 1 to the smallest `maxInInterval`; in an object from 0 to the
   * `maxInInterval` of that window. Windows that it does not name take 1. A window where the cost is 0 is not asked,
   * even if it is full; zeros alone are an error.
   */
  type Cost = number | { readonly [limit: string]: number | undefined };

  /**
   * How actions are counted, whatever the store:
   * - 'sliding-window-log': the times of an id's newest actions. Exact.
   * - 'sliding-window-counter': two counts of consecutive windows aligned to the epoch; the older one is weighted by
   *   its share that is still inside. Source: Cloudflare.
   * - 'fixed-window': one count per window aligned to the epoch. Twice the limit may pass across an edge.
   * - 'gcra': a burst of `maxInInterval`, then one action every interval / maxInInterval, rounded up to whole
   *   nanoseconds above 1000: a limit above 10^9 per second gives the warning `ROLLGATE_GCRA_RATE`. Source: ATM
   *   Forum, redis-cell.
   */
  type Algorithm = 'sliding-window-log' | 'sliding-window-counter' | 'fixed-window' | 'gcra';

  /** Options of every limiter, except its limits. */
  interface CommonOptions {
    /**
     * Whether a blocked attempt counts as an action, as in rolling-rate-limiter. With `false`, a blocked attempt
     * changes nothing. Default true; with 'gcra' false, and true is an error. In `rateLimit`, its rules, the Fastify
     * plugin and `RollgateStore`, the default is false.
     */
    countBlocked?: boolean | undefined;
    /** How actions are counted. Default 'sliding-window-log', which is exact; docs/algorithms.md compares them. */
    algorithm?: Algorithm | undefined;
    /**
     * How long an id is blocked after a refusal, in ms > 0: one length, or an array of up to 255 lengths for repeated
     * offences (the last one repeats). Attempts during a block change nothing. Offences are forgotten if, after a
     * block, the longest window passes without a refusal. `block(id, 0)` and `clear` end a block.
     */
    blockFor?: number | readonly number[] | undefined;
    /**
     * Returns the time in ms, with microsecond precision; for tests and simulation. It replaces the host's clock,
     * which goes on while the host sleeps and is the time of day for aligned windows, on Redis the server's clock, in
     * a key-value store the time of day. If it throws or returns no finite number, the call fails with
     * `ERR_ROLLGATE_CLOCK`. A step backwards never allows more; therefore a limiter with its own clock forgets
     * expired ids only when `maxKeys` is reached.
     */
    clock?: (() => number) | undefined;
    /**
     * Maximum number of ids, an integer >= 1. When it is reached, the id nearest to expiry is evicted, counted in
     * `stats()`, and reported once (`process.emitWarning`, code `ROLLGATE_EVICTED`). Default 1,000,000, in shared
     * memory 50,000. On Redis and in a key-value store it limits the memory of `onError: 'memory'` and of
     * `localRefusals`. In shared memory it is the size of the region, at most 200 million; the first limiter that
     * attaches sets it for all.
     */
    maxKeys?: number | undefined;
  }

  /** A limiter with one window. */
  interface OneLimitOptions extends Limit, CommonOptions {
    limits?: undefined;
  }

  /** A limiter with several windows: an action is allowed if all windows allow it. */
  interface SeveralLimitsOptions extends OptionalLimit, CommonOptions {
    /**
     * At least one, decided and recorded together. Replaces `interval`, `maxInInterval` and `minDifference`, even if
     * both are given. The largest `minDifference` applies.
     */
    limits: readonly WindowLimit[];
  }

  /** The region of a limiter in shared memory. */
  interface SharedOptions {
    /**
     * Limiters with the same name share one region: 1 to 200 letters, digits, '.', '_' and '-', not beginning with
     * '.'; at most 183 with `rules` and on Fastify routes with their own limits.
     */
    name: string;
    /** As `maxKeys` of the limiter; an integer from 1 to 200 million. */
    maxKeys?: number | undefined;
    /**
     * The minimum number of actions of an id for which a log without names has room, an integer from 1 to 1,048,575,
     * rounded up to a power of two. The first limiter that attaches sets it for all; limits up to it fit later.
     * Default: the largest `maxInInterval`.
     */
    room?: number | undefined;
    /** Absolute path of the file's directory, which should be in memory. Default '/dev/shm'. */
    directory?: string | undefined;
  }

  /** The store of a synchronous limiter. */
  interface SharedStoreOptions {
    /**
     * Counts in shared memory: one exact limiter for every worker thread and process of the same user on this host
     * that uses this name, without a server. Linux only. The region has room for `maxKeys` ids, and exists until it
     * is removed (`unlinkShared`) or the host restarts. A limiter with another algorithm, other `countBlocked`, or
     * limits that do not fit cannot attach (`ERR_ROLLGATE_SHARED_MISMATCH`). The first call attaches, and fails with
     * `ERR_ROLLGATE_SHARED_SYSTEM` if the file system or the container's memory limit has too little room. A
     * sliding-window-log holds at most 1,048,575 actions, and 1000 if `limit` is a function.
     */
    shared?: string | SharedOptions | undefined;
  }

  /** Options that are not allowed here, except undefined. */
  type NotGiven<Names extends PropertyKey> = { [name in Names]?: undefined };

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
     * Maximum ms to wait, from 0 to below 1e12. The promise rejects at the deadline, or as soon as it is known that
     * the deadline cannot be met. Default: no deadline.
     */
    deadline?: number | undefined;
    /**
     * Maximum number of calls that wait for this id, including this one, an integer >= 1; otherwise the call rejects
     * at once. Default: no maximum.
     */
    maxQueue?: number | undefined;
    /**
     * Calls of level 3 go first; within a level first come, first served. A call begins at the level of its priority,
     * and rises one level, up to 3, for every 10 s that it has waited. Default 0.
     */
    priority?: 0 | 1 | 2 | 3 | undefined;
  }

  /** The result of an attempt or a peek. Durations in whole ms, rounded up. */
  interface Decision {
    readonly allowed: boolean;
    /** 0 if allowed; otherwise at least 1: until the same attempt would be allowed without further attempts. */
    readonly timeLeft: number;
    /** The smallest `remaining` of all windows. */
    readonly actionsLeft: number;
    /** Until more is available: if blocked `timeLeft`, otherwise the `resetIn` of the window with the least left. */
    readonly resetIn: number;
    /** Why: 'count' if also by 'minDifference'; 'block' by `blockFor`, `block` or `onError: 'block'`. */
    readonly blockedBy: null | 'count' | 'minDifference' | 'block';
    /** Each window after this attempt, in the order of the options. */
    readonly limits: readonly WindowState[];
  }

  /** One window after an attempt. */
  interface WindowState {
    /** The name of the limit, if it has one. */
    readonly name?: string;
    /** ms, as in the options. */
    readonly interval: number;
    readonly maxInInterval: number;
    /**
     * How much of the window is used: recorded actions inside it (log), the count (fixed window, counter), or what
     * has not leaked yet (gcra). Above `maxInInterval` after `settle` at more than was reserved, and where refusals
     * count, except in a log of limits without names.
     */
    readonly used: number;
    /** `maxInInterval` - `used`, at least 0. */
    readonly remaining: number;
    /** ms until `remaining` grows without further attempts; 0 if nothing is used. */
    readonly resetIn: number;
  }

  /** What is counted for an id: the numbers of the window with the least `remaining`. Durations in whole ms. */
  interface Usage extends Pick<WindowState, 'used' | 'remaining' | 'resetIn'> {
    /** Whether an action of cost 1 would be allowed: false also because of `minDifference` or a block. */
    readonly allowed: boolean;
    /** Until an action of cost 1 would be allowed, rounded up; 0 if it would be. */
    readonly timeLeft: number;
    /** Each window, in the order of the options. */
    readonly limits: readonly WindowState[];
  }

  /** An attempt of `attemptAll`. */
  interface AttemptAllEntry<Limiter = RateLimiter | RemoteRateLimiter> extends AttemptOptions {
    limiter: Limiter;
    id?: Id;
  }

  /** The result of `attemptAll`. `decisions` are in the order of the entries. */
  type AttemptAllResult =
    | {
        readonly allowed: true;
        readonly decisions: readonly Decision[];
        readonly refusedBy: null;
      }
    | {
        readonly allowed: false;
        /** null for entries that were not asked, because an earlier one was refused. */
        readonly decisions: readonly (Decision | null)[];
        /** The index of the first entry that was refused. */
        readonly refusedBy: number;
      };

  /** The five members of rolling-rate-limiter 0.4, after the attempt. */
  interface LimitInfo {
    blocked: boolean;
    blockedDueToCount: boolean;
    blockedDueToMinDifference: boolean;
    /**
     * ms until the next action would be allowed; > 0 also after an allowed action that filled the window or started
     * `minDifference`.
     */
    millisecondsUntilAllowed: number;
    /** Integer >= 0. */
    actionsRemaining: number;
  }

  /** Counters of a limiter since it was created. */
  interface Stats {
    /** Ids in the store, including expired ids that are not yet forgotten. */
    keys: number;
    /** Allowed attempts, including those that `onError` allowed. */
    allowed: number;
    /** Blocked attempts, including those that `onError` blocked. */
    blocked: number;
    /** Ids evicted before they expired: see `maxKeys`. */
    evicted: number;
    /** Calls that failed because of the clock or the store, including those that `onError` decided. */
    errors: number;
    /** Memory of the ids, in bytes. */
    bytes: number;
  }

  /** Counters of a limiter with a store outside the process, in this process. */
  interface RemoteStats extends Omit<Stats, 'keys' | 'bytes'> {
    /** Unknown: counting would need a scan of the database. */
    keys: null;
    /** Unknown. */
    bytes: null;
    /** Decisions that `onError` made. */
    fallbacks: number;
    /** Refusals that were repeated without asking Redis. */
    localRefusals: number;
    /**
     * `pending` is the number of unanswered calls, on Redis of all limiters on the connection. `isUp` is whether
     * there is a connection, null if your client does not report it. In a key-value store, `conflicts` counts how
     * often another process wrote first or the store was busy.
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
    limiter: RateLimiter | RemoteRateLimiter;
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
    limiter: RateLimiter;
    /** Ids in the store. */
    keys: number;
    /** Ids evicted so far. */
    evicted: number;
  }

  /**
   * The codes of rollgate's errors, each of the class Error unless another is named. docs/errors.md has a section for
   * each.
   */
  type ErrorCode =
    | 'ERR_ROLLGATE_OPTION' // TypeError or RangeError: an option is invalid, missing or unknown
    | 'ERR_ROLLGATE_ID' // TypeError: the id is invalid
    | 'ERR_ROLLGATE_CALLBACK' // TypeError: the callback is not a function
    | 'ERR_ROLLGATE_COST' // TypeError or RangeError: not a cost of this limiter, or `cost` returned none
    | 'ERR_ROLLGATE_DECISION' // TypeError: the argument of `settle` or `refund` is not a Decision of this limiter
    | 'ERR_ROLLGATE_CLOCK' // the clock threw (see `cause`) or returned no finite number
    | 'ERR_ROLLGATE_CLOSED' // the limiter is closed
    | 'ERR_ROLLGATE_MEMORY' // there is no memory for the log of an id
    | 'ERR_ROLLGATE_WAIT_DEADLINE' // `wait` was not allowed within its deadline
    | 'ERR_ROLLGATE_WAIT_QUEUE' // `maxQueue` calls wait for the id already
    | 'ERR_ROLLGATE_LIMIT' // TypeError or RangeError: the function `limit` returned no limit
    | 'ERR_ROLLGATE_AUTHENTICATE' // TypeError: `authenticate` returned no object with an id
    | 'ERR_ROLLGATE_URL' // with Fastify and `rules`: the path of a URL is ambiguous
    | 'ERR_ROLLGATE_REDIS_TIMEOUT' // Redis did not answer within `commandTimeout`
    | 'ERR_ROLLGATE_REDIS_UNREACHABLE' // there is no connection, or it was lost (see `cause`)
    | 'ERR_ROLLGATE_REDIS_AUTH' // Redis refuses the user or the password (see `cause`)
    | 'ERR_ROLLGATE_REDIS_REPLY' // another error of Redis (see `cause`), or an invalid reply
    | 'ERR_ROLLGATE_REDIS_QUEUE_FULL' // `maxQueue` calls wait already
    | 'ERR_ROLLGATE_REDIS_CLOSED' // the Redis client was closed by its owner
    | 'ERR_ROLLGATE_KV_TIMEOUT' // the store did not answer or was busy, or other processes wrote the id each time
    | 'ERR_ROLLGATE_KV' // the store failed (see `cause`), or the id's key holds what rollgate did not write
    | 'ERR_ROLLGATE_SHARED_MISMATCH' // the shared limiter has options that do not fit, which the message names
    | 'ERR_ROLLGATE_SHARED_FILE' // the file is not a shared limiter of this user and version
    | 'ERR_ROLLGATE_SHARED_SYSTEM' // a system call failed: no room, no permission, no such directory
    | 'ERR_ROLLGATE_SHARED_FULL' // 1024 limiters are attached already
    | 'ERR_ROLLGATE_SHARED_CORRUPT' // the shared memory holds invalid data
    | 'ERR_ROLLGATE_UNSUPPORTED' // not in this build, runtime or store; or prom-client is missing
    | 'ERR_ROLLGATE_ADDON' // there is no addon for this system (see `cause`)
    | 'ERR_ROLLGATE_WASM' // the WebAssembly module is missing or forbidden (see `cause`)
    | 'ERR_ROLLGATE_STORE' // `init` of a RollgateStore was not called, or failed; or a `store` returned no count
    | 'ERR_ROLLGATE_THROWN'; // your function threw a value that `next` treats as success (see `cause`)

  /** An Error, TypeError or RangeError of rollgate. There is no class of this name. */
  interface RateLimiterError extends Error {
    code: ErrorCode;
    /** The error that led to this one, if any. */
    cause?: unknown;
  }
}
