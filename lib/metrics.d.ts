// The types of rollgate/metrics. Beside each: what it means, its unit, its default, what goes wrong.

import RateLimiter = require('./index');

/** What metrics can be read from. */
type MeteredLimiter = RateLimiter | RateLimiter.RemoteRateLimiter;

/**
 * Registers metrics with prom-client, which you install: docs/observability.md lists them. What limiters
 * count anyway is read when the metrics are collected. From now on calls to Redis are timed.
 *
 * ```ts
 * const metrics = registerMetrics({ limiters: { api: limiter } });
 * ```
 *
 * @throws TypeError or RangeError `ERR_ROLLGATE_OPTION`: an option is wrong, or a limiter is named twice
 * @throws Error `ERR_ROLLGATE_UNSUPPORTED`: there is no prom-client
 * @throws Error of prom-client: the registry has a metric of one of the names already
 */
export function registerMetrics(options?: MetricsOptions): Metrics;

export interface MetricsOptions {
  /** By the names that they have in the label `limiter`. They are kept until they are removed. */
  limiters?: Readonly<Record<string, MeteredLimiter>> | undefined;
  /** A registry of prom-client. Default its own, `register`. */
  register?: MetricsRegistry | undefined;
  /** The beginning of every metric's name. Default 'rollgate_'. */
  prefix?: string | undefined;
  /** Upper bounds for the time of calls to Redis, in seconds. Default 0.0001 to 1. */
  buckets?: readonly number[] | undefined;
}

/** What is asked of a registry; those of prom-client have it. */
export interface MetricsRegistry {
  registerMetric(metric: never): void;
  getSingleMetric(name: string): unknown;
  removeSingleMetric(name: string): void;
}

export interface Metrics {
  /**
   * @throws TypeError `ERR_ROLLGATE_OPTION`: the name is taken, or the limiter has another
   * @throws Error `ERR_ROLLGATE_CLOSED`: these metrics are unregistered
   */
  add(name: string, limiter: MeteredLimiter): void;
  /** Lets a limiter go; whether there was one of this name. A limiter that was closed has no metrics, nor has one whose shared memory cannot be had. */
  remove(name: string): boolean;
  /** Lets all limiters go and takes the metrics out of the registry. */
  unregister(): void;
}

/**
 * Counts from now on who is refused, by limiter and id, as told on the channel `rollgate:decision`: while
 * it is open, each call in memory costs some hundred ns more. It needs no prom-client. Ids may be personal
 * data: addresses, accounts.
 *
 * At most `capacity` ids have a counter (Space-Saving): a new one takes over the counter with the least
 * refusals, and may so be counted too high, by at most its `overcount`. Whoever was refused more than
 * `total / capacity` times is there.
 *
 * ```ts
 * const blocked = topBlocked({ limiters: { api: limiter } });
 * setInterval(() => console.log(blocked.top(10)), 60_000).unref();
 * ```
 *
 * @throws TypeError or RangeError `ERR_ROLLGATE_OPTION`: an option is wrong, or a limiter is named twice
 */
export function topBlocked<Name extends string>(
  options: TopBlockedOptions & { limiters: Readonly<Record<Name, MeteredLimiter>> },
): TopBlocked<Name>;
export function topBlocked(
  options?: TopBlockedOptions & { limiters?: undefined },
): TopBlocked<MeteredLimiter>;

export interface TopBlockedOptions {
  /** Only these, by the names to tell of them. Default all of this thread, whoever made them. */
  limiters?: Readonly<Record<string, MeteredLimiter>> | undefined;
  /** Most ids that are counted at once: 1 to 1,000,000. Default 1000. */
  capacity?: number | undefined;
}

export interface TopBlocked<Limiter extends string | MeteredLimiter = string | MeteredLimiter> {
  /** Refusals since it was made or reset, those of ids that have no counter any more included. */
  readonly total: number;
  /**
   * The ids that were refused most, in this order; default 10. Limiters that were freed are left out.
   *
   * @throws TypeError or RangeError `ERR_ROLLGATE_OPTION`: `n` is no integer >= 1
   */
  top(n?: number): BlockedCount<Limiter>[];
  /** Begins anew. */
  reset(): void;
  /** Counts no more, and forgets. */
  close(): void;
}

export interface BlockedCount<Limiter = string | MeteredLimiter> {
  /** Its name; without `limiters` the limiter itself. */
  limiter: Limiter;
  /** As text; of more than 240 characters the first 200, '...' and a hash. */
  id: string;
  /** Refusals: never less than there were. */
  blocked: number;
  /** Of them at most so many were not this id's. 0: the count is exact. */
  overcount: number;
}
