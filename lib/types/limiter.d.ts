// The types of limiters in memory and shared memory, and of what all limiters have: options, methods, results, errors.

import './index';

declare module './index' {
  /**
   * A limiter: a function of (id?, callback?) with methods. `new` is optional. The constructor does no I/O. A limiter
   * has no timer and no handle: it does not keep the process alive, and is freed when it is no longer referenced.
   */
  interface RateLimiter {
    /**
     * Attempts an action before the call returns, and calls back in a later tick, also with any failure.
     *
     * @throws TypeError `ERR_ROLLGATE_CALLBACK`: the callback is neither a function nor undefined
     */
    (id: Id, callback: Callback): void;

    /** The same for the id that all calls without an id share. */
    (callback: Callback): void;

    /**
     * Attempts an action.
     *
     * @returns the time left in whole ms, rounded up: 0 if the action is allowed, otherwise at least 1, the time
     *   until an action would be allowed without further attempts; with `countBlocked`, this attempt counts
     * @throws TypeError `ERR_ROLLGATE_ID`: the id is invalid
     * @throws Error `ERR_ROLLGATE_CLOCK`, `ERR_ROLLGATE_CLOSED`, `ERR_ROLLGATE_MEMORY`, with `shared`
     *   `ERR_ROLLGATE_SHARED_...`
     */
    (id?: Id, callback?: undefined): number;

    /** Attempts an action; resolves to whether it was blocked. Promises reject with the errors of the call above. */
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
     * @throws TypeError or RangeError `ERR_ROLLGATE_LIMIT`: `limits` are no limits of this limiter
     */
    attempt(id?: Id, options?: AttemptOptions): Decision;

    /**
     * What is counted for an id now, without an attempt, under the limits of the limiter or of this call. Records
     * nothing. Throws the same errors.
     */
    usage(id?: Id, options?: TermsOptions): Usage;

    /**
     * Counts what has already happened, and never refuses: a failed login, or a bill that comes later. It counts while
     * the id is blocked, may exceed a maximum as `settle` may, starts no block, and cannot be refunded. For
     * `minDifference` it is the newest action. Throws the errors of `attempt`.
     *
     * @returns what `usage` returns after it
     */
    record(id?: Id, options?: RecordOptions): Usage;

    /** The Decision that `attempt` would return now. Records nothing. Throws the same errors. */
    peek(id?: Id, options?: AttemptOptions): Decision;

    /**
     * Waits until an action is allowed, records it, and resolves to its Decision. In this limiter and process, calls
     * that wait for one id are served by priority and in order; calls that do not wait may take a place in between.
     * Waiting itself records nothing: no refusal is counted, and no block begins.
     *
     * Rejects with the `reason` of the signal, `ERR_ROLLGATE_WAIT_DEADLINE`, `ERR_ROLLGATE_WAIT_QUEUE`, and the
     * errors of `attempt`, `ERR_ROLLGATE_CLOSED` also when the limiter is closed meanwhile.
     */
    wait(id?: Id, options?: WaitOptions): Promise<Decision>;

    /**
     * Attempts an action of cost 1 for each id, in order and at one time; an id may occur more than once. Throws the
     * same errors, before anything is recorded, TypeError `ERR_ROLLGATE_ID` also if it is not an array.
     */
    attemptMany(ids: readonly Id[]): Decision[];

    /**
     * Replaces, once, the cost that an allowed attempt reserved by its actual cost, at the time of the attempt. More
     * than was reserved may exceed a maximum: then no attempt is allowed until enough has left the window.
     *
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
     * The same as `settle(decision, 0)`. Exact with `countBlocked: false`, except with 'gcra', which gives back only
     * what has not leaked yet; an inexact refund never allows more than an exact one. With all algorithms but the log,
     * `minDifference` still counts from the refunded action.
     */
    refund(decision: Decision): boolean;

    /**
     * Sets other limits of the same shape: as many, with the same names in the same order. They apply from the next
     * call on; what was counted stays. They replace all limits, `minDifference` included; the other options stay. A
     * calendar window keeps its unit; its time zone and start may change, from its next window on. Calls of `wait` whose cost can never pass then reject with `ERR_ROLLGATE_COST`. If it throws, nothing changes.
     *
     * @throws TypeError or RangeError `ERR_ROLLGATE_OPTION`: a limit is wrong, or the shape is another
     * @throws Error `ERR_ROLLGATE_SHARED_MISMATCH`: they do not fit into the shared region
     * @throws Error `ERR_ROLLGATE_CLOSED`
     */
    setLimits(limits: readonly WindowLimit[]): void;

    /**
     * Refuses an id for `ms` from now, finite and >= 0 (otherwise `ERR_ROLLGATE_OPTION`). If it is blocked already, the
     * later end counts. 0 ends a block, and so does `clear`. Counts stay.
     */
    block(id: Id, ms: number): Promise<void>;

    /** Forgets one id and its blocks; without an argument, the id that all calls without an id share. */
    clear(id?: Id): Promise<void>;

    /** Forgets every id of this limiter. The counters in `stats()` stay. */
    clearAll(): Promise<void>;

    /** Counters of this limiter; cheap. With `shared`, `keys` and `bytes` are those of the region. */
    stats(): Stats;

    /** Frees the memory; a `shared` region stays. All calls but this then fail with `ERR_ROLLGATE_CLOSED`. */
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
    /** Attempts an action and calls back in a later tick. Throws as RateLimiter. */
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
    usage(id?: Id, options?: TermsOptions): Promise<Usage>;
    record(id?: Id, options?: RecordOptions): Promise<Usage>;

    /** Each process has its own queue. If another comes first, `countBlocked` and `blockFor` apply to the refusal. */
    wait(id?: Id, options?: WaitOptions): Promise<Decision>;

    /**
     * On Redis, one round trip for each 5000 ids. In a key-value store, one for each
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

    /** The native client's pending calls fail; its connection closes with the last limiter. Your own stays open. */
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
   * @param error null, or why no decision could be made; the other arguments are then undefined
   * @param timeLeft whole ms: 0 if allowed, at least 1 if blocked
   * @param actionsLeft how many more actions are allowed now, an integer >= 0
   */
  type Callback = (error: RateLimiterError | null, timeLeft: number, actionsLeft: number) => void;

  /** One window: at most `maxInInterval` actions in any `interval`. */
  interface Limit {
    /** Length in ms, finite and > 0, with microsecond precision. An action leaves the window exactly then. */
    interval: number;
    /** How many actions each window allows, an integer >= 1. */
    maxInInterval: number;
    /** Minimum ms between two actions, finite and >= 0. Default 0. */
    minDifference?: number | undefined;
  }

  /** A Limit in which every member is optional. */
  type OptionalLimit = { [name in keyof Limit]?: Limit[name] | undefined };

  /** The unit of a calendar window. */
  type CalendarUnit = 'hour' | 'day' | 'week' | 'month' | 'year';

  /**
   * A window that begins and ends by the clocks of a time zone, only with `algorithm: 'fixed-window'`. A day usually has
   * 23, 24 or 25 hours. A beginning that clocks skip is the next moment that exists; of one that they repeat it is the
   * first. Zone data is that of the host (Intl).
   */
  type CalendarWindow = {
    interval?: undefined;
    windowMs?: undefined;
    /** Default 'UTC'. An IANA name that the host knows, such as 'Europe/Berlin'; no offsets such as '+01:00'. */
    timeZone?: string | undefined;
  } & (
    | { calendar: 'hour' | 'day'; startsOn?: undefined }
    | {
        /** `startsOn`: an integer from 1 (Monday, the default) to 7. */
        calendar: 'week';
        startsOn?: number | undefined;
      }
    | {
        /** `startsOn`: the day on which a billing period begins, an integer from 1 (default) to 31; at most the last day. */
        calendar: 'month';
        startsOn?: number | undefined;
      }
    | {
        /** `startsOn`: 'MM-DD', default '01-01'; '02-29' is the last day of February. */
        calendar: 'year';
        startsOn?: string | undefined;
      }
  );

  /**
   * One of several windows, of an interval or of a calendar. `windowMs` overrides `interval`, `limit` overrides
   * `maxInInterval`.
   */
  type WindowLimit = Pick<Limit, 'minDifference'> &
    (
      | (NotGiven<'calendar' | 'timeZone' | 'startsOn'> &
          (
            | { interval: number; windowMs?: number | undefined }
            | { interval?: number | undefined; windowMs: number }
          ))
      | CalendarWindow
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
   * The cost of an attempt, reserved or actual: in every window, an integer from 1 to the smallest `maxInInterval`. Or
   * by name of a limit, `{ requests: 1, tokens: 4000 }`: from 0 to the `maxInInterval` of that window, others take 1. A
   * window at cost 0 is not asked, even if it is full; zeros alone are an error.
   */
  type Cost = number | { readonly [limit: string]: number | undefined };

  /**
   * How actions are counted: docs/algorithms.md compares them. 'sliding-window-log' is exact. Windows of
   * 'sliding-window-counter' (Cloudflare) and 'fixed-window' are aligned to the epoch. 'gcra' (ATM Forum) allows a
   * burst of `maxInInterval`, then one every interval / maxInInterval, at most 10^9 a second (`ROLLGATE_GCRA_RATE`).
   */
  type Algorithm = 'sliding-window-log' | 'sliding-window-counter' | 'fixed-window' | 'gcra';

  /** Options of every limiter, except its limits. */
  interface CommonOptions {
    /**
     * Whether a blocked attempt counts as an action; otherwise it changes nothing. Default true; false with 'gcra',
     * where true is an error, and in `rateLimit`, its rules, the Fastify plugin and `RollgateStore`.
     */
    countBlocked?: boolean | undefined;
    /** Default 'sliding-window-log'. */
    algorithm?: Algorithm | undefined;
    /**
     * How long an id is blocked after a refusal, in ms > 0: one length, or an array of up to 255 lengths for repeated
     * offences (the last one repeats). Attempts during a block change nothing. Offences are forgotten if, after a
     * block, the longest window passes without a refusal.
     */
    blockFor?: number | readonly number[] | undefined;
    /**
     * Returns the time in ms, with microsecond precision, instead of the store's clock; for tests and simulation. If it
     * throws or returns no finite number, the call fails with `ERR_ROLLGATE_CLOCK`. A step backwards never allows more;
     * therefore such a limiter forgets expired ids only when `maxKeys` is reached.
     */
    clock?: (() => number) | undefined;
    /**
     * Maximum number of ids, an integer >= 1. When it is reached, the id nearest to expiry is evicted, with a warning
     * once (`process.emitWarning`, code `ROLLGATE_EVICTED`). Default 1,000,000. In shared memory the size of the
     * region, which the first limiter sets: at most 200 million, default 50,000. In a remote store it limits the memory
     * of `onError: 'memory'`, of `localRefusals` and of `lease`.
     */
    maxKeys?: number | undefined;
  }

  /** A limiter with one window. */
  interface OneLimitOptions extends Limit, CommonOptions {
    limits?: undefined;
  }

  /** A limiter with several windows: an action is allowed if all windows allow it. */
  interface SeveralLimitsOptions extends OptionalLimit, CommonOptions {
    /** At least one, decided together. Replaces the members of Limit. The largest `minDifference` applies. */
    limits: readonly WindowLimit[];
  }

  /** The region of a limiter in shared memory. */
  interface SharedOptions {
    /** 1 to 200 letters, digits, '.', '_' and '-', not '.' first; at most 183 with `rules` and on Fastify routes. */
    name: string;
    /** As `maxKeys` of the limiter; an integer from 1 to 200 million. */
    maxKeys?: number | undefined;
    /**
     * For how many actions of an id a log without names has room, an integer from 1 to 1,048,575, rounded up to a power
     * of two. The first limiter sets it for all; limits up to it fit later. Default: the largest `maxInInterval`.
     */
    room?: number | undefined;
    /** Absolute path of the file's directory, which should be in memory. Default '/dev/shm'. */
    directory?: string | undefined;
  }

  /** The store of a synchronous limiter. */
  interface SharedStoreOptions {
    /**
     * Counts in shared memory: one exact limiter for every worker thread and process of the same user on this host
     * that uses this name. Linux only. The region exists until it is removed (`unlinkShared`) or the host restarts. The
     * first call attaches; it fails with `ERR_ROLLGATE_SHARED_MISMATCH` if the region has another algorithm, other
     * `countBlocked` or too little room for these limits, and with `ERR_ROLLGATE_SHARED_SYSTEM` if there is too little
     * memory. A sliding-window-log holds at most 1,048,575 actions; if `limit` is a function, 1000, or `room`.
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

  /**
   * Limits for one call, in place of those of the limiter: a number for its only window, or numbers by name of a limit,
   * at least one; windows without a name here keep their own. Integers >= 0; 0 refuses, with the longest window as
   * `timeLeft`. What was counted stays, whatever limits later calls bring. In shared memory, a limit of a log has to fit
   * into the region's `room` (`ERR_ROLLGATE_SHARED_MISMATCH`).
   */
  type CallLimits = number | { readonly [limit: string]: number | undefined };

  /**
   * The calendar of one id, in place of that of the limiter's calendar windows, which it needs. It is fixed for an id
   * while its window lasts, and applies from the next one on. Left out: as in the limits.
   */
  interface CallCalendar {
    /** As in WindowLimit. */
    timeZone?: string | undefined;
    /** As in WindowLimit, for each window of a week, month or year, of which there has to be one. */
    startsOn?: number | string | undefined;
  }

  /** The options of `usage`. */
  interface TermsOptions {
    limits?: CallLimits | undefined;
    calendar?: CallCalendar | undefined;
  }

  /** The options of one attempt. */
  interface AttemptOptions extends TermsOptions {
    /**
     * The number of actions to record, in every window or by name of a limit. Default 1. Above a limit of this call it
     * is refused, with `timeLeft` Infinity.
     */
    cost?: Cost | undefined;
  }

  /** The options of `record`. */
  interface RecordOptions extends Pick<TermsOptions, 'calendar'> {
    /** As in an attempt, but from 1 to 2^31 - 1, or from 0 to that by name of a limit, whatever the limits. Default 1. */
    cost?: Cost | undefined;
  }

  /** The options of one `wait`. A cost above a limit of this call rejects with `ERR_ROLLGATE_COST`. */
  interface WaitOptions extends AttemptOptions {
    /** When it aborts, the promise rejects with its `reason`. */
    signal?: AbortSignal | undefined;
    /** Maximum ms to wait, 0 to below 1e12: rejects then, or once it cannot be met. Default: no deadline. */
    deadline?: number | undefined;
    /** Maximum number of calls that wait for this id, including this one, an integer >= 1. Default: no maximum. */
    maxQueue?: number | undefined;
    /** Level 3 goes first. A call rises one level, up to 3, for every 10 s that it has waited. Default 0. */
    priority?: 0 | 1 | 2 | 3 | undefined;
  }

  /** The result of an attempt or a peek. Durations in whole ms, rounded up. */
  interface Decision {
    readonly allowed: boolean;
    /**
     * 0 if allowed; otherwise at least 1: until the same attempt would be allowed without further attempts. Infinity if
     * the cost is above a limit of this call, or `setLimits` lowered a limit below the cost meanwhile. Under a limit of 0
     * the longest window, to the end of a calendar window, or the first length of `blockFor` if that is longer.
     */
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

  /** One window after an attempt: of an `interval`, or of a `calendar`. */
  type WindowState = WindowNumbers &
    (
      | {
          /** ms, as in the options. */
          readonly interval: number;
          readonly calendar?: undefined;
        }
      | {
          readonly interval?: undefined;
          /** The unit, as in the options. */
          readonly calendar: CalendarUnit;
        }
    );

  /** What is counted in one window. */
  interface WindowNumbers {
    /** The name of the limit, if it has one. */
    readonly name?: string;
    /** The maximum of the limiter, or of this call. */
    readonly maxInInterval: number;
    /**
     * How much of the window is used. Above `maxInInterval` after `settle` at more than was reserved, and where
     * refusals count, except in a log of limits without names.
     */
    readonly used: number;
    /** `maxInInterval` - `used`, at least 0. */
    readonly remaining: number;
    /** ms until `remaining` grows without further attempts; 0 if nothing is used. */
    readonly resetIn: number;
  }

  /** What is counted for an id: the numbers of the window with the least `remaining`. Durations in whole ms. */
  interface Usage extends Pick<WindowNumbers, 'used' | 'remaining' | 'resetIn'> {
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
    /** ms until the next action would be allowed; > 0 also after an allowed action after which none is. */
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
    /** Calls of `record`. */
    recorded: number;
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
    /** With `lease`: leases that are open now, at most one for each id. */
    leases?: number;
    /** With `lease`: permits that Redis granted. */
    leased?: number;
    /** With `lease`: permits that were given back unused. */
    returned?: number;
    /** With `lease`: attempts that were decided without asking Redis. */
    local?: number;
    /** In a key-value store, `conflicts` counts how often another process wrote first or the store was busy. */
    connection: {
      /** Unanswered calls, on Redis of all limiters on the connection. */
      pending: number;
      /** Whether there is a connection, null if your client does not report it. */
      isUp?: boolean | null;
      /** Native client: how often it has connected. */
      connections?: number;
      [fact: string]: unknown;
    };
  }

  /** The message of the diagnostics channel `rollgate:decision`, for each attempt and `record`: docs/observability.md. */
  interface DecisionMessage {
    /** 'record' for what `record` counted, which is `allowed`; undefined for an attempt. */
    kind?: 'record' | undefined;
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

  /** The codes of rollgate's errors, each of the class Error unless another is named: see docs/errors.md. */
  type ErrorCode =
    | 'ERR_ROLLGATE_OPTION' // TypeError or RangeError: an option is invalid, missing or unknown
    | 'ERR_ROLLGATE_ID' // TypeError: the id is invalid
    | 'ERR_ROLLGATE_CALLBACK' // TypeError: the callback is not a function
    | 'ERR_ROLLGATE_COST' // TypeError or RangeError: not a cost of this limiter, or `cost` returned none
    | 'ERR_ROLLGATE_DECISION' // TypeError: the argument of `settle` or `refund` is not a Decision of this limiter
    | 'ERR_ROLLGATE_CLOCK' // the clock threw (see `cause`) or returned no finite number; or it is far from the store's
    | 'ERR_ROLLGATE_CLOSED' // the limiter is closed
    | 'ERR_ROLLGATE_MEMORY' // there is no memory for the log of an id
    | 'ERR_ROLLGATE_WAIT_DEADLINE' // `wait` was not allowed within its deadline
    | 'ERR_ROLLGATE_WAIT_QUEUE' // `maxQueue` calls wait for the id already
    | 'ERR_ROLLGATE_LIMIT' // TypeError or RangeError: not limits for a call of this limiter, or `limit` returned none
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
