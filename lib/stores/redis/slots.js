// The slots of a concurrency limiter on Redis: the server counts tokens, and this process believes in those that it has
// confirmed lately. docs/design/remote-stores.md has the protocol.
'use strict';

const { closedError, errorOfFailure, throwClosed } = require('../../base/errors');
const { remoteIdToString } = require('../../base/ids');
const { FULL, Hold, Holds } = require('../holds');
const { Outages } = require('../remote/on-error');
const { readClocks } = require('./clocks');
const { ConfirmedHolds } = require('./confirmed-holds');
const failures = require('./failures');
const { SlotCommands } = require('./slot-commands');

/** A hold has the number of its token. Without `sentAt`, it counts nowhere: onError has granted it. */
class RedisSlots {
  answersAtOnce = false;
  /** Those that count: others have no age. */
  addsHolds = true;
  hasOthers = true;
  /** Polls ask again. */
  retryIn = Infinity;
  holds;
  #commands;
  #events;
  #onError;
  #outages;
  /** What counts. */
  #held;
  /** What was asked for, and may have been granted. */
  #asked = new Set();
  /** What may be on the server, and nobody holds. */
  #unwanted = [];
  #errors = 0;
  #fallbacks = 0;
  #closing;

  /** `events` as of LocalSlots */
  constructor({ ttl, maxAge, clock, onError, ...place }, events) {
    this.#commands = new SlotCommands({ ...place, ttl });
    this.#events = events;
    this.#onError = onError;
    this.#outages = new Outages((id) => this.#commands.probe(id));
    this.holds = new Holds(this, { maxAge, clock });
    this.#held = new ConfirmedHolds(ttl, this.holds, (holds, done) => this.#renew(holds, done));
  }

  ownedBy(limiter) {
    this.#commands.backend.ownedBy(limiter);
  }

  assertOpen() {
    if (this.#closing !== undefined) throwClosed();
  }

  counts(hold) {
    return !hold.isOver && this.#closing === undefined;
  }

  /** Promises a Hold; if it is refused, -1 - what is used of the id, or FULL. */
  acquire(given, cost, max) {
    return new Promise((resolve, reject) => {
      const { id, now } = this.#begin(given);
      const part = this.#partOf(id);
      const fallBack = () => resolve(this.#acquireWithout(given, cost, max));
      if (this.#isOut(part, id)) {
        fallBack();
        return;
      }
      const handle = this.#commands.nextNumber();
      const hold = new Hold(this, { id: given, cost, used: 0, handle });
      const sentAt = readClocks();
      this.#asked.add(hold);
      this.#commands.acquire(id, hold, max, (failed, _, answer) => {
        this.#asked.delete(hold);
        const isGranted = failed === null && answer % 2 === 1;
        if (failed !== null) {
          if (failures.mayBeDone(failed)) this.#giveBack(hold);
          if (this.#isFinal(failed, part)) reject(errorOfFailure(failed));
          else fallBack();
        } else if (isGranted && this.#closing === undefined && this.#held.isTooOld(sentAt)) {
          // This process was stopped meanwhile; it asks again.
          this.#giveBack(hold);
          this.acquire(given, cost, max).then(resolve, reject);
        } else if (!isGranted) {
          resolve(-1 - answer / 2);
        } else if (this.#closing === undefined) {
          hold.used = (answer - 1) / 2;
          this.holds.add(hold, now);
          this.#held.add(hold, sentAt);
          resolve(hold);
        } else {
          reject(closedError()); // close() gives it back
        }
      });
    });
  }

  #begin(given) {
    this.assertOpen();
    const id = remoteIdToString(given);
    const now = this.holds.loseOld();
    this.assertOpen(); // a listener or the user's clock may have closed it
    this.#giveBackNow();
    return { id, now };
  }

  #partOf(id) {
    return this.#onError === 'throw' ? undefined : this.#commands.backend.partOf(id);
  }

  #isOut(part, id) {
    return this.#onError !== 'throw' && this.#outages.isOn(part, id);
  }

  /** Whether the caller gets the failure, because onError does not decide. */
  #isFinal(failed, part) {
    this.#errors++;
    if (this.#onError === 'throw' || this.#closing !== undefined) return true;
    if (failures.isOutage(failed)) this.#outages.note(part);
    return false;
  }

  #acquireWithout(id, cost, max) {
    this.#fallbacks++;
    if (this.#onError === 'block') return FULL;
    return cost > max ? -1 : new Hold(this, { id, cost, used: cost });
  }

  /** Promises whether it was held until now. */
  release(hold) {
    this.look();
    this.holds.loseOldIfPossible();
    if (!this.counts(hold)) return Promise.resolve(false);
    let released = Promise.resolve(true);
    const send = () => {
      released = new Promise((resolve) => {
        // What fails runs out on the server.
        const done = (failed, _, answer) => resolve(failed === null ? answer === 1 : this.#fail());
        this.#commands.release(hold, done);
      });
    };
    this.end(hold, 'released', send);
    return released;
  }

  #fail() {
    this.#errors++;
    return true;
  }

  /** The first call ends the hold; returns whether it counted until now. Waiting calls ask after its release is sent. */
  end(hold, how, send = () => this.#giveBack(hold)) {
    if (!this.counts(hold)) return false;
    hold.isOver = true;
    this.holds.forget(hold);
    if (this.#held.delete(hold)) {
      this.#giveBackNow();
      send();
    }
    this.#events.ended(hold, how);
    return true;
  }

  /** Together with others of this turn, but before any acquisition that follows. */
  #giveBack(hold) {
    if (this.#unwanted.push(hold) === 1) queueMicrotask(() => this.#giveBackNow());
  }

  #giveBackNow() {
    if (this.#unwanted.length === 0 || this.#closing !== undefined) return;
    this.#commands.change('release', this.#unwanted, () => {}); // what fails runs out
    this.#unwanted = [];
  }

  /** A renewal that fails changes nothing: the next one may succeed. */
  #renew(held, done) {
    this.#commands.change('renew', held, (failed, holds, isMissing) => {
      if (failed === null) done(holds, isMissing);
      else this.#errors++;
    });
  }

  look() {
    this.#held.look();
  }

  /** Promises how many units are held, or FULL. */
  async usage(given) {
    this.look();
    const { id } = this.#begin(given);
    const part = this.#partOf(id);
    if (!this.#isOut(part, id)) {
      try {
        return await this.#commands.usage(id);
      } catch (failed) {
        if (this.#isFinal(failed, part)) throw errorOfFailure(failed);
      }
    }
    this.#fallbacks++;
    return this.#onError === 'block' ? FULL : 0;
  }

  async clear(given) {
    const { id } = this.#begin(given);
    const cleared = this.#known((hold) => remoteIdToString(hold.id) === id);
    await this.#request(this.#commands.clear(id));
    this.#cleared(cleared, given);
  }

  async clearAll() {
    this.#begin();
    const cleared = this.#known(() => true);
    await this.#request(this.#commands.clearAll());
    this.#cleared(cleared);
  }

  /** What an answer to a later call grants is not among them. */
  #known(isMeant) {
    return [...this.#held, ...this.#asked].filter(isMeant);
  }

  #cleared(holds, ...ids) {
    for (const hold of holds) if (this.#held.has(hold)) this.holds.lose(hold);
    if (this.#closing === undefined) this.#events.cleared(...ids);
  }

  async #request(promise) {
    try {
      await promise;
    } catch (failed) {
      this.#errors++;
      throw errorOfFailure(failed);
    }
  }

  stats() {
    this.assertOpen();
    this.look();
    const now = this.holds.loseOld();
    this.assertOpen();
    const { oldest, leaked, errors } = this.holds.stats(now);
    return {
      keys: null, // would need a scan
      held: this.#held.units,
      oldest,
      leaked,
      errors: errors + this.#errors,
      bytes: null,
      fallbacks: this.#fallbacks,
      connection: this.#commands.backend.stats(),
    };
  }

  /** Gives back what is held or was asked for, within the time of a command. */
  close() {
    if (this.#closing !== undefined) return this.#closing;
    const holds = [...this.#unwanted, ...this.#known(() => true)];
    this.#held.close();
    this.holds.close();
    this.#closing = this.#commands
      .change('release', holds, () => {})
      .then(() => this.#commands.close());
    return this.#closing;
  }
}

module.exports = { RedisSlots };
