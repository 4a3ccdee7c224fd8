// The options that say where a limiter counts: which store, and options of its own.
'use strict';

const stores = require('#stores');
const { optionError, optionRangeError } = require('../base/errors');
const { readNamespace, readOnError } = require('../options/remote');
const { readBoolean, readInteger } = require('../options/values');

/** The options that choose a store. `client` is the name of `redis` in rolling-rate-limiter. */
const STORE_OF = {
  redis: 'redis',
  client: 'redis',
  connection: 'redis',
  shared: 'shared',
  kv: 'kv',
};

const CHOICES = Object.keys(STORE_OF);

const MEMORY = undefined;

/**
 * The options that not every store takes. Three are accepted in memory without effect, so that
 * `redis: process.env.REDIS_URL` may be undefined.
 */
const MEANT_FOR = {
  namespace: ['redis', 'kv', MEMORY],
  onError: ['redis', 'kv', MEMORY],
  localRefusals: ['redis', MEMORY],
  lease: ['redis', MEMORY],
  commandTimeout: ['kv'],
};

const STORE_NAMES = [...CHOICES, ...Object.keys(MEANT_FOR)];

/** The store that the options choose. */
function storeOf(options) {
  const given = CHOICES.filter((name) => options[name] !== undefined);
  const other = given.find((name) => STORE_OF[name] !== STORE_OF[given[0]]);
  if (other === undefined) return STORE_OF[given[0]];
  throw optionError(other, `conflicts with '${given[0]}': a limiter has one store`);
}

function misplaced(name, store) {
  if (name === 'commandTimeout' && store === 'redis') {
    return optionError(name, "expected inside of 'redis', as in redis: { url, commandTimeout }");
  }
  const stores = MEANT_FOR[name].filter(Boolean).map((meant) => `'${meant}'`);
  return optionError(name, `requires ${stores.join(' or ')}`);
}

/** The checked option of the store that `options` choose; in memory, none. */
function readStoreOptions(options) {
  const store = storeOf(options);
  for (const name of Object.keys(MEANT_FOR)) {
    if (options[name] !== undefined && !MEANT_FOR[name].includes(store)) {
      throw misplaced(name, store);
    }
  }
  if (store !== MEMORY) return { [store]: stores[store].readOptions(options) };
  // Checked for a limiter in memory as well, so that an invalid one fails on every host.
  if (options.namespace !== undefined) readNamespace(options.namespace);
  readOnError(options.onError);
  return {};
}

/** A counted refusal is an action that Redis must see; in a block, none is counted. */
function readLocalRefusals(value, { countBlocked, blockFor }) {
  const localRefusals = readBoolean('localRefusals', value, false);
  if (!localRefusals || !countBlocked || blockFor.length > 0) return localRefusals;
  const why =
    "requires 'countBlocked: false' or 'blockFor', because Redis has to count each refusal";
  throw optionError('localRefusals', why);
}

const SHORTEST_LEASE_MS = 50;
const LONGEST_LEASE_MS = 60_000;

/** `checked` are the other options of the limiter. In memory, it has no effect. */
function readLease(lease, checked) {
  if (lease === undefined) return undefined;
  readInteger('lease', lease, SHORTEST_LEASE_MS, LONGEST_LEASE_MS);
  assertFitsLease(lease, checked);
  return checked.redis === undefined ? undefined : lease;
}

/** Throws if a limiter with these options cannot have leases of so many ms. */
function assertFitsLease(lease, { algorithm, countBlocked, blockFor, redis, ...limits }) {
  const { windows, minDifference } = limits;
  if (algorithm !== 'sliding-window-log') {
    throw optionError('lease', "requires algorithm 'sliding-window-log'");
  }
  if (countBlocked) throw optionError('lease', "requires 'countBlocked: false'");
  if (blockFor.length > 0) throw optionError('lease', "conflicts with 'blockFor'");
  if (minDifference > 0) throw optionError('lease', "conflicts with 'minDifference'");
  if (redis?.onError === 'memory') throw optionError('lease', "conflicts with onError 'memory'");
  const shortest = Math.min(...windows.map(({ interval }) => interval));
  if (lease > shortest) {
    throw optionRangeError('lease', `at most the shortest interval, ${shortest}`, lease);
  }
}

module.exports = {
  CHOICES,
  STORE_NAMES,
  assertFitsLease,
  readLease,
  readLocalRefusals,
  readStoreOptions,
};
