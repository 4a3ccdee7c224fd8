// ConcurrencyLimiter: at most so many holders of an id at once.
'use strict';

const stores = require('#stores');
const { SLOTS } = require('../base/channels');
const { RECORDS } = require('../base/decision');
const { show, typeError } = require('../base/errors');
const internal = require('../base/internal-methods');
const { FULL } = require('../stores/holds');
const { HeldCounts } = require('../stores/held-counts');
const { LocalSlots } = require('../stores/local-slots');
const {
  DEMAND_NAMES,
  readAcquireOptions,
  readConcurrencyOptions,
  readCost,
  readDemand,
  readMax,
  readWaitDemand,
} = require('./options');
const { RemoteSlot, Slot, SlotRefusal } = require('./slot');

const { ANSWERS_AT_ONCE, DECIDE, ENTRY_NAMES, READ_COST, TAKE_BACK } = internal;

/** Of a call that waits while as many other ids are held as may be: the end of any of them makes room. */
const ROOM_RETRY_MS = 50;

/** Of waiting calls, whose attempts then share a command. */
const MOST_AT_ONCE = 64;

/** Loaded when somebody waits. */
const wait = () => require('../limiter/wait');

/** The `limiter`, `max`, which setMax replaces, the `store`, counts, and `waiting`, which the first wait() creates. */
const STATE = Symbol('state');

/**
 * Creates a concurrency limiter, with and without `new`. See concurrency.d.ts for options, results and errors.
 */
function ConcurrencyLimiter(options) {
  const checked = readConcurrencyOptions(options);
  const { max } = checked;
  const limiter = Object.create(new.target ? new.target.prototype : ConcurrencyLimiter.prototype);
  const state = { limiter, max, store: undefined, waiting: undefined, allowed: 0, blocked: 0 };
  const ended = ({ id, cost }, how) => {
    if (SLOTS.flag[0] !== 0) SLOTS.channel.publish({ limiter, type: how, id, cost });
    state.waiting?.changed(id);
  };
  const cleared = (id) => {
    if (id === undefined) state.waiting?.changedAll();
    else state.waiting?.changed(id);
  };
  state.store = createStore(checked, { ended, cleared });
  state.store.ownedBy?.(limiter);
  Object.defineProperty(limiter, STATE, { value: state });
  return limiter;
}

function createStore(checked, events) {
  const { maxKeys, redis, shared } = checked;
  if (redis !== undefined) return stores.redis.createSlots(checked, events);
  const counts =
    shared === undefined ? new HeldCounts(maxKeys) : stores.shared.createCounts(checked);
  return new LocalSlots(counts, checked, events);
}

/** A Slot, or a refusal; on Redis a promise of it. With noteGrant, nobody hears of a refusal: for calls that wait on. */
function take(state, id, cost, max, noteResult = note) {
  const { store } = state;
  if (!store.answersAtOnce) return takeLater(state, id, cost, max, noteResult);
  return noteResult(state, id, cost, resultOf(store.acquire(id, cost, max), max, Slot));
}

async function takeLater(state, id, cost, max, noteResult) {
  const answer = await state.store.acquire(id, cost, max);
  return noteResult(state, id, cost, resultOf(answer, max, RemoteSlot));
}

function note(state, id, cost, result) {
  if (result.allowed) return noteGrant(state, id, cost, result);
  state.blocked++;
  if (SLOTS.flag[0] !== 0) announce(state.limiter, id, cost, result);
  return result;
}

function noteGrant(state, id, cost, result) {
  if (!result.allowed) return result;
  state.allowed++;
  if (SLOTS.flag[0] !== 0) announce(state.limiter, id, cost, result);
  return result;
}

/** Rejects where `acquire` of other stores throws. */
async function acquireLater(state, id, options) {
  const { cost, max = state.max } = readAcquireOptions(options, state.max);
  return take(state, id, cost, max);
}

function announce(limiter, id, cost, { allowed, max, used, remaining }) {
  const type = allowed ? 'acquired' : 'refused';
  SLOTS.channel.publish({ limiter, type, id, cost, max, used, remaining });
}

/** `answer` is that of the store. */
function resultOf(answer, max, Granted) {
  if (typeof answer !== 'number') return new Granted(answer, max);
  if (answer === FULL) return new SlotRefusal(max, 0, 0);
  const used = -1 - answer;
  return new SlotRefusal(max, used, remainingOf(used, max));
}

const remainingOf = (used, max) => (used < max ? max - used : 0);

const usageOf = (used, max) =>
  used === FULL ? { max, used: 0, remaining: 0 } : { max, used, remaining: remainingOf(used, max) };

function createWaiting(state) {
  const { store } = state;
  const maxOf = ({ max = state.max }) => max;
  const { POLLS, Waiting } = wait();
  return new Waiting({
    attempt: (id, demand) => take(state, id, demand.cost, maxOf(demand), noteGrant),
    refund: (slot) => slot.release(),
    isAtLeast: (demand, other) => demand.cost >= other.cost && maxOf(demand) <= maxOf(other),
    // Refused with nothing used: for want of room for another id.
    timeLeftOf: ({ used }) => (used === 0 && !store.hasOthers ? ROOM_RETRY_MS : store.retryIn),
    isTimeKnown: false,
    polls: store.hasOthers ? POLLS : undefined,
    mostAtOnce: store.answersAtOnce ? 1 : MOST_AT_ONCE,
  });
}

const methods = {
  acquire(id, options) {
    const state = this[STATE];
    if (options === undefined) return take(state, id, 1, state.max);
    if (!state.store.answersAtOnce) return acquireLater(state, id, options);
    const { cost, max = state.max } = readAcquireOptions(options, state.max);
    return take(state, id, cost, max);
  },

  async wait(id, options) {
    const state = this[STATE];
    const read = (given) => readWaitDemand(given, state.max);
    const checked = wait().readWaitOptions(options, DEMAND_NAMES, read);
    state.store.assertOpen();
    state.waiting ??= createWaiting(state);
    return state.waiting.wait(id, checked);
  },

  async run(id, ...args) {
    const call = args.pop();
    if (typeof call !== 'function') {
      const message = `run: expected a function as the last argument, got ${show(call)}`;
      throw typeError('ERR_ROLLGATE_CALLBACK', message);
    }
    const slot = await this.wait(id, ...args);
    try {
      return await call(slot);
    } finally {
      await slot.release();
    }
  },

  usage(id) {
    const { store, max } = this[STATE];
    const used = store.usage(id);
    return store.answersAtOnce ? usageOf(used, max) : used.then((units) => usageOf(units, max));
  },

  setMax(max) {
    const state = this[STATE];
    state.store.assertOpen();
    state.max = readMax(max);
    state.waiting?.limitsChanged(({ cost }) => readCost(cost, state.max));
  },

  async clear(id) {
    await this[STATE].store.clear(id);
  },

  async clearAll() {
    await this[STATE].store.clearAll();
  },

  stats() {
    const { store, waiting, allowed, blocked } = this[STATE];
    return { ...store.stats(), allowed, blocked, waiting: waiting?.length ?? 0 };
  },

  async close() {
    const { store, waiting } = this[STATE];
    const closed = store.close();
    waiting?.close();
    await closed;
  },

  get [ANSWERS_AT_ONCE]() {
    return this[STATE]?.store.answersAtOnce;
  },

  [ENTRY_NAMES]: ['max'],

  /** Gives what [DECIDE] takes as cost. */
  [READ_COST](cost, { max } = {}) {
    return readDemand({ cost, max }, this[STATE].max);
  },

  [DECIDE](id, { cost, max = this[STATE].max }, records) {
    const state = this[STATE];
    if (records !== RECORDS.NOTHING) return take(state, id, cost, max);
    const usage = usageOf(state.store.usage(id), max);
    const hasRoom = usage.used > 0 || state.store.hasRoom();
    return { allowed: cost <= usage.remaining && hasRoom, ...usage };
  },

  [TAKE_BACK]: (slot) => slot.release(),
};

for (const name of Reflect.ownKeys(methods)) {
  const property = Object.getOwnPropertyDescriptor(methods, name);
  Object.defineProperty(ConcurrencyLimiter.prototype, name, { ...property, enumerable: false });
}

module.exports = ConcurrencyLimiter;
