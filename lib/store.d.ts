// The types of rollgate/store. Beside each: what it means, its unit, its default, what goes wrong.

import RateLimiter = require('./index');

/**
 * A store for express-rate-limit 7 and 8 that counts in rolling windows:
 *
 * ```ts
 * rateLimit({ windowMs: 60_000, limit: 100, store: new RollgateStore() });
 * ```
 *
 * A request passes exactly if fewer than `limit` came in the `windowMs` before it. Refused ones count, as
 * in express-rate-limit, unless `countBlocked` is false; with `skipFailedRequests` they do not. Each
 * middleware takes a store of its own.
 */
declare class RollgateStore {
  /**
   * @throws TypeError `ERR_ROLLGATE_OPTION`: an option is unknown, of the wrong type, or not allowed
   *   beside another
   * @throws RangeError `ERR_ROLLGATE_OPTION`: an option is out of range
   */
  constructor(options?: RollgateStore.RollgateStoreOptions);

  /** True in memory: no other store can count in the same place. */
  localKeys: boolean;

  /**
   * Where it counts, if that is not this store alone: the namespace, the region of shared memory, or a
   * name for a limiter of yours.
   */
  prefix?: string;

  /**
   * Called by express-rate-limit with its options. It logs what this throws; from then on every use of the
   * store rejects with `ERR_ROLLGATE_STORE`.
   *
   * @throws TypeError or RangeError `ERR_ROLLGATE_OPTION`: `windowMs` is no length of a window, or `limit`
   *   is no number and `maxInInterval` is missing
   * @throws Error `ERR_ROLLGATE_STORE`: it has another middleware with other limits, which fails from now
   *   on, too
   */
  init(options: RollgateStore.RollgateStoreInit): void;

  /**
   * Counts a hit. `totalHits` are those in the window, this one included, up to the limit; one more than
   * the limit where it is refused. `resetTime` is when quota grows: if refused, when a hit would pass.
   */
  increment(key: string): Promise<RollgateStore.RollgateStoreHits>;

  /**
   * Takes back the newest hit of the key that was not taken back yet, if it is among the newest 5000 of
   * the store.
   */
  decrement(key: string): Promise<void>;

  /** What is counted for a key; undefined if nothing is. Counts nothing. */
  get(key: string): Promise<RollgateStore.RollgateStoreHits | undefined>;

  /** Forgets what was counted for a key. */
  resetKey(key: string): Promise<void>;

  /** Forgets all that was counted where this store counts. */
  resetAll(): Promise<void>;

  /** Closes the store's limiter; one of yours stays open. */
  shutdown(): Promise<void>;
}

// Inside the namespace the name of the export would mean the export itself.
import Self = RollgateStore;

declare namespace RollgateStore {
  /** The same class, so that it can be imported by its name. */
  export import RollgateStore = Self;

  /** Options of a limiter; `windowMs` and `limit` are those of express-rate-limit. */
  interface RollgateStoreLimits
    extends Omit<RateLimiter.OptionalLimit, 'interval'>,
      RateLimiter.CommonOptions,
      RateLimiter.RedisStoreOptions,
      RateLimiter.SharedStoreOptions {
    /** The largest value that `limit` gives, where that is a function; not used where it is a number. */
    maxInInterval?: number | undefined;
    /** Several windows, in place of `windowMs` and `limit`, which refuses what is above it all the same. */
    limits?: readonly RateLimiter.Limit[] | undefined;
    /** Counts on Redis; give a `namespace`, too. */
    redis?: RateLimiter.RedisOption | undefined;
    /** The same as `redis`. */
    client?: RateLimiter.RedisOption | undefined;
    /** Counts in a key-value store; a `namespace` is needed, too. */
    kv?: RateLimiter.DenoKv | RateLimiter.PlainKv | undefined;
    /** ms within which a key-value store has to answer. Default 500. */
    commandTimeout?: number | undefined;
    limiter?: undefined;
  }

  /** A limiter that exists. What it refuses is refused, and what is above the `limit`, too. */
  interface RollgateStoreExisting
    extends RateLimiter.NotGiven<Exclude<keyof RollgateStoreLimits, 'limiter'>> {
    limiter: RateLimiter | RateLimiter.RemoteRateLimiter;
  }

  type RollgateStoreOptions = RollgateStoreLimits | RollgateStoreExisting;

  /** What the store reads of the options of express-rate-limit. */
  interface RollgateStoreInit {
    windowMs: number;
    limit?: unknown;
    skipFailedRequests?: boolean | undefined;
  }

  /** In the words of express-rate-limit. */
  interface RollgateStoreHits {
    totalHits: number;
    resetTime: Date;
  }
}

export = RollgateStore;
