// The options of registerMetrics, checked.
'use strict';

const { failure, optionRangeError, optionTypeError } = require('../errors');
const { readList, readObject, rejectUnknownOptions } = require('../option-values');

const NAMES = ['limiters', 'register', 'prefix', 'buckets'];
const PREFIX = /^[A-Za-z_:][A-Za-z0-9_:]*$/;

/** Seconds; the default of commandTimeout is among them. */
const DEFAULT_BUCKETS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
];

/** A limiter is whatever has stats(), from another copy of this package, too. */
function readLimiter(name, limiter) {
  if (typeof limiter === 'function' && typeof limiter.stats === 'function') return limiter;
  throw optionTypeError(name, 'a limiter', limiter);
}

function readPrefix(prefix = 'rollgate_') {
  const expected = 'the beginning of a metric name';
  if (typeof prefix !== 'string') throw optionTypeError('prefix', expected, prefix);
  if (!PREFIX.test(prefix)) throw optionRangeError('prefix', expected, prefix);
  return prefix;
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
  if (typeof register?.registerMetric === 'function') return register;
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

/** @returns {{ client: object, limiters: [string, Function][], register: object, prefix: string, buckets: number[] }} */
function readMetricsOptions(options = {}) {
  rejectUnknownOptions(readObject('options', options), NAMES);
  const { limiters = {}, register, prefix, buckets } = options;
  const named = Object.entries(readObject('limiters', limiters));
  for (const [name, limiter] of named) readLimiter(`limiters.${name}`, limiter);
  const client = loadClient();
  return {
    client,
    limiters: named,
    register: readRegister(register, client),
    prefix: readPrefix(prefix),
    buckets: readBuckets(buckets),
  };
}

module.exports = { readLimiter, readMetricsOptions };
