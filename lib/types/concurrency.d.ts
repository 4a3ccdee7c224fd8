// The types of concurrency limiters: of what runs at once.

import './limiter';

declare module './index' {
  interface ConcurrencyLimiterOptions {
    /** Slots of an id: an integer from 1 to 65,535. */
    max: number;
    /** After how many ms a slot that was not released is lost. Default: never. */
    maxAge?: number | undefined;
    /** As of `RateLimiter`: for `maxAge` and `stats().oldest`. */
    clock?: (() => number) | undefined;
    /**
     * How many ids may be held at once, an integer >= 1, default 1,000,000; in shared memory at most 200 million, default
     * 50,000 or less. Further ones are refused.
     */
    maxKeys?: number | undefined;
    /**
     * All limiters of this name, in any thread or process of this user on the host, share the slots: see
     * docs/concurrency.md. `room`: how many holders an id may have, default `max` as a power of two from 16 to 128.
     */
    shared?: string | SharedOptions | undefined;
    /** As of `RateLimiter`, on Redis: slots of all limiters with this namespace count together. No effect in memory. */
    namespace?: string | undefined;
    /**
     * While Redis does not answer, 'throw' (default) fails the call, 'allow' gives slots that count nowhere, and 'block'
     * refuses. No effect in memory.
     */
    onError?: 'throw' | 'allow' | 'block' | undefined;
  }

  /** Options of slots on Redis. */
  interface RedisSlotOptions {
    /**
     * In ms, an integer >= 1,000, default 10,000. This process renews its slots every third of it. A slot that was not
     * confirmed for 7/8 of it is lost; the slots of a process that has died are free after it and a second.
     */
    ttl?: number | undefined;
  }

  /** Where Redis is. */
  type SlotsOnRedis =
    | { redis: RedisOption; connection?: undefined }
    | { connection: RedisConnection; redis?: undefined };

  /** The options of a concurrency limiter on Redis. `maxKeys` has no effect there. */
  type RedisConcurrencyLimiterOptions = ConcurrencyLimiterOptions & RedisSlotOptions & SlotsOnRedis;

  /** The options of a concurrency limiter on Redis, or in memory if `redis` is undefined. */
  interface PerhapsRedisConcurrencyLimiterOptions
    extends ConcurrencyLimiterOptions,
      RedisSlotOptions {
    redis?: RedisOption | undefined;
    connection?: RedisConnection | undefined;
  }

  interface AcquireOptions {
    /** How many slots, an integer from 1 to the limiter's `max`, default 1. */
    cost?: number | undefined;
    /** The maximum for this call, an integer from 0 to 65,535, default that of the limiter. 0 refuses. */
    max?: number | undefined;
  }

  /** As `WaitOptions`. A priority rises as there, and a costly call at the head holds up those behind it. */
  type SlotWaitOptions = AcquireOptions & Omit<WaitOptions, 'cost'>;

  /** How much of an id is held. */
  interface SlotUsage {
    readonly max: number;
    /** Slots that are held of the id. More than `max` after `setMax`, or under the smaller maximum of a call. */
    readonly used: number;
    readonly remaining: number;
  }

  interface SlotRefusal extends SlotUsage {
    readonly allowed: false;
    /** Does nothing, so that `using` takes what `acquire` gave. */
    [Symbol.dispose](): void;
    [Symbol.asyncDispose](): Promise<void>;
  }

  /**
   * What `acquire` gave: to be released when the action has ended, however it ended. Without that it is held until
   * `maxAge`, or until this object is collected, which is warned of (`ROLLGATE_SLOT_LEAKED`) and may take long.
   */
  interface Slot extends SlotUsage {
    readonly allowed: true;
    readonly cost: number;
    /** Gives the slot back. Returns whether it was held until now: false the second time, or after it was lost. */
    release(): boolean;
    /** Aborts if the slot is lost, by `maxAge` or `clear`; never after its release. */
    readonly lost: AbortSignal;
    [Symbol.dispose](): void;
    [Symbol.asyncDispose](): Promise<void>;
  }

  /** A Slot on Redis. Without its release it is held as long as this process renews it. */
  interface RemoteSlot extends Omit<Slot, 'release' | 'lost' | typeof Symbol.dispose> {
    /**
     * Gives the slot back. Resolves to whether it was held until now; never rejects. If Redis does not answer, the slot
     * runs out there.
     */
    release(): Promise<boolean>;
    /**
     * Aborts if the slot is lost: by `maxAge` or `clear`, or because it was not renewed in time; never after its release.
     */
    readonly lost: AbortSignal;
  }

  interface ConcurrencyStats {
    /** Ids that are held; in shared memory those that have a place. */
    readonly keys: number;
    /** Slots that are held of all ids; in shared memory by this limiter. */
    readonly held: number;
    /** For how many ms the oldest slot has been held; 0 if none has for longer than a turn of the event loop. */
    readonly oldest: number;
    readonly allowed: number;
    readonly blocked: number;
    /** Calls that wait. */
    readonly waiting: number;
    /** Slots that were collected before their release. */
    readonly leaked: number;
    /** Calls that failed because of the clock, and releases in a damaged region. */
    readonly errors: number;
    readonly bytes: number;
  }

  /** Counters of this process. `held` and `oldest` are of the slots that it holds. */
  interface RemoteConcurrencyStats extends Omit<ConcurrencyStats, 'keys' | 'bytes'> {
    /** Unknown: counting would need a scan of the database. */
    readonly keys: null;
    /** Unknown. */
    readonly bytes: null;
    /** Calls that `onError` decided. */
    readonly fallbacks: number;
    readonly connection: RemoteStats['connection'];
  }

  /** The message of the diagnostics channel `rollgate:slot`. */
  type SlotMessage = {
    limiter: ConcurrencyLimiter | RemoteConcurrencyLimiter;
    id: Id;
    cost: number;
  } & (({ type: 'acquired' | 'refused' } & SlotUsage) | { type: 'released' | 'lost' | 'leaked' });

  /** At most `max` holders of an id at once, in the memory of this process, or shared by those of the host. */
  interface ConcurrencyLimiter {
    /**
     * Takes a slot of the id, if one is free.
     *
     * @throws TypeError `ERR_ROLLGATE_ID`: the id is invalid
     * @throws TypeError or RangeError `ERR_ROLLGATE_COST`: the cost is no integer from 1 to the limiter's `max`
     * @throws TypeError or RangeError `ERR_ROLLGATE_OPTION`: another option is wrong
     * @throws Error `ERR_ROLLGATE_CLOCK`, `ERR_ROLLGATE_CLOSED`, `ERR_ROLLGATE_MEMORY`, in shared memory
     *   `ERR_ROLLGATE_SHARED_...`
     */
    acquire(id?: Id, options?: AcquireOptions): Slot | SlotRefusal;

    /**
     * Waits for a slot: first come, first served within a priority.
     *
     * Rejects as `limiter.wait` does, and with RangeError `ERR_ROLLGATE_COST` if the cost is above `max` of the call.
     */
    wait(id?: Id, options?: SlotWaitOptions): Promise<Slot>;

    /**
     * Waits for a slot, calls `action`, releases the slot however that ends, and gives what it gave. The action goes on
     * when its slot is lost: `slot.lost` tells it.
     *
     * @throws (rejects) TypeError `ERR_ROLLGATE_CALLBACK`: the action is no function
     */
    run<Result>(id: Id, action: (slot: Slot) => Result): Promise<Awaited<Result>>;
    run<Result>(
      id: Id,
      options: SlotWaitOptions | undefined,
      action: (slot: Slot) => Result,
    ): Promise<Awaited<Result>>;

    usage(id?: Id): SlotUsage;

    /** Replaces `max`. What is held stays held. Waiting calls that cost more reject with `ERR_ROLLGATE_COST`. */
    setMax(max: number): void;

    /** Forgets what is held of the id: its slots are lost. */
    clear(id?: Id): Promise<void>;
    clearAll(): Promise<void>;

    stats(): ConcurrencyStats;

    /** Releases all slots without aborting `lost`; waiting calls and later ones fail with `ERR_ROLLGATE_CLOSED`. */
    close(): Promise<void>;
  }

  /**
   * At most `max` holders of an id at once, in all processes with the same `namespace`. All methods reject, where those
   * of ConcurrencyLimiter throw, and with `ERR_ROLLGATE_REDIS_...`, which `onError` prevents in `acquire`, `wait`, `run`
   * and `usage`.
   */
  interface RemoteConcurrencyLimiter extends Pick<ConcurrencyLimiter, 'setMax' | 'clearAll'> {
    acquire(id?: Id, options?: AcquireOptions): Promise<RemoteSlot | SlotRefusal>;

    /** First come, first served in this process. A slot that is released in another one is found within 50 ms. */
    wait(id?: Id, options?: SlotWaitOptions): Promise<RemoteSlot>;

    run<Result>(id: Id, action: (slot: RemoteSlot) => Result): Promise<Awaited<Result>>;
    run<Result>(
      id: Id,
      options: SlotWaitOptions | undefined,
      action: (slot: RemoteSlot) => Result,
    ): Promise<Awaited<Result>>;

    usage(id?: Id): Promise<SlotUsage>;

    /** Its slots in other processes are lost at their next renewal. Until then, more than `max` may run. */
    clear(id?: Id): Promise<void>;

    stats(): RemoteConcurrencyStats;

    /**
     * Gives back what this limiter holds, without aborting `lost`, and closes the native client with its last limiter.
     * Waiting calls and later ones fail with `ERR_ROLLGATE_CLOSED`.
     */
    close(): Promise<void>;
  }

  /** An entry of `attemptAll`. */
  interface SlotEntry<Limiter = ConcurrencyLimiter> {
    limiter: Limiter;
    id?: Id;
    cost?: number | undefined;
    /** As of `acquire`. */
    max?: number | undefined;
  }

  /** The result of `attemptAll` for these entries: with slots, each decision has the type for its entry. */
  type AttemptAllResultOf<Entries extends readonly unknown[]> = [
    Extract<Entries[number], AnySlotEntry>,
  ] extends [never]
    ? AttemptAllResult
    : MixedAttemptAllResult<Entries>;

  type AnySlotEntry = SlotEntry<ConcurrencyLimiter | RemoteConcurrencyLimiter>;

  /** What an entry of `attemptAll` gives where it is allowed. */
  type GrantOf<Entry> = Entry extends SlotEntry
    ? Slot
    : Entry extends SlotEntry<RemoteConcurrencyLimiter>
      ? RemoteSlot
      : Entry extends AnySlotEntry
        ? Slot | RemoteSlot
        : Decision;

  type MixedAttemptAllResult<Entries extends readonly unknown[]> =
    | {
        readonly allowed: true;
        readonly decisions: {
          readonly [I in keyof Entries]: GrantOf<Entries[I]>;
        };
        readonly refusedBy: null;
      }
    | {
        readonly allowed: false;
        readonly decisions: {
          readonly [I in keyof Entries]:
            | GrantOf<Entries[I]>
            | (Entries[I] extends AnySlotEntry ? SlotRefusal : never)
            | null;
        };
        readonly refusedBy: number;
      };

  interface ConcurrencyLimiterConstructor {
    /** @throws TypeError or RangeError `ERR_ROLLGATE_OPTION`; Error `ERR_ROLLGATE_UNSUPPORTED` for `kv` */
    (options: RedisConcurrencyLimiterOptions): RemoteConcurrencyLimiter;
    (options: ConcurrencyLimiterOptions): ConcurrencyLimiter;
    /** On Redis if `redis` is given, otherwise in memory. `await` works with both. */
    (options: PerhapsRedisConcurrencyLimiterOptions): ConcurrencyLimiter | RemoteConcurrencyLimiter;
    new (options: RedisConcurrencyLimiterOptions): RemoteConcurrencyLimiter;
    new (options: ConcurrencyLimiterOptions): ConcurrencyLimiter;
    new (
      options: PerhapsRedisConcurrencyLimiterOptions,
    ): ConcurrencyLimiter | RemoteConcurrencyLimiter;
    readonly prototype: ConcurrencyLimiter;
  }

  /**
   * How many requests of a key run at once: an integer from 0 to 65,535 (0 refuses all) or Infinity (all pass,
   * uncounted); or a function that is called for each request, and may be async.
   */
  type ConcurrencyMax<Request = LimitedRequest, Response = LimitedResponse> =
    | number
    | ((req: Request, res: Response) => number | Promise<number>);

  /** Options of `concurrencyLimit`. Those of `rateLimit` mean the same here. */
  interface ConcurrencyLimitOptions<Request = LimitedRequest, Response = LimitedResponse>
    extends Pick<
        RateLimitResponseOptions<Request, Response>,
        | 'identifier'
        | 'ipv6Subnet'
        | 'keyGenerator'
        | 'logger'
        | 'message'
        | 'problemDetails'
        | 'skip'
        | 'statusCode'
        | 'trustProxy'
        | 'validate'
      >,
      Omit<PerhapsRedisConcurrencyLimiterOptions, 'max'> {
    /** Required without `limiter`, whose maximum counts if this is left out. */
    max?: ConcurrencyMax<Request, Response> | undefined;
    /** How many ms a request waits in line before it is refused, 0 to below 1e12. Default 0. */
    maxWait?: number | undefined;
    /** How many requests of a key wait in line at most, an integer >= 1. Default 100. */
    maxQueue?: number | undefined;
    /** Counts in this limiter, which several middlewares may share, instead of one of its own. */
    limiter?: ConcurrencyLimiter | RemoteConcurrencyLimiter | undefined;
    /** Answers a refused request, instead of `message` and `statusCode`. May be async. */
    handler?: ((req: Request, res: Response, next: Next) => unknown) | undefined;
    /** Sends RateLimit-Policy, which only these drafts have for concurrency. Default false: no header. */
    standardHeaders?: false | 'draft-8' | 'draft-10' | undefined;
    /** The request's property for the Slot, or the SlotRefusal. Default 'concurrency'. */
    requestPropertyName?: string | undefined;
  }

  /** Merged into Express's Request; undefined if no middleware asked for a slot. */
  interface PerhapsConcurrency {
    concurrency?: Slot | RemoteSlot | SlotRefusal | undefined;
  }

  interface ConcurrencyLimitMiddleware<
    Request = LimitedRequest,
    Response = LimitedResponse,
    Limiter = ConcurrencyLimiter,
  > {
    (req: Request, res: Response, next: Next): void | Promise<void>;
    readonly limiter: Limiter;
  }

  /** Options with which slots are on Redis. */
  type WithRemoteSlots = SlotsOnRedis | { limiter: RemoteConcurrencyLimiter };
}
