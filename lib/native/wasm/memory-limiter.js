// A limiter with a store in the memory of the WebAssembly module: the functions of the addon, in JavaScript.
// src/binding/local_limiter.h says what each does.
'use strict';

const { monotonicMs, randomBytes } = require('#platform');
const { RECORDS, decisionLength } = require('../../base/decision');
const { idToString } = require('../../base/ids');
const { STATUS } = require('./core');

const SECRET_BYTES = 48;

/** How many numbers are statistics. */
const STATS = 5;

/** How often aligned windows follow the wall clock, in us: see src/core/limiter_clock.h. */
const FOLLOWS_EVERY = 100_000;

function createMemoryLimiter(core, options, callbacks) {
  const { exports } = core;
  const { numbers, closed, exhausted, observesDecisions, observesEvictions } = callbacks;
  const calendars = { span: callbacks.span, findWindow: callbacks.findWindow };
  const [windowCount] = options.policy;
  const length = decisionLength(windowCount);
  core.writePolicy(options.policy);
  const settlesAskTime = exports.settles_ask_time();
  assertNotExhausted(settlesAskTime);
  let { policy } = options;
  /** Undefined before the first call. All functions refer to it, so that it lives as long as they do. */
  let store;
  let followsAt = Number.NEGATIVE_INFINITY;
  let isClosed = false;
  let hasReportedEvictions = false;

  /** Not earlier: some hosts have neither time nor random numbers before the first request. */
  function createStore() {
    core.reserve('numbers', Math.max(2 * length, STATS));
    core.writePolicy(policy);
    core.writeBytes(randomBytes(SECRET_BYTES));
    const address = exports.memory_new(options.maxKeys, callbacks.clock !== undefined);
    store = core.own(address, exports.memory_delete);
  }

  /** The address of the store. */
  function open() {
    if (isClosed) closed();
    if (store === undefined) createStore();
    return store.address;
  }

  /** The user's clock may close the limiter. */
  function readTime() {
    open();
    if (callbacks.clock === undefined) return readOwnClock();
    const time = callbacks.clock();
    if (isClosed) closed();
    return time;
  }

  function readOwnClock() {
    const now = Math.floor(monotonicMs() * 1000);
    if (now >= followsAt) {
      followsAt = now + FOLLOWS_EVERY;
      exports.memory_follow(store.address, now, Math.floor(Date.now() * 1000));
    }
    return now;
  }

  function reportEviction() {
    if (!hasReportedEvictions || observesEvictions[0] !== 0) callbacks.evicted();
    hasReportedEvictions = true;
  }

  function assertNotExhausted(status) {
    if (status & STATUS.EXHAUSTED) exhausted();
  }

  /** The time left by a negative result of `memory_check`. */
  function rareTimeLeft(result) {
    if (result === -1) exhausted();
    reportEviction();
    return -2 - result;
  }

  function limiter(id, callback) {
    if (callback !== undefined) return callbacks.callBack(id, callback);
    if (typeof id === 'function') return callbacks.callBack(undefined, id);
    const text = idToString(id);
    const time = readTime();
    core.calendars = calendars;
    const result = exports.memory_check(store.address, core.writeId(text), time);
    const timeLeft = result >= 0 ? result : rareTimeLeft(result);
    if (observesDecisions[0] !== 0) callbacks.decided(id, timeLeft);
    return timeLeft;
  }

  /** Writes the decision to `target`; returns whether an id was dropped. */
  function decideAt(time, text, { cost, records, terms, limits }, target, start) {
    core.calendars = calendars;
    const costs = core.writeCosts(cost);
    core.writeLimits(terms, limits);
    const units = core.writeId(text);
    const status = exports.memory_decide(store.address, units, time, records, costs, terms);
    assertNotExhausted(status);
    core.readNumbers(target, start, length);
    return (status & STATUS.EVICTED) !== 0;
  }

  function decideWithin(id, terms, cost = 1, records = RECORDS.ATTEMPT) {
    const text = idToString(id);
    // The user's clock may call this with other limits.
    const limits = callbacks.clock === undefined ? callbacks.limits : callbacks.limits.slice();
    const call = { cost, records, terms, limits };
    if (decideAt(readTime(), text, call, numbers, 0)) reportEviction();
  }

  function decide(id, cost = 1, records = RECORDS.ATTEMPT) {
    const text = idToString(id);
    const call = { cost, records, terms: 0 };
    if (decideAt(readTime(), text, call, numbers, 0)) reportEviction();
  }

  function decideMany(ids, numbers) {
    const texts = ids.map(idToString);
    const time = readTime();
    const attempt = { cost: 1, records: RECORDS.ATTEMPT, terms: 0 };
    let hasEvicted = false;
    for (const [i, text] of texts.entries()) {
      if (decideAt(time, text, attempt, numbers, i * length)) hasEvicted = true;
    }
    if (hasEvicted) reportEviction();
  }

  function settle(id, at, token, cost, actual) {
    open();
    const text = idToString(id);
    const time = settlesAskTime ? readTime() : 0;
    const costs = [core.writeCosts(cost), core.writeCosts(actual, windowCount)];
    const units = core.writeId(text);
    const status = exports.memory_settle(store.address, units, time, at, token, ...costs);
    assertNotExhausted(status);
    return (status & STATUS.FOUND) !== 0;
  }

  function block(id, duration) {
    const text = idToString(id);
    const time = readTime();
    assertNotExhausted(exports.memory_block(store.address, core.writeId(text), time, duration));
  }

  function setLimits(next) {
    if (store !== undefined) {
      const time = readTime();
      core.writePolicy(next);
      assertNotExhausted(exports.memory_set_limits(store.address, time));
    }
    policy = next;
  }

  function clear(...ids) {
    open();
    const { address } = store;
    const status =
      ids.length === 0
        ? exports.memory_clear_all(address)
        : exports.memory_clear(address, core.writeId(idToString(ids[0])));
    assertNotExhausted(status);
    return (status & STATUS.FOUND) !== 0;
  }

  function stats() {
    exports.memory_stats(open());
    core.readNumbers(numbers, 0, STATS);
  }

  function close() {
    isClosed = true;
    if (store !== undefined) core.release(store, exports.memory_delete);
  }

  return {
    check: limiter,
    decide,
    decideWithin,
    decideMany,
    settle,
    block,
    setLimits,
    clear,
    stats,
    close,
  };
}

module.exports = { createMemoryLimiter };
