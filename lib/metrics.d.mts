// The types of rollgate/metrics for import: the same name.

export type {
  BlockedCount,
  Metrics,
  MetricsOptions,
  MetricsRegistry,
  TopBlocked,
  TopBlockedOptions,
} from './metrics.js';
export { registerMetrics, topBlocked } from './metrics.js';
