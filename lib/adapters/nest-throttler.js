// A storage for @nestjs/throttler that counts in rolling windows: in memory, or in any store of a limiter.
'use strict';

const { tightestWindow } = require('../base/decision');
const { failure, inAdapter } = require('../base/errors');
const { ATTEMPT_OR_REFUSE } = require('../base/internal-methods');
const { limiterByRequest } = require('./middleware/limiters');
const { storeOptionsFor } = require('./middleware/rules/zones');
const {
  readInterval,
  readNumber,
  readObject,
  rejectUnknownOptions,
  withoutUndefined,
} = require('../options/values');
const limiters = require('../limiter/options');

/** As errors name it. */
const NAME = 'RollgateThrottlerStorage';

/** Far more than an application declares. A `ttl` that is computed from the time would make limiters without end. */
const MOST_LIMITERS = 1000;

const MS_PER_SECOND = 1000;

/** Lets a request pass exactly if fewer than `limit` passed in the `ttl` before it: see nest.d.ts. */
class RollgateThrottlerStorage {
  #options;
  #limiters = new Map();
  #isClosed = false;

  constructor(options) {
    this.#options = inAdapter(NAME, () => readStorageOptions(options));
  }

  /** `ttl` and `blockDuration` are ms; the times of the result are seconds. */
  async increment(key, ttl, limit, blockDuration, throttlerName) {
    const { max, limiter } = inAdapter(NAME, () => ({
      max: readNumber('limit', limit, 'a number', (n) => !Number.isNaN(n)),
      limiter: this.#limiterOf({ ttl, blockDuration, throttlerName }),
    }));
    const limits = Math.max(0, Math.floor(max));
    const decision = await limiter[ATTEMPT_OR_REFUSE](key, { limits });
    const { used, maxInInterval } = tightestWindow(decision.limits);
    return recordOf(decision.allowed ? used : maxInInterval + 1, decision);
  }

  /** Called by Nest, after `app.enableShutdownHooks()` or with `app.close()`. */
  async onApplicationShutdown() {
    this.#isClosed = true;
    await Promise.all([...this.#limiters.values()].map((limiter) => limiter.close()));
  }

  /** One for each throttler and its times: a route or a function may give others. The limit comes with each attempt. */
  #limiterOf({ ttl, blockDuration, throttlerName }) {
    const name = `throttler:${encodeURIComponent(throttlerName)}:${ttl}:${blockDuration}`;
    const known = this.#limiters.get(name);
    if (known !== undefined) return known;
    if (this.#isClosed) throw failure('ERR_ROLLGATE_CLOSED', 'the storage is closed');
    if (this.#limiters.size === MOST_LIMITERS) throw tooManyLimiters({ ttl, blockDuration });
    const limiter = limiterByRequest({
      countBlocked: false,
      ...storeOptionsFor(this.#options, name),
      ...timesOf(ttl, blockDuration),
    });
    this.#limiters.set(name, limiter);
    return limiter;
  }
}

/** The limiter's options, whose errors name those of the throttler. */
function timesOf(ttl, blockDuration) {
  const isDuration = (ms) => Number.isFinite(ms) && ms >= 0;
  readNumber('blockDuration', blockDuration, 'a finite number of ms >= 0', isDuration);
  const blockFor = blockDuration === 0 ? undefined : blockDuration;
  return { interval: readInterval('ttl', ttl), blockFor };
}

function tooManyLimiters({ ttl, blockDuration }) {
  return failure(
    'ERR_ROLLGATE_STORE',
    `throttlers have more than ${MOST_LIMITERS} different pairs of ttl and blockDuration, now ${ttl} and ${blockDuration}`,
  );
}

const inSeconds = (ms) => Math.ceil(ms / MS_PER_SECOND);

function recordOf(totalHits, { allowed, timeLeft, resetIn }) {
  return {
    totalHits,
    timeToExpire: inSeconds(resetIn),
    isBlocked: !allowed,
    timeToBlockExpire: inSeconds(timeLeft),
  };
}

/** Options of a limiter that the throttlers have under other names. */
const OF_THROTTLERS = Object.fromEntries(
  [
    ...['interval', 'windowMs', 'ttl'].map((name) => [name, 'ttl']),
    ...['maxInInterval', 'max', 'limit'].map((name) => [name, 'limit']),
    ...['blockFor', 'blockDuration'].map((name) => [name, 'blockDuration']),
  ].map(([name, own]) => [name, `expected as '${own}' of a throttler: { ttl, limit }`]),
);

const INSTEAD = {
  ...OF_THROTTLERS,
  lease: 'not available here: each request brings its limit, and permits are taken ahead under one',
};

const NOT_HERE = [...Object.keys(INSTEAD), 'limits', 'minDifference'];

const KNOWN_OPTIONS = limiters.LIMITER_NAMES.filter((name) => !NOT_HERE.includes(name));

function readStorageOptions(options = {}) {
  const given = withoutUndefined(readObject('options', options));
  rejectUnknownOptions(given, KNOWN_OPTIONS, { instead: INSTEAD });
  // The limits are not known yet; this checks the other options.
  limiters.readLimiterOptions({ countBlocked: false, ...given, interval: 1, maxInInterval: 1 });
  return given;
}

module.exports = { RollgateThrottlerStorage };
