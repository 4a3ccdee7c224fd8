// The types of rollgate/metrics, with meaning, units, defaults and errors.

import RateLimiter = require('./index');

/** A limiter with metrics. */
type MeteredLimiter = RateLimiter | RateLimiter.RemoteRateLimiter;

/**
 * Registers metrics with prom-client, which you install: `registerMetrics({ limiters: { api: limiter } })`.
 * docs/observability.md lists them. Counters are read when collected; calls to Redis are timed from now on.
 *
 * @throws TypeError or RangeError `ERR_ROLLGATE_OPTION`: an option is invalid, or a limiter has two names
 * @throws Error `ERR_ROLLGATE_UNSUPPORTED`: prom-client is not installed
 * @throws Error of prom-client: the registry already has a metric with one of the names
 */
export function registerMetrics(options?: MetricsOptions): Metrics;

export interface MetricsOptions {
  /** Limiters by their value of the label `limiter`. They are referenced until they are removed. */
  limiters?: Readonly<Record<string, MeteredLimiter>> | undefined;
  /** A registry of prom-client. Default: `register` of prom-client. */
  register?: MetricsRegistry | undefined;
  /** The prefix of every metric's name. Default 'rollgate_'. */
  prefix?: string | undefined;
  /** Upper bounds for the time of calls to Redis, in seconds. Default 0.0001 to 1. */
  buckets?: readonly number[] | undefined;
}

/** The members that a registry needs; those of prom-client have them. */
export interface MetricsRegistry {
  registerMetric(metric: never): void;
  getSingleMetric(name: string): unknown;
  removeSingleMetric(name: string): void;
}

export interface Metrics {
  /**
   * @throws TypeError `ERR_ROLLGATE_OPTION`: the name is in use, or the limiter has another name
   * @throws Error `ERR_ROLLGATE_CLOSED`: the metrics were unregistered
   */
  add(name: string, limiter: MeteredLimiter): void;
  /** Removes a limiter; returns whether the name was in use. Closed or unreachable limiters have no metrics. */
  remove(name: string): boolean;
  /** Removes all limiters, and the metrics from the registry. */
  unregister(): void;
}

/**
 * Counts refusals by limiter and id from now on, without prom-client: `topBlocked({ limiters: { api } }).top()`. Until
 * `close`, each call in memory costs some hundred ns more. Ids may be personal data, such as addresses.
 *
 * At most `capacity` ids have a counter (the Space-Saving algorithm), among them every id with more than
 * `total / capacity` refusals. A new id takes over the counter with the fewest refusals: see `overcount`.
 *
 * @throws TypeError or RangeError `ERR_ROLLGATE_OPTION`: an option is invalid, or a limiter has two names
 */
export function topBlocked<Name extends string>(
  options: TopBlockedOptions & { limiters: Readonly<Record<Name, MeteredLimiter>> },
): TopBlocked<Name>;
export function topBlocked(
  options?: TopBlockedOptions & { limiters?: undefined },
): TopBlocked<MeteredLimiter>;

export interface TopBlockedOptions {
  /** Only these limiters, by name. Default: all limiters of this thread. */
  limiters?: Readonly<Record<string, MeteredLimiter>> | undefined;
  /** Maximum number of counters, 1 to 1,000,000. Default 1000. */
  capacity?: number | undefined;
}

export interface TopBlocked<Limiter extends string | MeteredLimiter = string | MeteredLimiter> {
  /** Refusals since creation or `reset`, including those of ids without a counter. */
  readonly total: number;
  /**
   * The `n` ids with the most refusals, in descending order; default 10. Freed limiters are left out.
   *
   * @throws TypeError or RangeError `ERR_ROLLGATE_OPTION`: `n` is not an integer >= 1
   */
  top(n?: number): BlockedCount<Limiter>[];
  /** Forgets all counts. */
  reset(): void;
  /** Stops counting and forgets all counts. */
  close(): void;
}

export interface BlockedCount<Limiter = string | MeteredLimiter> {
  /** The limiter's name; without `limiters` the limiter itself. */
  limiter: Limiter;
  /** The id as a string; longer than 240 characters: the first 200, '...' and a hash. */
  id: string;
  /** Refusals; never too low. */
  blocked: number;
  /** The count is too high by at most this; 0: it is exact. */
  overcount: number;
}
