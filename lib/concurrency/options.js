// The options of a concurrency limiter and of its calls.
'use strict';

const stores = require('#stores');
const { failure, optionError, rangeError, show, typeError } = require('../base/errors');
const { readNamespace, readOnError } = require('../options/remote');
const {
  readClock,
  readInteger,
  readInterval,
  readMaxKeys,
  readObject,
  rejectUnknownOptions,
} = require('../options/values');

const MOST = 65_535;

const ELSEWHERE = ['redis', 'connection', 'kv'];
const LIMITER_NAMES = [
  'max',
  'maxAge',
  'clock',
  'maxKeys',
  'shared',
  'ttl',
  'namespace',
  'onError',
  ...ELSEWHERE,
];

function readMax(max) {
  return readInteger('max', max, 1, MOST);
}

/** Checks the options of a concurrency limiter. */
function readConcurrencyOptions(options) {
  readObject('options', options);
  rejectUnknownOptions(options, LIMITER_NAMES);
  const { max, maxAge, clock, maxKeys, namespace, onError, shared, ttl } = options;
  const other = ELSEWHERE.find((name) => options[name] !== undefined);
  if (other !== undefined) {
    throw failure(
      'ERR_ROLLGATE_UNSUPPORTED',
      `option '${other}': slots are held in memory, or in that of the host ('shared')`,
    );
  }
  if (ttl !== undefined) throw optionError('ttl', "requires 'redis'");
  // Checked in memory as well, so that an invalid one fails on every host.
  if (namespace !== undefined) readNamespace(namespace);
  if (readOnError(onError) === 'memory') {
    throw optionError(
      'onError',
      "expected one of 'throw', 'allow', 'block': slots cannot move to memory",
    );
  }
  return {
    max: readMax(max),
    maxAge: maxAge === undefined ? undefined : readInterval('maxAge', maxAge),
    clock: readClock(clock),
    ...(shared === undefined
      ? { maxKeys: readMaxKeys(maxKeys) }
      : { shared: stores.shared.readOptions({ shared, maxKeys }) }),
  };
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
