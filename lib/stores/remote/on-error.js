// The option onError: what decides while a remote store does not, and whether the store is unreachable.
'use strict';

const {
  BLOCKED_BY_BLOCK,
  BLOCKED_BY_COUNT,
  NUMBERS,
  RECORDS,
  decisionLength,
} = require('../../base/decision');
const { createMemoryStore } = require('../local');

/** After this, an id that was blocked by onError: 'block' may retry. */
const BLOCKED_FOR_MS = 1000;

/**
 * The generation of a decision says who can settle it: a backend's is a natural number, `memory` converts those
 * of a memory store to negative numbers and back, and `nobody` marks a decision that cannot be settled.
 */
const GENERATION = { nobody: () => Number.NaN, memory: (generation) => -1 - generation };

/** `read`, which sees generations as `convert` gives them. */
function withGeneration(convert, read) {
  return (numbers) => {
    numbers[NUMBERS.GENERATION] = convert(numbers[NUMBERS.GENERATION]);
    return read(numbers);
  };
}

/** Decides as if every id were new. */
function createAllowing(policy) {
  const store = createMemoryStore({ ...policy, isInner: true, maxKeys: 1, clock: () => 0 });
  return {
    setLimits: (next) => store.setLimits(next),
    decide(_id, cost, records, read, terms) {
      const readByNobody = withGeneration(GENERATION.nobody, read);
      return store.decide('', askedCost(cost, records), RECORDS.NOTHING, readByNobody, terms);
    },
    close: () => store.close(),
  };
}

const costAt = (cost, i) => (typeof cost === 'number' ? cost : cost[i]);

/** What a call asks the windows for: what is recorded anyway asks nothing. */
const askedCost = (cost, records) => (records === RECORDS.RECORD ? 0 : cost);

function createBlocking({ windows }) {
  let own = windows;
  const refusal = Float64Array.from({
    [NUMBERS.BLOCKED]: BLOCKED_BY_BLOCK,
    [NUMBERS.TIME_LEFT]: BLOCKED_FOR_MS,
    [NUMBERS.ACTIONS_LEFT]: 0,
    [NUMBERS.RESET_IN]: BLOCKED_FOR_MS,
    [NUMBERS.WAIT]: BLOCKED_FOR_MS,
    [NUMBERS.AT]: 0,
    [NUMBERS.GENERATION]: GENERATION.nobody(),
    length: NUMBERS.WINDOWS,
  });
  return {
    setLimits(next) {
      own = next.windows;
    },
    decide(_id, cost, records, read, terms) {
      const limits = own.map(({ maxInInterval }, i) => terms?.limits?.[i] ?? maxInInterval);
      // All of it is used.
      const numbers = Float64Array.from([
        ...refusal,
        ...limits.flatMap((max) => [max, BLOCKED_FOR_MS]),
      ]);
      const asked = askedCost(cost, records);
      const never = limits.some((max, i) => costAt(asked, i) > max);
      numbers[NUMBERS.BLOCKED] = never ? BLOCKED_BY_COUNT : BLOCKED_BY_BLOCK;
      numbers[NUMBERS.TIME_LEFT] = never ? Number.POSITIVE_INFINITY : BLOCKED_FOR_MS;
      return read(numbers);
    },
    close() {},
  };
}

/** Decides in a memory store, which is created when it is first needed. */
function createRemembering(givenPolicy) {
  let policy = givenPolicy;
  let store;
  function openStore() {
    store ??= createMemoryStore({ ...policy, isInner: true });
    return store;
  }
  return {
    decide: (id, cost, records, read, terms) =>
      openStore().decide(id, cost, records, withGeneration(GENERATION.memory, read), terms),
    setLimits(next) {
      policy = next;
      store?.setLimits(next);
    },
    /** Also before an outage, because the block has to hold in one. */
    block: (id, ms) => openStore().block(id, ms),
    settle(receipt, actual) {
      const own = { ...receipt, generation: GENERATION.memory(receipt.generation) };
      return store.settle(own, actual);
    },
    clear: (id) => store?.clear(id),
    clearAll: () => store?.clearAll(),
    evicted: () => store?.stats().evicted ?? 0,
    close: () => store?.close(),
  };
}

/** Whether the receipt is of a decision of the backend. */
function isOfBackend({ generation }) {
  return generation >= 0;
}

const POLICIES = { allow: createAllowing, block: createBlocking, memory: createRemembering };

/** What decides while the backend fails, or null if callers get the errors. `decide` is as in local.js. */
function createFallback(onError, policy) {
  if (onError === 'throw') return null;
  const fallback = POLICIES[onError](policy);
  return {
    settle: () => false,
    block() {},
    clear() {},
    clearAll() {},
    evicted: () => 0,
    ...fallback,

    /** As decideMany of local.js. */
    decideMany(ids, read) {
      const length = decisionLength(policy.windows.length);
      const all = new Float64Array(ids.length * length);
      for (const [i, id] of ids.entries()) {
        fallback.decide(id, 1, RECORDS.ATTEMPT, (numbers) => {
          all.set(numbers.subarray(0, length), i * length);
        });
      }
      return read(all);
    },
  };
}

/**
 * An outage begins with a failure that the next call would meet as well, and ends when a probe is answered.
 * Calls during an outage start the probes, one at a time; there is no timer. If ids are on several nodes, each
 * *part* of them has its own outages. An id that moves to another part leaves the outage of its old one.
 */
class Outages {
  #probe;
  #isProbing = new Map(); // by unreachable part

  /** @param {(id: string) => Promise<void>} probe resolves if the store answers for this id */
  constructor(probe) {
    this.#probe = probe;
  }

  note(part) {
    if (!this.#isProbing.has(part)) this.#isProbing.set(part, false);
  }

  /** Whether the part is unreachable; if so, probes it with this id. */
  isOn(part, id) {
    const isProbing = this.#isProbing.get(part);
    if (isProbing === undefined) return false;
    if (!isProbing) this.#startProbe(part, id);
    return true;
  }

  async #startProbe(part, id) {
    this.#isProbing.set(part, true);
    try {
      await this.#probe(id);
      this.#isProbing.delete(part);
    } catch {
      this.#isProbing.set(part, false); // still unreachable
    }
  }
}

module.exports = { Outages, createFallback, isOfBackend };
