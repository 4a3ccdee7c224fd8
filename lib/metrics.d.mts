// The types of rollgate/metrics for import: the same name.

export type { Metrics, MetricsOptions, MetricsRegistry } from './metrics.js';
export { registerMetrics } from './metrics.js';
