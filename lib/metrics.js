// Metrics for prom-client: what limiters have decided, how Redis answers, what they hold. And who is refused most.
'use strict';

const { REDIS } = require('./channels');
const { failure, optionTypeError, typeError } = require('./errors');
const { DEFINITIONS } = require('./metrics/definitions');
const { readLimiter, readMetricsOptions } = require('./metrics/options');
const { topBlocked } = require('./metrics/top-blocked');

const DURATION = 'redis_call_duration_seconds';

/** Undefined for a limiter that was closed, or whose shared memory cannot be had: others have theirs. */
function statsOf(limiter) {
  try {
    return limiter.stats();
  } catch (error) {
    if (/^ERR_ROLLGATE_(CLOSED$|SHARED_)/.test(error.code)) return undefined;
    throw error;
  }
}

/** Two metrics of one name would be refused by prom-client, in words that know nothing of limiters. */
function refuseTaken(names, register) {
  const taken = names.find((name) => register.getSingleMetric(name) !== undefined);
  if (taken === undefined) return;
  throw typeError(
    'ERR_ROLLGATE_OPTION',
    `there is a metric '${taken}' already: add() limiters to what the first registerMetrics gave, ` +
      "unregister() that, or give another 'prefix' or 'register'",
  );
}

/**
 * Registers the metrics of limiters, by name. What limiters count anyway is read when the metrics are
 * collected; only how long calls to Redis take is told as it happens. See metrics.d.ts.
 */
function registerMetrics(options) {
  const { client, limiters, register, prefix, buckets } = readMetricsOptions(options);
  const named = new Map();
  const nameOf = new Map(); // of the same limiters
  const names = [...DEFINITIONS.map(({ name }) => name), DURATION].map((name) => prefix + name);
  refuseTaken(names, register);
  let isRegistered = true;

  function make(kind, name, configuration) {
    return new client[kind]({ name: prefix + name, registers: [register], ...configuration });
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

  for (const definition of DEFINITIONS) define(definition);
  const duration = make('Histogram', DURATION, {
    help: 'How long calls to Redis take, by outcome',
    labelNames: ['limiter', 'outcome'],
    buckets,
  });

  function observeCall({ type, limiter: caller, durationMs, error }) {
    const limiter = type === 'call' ? nameOf.get(caller) : undefined;
    if (limiter === undefined) return;
    duration.observe({ limiter, outcome: error === null ? 'ok' : 'error' }, durationMs / 1000);
  }

  const metrics = {
    add(name, limiter) {
      if (!isRegistered) throw failure('ERR_ROLLGATE_CLOSED', 'these metrics are unregistered');
      if (typeof name !== 'string') throw optionTypeError('name', 'a string', name);
      readLimiter('limiter', limiter);
      const other = nameOf.get(limiter);
      if (named.has(name) || other !== undefined) {
        const what = other === undefined ? 'another limiter' : `this limiter as '${other}'`;
        const way = `remove('${other ?? name}') comes first`;
        throw typeError('ERR_ROLLGATE_OPTION', `'${name}': there is ${what} already; ${way}`);
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
      if (isRegistered) for (const name of names) register.removeSingleMetric(name);
      isRegistered = false;
    },
  };

  try {
    for (const [name, limiter] of limiters) metrics.add(name, limiter);
  } catch (error) {
    metrics.unregister();
    throw error;
  }
  REDIS.channel.subscribe(observeCall);
  return metrics;
}

module.exports = { registerMetrics, topBlocked };
