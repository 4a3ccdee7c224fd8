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
  removeSingleMetric(name: string): void;
}

export interface Metrics {
  /** @throws TypeError `ERR_ROLLGATE_OPTION`: the name is taken, or the limiter has another */
  add(name: string, limiter: MeteredLimiter): void;
  /** Lets a limiter go; whether there was one of this name. A limiter that was closed has no metrics. */
  remove(name: string): boolean;
  /** Lets all limiters go and takes the metrics out of the registry. */
  unregister(): void;
}
