// The callable limiter and the methods that every limiter has, whatever its store.
'use strict';

const stores = require('#stores');
const {
  Decision,
  decisionLength,
  newAttempt,
  readInfo,
  takeReceipt,
  NUMBERS,
  RECORDS,
} = require('../base/decision');
const { MOST_RECORDED, readActual, readCost } = require('../options/costs');
const { typeError, show } = require('../base/errors');
const { warnOfRate } = require('../options/algorithms');
const { createMemoryStore } = require('../stores/local');
const { CURRENT, STORE, attemptOrRefuse, decide, decideUsage } = require('./attempts');
const demands = require('./demands');
const { readTerms } = require('./terms');
const {
  readBlock,
  readCallOptions,
  readLimiterOptions,
  withLimits,
  rejectOptions,
} = require('./options');
const {
  ANSWERS_AT_ONCE,
  ASSERT_FITS,
  ATTEMPT_OR_REFUSE,
  BLOCK,
  DECIDE,
  ENTRY_NAMES,
  READ_COST,
  TAKE_BACK,
  USAGE,
} = require('../base/internal-methods');

// Loaded when they are needed, so that a limiter in memory starts quickly.
const createWaitingCalls = (store) => new (require('./wait').Waiting)(store);
const readWaitOptions = (...given) => require('./wait').readWaitOptions(...given);

/** The options of a call that are its terms: see terms.js. */
const TERMS = ['limits', 'calendar'];
const COST_AND_TERMS = ['cost', ...TERMS];

function createStore(checked) {
  const name = Object.keys(stores).find((store) => checked[store] !== undefined);
  return name === undefined ? createMemoryStore(checked) : stores[name].create(checked);
}

function createWaiting(limiter) {
  const store = limiter[STORE];
  const timeLeftFor = (id, { cost, terms }) =>
    store.decide(id, cost, RECORDS.ASKING, readTimeLeft, terms);
  return createWaitingCalls({
    attempt: (id, { cost, terms }) => decide(limiter, id, cost, RECORDS.WAITING, terms),
    refund: (decision) => store.settle(takeReceipt(Decision.attemptOf(decision, limiter)), 0),
    isAtLeast: (demand, other) =>
      demands.isDemandAtLeast(demand, other, limiter[CURRENT].checked.windows),
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
  async limit(id, ...others) {
    rejectOptions('limit', others);
    return this[STORE].decide(id, 1, RECORDS.ATTEMPT, readBlocked);
  },

  async wouldLimit(id, ...others) {
    rejectOptions('wouldLimit', others);
    return this[STORE].decide(id, 1, RECORDS.NOTHING, readBlocked);
  },

  async limitWithInfo(id, ...others) {
    rejectOptions('limitWithInfo', others);
    return this[STORE].decide(id, 1, RECORDS.ATTEMPT, readInfo);
  },

  async wouldLimitWithInfo(id, ...others) {
    rejectOptions('wouldLimitWithInfo', others);
    return this[STORE].decide(id, 1, RECORDS.NOTHING, readInfo);
  },

  usage(id, options = {}) {
    return answer(this, () => {
      readCallOptions('usage options', options, TERMS);
      const terms = readTerms(options, this[CURRENT].checked);
      return decideUsage(this, id, 0, RECORDS.NOTHING, terms);
    });
  },

  record(id, options = {}) {
    return answer(this, () => {
      const { checked } = this[CURRENT];
      readCallOptions('record options', options, ['cost', 'calendar']);
      const cost = readCost(options.cost, checked, MOST_RECORDED);
      return decideUsage(this, id, cost, RECORDS.RECORD, readTerms(options, checked));
    });
  },

  attempt(id, options) {
    return attempt(this, id, options, RECORDS.ATTEMPT);
  },

  peek(id, options) {
    return attempt(this, id, options, RECORDS.NOTHING);
  },

  async wait(id, options) {
    const current = this[CURRENT];
    const checked = readWaitOptions(options, ['cost', ...TERMS], (given) => {
      return demands.readLastingDemand(given, current.checked);
    });
    this[STORE].assertOpen();
    current.waiting ??= createWaiting(this);
    return current.waiting.wait(id, checked);
  },

  /** The current usage, without an attempt. */
  [USAGE](id, options = {}) {
    const terms = readTerms(options, this[CURRENT].checked);
    return decide(this, id, 0, RECORDS.NOTHING, terms);
  },

  [DECIDE](id, { cost, terms }, records) {
    return decide(this, id, cost, records, terms);
  },

  [TAKE_BACK](decision) {
    return this.refund(decision);
  },

  [ENTRY_NAMES]: TERMS,

  [READ_COST](cost, { limits, calendar } = {}) {
    return demands.readDemand({ cost, limits, calendar }, this[CURRENT].checked);
  },

  [ASSERT_FITS](given) {
    demands.readFittingDemand(given, this[CURRENT].checked, Number.POSITIVE_INFINITY);
  },

  get [ANSWERS_AT_ONCE]() {
    return this[STORE]?.answersAtOnce;
  },

  [ATTEMPT_OR_REFUSE](id, options) {
    return answer(this, () => attemptOrRefuse(this, id, options));
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
    return settle(this, decision, 'settle', (attempt) => readActual(actual, attempt, windows));
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
    current.waiting?.limitsChanged((demand) => {
      Object.assign(demand, demands.readFittingDemand(demand.given, checked));
    });
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

/** What `ask` returns; its errors as the store gives errors. */
function answer(limiter, ask) {
  try {
    return ask();
  } catch (error) {
    return limiter[STORE].fail(error);
  }
}

/** `records` is one of RECORDS. */
function attempt(limiter, id, options, records) {
  if (options === undefined) return decide(limiter, id, 1, records, undefined);
  let demand;
  try {
    readCallOptions('attempt options', options, COST_AND_TERMS);
    demand = demands.readDemand(options, limiter[CURRENT].checked);
  } catch (error) {
    return limiter[STORE].fail(error);
  }
  return decide(limiter, id, demand.cost, records, demand.terms);
}

/** `readActualOf(attempt)` returns what the attempt came to, checked; if it throws, the decision can be settled later. */
function settle(limiter, decision, method, readActualOf) {
  const store = limiter[STORE];
  let attempt;
  let actual;
  try {
    store.assertOpen();
    attempt = Decision.attemptOf(decision, limiter, method);
    actual = readActualOf(attempt);
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

RateLimiter.prototype = Object.create(Function.prototype, {
  constructor: { value: RateLimiter, writable: true, configurable: true },
});
for (const name of Reflect.ownKeys(methods)) {
  const property = Object.getOwnPropertyDescriptor(methods, name);
  Object.defineProperty(RateLimiter.prototype, name, { ...property, enumerable: false });
}

module.exports = RateLimiter;
