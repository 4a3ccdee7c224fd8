// rollgate/metrics: limiters' counts as metrics for prom-client, and the ids that are refused most.
'use strict';

const { REDIS, SHADOW } = require('../../base/channels');
const { failure, optionTypeError, typeError } = require('../../base/errors');
const { readLimiter, readMetricsOptions } = require('./options');
const { topBlocked } = require('./top-blocked');

const UP = { true: 1, false: 0 };

/**
 * The metrics that are read from stats() when they are collected; those named _total are Counters, the others Gauges.
 * `read` takes the stats and returns a number, numbers by outcome, or undefined or null if the limiter has no such
 * metric.
 */
const DEFINITIONS = {
  decisions_total: {
    help: 'Attempts that were decided, by outcome',
    labels: ['outcome'],
    read: ({ allowed, blocked }) => ({ allowed, blocked }),
  },
  records_total: {
    help: 'Calls of record, which count without a decision',
    read: ({ recorded }) => recorded,
  },
  errors_total: {
    help: 'Calls that failed because of the clock or the store, softened by onError or not',
    read: ({ errors }) => errors,
  },
  evictions_total: {
    help: 'Ids dropped before they expired, for want of room (maxKeys)',
    read: ({ evicted }) => evicted,
  },
  fallbacks_total: {
    help: 'Decisions that onError made in place of the store',
    read: ({ fallbacks }) => fallbacks,
  },
  keys: { help: 'Ids held', read: ({ keys }) => keys },
  memory_bytes: { help: 'Memory held for ids, in bytes', read: ({ bytes }) => bytes },
  leased_permits_total: {
    help: 'Permits that Redis granted ahead (lease)',
    read: ({ leased }) => leased,
  },
  leases: { help: 'Leases that are open', read: ({ leases }) => leases },
  local_decisions_total: {
    help: 'Attempts that were decided without asking Redis (lease)',
    read: ({ local }) => local,
  },
  pending_calls: {
    help: 'Calls that wait for an answer of Redis or the key-value store',
    read: ({ connection }) => connection?.pending,
  },
  returned_permits_total: {
    help: 'Permits that were given back unused (lease)',
    read: ({ returned }) => returned,
  },
  slots_held: { help: 'Slots that are held', read: ({ held }) => held },
  slots_leaked_total: {
    help: 'Slots that were collected before their release',
    read: ({ leaked }) => leaked,
  },
  slots_oldest_seconds: {
    help: 'For how long the oldest slot has been held',
    read: ({ oldest }) => (oldest === undefined ? undefined : oldest / 1000),
  },
  slots_waiting: { help: 'Calls in line for a slot', read: ({ waiting }) => waiting },
  redis_up: {
    help: 'Whether there is a connection to Redis: 1 or 0',
    read: ({ connection }) => UP[connection?.isUp], // some clients do not know it
  },
};

const DURATION = 'redis_call_duration_seconds';
const TRIALS = 'shadow_decisions_total';

/** Undefined for a limiter that is closed or cannot reach its shared memory, so that others are collected. */
function statsOf(limiter) {
  try {
    return limiter.stats();
  } catch (error) {
    if (/^ERR_ROLLGATE_(CLOSED$|SHARED_)/.test(error.code)) return undefined;
    throw error;
  }
}

/** prom-client would reject a second metric of one name with a message that does not mention limiters. */
function assertFree(names, register) {
  const taken = names.find((name) => register.getSingleMetric(name) !== undefined);
  if (taken === undefined) return;
  throw typeError(
    'ERR_ROLLGATE_OPTION',
    `there is a metric '${taken}' already: add() limiters to what the first registerMetrics gave, ` +
      "unregister() that, or give another 'prefix' or 'register'",
  );
}

/**
 * Registers the metrics of limiters, by name. Counts are read when metrics are collected; only the duration of
 * calls to Redis is observed as they end. See metrics.d.ts.
 */
function registerMetrics(options) {
  const { client, limiters, register, prefix, buckets } = readMetricsOptions(options);
  const named = new Map();
  const nameOf = new Map(); // by limiter
  const names = [...Object.keys(DEFINITIONS), DURATION, TRIALS].map((name) => prefix + name);
  assertFree(names, register);
  let isRegistered = true;

  function make(kind, name, configuration) {
    return new client[kind]({ name: prefix + name, registers: [register], ...configuration });
  }

  function define([name, { help, labels = [], read }]) {
    make(name.endsWith('_total') ? 'Counter' : 'Gauge', name, {
      help,
      labelNames: ['limiter', ...labels],
      collect() {
        this.reset();
        for (const [limiterName, limiter] of named) {
          const stats = statsOf(limiter);
          const value = stats === undefined ? undefined : read(stats);
          if (typeof value === 'number') this.inc({ limiter: limiterName }, value);
          for (const [outcome, count] of Object.entries(value ?? {})) {
            this.inc({ limiter: limiterName, outcome }, count);
          }
        }
      },
    });
  }

  Object.entries(DEFINITIONS).forEach(define);
  const duration = make('Histogram', DURATION, {
    help: 'How long calls to Redis take, by outcome',
    labelNames: ['limiter', 'outcome'],
    buckets,
  });
  const trials = make('Counter', TRIALS, {
    help: 'What shadow rules said, by the index of the rule and outcome',
    labelNames: ['rule', 'outcome'],
  });

  function observeTrial({ rule, allowed }) {
    trials.inc({ rule, outcome: allowed ? 'allowed' : 'blocked' });
  }

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
      SHADOW.channel.unsubscribe(observeTrial);
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
  SHADOW.channel.subscribe(observeTrial);
  return metrics;
}

module.exports = { registerMetrics, topBlocked };
