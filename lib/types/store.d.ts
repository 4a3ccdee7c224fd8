// The types of rollgate/store, with meaning, units, defaults and errors.

import RateLimiter = require('./index');

/**
 * A store for express-rate-limit 7 and 8: `rateLimit({ windowMs: 60_000, limit: 100, store: new RollgateStore() })`. A
 * request passes if fewer than `limit` requests came in the `windowMs` before it. Refused requests do not count,
 * unless `countBlocked` is true. Each middleware needs its own store.
 */
declare class RollgateStore {
  /** @throws TypeError or RangeError `ERR_ROLLGATE_OPTION`: an option is wrong, or conflicts with another */
  constructor(options?: RollgateStore.RollgateStoreOptions);

  /** True in memory: no other store can share the counts. */
  localKeys: boolean;

  /** Identifies shared counts: the namespace, the region of shared memory, or a name for your own limiter. */
  prefix?: string;

  /**
   * Called by express-rate-limit, which logs errors; every later use then rejects with `ERR_ROLLGATE_STORE`.
   *
   * @throws TypeError or RangeError `ERR_ROLLGATE_OPTION`: `windowMs` is invalid, or `limit` is not a number and
   *   `maxInInterval` is missing
   * @throws Error `ERR_ROLLGATE_STORE`: another middleware with other limits uses this store; it fails as well
   */
  init(options: RollgateStore.RollgateStoreInit): void;

  /**
   * Counts a hit. `totalHits` is the number of hits in the window, including this one, up to the limit; if refused,
   * the limit plus one. `resetTime` is when more is available; if refused, when a hit would pass.
   */
  increment(key: string): Promise<RollgateStore.RollgateStoreHits>;

  /** Refunds the key's newest hit, once; only of the newest 5000 hits or a million characters of keys. */
  decrement(key: string): Promise<void>;

  /** The count of a key, undefined if there is none. Counts nothing. */
  get(key: string): Promise<RollgateStore.RollgateStoreHits | undefined>;

  /** Forgets the count of a key. */
  resetKey(key: string): Promise<void>;

  /** Forgets all counts of this store, and of those that share them. */
  resetAll(): Promise<void>;

  /** Closes the store's limiter. Your own limiter stays open. */
  shutdown(): Promise<void>;
}

// Inside the namespace the name of the export would mean the export itself.
import Self = RollgateStore;

declare namespace RollgateStore {
  /** The same class, for a named import. */
  export import RollgateStore = Self;

  /** Options of a limiter; `windowMs` and `limit` are those of express-rate-limit. */
  interface RollgateStoreLimits
    extends Omit<RateLimiter.OptionalLimit, 'interval'>,
      RateLimiter.CommonOptions,
      RateLimiter.AnyStoreOptions {
    /** If `limit` is a function: the largest value that it returns. */
    maxInInterval?: number | undefined;
    /** Several windows, instead of `windowMs`. Requests above `limit` are refused as well. */
    limits?: readonly RateLimiter.WindowLimit[] | undefined;
    limiter?: undefined;
  }

  /** An existing limiter. A hit is refused if the limiter refuses it, or if it is above the `limit`. */
  interface RollgateStoreExisting
    extends RateLimiter.NotGiven<Exclude<keyof RollgateStoreLimits, 'limiter'>> {
    limiter: RateLimiter | RateLimiter.RemoteRateLimiter;
  }

  type RollgateStoreOptions = RollgateStoreLimits | RollgateStoreExisting;

  /** The options of express-rate-limit that the store reads. */
  interface RollgateStoreInit {
    windowMs: number;
    limit?: unknown;
    skipFailedRequests?: boolean | undefined;
  }

  /** The result type of express-rate-limit. */
  interface RollgateStoreHits {
    totalHits: number;
    resetTime: Date;
  }
}

export = RollgateStore;
