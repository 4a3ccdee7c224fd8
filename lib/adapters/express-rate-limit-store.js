// A store for express-rate-limit that counts in rolling windows: in memory, or in any store of a limiter.
'use strict';

const { inspect } = require('node:util');
const { tightestWindow } = require('../base/decision');
const { failure, inAdapter, optionError, optionTypeError } = require('../base/errors');
const { flatCopy, keyToId } = require('../base/ids');
const RateLimiter = require('../limiter');
const { ANY_WINDOW_MS, countBlockedOf } = require('./middleware/limiter-options');
const { countOf, numberOf } = require('./middleware/limiters');
const {
  hasMethods,
  readObject,
  rejectUnknownOptions,
  withoutUndefined,
} = require('../options/values');
const limiters = require('../limiter/options');
const { CHOICES } = require('../stores/options');
const { readNamespace } = require('../stores/redis/options');
const { regionPath } = require('../stores/shared/region');

/** As errors name it. */
const NAME = 'RollgateStore';

/** Lets a request pass exactly if fewer than `limit` passed in the `windowMs` before it: see store.d.ts. */
class RollgateStore {
  #given;
  #limiter;
  #refusedHits = 0;
  #initialised;
  #initError;
  #recent = new RecentHits();

  constructor(options) {
    this.#given = inAdapter(NAME, () => readStoreOptions(options));
    const { limiter, localKeys, prefix } = this.#given;
    this.#limiter = limiter;
    /** Whether no other store shares the counts. */
    this.localKeys = localKeys;
    /** Identifies the counts, for the check of express-rate-limit that no request is counted twice. */
    if (prefix !== undefined) this.prefix = prefix;
  }

  /** Takes `windowMs`, and `limit` if it is a number, from the middleware's options. */
  init(options) {
    try {
      inAdapter(NAME, () => this.#initialise(options));
    } catch (error) {
      // express-rate-limit logs the error and uses the store anyway. Its requests cannot be distinguished from
      // those of another middleware with this store, so every later use of the store fails.
      this.#initError ??= error;
      throw error;
    }
  }

  #initialise(options) {
    this.#assertGood();
    const { limiter, limiterOptions } = this.#given;
    const { windowMs, limit, skipFailedRequests = false } = options;
    const asked = inspect({ windowMs, limit, skipFailedRequests });
    if (this.#initialised === asked) return;
    if (this.#initialised !== undefined) {
      throw failure(
        'ERR_ROLLGATE_STORE',
        `init: each store serves one middleware; another one has ${asked}, the first ${this.#initialised}`,
      );
    }
    if (limiter === undefined) {
      this.#limiter = new RateLimiter(limiterOptionsFor(limiterOptions, options));
    }
    // What is blocked here must exceed the middleware's limit as well.
    this.#refusedHits = typeof limit === 'number' ? Math.max(0, Math.floor(limit)) + 1 : 1;
    this.#initialised = asked;
  }

  async increment(key) {
    const limiter = this.#open();
    // A copy, because the key is remembered here and in the decision.
    const id = typeof key === 'string' ? flatCopy(key) : key;
    const decision = await limiter.attempt(id);
    this.#recent.remember(id, decision);
    const { used, maxInInterval } = tightestWindow(decision.limits);
    return {
      totalHits: decision.allowed ? used : Math.max(this.#refusedHits, maxInInterval + 1),
      resetTime: new Date(Date.now() + decision.resetIn),
    };
  }

  /** Refunds the newest hit of the key that was not refunded yet, if it is still remembered. */
  async decrement(key) {
    const limiter = this.#open();
    const decision = this.#recent.takeNewest(key);
    if (decision?.allowed) await limiter.refund(decision);
  }

  async get(key) {
    return countOf([this.#open()], key);
  }

  async resetKey(key) {
    const limiter = this.#open();
    this.#recent.forget(key);
    await limiter.clear(key);
  }

  async resetAll() {
    const limiter = this.#open();
    this.#recent.forgetAll();
    await limiter.clearAll();
  }

  /** Closes the limiter, unless it was given. */
  async shutdown() {
    if (this.#given.limiter === undefined) await this.#limiter?.close();
  }

  #open() {
    this.#assertGood();
    if (this.#initialised === undefined) {
      throw failure('ERR_ROLLGATE_STORE', 'the store has no limits: init was not called');
    }
    return this.#limiter;
  }

  #assertGood() {
    if (this.#initError === undefined) return;
    const { message } = this.#initError;
    throw failure(
      'ERR_ROLLGATE_STORE',
      `the store could not be initialised: ${message}`,
      this.#initError,
    );
  }
}

/** Of two generations, what one holds: hits, and characters of their keys, which a client may make long. */
const GENERATION = { hits: 5000, characters: 1_000_000 };

/**
 * The newest hits, which express-rate-limit may take back by naming the key. When a generation is full, the one
 * before it is forgotten: its hits stay counted.
 */
class RecentHits {
  /** The decisions by id, the current generation first. */
  #generations = [new Map(), new Map()];
  #count = 0;
  #characters = 0;

  /** Refused hits as well, so that taking one back does not take back an allowed one. */
  remember(key, decision) {
    const id = keyToId(key);
    const isFull =
      this.#count === GENERATION.hits || this.#characters + id.length > GENERATION.characters;
    if (isFull) this.#turnOver();
    const [current] = this.#generations;
    if (!current.has(id)) current.set(id, []);
    current.get(id).push(decision);
    this.#count++;
    this.#characters += id.length;
  }

  takeNewest(key) {
    const id = keyToId(key);
    const generation = this.#generations.find((one) => one.has(id));
    const decisions = generation?.get(id);
    if (decisions?.length === 1) generation.delete(id);
    return decisions?.pop();
  }

  forget(key) {
    for (const generation of this.#generations) generation.delete(keyToId(key));
  }

  forgetAll() {
    for (const generation of this.#generations) generation.clear();
  }

  #turnOver() {
    this.#generations = [new Map(), this.#generations[0]];
    this.#count = 0;
    this.#characters = 0;
  }
}

const KNOWN_OPTIONS = ['limiter', ...limiters.LIMITER_NAMES.filter((name) => name !== 'interval')];

/** Options that express-rate-limit passes to the store. */
const OF_MIDDLEWARE = {
  interval: "expected as 'windowMs' of the middleware: rateLimit({ windowMs, limit, store })",
  windowMs: 'belongs in rateLimit({ windowMs, limit, store })',
  limit: 'belongs in rateLimit({ windowMs, limit, store })',
  max: "expected as 'limit' of the middleware: rateLimit({ windowMs, limit, store })",
};

const METHODS = ['attempt', 'peek', 'refund', 'clear', 'clearAll'];

/** An existing `limiter`, or the `limiterOptions` of one that init() completes. */
function readStoreOptions(options = {}) {
  const given = withoutUndefined(readObject('options', options));
  rejectUnknownOptions(given, KNOWN_OPTIONS, { instead: OF_MIDDLEWARE });
  return given.limiter === undefined ? readNewLimiter(given) : readExistingLimiter(given);
}

function readExistingLimiter({ limiter, ...others }) {
  if (!hasMethods(limiter, ...METHODS)) {
    throw optionTypeError('limiter', `a limiter (with ${METHODS.join(', ')})`, limiter);
  }
  const [other] = Object.keys(others);
  // The prefix lets express-rate-limit distinguish limiters.
  const prefix = `limiter-${numberOf(limiter)}:`;
  if (other === undefined) return { limiter, localKeys: false, prefix };
  throw optionError(other, "conflicts with 'limiter', which has its own limits");
}

function readNewLimiter(given) {
  const interval = ANY_WINDOW_MS; // it is not known yet; this checks the other options
  limiters.readLimiterOptions({ maxInInterval: 1, countBlocked: false, ...given, interval });
  if (CHOICES.every((name) => given[name] === undefined)) {
    return { limiterOptions: given, localKeys: true, prefix: undefined };
  }
  if (given.shared !== undefined) {
    return { limiterOptions: given, localKeys: false, prefix: `${regionPath(given.shared)}:` };
  }
  const namespace = readNamespace(given.namespace);
  return { limiterOptions: { ...given, namespace }, localKeys: false, prefix: namespace };
}

/**
 * The options of the limiter behind a middleware. Its maximum is the middleware's limit; if that is a function, the
 * store needs the option maxInInterval, the largest limit that the function may return.
 */
function limiterOptionsFor(given, { windowMs, limit, skipFailedRequests }) {
  const options = { ...given };
  options.countBlocked = countBlockedOf(given, skipFailedRequests);
  if (given.limits !== undefined) return options;
  return { ...options, interval: windowMs, maxInInterval: maxFor(limit, given.maxInInterval) };
}

/** A limit of 0 refuses what was counted once, which needs a maximum of 1. */
function maxFor(limit, maxInInterval) {
  if (typeof limit === 'number' && !Number.isNaN(limit)) {
    return Math.min(Math.max(1, Math.floor(limit)), Number.MAX_SAFE_INTEGER);
  }
  if (maxInInterval !== undefined) return maxInInterval;
  throw optionTypeError(
    'maxInInterval',
    "an integer >= 1, the largest that 'limit' may give, which is no number here",
    maxInInterval,
  );
}

module.exports = RollgateStore;
module.exports.RollgateStore = RollgateStore;
