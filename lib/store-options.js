// The options that say where a limiter counts: which store, and what all remote stores have in common.
'use strict';

const { stores } = require('#host');
const { optionError, optionTypeError } = require('./errors');
const { isWellFormed } = require('./ids');
const { readBoolean, readInteger, readString } = require('./option-values');

// Loaded when a limiter uses it.
const readKvOptions = (options) => require('./kv').readKvOptions(options);

/** The options that choose a store. `client` is the name of `redis` in rolling-rate-limiter. */
const STORE_OF = {
  redis: 'redis',
  client: 'redis',
  connection: 'redis',
  shared: 'shared',
  kv: 'kv',
};

const READERS = {
  redis: stores.redis.readOptions,
  shared: stores.shared.readOptions,
  kv: readKvOptions,
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
  if (store !== MEMORY) return { [store]: READERS[store](options) };
  // Checked for a limiter in memory as well, so that an invalid one fails on every host.
  if (options.namespace !== undefined) readNamespace(options.namespace);
  readOnError(options.onError);
  return {};
}

const ON_ERROR = ['throw', 'allow', 'block', 'memory'];
/** The longest delay of Node's timers, in ms. They turn a longer one into 1 ms. */
const LONGEST_TIMER = 2 ** 31 - 1;
const DEFAULT_COMMAND_TIMEOUT = 500;

/** In keys, a brace separates namespace and id, so that the keys of two namespaces differ. */
function readNamespace(namespace) {
  const expected = 'a non-empty string of well-formed Unicode without braces';
  const isGood = (string) => /^[^{}]+$/.test(string) && isWellFormed(string);
  return readString('namespace', namespace, expected, isGood);
}

function readOnError(onError = 'throw') {
  if (ON_ERROR.includes(onError)) return onError;
  const policies = ON_ERROR.map((policy) => `'${policy}'`).join(', ');
  throw optionTypeError('onError', `one of ${policies}`, onError);
}

/** A counted refusal is an action that Redis must see; in a block, none is counted. */
function readLocalRefusals(value, { countBlocked, blockFor }) {
  const localRefusals = readBoolean('localRefusals', value, false);
  if (!localRefusals || !countBlocked || blockFor.length > 0) return localRefusals;
  const why =
    "requires 'countBlocked: false' or 'blockFor', because Redis has to count each refusal";
  throw optionError('localRefusals', why);
}

function readCommandTimeout(name, commandTimeout = DEFAULT_COMMAND_TIMEOUT) {
  return readInteger(name, commandTimeout, 1, LONGEST_TIMER);
}

module.exports = {
  CHOICES,
  DEFAULT_COMMAND_TIMEOUT,
  LONGEST_TIMER,
  STORE_NAMES,
  readCommandTimeout,
  readLocalRefusals,
  readNamespace,
  readOnError,
  readStoreOptions,
};
