// Metrics for prom-client: what limiters have decided, how Redis answers, what they hold. And who is refused most.
'use strict';

const { REDIS } = require('./channels');
const { optionTypeError, typeError } = require('./errors');
const { DEFINITIONS } = require('./metrics/definitions');
const { readLimiter, readMetricsOptions } = require('./metrics/options');
const { topBlocked } = require('./metrics/top-blocked');

/** Undefined for a limiter that was closed. */
function statsOf(limiter) {
  try {
    return limiter.stats();
  } catch (error) {
    if (error.code === 'ERR_ROLLGATE_CLOSED') return undefined;
    throw error;
  }
}

/**
 * Registers the metrics of limiters, by name. What limiters count anyway is read when the metrics are
 * collected; only how long calls to Redis take is told as it happens. See metrics.d.ts.
 */
function registerMetrics(options) {
  const { client, limiters, register, prefix, buckets } = readMetricsOptions(options);
  const named = new Map();
  const nameOf = new Map(); // of the same limiters
  const registered = [];

  function make(kind, name, configuration) {
    const metric = new client[kind]({
      name: `${prefix}${name}`,
      registers: [register],
      ...configuration,
    });
    registered.push(`${prefix}${name}`);
    return metric;
  }

  function define({ name, help, kind, labels = [], appliesTo, samplesOf }) {
    make(kind, name, {
      help,
      labelNames: ['limiter', ...labels],
      collect() {
        this.reset();
        for (const [limiterName, limiter] of named) {
          const stats = statsOf(limiter);
          if (stats === undefined || !appliesTo(stats)) continue;
          for (const [labelValues, value] of samplesOf(stats)) {
            this.inc({ limiter: limiterName, ...labelValues }, value);
          }
        }
      },
    });
  }

  let duration;

  function observeCall({ type, limiter: caller, durationMs, error }) {
    const limiter = type === 'call' ? nameOf.get(caller) : undefined;
    if (limiter === undefined) return;
    duration.observe({ limiter, outcome: error === null ? 'ok' : 'error' }, durationMs / 1000);
  }

  const metrics = {
    add(name, limiter) {
      if (typeof name !== 'string') throw optionTypeError('name', 'a string', name);
      readLimiter('limiter', limiter);
      const other = nameOf.get(limiter);
      if (named.has(name) || other !== undefined) {
        const what = other === undefined ? 'another limiter' : `this limiter as '${other}'`;
        throw typeError('ERR_ROLLGATE_OPTION', `'${name}': there is ${what} already`);
      }
      named.set(name, limiter);
      nameOf.set(limiter, name);
    },

    remove(name) {
      if (!named.has(name)) return false;
      nameOf.delete(named.get(name));
      named.delete(name);
      for (const outcome of ['ok', 'error']) duration.remove({ limiter: name, outcome });
      return true;
    },

    unregister() {
      REDIS.channel.unsubscribe(observeCall);
      named.clear();
      nameOf.clear();
      for (const name of registered) register.removeSingleMetric(name);
      registered.length = 0;
    },
  };

  try {
    for (const definition of DEFINITIONS) define(definition);
    duration = make('Histogram', 'redis_call_duration_seconds', {
      help: 'How long calls to Redis take, by outcome',
      labelNames: ['limiter', 'outcome'],
      buckets,
    });
    for (const [name, limiter] of limiters) metrics.add(name, limiter);
  } catch (error) {
    metrics.unregister();
    throw error;
  }
  REDIS.channel.subscribe(observeCall);
  return metrics;
}

module.exports = { registerMetrics, topBlocked };
