// Where a limiter counts: which store the options ask for, and that nothing beside it is another store's.
'use strict';

const { typeError } = require('./errors');

// Loaded by those who use them, as the stores are.
const readKvOptions = (options) => require('./kv/options').readKvOptions(options);
const readRedisOptions = (options) => require('./redis/options').readRedisOptions(options);
const checkUnused = (options) => require('./remote/options').checkUnused(options);
const readSharedOptions = (options) => require('./shared/options').readSharedOptions(options);

/** Options that choose a store. `client` is rolling-rate-limiter's word for `redis`. */
const STORE_OF = { redis: 'redis', client: 'redis', shared: 'shared', kv: 'kv' };

const READERS = { redis: readRedisOptions, shared: readSharedOptions, kv: readKvOptions };

const CHOICES = Object.keys(STORE_OF);

const MEMORY = undefined;

/**
 * Options that not every store takes. In memory two have no effect, so that `redis: process.env.REDIS_URL` can
 * stand beside them where there is no Redis.
 */
const MEANT_FOR = {
  namespace: ['redis', 'kv', MEMORY],
  onError: ['redis', 'kv', MEMORY],
  commandTimeout: ['kv'],
};

const STORE_NAMES = [...CHOICES, ...Object.keys(MEANT_FOR)];

function refuse(name, what) {
  throw typeError('ERR_ROLLGATE_OPTION', `option '${name}': ${what}`);
}

/** The one store that is asked for. */
function storeOf(options) {
  const given = CHOICES.filter((name) => options[name] !== undefined);
  const other = given.find((name) => STORE_OF[name] !== STORE_OF[given[0]]);
  if (other !== undefined) {
    refuse(other, `not allowed beside '${given[0]}': a limiter has one store`);
  }
  return STORE_OF[given[0]];
}

/** Each store has a word on what it is told elsewhere. */
function refuseMisplaced(name, store) {
  if (name === 'commandTimeout' && store === 'redis') {
    refuse(name, "expected inside of 'redis', as in redis: { url, commandTimeout }");
  }
  const stores = MEANT_FOR[name]
    .filter(Boolean)
    .map((meant) => `'${meant}'`)
    .join(' or ');
  refuse(name, `expected only beside ${stores}, which is missing`);
}

/**
 * @param {object} options of the limiter
 * @returns {{ redis?: object, shared?: object, kv?: object }} one of them or none, as its own options.js reads it
 */
function readStoreOptions(options) {
  const store = storeOf(options);
  for (const name of Object.keys(MEANT_FOR)) {
    if (options[name] !== undefined && !MEANT_FOR[name].includes(store)) {
      refuseMisplaced(name, store);
    }
  }
  if (store !== MEMORY) return { [store]: READERS[store](options) };
  if (options.namespace !== undefined || options.onError !== undefined) checkUnused(options);
  return {};
}

module.exports = { CHOICES, STORE_NAMES, readStoreOptions };
