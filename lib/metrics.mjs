// The metrics, for import.
import metrics from './metrics.js';

export const { registerMetrics, topBlocked } = metrics;
