// What stands for the place where a middleware counts: the same for two of them only if they count together.
'use strict';

const { regionPath } = require('../shared/region');

/** Clients, stores and objects of options are told apart by who they are. */
const numberOf = (() => {
  const numbers = new WeakMap();
  let count = 0;
  return (object) => {
    if (!numbers.has(object)) numbers.set(object, ++count);
    return numbers.get(object);
  };
})();

/**
 * A region of shared memory is one place. Two limiters elsewhere count in one place if their namespaces are the same, and the store is: one URL, one
 * client, or one object. What has no store or no namespace is a limiter's own.
 *
 * @param {object | undefined} limiterOptions as they were checked
 */
function countingPlace(limiterOptions, limiter) {
  const { namespace, redis, client, shared, kv } = limiterOptions ?? {};
  if (shared !== undefined) return regionPath(shared);
  const connection = redis ?? client ?? kv;
  if (connection === undefined || namespace === undefined) return limiter;
  const store = connection?.client ?? connection;
  return `${typeof store === 'string' ? store : numberOf(store)} ${namespace}`;
}

module.exports = { countingPlace };
