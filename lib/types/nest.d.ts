// The types of rollgate/nest, with meaning, units, defaults and errors.

import RateLimiter = require('./index');

/**
 * A storage for @nestjs/throttler 6: `ThrottlerModule.forRoot({ throttlers, storage })`. A request passes if fewer than
 * `limit` requests passed in the `ttl` before it. Refused requests do not count, unless `countBlocked` is true. One
 * storage serves all throttlers and routes of a module.
 */
export class RollgateThrottlerStorage {
  /** @throws TypeError or RangeError `ERR_ROLLGATE_OPTION`: an option is wrong, or conflicts with another */
  constructor(options?: RollgateThrottlerStorageOptions);

  /**
   * Called by the guard of @nestjs/throttler: counts a request, and says whether it is refused. Rejects with
   * `ERR_ROLLGATE_OPTION` (a number is out of range), `ERR_ROLLGATE_STORE` (more than 1000 pairs of `ttl` and
   * `blockDuration`), and the errors of `attempt` of a limiter.
   *
   * @param ttl length of the window in ms
   * @param limit may differ from call to call; below 1 no request passes; under Infinity nothing is counted
   * @param blockDuration how long a key is refused after a refusal, in ms; 0: only as long as the window is full
   * @param throttlerName throttlers of different names share no counts
   */
  increment(
    key: string,
    ttl: number,
    limit: number,
    blockDuration: number,
    throttlerName: string,
  ): Promise<RollgateThrottlerStorageRecord>;

  /** Called by Nest when the application closes: closes the limiters. */
  onApplicationShutdown(): Promise<void>;
}

/** Options of a limiter; `ttl`, `limit` and `blockDuration` are those of the throttlers. */
export interface RollgateThrottlerStorageOptions
  extends Omit<RateLimiter.CommonOptions, 'blockFor'>,
    Omit<RateLimiter.AnyStoreOptions, 'lease'> {}

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
