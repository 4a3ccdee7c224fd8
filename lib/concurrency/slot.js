// What acquire() gives: a Slot, and the net for slots that the program forgets.
'use strict';

const platform = require('#platform');

/** The slots of this turn of the event loop: most are released in it, and need no net. */
let fresh = [];
let isTurnWatched = false;

/** With so many, the turn ends early for them. */
const MOST_FRESH = 1024;

/** Undefined on workerd with a compatibility date before May 2025. */
const net =
  typeof FinalizationRegistry === 'undefined'
    ? undefined
    : new FinalizationRegistry((hold) => hold.store.holds.collected(hold));

function remember(slot) {
  fresh.push(slot);
  if (fresh.length === MOST_FRESH) endTurn();
  if (isTurnWatched) return;
  isTurnWatched = true;
  platform.afterTurn(endTurn);
}

function endTurn() {
  const outliving = fresh;
  fresh = [];
  isTurnWatched = false;
  for (const slot of outliving) Slot.outlivesTurn(slot);
}

/** What is held of an id. `used` is of all its holders, this one included, at the time of the call. */
class Slot {
  allowed = true;
  #hold;

  constructor(hold, max) {
    const { used, cost } = hold;
    this.max = max;
    this.used = used;
    this.remaining = used < max ? max - used : 0;
    this.cost = cost;
    this.#hold = hold;
    remember(this);
  }

  static outlivesTurn(slot) {
    const hold = slot.#hold;
    if (hold.isOver) return;
    hold.store.holds.outlivesTurn(hold);
    net?.register(slot, hold);
  }

  /** See concurrency.d.ts. */
  release() {
    if (fresh[fresh.length - 1] === this) fresh.pop();
    const hold = this.#hold;
    return hold.store.release(hold);
  }

  get lost() {
    const hold = this.#hold;
    return hold.store.holds.signalOf(hold);
  }
}

/** Of hosts without explicit resource management these symbols are those that compilers use there. */
const symbolOf = (name) => Symbol[name] ?? Symbol.for(`Symbol.${name}`);

/** On Redis: its release is a promise, which `using` does not wait for. */
class RemoteSlot extends Slot {}

Object.defineProperty(RemoteSlot.prototype, symbolOf('dispose'), { value: undefined });

/** There is nothing to release, so that `using` takes what acquire() gave, whatever it is. */
class SlotRefusal {
  allowed = false;

  constructor(max, used, remaining) {
    this.max = max;
    this.used = used;
    this.remaining = remaining;
  }
}

function defineDispose({ prototype }, dispose) {
  const value = {
    dispose() {
      dispose(this);
    },
    async asyncDispose() {
      await dispose(this);
    },
  };
  for (const [name, method] of Object.entries(value)) {
    Object.defineProperty(prototype, symbolOf(name), { value: method });
  }
}

defineDispose(Slot, (slot) => slot.release());
defineDispose(SlotRefusal, () => {});

module.exports = { RemoteSlot, Slot, SlotRefusal };
