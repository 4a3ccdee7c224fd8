// A store for express-rate-limit that counts in rolling windows: in memory, or wherever a limiter can.
'use strict';

const { inspect } = require('node:util');
const { failure } = require('./errors');
const { flatCopy } = require('./ids');
const RateLimiter = require('./limiter');
const { createGetKey } = require('./middleware/limiters');
const { tightestWindow } = require('./middleware/report');
const { limiterOptionsFor, readStoreOptions } = require('./store/options');
const { RecentHits } = require('./store/recent-hits');

/**
 * `rateLimit({ store: new RollgateStore(), windowMs: 60_000, limit: 100 })` of express-rate-limit 7 or 8
 * then lets a request pass exactly if fewer than `limit` came in the `windowMs` before it, refused ones
 * included. See store.d.ts for the options.
 */
class RollgateStore {
  #given;
  #limiter;
  #refusedHits = 0;
  #initialised;
  #initError;
  #recent = new RecentHits();

  constructor(options) {
    this.#given = readStoreOptions(options);
    const { limiter, localKeys, prefix } = this.#given;
    this.#limiter = limiter;
    /** Whether no other store can count in the same place. */
    this.localKeys = localKeys;
    /** Where it counts, for the check of express-rate-limit that no request counts there twice. */
    if (prefix !== undefined) this.prefix = prefix;
  }

  /** The middleware's options: `windowMs`, and `limit` where it is a number, become those of the limiter. */
  init(options) {
    try {
      this.#initialise(options);
    } catch (error) {
      // express-rate-limit logs it and goes on with this middleware as well. Nobody can tell its requests from
      // those of another one that has the store, so from now on every use of the store says it again.
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
        `init: expected one middleware for each store, got another with ${asked} beside ${this.#initialised}`,
      );
    }
    if (limiter === undefined) {
      this.#limiter = new RateLimiter(limiterOptionsFor(limiterOptions, options));
    }
    // What is refused here must be above the middleware's limit as well.
    this.#refusedHits = typeof limit === 'number' ? Math.max(0, Math.floor(limit)) + 1 : 1;
    this.#initialised = asked;
  }

  /** @returns {Promise<{ totalHits: number, resetTime: Date }>} */
  async increment(key) {
    const limiter = this.#open();
    // It is remembered, here and in the decision.
    const id = typeof key === 'string' ? flatCopy(key) : key;
    const decision = await limiter.attempt(id);
    this.#recent.remember(id, decision);
    const { used, maxInInterval } = tightestWindow(decision.limits);
    return {
      totalHits: decision.allowed ? used : Math.max(this.#refusedHits, maxInInterval + 1),
      resetTime: new Date(Date.now() + decision.resetIn),
    };
  }

  /** Takes back the newest hit of the key that was not taken back yet, if it is among the remembered ones. */
  async decrement(key) {
    const limiter = this.#open();
    const decision = this.#recent.takeNewest(key);
    if (decision?.allowed) await limiter.refund(decision);
  }

  /** @returns {Promise<{ totalHits: number, resetTime: Date } | undefined>} */
  async get(key) {
    const limiter = this.#open();
    return createGetKey(() => [limiter])(key);
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

  /** Closes the limiter, unless it is yours. */
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
    throw failure('ERR_ROLLGATE_STORE', `the store is of no use: ${message}`, this.#initError);
  }
}

module.exports = RollgateStore;
module.exports.RollgateStore = RollgateStore;
