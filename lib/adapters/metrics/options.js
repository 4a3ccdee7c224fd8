// The options of registerMetrics and topBlocked, checked.
'use strict';

const { failure, optionError, optionTypeError, typeError } = require('../../base/errors');
const {
  hasMethods,
  readInteger,
  readList,
  readObject,
  readString,
  rejectUnknownOptions,
} = require('../../options/values');

const NAMES = ['limiters', 'register', 'prefix', 'buckets'];
const PREFIX = /^[A-Za-z_:][A-Za-z0-9_:]*$/;

/** Seconds; the default of commandTimeout is among them. */
const DEFAULT_BUCKETS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
];

/** By its methods, because it may be of another copy of this package. */
function readLimiter(name, limiter) {
  if (typeof limiter === 'function' && typeof limiter.stats === 'function') return limiter;
  if (hasMethods(limiter, 'acquire', 'stats')) return limiter; // a ConcurrencyLimiter
  if (typeof limiter?.resetKey !== 'function') throw optionTypeError(name, 'a limiter', limiter);
  const way = 'give the limiter that it was made with, rateLimit({ limiter })';
  throw optionError(name, `this is a middleware; ${way}`);
}

function readPrefix(prefix = 'rollgate_') {
  const isPrefix = (string) => PREFIX.test(string);
  return readString('prefix', prefix, 'the beginning of a metric name', isPrefix);
}

function readBuckets(buckets) {
  if (buckets === undefined) return DEFAULT_BUCKETS;
  const expected = 'a list of seconds > 0 that ascend';
  const own = readList('buckets', buckets, expected);
  const isGood = own.every((seconds, i) => Number.isFinite(seconds) && seconds > (own[i - 1] ?? 0));
  if (!isGood) throw optionTypeError('buckets', expected, buckets);
  return own;
}

function readRegister(register, client) {
  if (register === undefined) return client.register;
  if (hasMethods(register, 'registerMetric', 'getSingleMetric', 'removeSingleMetric'))
    return register;
  throw optionTypeError('register', 'a Registry of prom-client', register);
}

function loadClient() {
  try {
    return require('prom-client');
  } catch (cause) {
    throw failure(
      'ERR_ROLLGATE_UNSUPPORTED',
      "rollgate/metrics needs prom-client: run 'npm install prom-client'",
      cause,
    );
  }
}

function readLimiters(limiters) {
  const named = Object.entries(readObject('limiters', limiters));
  for (const [name, limiter] of named) readLimiter(`limiters.${name}`, limiter);
  return named;
}

function readMetricsOptions(options = {}) {
  rejectUnknownOptions(readObject('options', options), NAMES);
  const { limiters = {}, register, prefix, buckets } = options;
  const named = readLimiters(limiters);
  const client = loadClient();
  return {
    client,
    limiters: named,
    register: readRegister(register, client),
    prefix: readPrefix(prefix),
    buckets: readBuckets(buckets),
  };
}

/** A Map has no room for many more. */
const MOST_COUNTERS = 1_000_000;

function readNames(limiters) {
  if (limiters === undefined) return undefined;
  const names = new Map();
  for (const [name, limiter] of readLimiters(limiters)) {
    if (typeof limiter !== 'function')
      throw optionTypeError(`limiters.${name}`, 'a rate limiter', limiter);
    const other = names.get(limiter);
    if (other !== undefined) {
      const message = `'${name}': there is this limiter as '${other}' already`;
      throw typeError('ERR_ROLLGATE_OPTION', message);
    }
    names.set(limiter, name);
  }
  return names;
}

/** `names` are by limiter; undefined: all limiters. */
function readTopBlockedOptions(options = {}) {
  rejectUnknownOptions(readObject('options', options), ['limiters', 'capacity']);
  const { limiters, capacity = 1000 } = options;
  return {
    names: readNames(limiters),
    capacity: readInteger('capacity', capacity, 1, MOST_COUNTERS),
  };
}

module.exports = { readLimiter, readMetricsOptions, readTopBlockedOptions };
