// The options of a concurrency limiter and of its calls.
'use strict';

const { readStoreOptions } = require('../stores/options');
const { failure, optionError, rangeError, show, typeError } = require('../base/errors');
const { LONGEST_TIMER } = require('../base/timers');
const {
  readClock,
  readInteger,
  readInterval,
  readMaxKeys,
  readObject,
  rejectUnknownOptions,
} = require('../options/values');

const MOST = 65_535;

const STORE_NAMES = ['shared', 'redis', 'connection', 'namespace', 'onError'];
const LIMITER_NAMES = ['max', 'maxAge', 'clock', 'maxKeys', 'ttl', ...STORE_NAMES, 'kv'];

const DEFAULT_TTL = 10_000;
const SHORTEST_TTL = 1000;

function readMax(max) {
  return readInteger('max', max, 1, MOST);
}

/** Checks the options of a concurrency limiter. */
function readConcurrencyOptions(options) {
  readObject('options', options);
  rejectUnknownOptions(options, LIMITER_NAMES);
  const { max, maxAge, clock, maxKeys, onError, kv } = options;
  if (kv !== undefined) {
    const message =
      "option 'kv': slots are held in memory, in that of the host ('shared') or on Redis";
    throw failure('ERR_ROLLGATE_UNSUPPORTED', message);
  }
  if (onError === 'memory') {
    throw optionError(
      'onError',
      "expected one of 'throw', 'allow', 'block': slots cannot move to memory",
    );
  }
  const given = Object.fromEntries(
    ['maxKeys', ...STORE_NAMES].map((name) => [name, options[name]]),
  );
  const store = readStoreOptions(given);
  return {
    ...store,
    max: readMax(max),
    ttl: readTtl(options.ttl, store),
    maxAge: maxAge === undefined ? undefined : readInterval('maxAge', maxAge),
    clock: readClock(clock),
    maxKeys: readMaxKeys(maxKeys),
  };
}

/** Accepted in memory without effect, as `namespace` is: `redis` may be undefined there. */
function readTtl(ttl, { shared }) {
  if (shared !== undefined && ttl !== undefined) throw optionError('ttl', "requires 'redis'");
  return readInteger('ttl', ttl === undefined ? DEFAULT_TTL : ttl, SHORTEST_TTL, LONGEST_TIMER);
}

/** The names of the options of one call, and what they come to: a demand. */
const DEMAND_NAMES = ['cost', 'max'];

/** @returns {{ cost: number, max: number | undefined }} */
function readDemand({ cost = 1, max }, most) {
  return {
    cost: readCost(cost, most),
    max: max === undefined ? undefined : readInteger('max', max, 0, MOST),
  };
}

function readCost(cost, most) {
  if (Number.isInteger(cost) && cost >= 1 && cost <= most) return cost;
  const makeError = typeof cost === 'number' ? rangeError : typeError;
  const expected = `an integer from 1 to ${most}, the limiter's max`;
  throw makeError('ERR_ROLLGATE_COST', `cost: expected ${expected}, got ${show(cost)}`);
}

/** Checks the options of `acquire`, of a limiter with this maximum. */
function readAcquireOptions(options, most) {
  const place = 'acquire options';
  rejectUnknownOptions(readObject(place, options), DEMAND_NAMES, { place });
  return readDemand(options, most);
}

/** For wait: as readDemand, but what can never be granted is an error. */
function readWaitDemand(options, most) {
  const { cost, max } = readDemand(options, most);
  if (max === undefined || cost <= max) return { cost, max };
  throw rangeError('ERR_ROLLGATE_COST', `cost: ${cost} slots are never free under max ${max}`);
}

module.exports = {
  DEMAND_NAMES,
  LIMITER_NAMES,
  MOST,
  readAcquireOptions,
  readConcurrencyOptions,
  readCost,
  readDemand,
  readMax,
  readWaitDemand,
};
