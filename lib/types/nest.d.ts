// The types of rollgate/nest, with meaning, units, defaults and errors.

import RateLimiter = require('./index');

/**
 * A storage for @nestjs/throttler 6 that counts in rolling windows:
 *
 * ```ts
 * ThrottlerModule.forRoot({
 *   throttlers: [{ ttl: 60_000, limit: 100, blockDuration: 0 }],
 *   storage: new RollgateThrottlerStorage(),
 * });
 * ```
 *
 * A request passes if fewer than `limit` requests passed in the `ttl` before it. Refused requests do not count,
 * unless `countBlocked` is true. One storage serves all throttlers and routes of a module.
 */
export class RollgateThrottlerStorage {
  /** @throws TypeError or RangeError `ERR_ROLLGATE_OPTION`: an option is wrong, or conflicts with another */
  constructor(options?: RollgateThrottlerStorageOptions);

  /**
   * Called by the guard of @nestjs/throttler: counts a request, and says whether it is refused.
   *
   * @param key of the client and the route
   * @param ttl length of the window in ms
   * @param limit requests allowed in the window, which may differ from call to call; below 1, none is; under
   *   Infinity, nothing is counted
   * @param blockDuration how long a key is refused after a refusal, in ms; 0: only as long as the window is full
   * @param throttlerName throttlers of different names share no counts
   *
   * The promise rejects with `ERR_ROLLGATE_OPTION` if a number is out of range, with `ERR_ROLLGATE_STORE` if there
   * are more than 1000 pairs of `ttl` and `blockDuration`, and with the errors of `attempt` of a limiter.
   */
  increment(
    key: string,
    ttl: number,
    limit: number,
    blockDuration: number,
    throttlerName: string,
  ): Promise<RollgateThrottlerStorageRecord>;

  /** Called by Nest when the application closes. Closes the storage's limiters. */
  onApplicationShutdown(): Promise<void>;
}

/** Options of a limiter; `ttl`, `limit` and `blockDuration` are those of the throttlers. */
export interface RollgateThrottlerStorageOptions
  extends Omit<RateLimiter.CommonOptions, 'blockFor' | 'algorithm'>,
    RateLimiter.AnyStoreOptions {
  /** How requests are counted. Default 'sliding-window-log'. */
  algorithm?: Exclude<RateLimiter.Algorithm, 'gcra'> | undefined;
}

/** The result type of @nestjs/throttler. Times are in seconds. */
export interface RollgateThrottlerStorageRecord {
  /** Requests in the window, including this one; if refused, the limit plus one. */
  totalHits: number;
  /** Time until more is available. */
  timeToExpire: number;
  isBlocked: boolean;
  /** Time until a request would pass; 0 if this one did. */
  timeToBlockExpire: number;
}
