// The callable limiter and the methods that every limiter has, whatever its store.
'use strict';

const stores = require('#stores');
const {
  Decision,
  decisionLength,
  newAttempt,
  readInfo,
  readUsage,
  takeReceipt,
  NUMBERS,
  RECORDS,
} = require('../base/decision');
const { costToUser, isAtLeast, readActual, readCost } = require('../options/costs');
const { typeError, show } = require('../base/errors');
const { warnOfRate } = require('../options/algorithms');
const { createMemoryStore } = require('../stores/local');
const { readAttemptCost, readBlock, readLimiterOptions, withLimits } = require('./options');
const {
  ANSWERS_AT_ONCE,
  ATTEMPT_WITHIN,
  BLOCK,
  DECIDE,
  PEEK_WITHIN,
  READ_COST,
  TAKE_BACK,
  USAGE,
} = require('../base/internal-methods');

// Loaded when they are needed, so that a limiter in memory starts quickly.
const createWaitingCalls = (store) => new (require('./wait').Waiting)(store);
const readWaitOptions = (...given) => require('./wait').readWaitOptions(...given);

const STORE = Symbol('store');
/** Mutable state: the `checked` options, which setLimits replaces, and the `waiting` calls, which the first wait() creates. */
const CURRENT = Symbol('current');

function createStore(checked) {
  const name = Object.keys(stores).find((store) => checked[store] !== undefined);
  return name === undefined ? createMemoryStore(checked) : stores[name].create(checked);
}

function createWaiting(limiter) {
  const store = limiter[STORE];
  const timeLeftFor = (id, cost) => store.decide(id, cost, RECORDS.ASKING, readTimeLeft);
  return createWaitingCalls({
    attempt: (id, cost) => decideAtCost(limiter, id, cost, RECORDS.WAITING),
    refund: (decision) => store.settle(takeReceipt(Decision.attemptOf(decision, limiter)), 0),
    isAtLeast,
    timeLeftOf: ({ timeLeft }) => timeLeft,
    isTimeKnown: true,
    timeLeftFor: store.answersAtOnce ? timeLeftFor : undefined,
  });
}

const readTimeLeft = (numbers) => numbers[NUMBERS.TIME_LEFT];

function readBlocked(numbers) {
  return numbers[NUMBERS.BLOCKED] !== 0;
}

/**
 * Creates a limiter: a function of (id?, callback?) with the methods below. Works with and without
 * `new`. See index.d.ts for options, results and errors.
 */
function RateLimiter(options) {
  const checked = readLimiterOptions(options);
  const store = createStore(checked);
  const limiter = store.call;
  Object.setPrototypeOf(limiter, new.target ? new.target.prototype : RateLimiter.prototype);
  Object.defineProperties(limiter, {
    [STORE]: { value: store },
    [CURRENT]: { value: { checked, waiting: undefined } },
    ...(store.detectedClientType && { detectedClientType: { value: store.detectedClientType } }),
  });
  warnOfRate(checked);
  return limiter;
}

/** The methods. A limiter is a function, so they inherit from functions' own. */
const methods = {
  async limit(id) {
    return this[STORE].decide(id, 1, RECORDS.ATTEMPT, readBlocked);
  },

  async wouldLimit(id) {
    return this[STORE].decide(id, 1, RECORDS.NOTHING, readBlocked);
  },

  async limitWithInfo(id) {
    return this[STORE].decide(id, 1, RECORDS.ATTEMPT, readInfo);
  },

  async wouldLimitWithInfo(id) {
    return this[STORE].decide(id, 1, RECORDS.NOTHING, readInfo);
  },

  usage(id) {
    const { windows } = this[CURRENT].checked;
    return this[STORE].decide(id, 0, RECORDS.NOTHING, (numbers) => readUsage(numbers, windows));
  },

  attempt(id, options) {
    return decide(this, id, options, RECORDS.ATTEMPT);
  },

  peek(id, options) {
    return decide(this, id, options, RECORDS.NOTHING);
  },

  async wait(id, options) {
    const current = this[CURRENT];
    const checked = readWaitOptions(options, ['cost'], ({ cost }) => this[READ_COST](cost));
    this[STORE].assertOpen();
    current.waiting ??= createWaiting(this);
    return current.waiting.wait(id, checked);
  },

  /** The current usage, without an attempt. */
  [USAGE](id) {
    return decideAtCost(this, id, 0, RECORDS.NOTHING);
  },

  [DECIDE](id, cost, records) {
    return decideAtCost(this, id, cost, records);
  },

  [TAKE_BACK](decision) {
    return this.refund(decision);
  },

  [READ_COST](cost) {
    return readCost(cost, this[CURRENT].checked);
  },

  get [ANSWERS_AT_ONCE]() {
    return this[STORE]?.answersAtOnce;
  },

  [ATTEMPT_WITHIN](id, max, options) {
    return decide(this, id, options, RECORDS.ATTEMPT, false, max);
  },

  [PEEK_WITHIN](id, max) {
    return decideAtCost(this, id, 1, RECORDS.NOTHING, max);
  },

  attemptMany(ids, options) {
    const store = this[STORE];
    if (options !== undefined) {
      const message = `attemptMany: expected no options, because it takes no costs, got ${show(options)}`;
      return store.fail(typeError('ERR_ROLLGATE_OPTION', message));
    }
    if (!Array.isArray(ids)) {
      const message = `attemptMany: expected a list of ids, got ${show(ids)}`;
      return store.fail(typeError('ERR_ROLLGATE_ID', message));
    }
    const own = Array.from(ids);
    const { windows } = this[CURRENT].checked;
    return store.decideMany(own, (numbers) => {
      const length = decisionLength(windows.length);
      return own.map((id, i) => {
        const attempt = newAttempt(this, id, 1, RECORDS.ATTEMPT);
        return new Decision(numbers, i * length, windows, attempt);
      });
    });
  },

  settle(decision, actual) {
    const { windows } = this[CURRENT].checked;
    return settle(this, decision, 'settle', ({ cost }) => readActual(actual, cost, windows));
  },

  refund(decision) {
    return settle(this, decision, 'refund', () => 0);
  },

  setLimits(limits) {
    const { [STORE]: store, [CURRENT]: current } = this;
    store.assertOpen();
    const checked = withLimits(current.checked, limits);
    store.setLimits(checked);
    current.checked = checked;
    current.waiting?.limitsChanged((cost) => this[READ_COST](costToUser(cost, checked.windows)));
    warnOfRate(checked);
  },

  async block(id, ms) {
    const store = this[STORE];
    store.assertOpen();
    await store.block(id, readBlock(ms));
    if (ms === 0) this[CURRENT].waiting?.changed(id);
  },

  [BLOCK](id, ms) {
    return this[STORE].block(id, ms);
  },

  async clear(id) {
    await this[STORE].clear(id);
    this[CURRENT].waiting?.changed(id);
  },

  async clearAll() {
    await this[STORE].clearAll();
    this[CURRENT].waiting?.changedAll();
  },

  stats() {
    return this[STORE].stats();
  },

  async close() {
    const closed = this[STORE].close();
    this[CURRENT].waiting?.close();
    await closed;
  },
};

/** `readActual(attempt)` returns what the attempt came to, checked; if it throws, the decision can be settled later. */
function settle(limiter, decision, method, readActual) {
  const store = limiter[STORE];
  let attempt;
  let actual;
  try {
    store.assertOpen();
    attempt = Decision.attemptOf(decision, limiter, method);
    actual = readActual(attempt);
  } catch (error) {
    return store.fail(error);
  }
  const receipt = takeReceipt(attempt);
  const isFound = store.settle(receipt, actual);
  return receipt === null ? isFound : afterSettling(limiter, receipt.id, isFound);
}

/** Waiting calls of the id may be allowed now. */
function afterSettling(limiter, id, isFound) {
  if (typeof isFound !== 'boolean') {
    return isFound.then((found) => afterSettling(limiter, id, found));
  }
  if (isFound) limiter[CURRENT].waiting?.changed(id);
  return isFound;
}

/** If `isBounded`, throws for a cost that can never pass. `max` replaces the maximum of the only window. */
function decide(limiter, id, options, records, isBounded = true, max = undefined) {
  let cost;
  try {
    cost = readAttemptCost(options, limiter[CURRENT].checked, isBounded);
  } catch (error) {
    return limiter[STORE].fail(error);
  }
  return decideAtCost(limiter, id, cost, records, max);
}

function decideAtCost(limiter, id, cost, records, max) {
  const attempt = newAttempt(limiter, id, cost, records);
  const own = limiter[CURRENT].checked.windows;
  const windows = max === undefined ? own : [{ interval: own[0].interval, maxInInterval: max }];
  const read = (numbers) => new Decision(numbers, 0, windows, attempt);
  return limiter[STORE].decide(id, cost, records, read, max);
}

RateLimiter.prototype = Object.create(Function.prototype, {
  constructor: { value: RateLimiter, writable: true, configurable: true },
});
for (const name of Reflect.ownKeys(methods)) {
  const property = Object.getOwnPropertyDescriptor(methods, name);
  Object.defineProperty(RateLimiter.prototype, name, { ...property, enumerable: false });
}

module.exports = RateLimiter;
