// A store outside of this process: the functions of local.js, with promises of their results.
'use strict';

const platform = require('#platform');
const { DECISIONS, NEVER } = require('../../base/channels');
const { clockReader } = require('../../base/clock');
const { costToUser } = require('../../options/costs');
const { NUMBERS, RECORDS, decisionLength, isSeen } = require('../../base/decision');
const { errorOfFailure, throwInvalidCallback, throwClosed } = require('../../base/errors');
const { remoteIdToString } = require('../../base/ids');
const { createFallback, isOfBackend, Outages } = require('./on-error');
const { LocalRefusals } = require('./local-refusals');
const { OPERATIONS, askFor } = require('./operations');

/** Doubles are exact up to here; times stop at it. */
const LONGEST_MICROS = 2 ** 53;

/** A process whose clock is wrong would go by windows of its own: see frame.lua. */
const WRONG_TIME = 'ERR_ROLLGATE_CLOCK';

/** By RECORDS. To backends, WAITING is the same as IF_ALLOWED; only stores that answer at once are ASKING. */
const OPERATION_OF = {
  [RECORDS.NOTHING]: OPERATIONS.PEEK,
  [RECORDS.ATTEMPT]: OPERATIONS.ATTEMPT,
  [RECORDS.IF_ALLOWED]: OPERATIONS.IF_ALLOWED,
  [RECORDS.WAITING]: OPERATIONS.IF_ALLOWED,
  [RECORDS.RECORD]: OPERATIONS.RECORD,
};

const readTimeLeft = (numbers) => numbers[NUMBERS.TIME_LEFT];

const readAnswer = (numbers) => ({
  timeLeft: numbers[NUMBERS.TIME_LEFT],
  actionsLeft: numbers[NUMBERS.ACTIONS_LEFT],
});

/** The user's clock in us, within LONGEST_MICROS; without one, undefined: the backend has its own clock. */
function createClock(clock, onFailure) {
  if (clock === undefined) return () => undefined;
  const readClock = clockReader(clock, onFailure);
  return () => Math.max(-LONGEST_MICROS, Math.min(readClock(), LONGEST_MICROS));
}

/**
 * An asynchronous store: `decide` and `decideMany` promise the result of `read(numbers)`, which must copy what it
 * needs. Failures reject the promise with an Error. docs/design/remote-stores.md specifies backends and their calls.
 */
class RemoteStore {
  answersAtOnce = false;
  #backend;
  /** The backend, if it can decide without asking. */
  #deciding;
  #fallback;
  #refusals;
  #outages;
  #windows;
  #readNow;
  #observesDecisions;
  #counts = { allowed: 0, blocked: 0, recorded: 0, errors: 0, fallbacks: 0, localRefusals: 0 };
  #isClosed = false;

  /** The limiter function itself. */
  call = (id, callback) => {
    if (callback !== undefined) return this.#callBack(id, callback);
    if (typeof id === 'function') return this.#callBack(undefined, id);
    return this.#decide(id, 1, RECORDS.ATTEMPT, readTimeLeft, false);
  };

  constructor(checked, backend, onError) {
    this.detectedClientType = backend.detectedClientType;
    this.#backend = backend;
    this.#deciding = backend.answer === undefined ? null : backend;
    this.#fallback = createFallback(onError, checked);
    this.#refusals = checked.localRefusals ? new LocalRefusals(checked) : null;
    const ask = (call) => backend.ask(call);
    this.#outages = new Outages((id) => askFor(ask, { operation: OPERATIONS.PROBE, id }));
    this.#windows = checked.windows;
    this.#readNow = createClock(checked.clock, () => this.#counts.errors++);
    this.#observesDecisions = checked.isInner ? NEVER : DECISIONS.flag;
    backend.ownedBy?.(this.call);
    backend.useClock?.(this.#readNow);
  }

  assertOpen() {
    if (this.#isClosed) throwClosed();
  }

  #readId(id) {
    this.assertOpen();
    return remoteIdToString(id);
  }

  #readNowOpen() {
    const now = this.#readNow();
    this.assertOpen(); // the user's clock may have closed it
    return now;
  }

  /** As in local.js, but never ASKING. */
  decide(id, cost, records, read, terms) {
    return this.#decide(id, cost, records, read, true, terms);
  }

  /** `isFull`: whether `read` needs more numbers than BLOCKED and TIME_LEFT. */
  #decide(given, cost, records, read, isFull, terms) {
    try {
      const id = this.#readId(given);
      const now = this.#readNowOpen();
      const known =
        this.#deciding?.answer(id, cost, records, isFull, now) ??
        this.#repeated(id, cost, records, isFull, now, terms);
      if (known === undefined) {
        const operation = OPERATION_OF[records];
        const call = { operation, id, cost, isFull, now, terms, done: undefined };
        return this.#askToDecide(call, given, records, read);
      }
      this.#note(given, cost, records, known);
      return Promise.resolve(read(known));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** `given` is the id in the user's form. */
  #askToDecide(call, given, records, read) {
    return new Promise((resolve, reject) => {
      const { id, cost, terms } = call;
      const decideByFallback = () => this.#decideByFallback(id, cost, records, read, terms);
      // Before the call: after a failover, its failure says nothing about the part's successor.
      const part = this.#partOf(id);
      if (this.#isOut(part, id)) {
        resolve(decideByFallback());
        return;
      }
      call.done = (failed, numbers) => {
        if (failed === null) {
          this.#note(given, cost, records, numbers);
          resolve(read(numbers));
        } else if (this.#isFinal(failed, [part])) {
          reject(errorOfFailure(failed));
        } else {
          resolve(new Promise((decided) => decided(decideByFallback())));
        }
      };
      this.#ask(call);
    });
  }

  #ask(call) {
    this.#backend.ask(this.#refusals === null ? call : this.#refusals.observe(call));
  }

  /** The numbers of a refusal that Redis would give again, or undefined. */
  #repeated(id, cost, records, isFull, now, terms) {
    const isRepeatable = records !== RECORDS.NOTHING && records !== RECORDS.RECORD;
    if (this.#refusals === null || !isRepeatable || terms !== undefined) return undefined;
    const numbers = this.#refusals.find(id, cost, isFull, now);
    if (numbers !== undefined && records !== RECORDS.WAITING) this.#counts.localRefusals++;
    return numbers;
  }

  /** Counts a decision and publishes it. */
  #note(id, cost, records, numbers, offset = 0) {
    const blocked = numbers[offset + NUMBERS.BLOCKED];
    const isRecord = records === RECORDS.RECORD;
    if (!isRecord && !isSeen(records, blocked)) return;
    const allowed = isRecord || blocked === 0;
    this.#counts[isRecord ? 'recorded' : allowed ? 'allowed' : 'blocked']++;
    if (this.#observesDecisions[0] === 0) return;
    const shown = costToUser(cost, this.#windows);
    const timeLeft = isRecord ? 0 : numbers[offset + NUMBERS.TIME_LEFT];
    const message = { limiter: this.call, id, cost: shown, allowed, timeLeft };
    if (isRecord) message.kind = 'record';
    // Later, because a subscriber may call the limiter, which would overwrite the numbers. In a microtask,
    // because callers that only await microtasks would delay the next tick.
    queueMicrotask(() => DECISIONS.channel.publish(message));
  }

  #partOf(id) {
    return this.#fallback === null ? undefined : this.#backend.partOf(id);
  }

  /** Whether the fallback decides for this id. */
  #isOut(part, id) {
    return this.#fallback !== null && this.#outages.isOn(part, id);
  }

  #decideByFallback(id, cost, records, read, terms) {
    this.#counts.fallbacks++;
    const readCounted = (numbers) => {
      this.#note(id, cost, records, numbers);
      return read(numbers);
    };
    return this.#fallback.decide(id, cost, records, readCounted, terms);
  }

  /** Whether the caller gets a failure of these parts, because no fallback decides. */
  #isFinal(failed, parts) {
    this.#counts.errors++;
    if (this.#fallback === null || this.#isClosed || failed.code === WRONG_TIME) return true;
    // Of several parts it is not known which one failed; the next call of each finds out.
    const isOne = parts.every((part) => part === parts[0]);
    if (isOne && this.#backend.isOutage(failed)) this.#outages.note(parts[0]);
    return false;
  }

  async decideMany(ids, read) {
    this.assertOpen();
    const idStrings = ids.map((id) => this.#readId(id));
    const now = this.#readNow();
    return read(ids.length === 0 ? new Float64Array(0) : await this.#numbersOf(idStrings, now));
  }

  /** All are decided in one place: if one is unreachable, by the fallback. */
  async #numbersOf(ids, now) {
    const parts = ids.map((id) => this.#partOf(id));
    const out = parts.filter((part, i) => this.#isOut(part, ids[i])); // probes each of them
    if (out.length > 0) return this.#numbersByFallback(ids);
    try {
      const numbers = await this.#backend.attemptMany(ids, now);
      this.#refusals?.forgetAllowed(ids, numbers);
      return this.#noteAll(ids, numbers);
    } catch (failed) {
      if (this.#isFinal(failed, parts)) throw errorOfFailure(failed);
      return this.#numbersByFallback(ids);
    }
  }

  #numbersByFallback(ids) {
    this.#counts.fallbacks += ids.length;
    return this.#fallback.decideMany(ids, (numbers) => this.#noteAll(ids, numbers));
  }

  #noteAll(ids, numbers) {
    const length = decisionLength(this.#windows.length);
    for (const [i, id] of ids.entries()) this.#note(id, 1, RECORDS.ATTEMPT, numbers, i * length);
    return numbers;
  }

  /** Calls back outside of promises, so that an exception in the callback is uncaught. */
  #callBack(id, callback) {
    if (typeof callback !== 'function') throwInvalidCallback(callback);
    this.#decide(id, 1, RECORDS.ATTEMPT, readAnswer, true).then(
      ({ timeLeft, actionsLeft }) => platform.soon(callback, null, timeLeft, actionsLeft),
      (error) => platform.soon(callback, error),
    );
  }

  /** Promises the result of a call that onError does not apply to. */
  #request(call) {
    return askFor((whole) => this.#ask(whole), call).catch((failed) => this.#fail(failed));
  }

  #fail(failed) {
    this.#counts.errors++;
    throw errorOfFailure(failed);
  }

  async settle(receipt, actual) {
    if (receipt === null) return false;
    if (!isOfBackend(receipt)) return this.#fallback.settle(receipt, actual);
    const now = this.#readNowOpen();
    const id = remoteIdToString(receipt.id);
    return this.#request({ operation: OPERATIONS.SETTLE, id, now, receipt, actual });
  }

  /** `next`: the checked options of the limiter with other limits of the same shape. */
  setLimits(next) {
    this.assertOpen();
    this.#backend.setLimits(next); // first, because it may refuse them
    this.#windows = next.windows;
    this.#refusals?.setLimits(next);
    this.#fallback?.setLimits(next);
  }

  async block(given, ms) {
    const id = this.#readId(given);
    const now = this.#readNowOpen();
    this.#fallback?.block(id, ms);
    await this.#request({ operation: OPERATIONS.BLOCK, id, now, ms });
  }

  async clear(given) {
    const id = this.#readId(given);
    this.#fallback?.clear(id);
    await this.#request({ operation: OPERATIONS.CLEAR, id });
  }

  async clearAll() {
    this.assertOpen();
    this.#fallback?.clearAll();
    try {
      await this.#backend.clearAll();
    } catch (failed) {
      this.#fail(failed);
    } finally {
      this.#refusals?.forget();
    }
  }

  stats() {
    this.assertOpen();
    const { allowed, blocked, recorded, errors, fallbacks, localRefusals } = this.#counts;
    return {
      keys: null, // would need a scan
      allowed,
      blocked,
      recorded,
      evicted: this.#fallback?.evicted() ?? 0,
      errors,
      bytes: null,
      fallbacks,
      localRefusals,
      connection: this.#backend.stats(),
      ...this.#deciding?.leaseStats(),
    };
  }

  /** How an invalid call ends. */
  fail(error) {
    return Promise.reject(error);
  }

  async close() {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#fallback?.close();
    await this.#backend.close();
  }
}

module.exports = { RemoteStore };
