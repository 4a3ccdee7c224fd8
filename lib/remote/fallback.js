// Who decides while a remote store does not: the policies of the option onError.
'use strict';

const { BLOCKED_BY_BLOCK, NUMBERS, decisionLength } = require('../decision');
const { createMemoryStore } = require('../memory-store');

/** Until somebody refused by onError: 'block' may ask again. */
const BLOCKED_FOR_MS = 1000;

/**
 * A decision's incarnation tells who can take it back: from a backend it is a natural number. `memory`
 * makes those of a memory store negative, and back.
 */
const INCARNATION = { nobody: Number.NaN, memory: (incarnation) => -1 - incarnation };

/** Decides as if each id were new. */
function createAllowing(policy) {
  const store = createMemoryStore({ ...policy, isInner: true, maxKeys: 1, clock: () => 0 });
  return {
    decide(_id, cost, _records, read, max) {
      const readMarked = (numbers) => {
        numbers[NUMBERS.INCARNATION] = INCARNATION.nobody;
        return read(numbers);
      };
      return store.decide('', cost, false, readMarked, max);
    },
    close: () => store.close(),
  };
}

function createBlocking({ windows }) {
  const windowNumbers = windows.flatMap(({ maxInInterval }) => [maxInInterval, BLOCKED_FOR_MS]);
  const refusal = Float64Array.from({
    [NUMBERS.BLOCKED]: BLOCKED_BY_BLOCK,
    [NUMBERS.TIME_LEFT]: BLOCKED_FOR_MS,
    [NUMBERS.ACTIONS_LEFT]: 0,
    [NUMBERS.RESET_IN]: BLOCKED_FOR_MS,
    [NUMBERS.WAIT]: BLOCKED_FOR_MS,
    [NUMBERS.AT]: 0,
    [NUMBERS.INCARNATION]: INCARNATION.nobody,
    length: NUMBERS.WINDOWS,
  });
  const numbers = Float64Array.from([...refusal, ...windowNumbers]);
  return {
    decide(_id, _cost, _records, read, max) {
      if (max !== undefined) numbers[NUMBERS.WINDOWS] = max; // all of it is used
      return read(numbers);
    },
    close() {},
  };
}

/** Decides in memory, in a store that is made when it is first needed. */
function createRemembering(policy) {
  let store;
  return {
    decide(id, cost, records, read, max) {
      store ??= createMemoryStore({ ...policy, isInner: true });
      const readMarked = (numbers) => {
        numbers[NUMBERS.INCARNATION] = INCARNATION.memory(numbers[NUMBERS.INCARNATION]);
        return read(numbers);
      };
      return store.decide(id, cost, records, readMarked, max);
    },
    refund(receipt) {
      return store.refund({ ...receipt, incarnation: INCARNATION.memory(receipt.incarnation) });
    },
    clear: (id) => store?.clear(id),
    clearAll: () => store?.clearAll(),
    evicted: () => store?.stats().evicted ?? 0,
    close: () => store?.close(),
  };
}

/** Whether the backend made the decision of a receipt. */
function isOfBackend({ incarnation }) {
  return incarnation >= 0;
}

const POLICIES = { allow: createAllowing, block: createBlocking, memory: createRemembering };

/**
 * What decides in place of the backend, or null where its failures are the callers'. `decide` is that of
 * local-store.js.
 */
function createFallback(onError, policy) {
  if (onError === 'throw') return null;
  const fallback = POLICIES[onError](policy);
  return {
    refund: () => false,
    clear() {},
    clearAll() {},
    evicted: () => 0,
    ...fallback,

    /** One behind the other, as from decideMany of local-store.js. */
    decideMany(ids, read) {
      const length = decisionLength(policy.windows.length);
      const all = new Float64Array(ids.length * length);
      for (const [i, id] of ids.entries()) {
        fallback.decide(id, 1, true, (numbers) => {
          all.set(numbers.subarray(0, length), i * length);
        });
      }
      return read(all);
    },
  };
}

module.exports = { createFallback, isOfBackend };
