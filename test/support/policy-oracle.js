// TODO(merge): remove; the oracle is test/conformance/oracle.js.
// The algorithms and blocks by their definitions, in BigInt: one id, times in whole microseconds.
//
// Written from the definitions alone. It keeps what a definition speaks of, and searches where a script
// computes: a wait is the first moment at which the same question has another answer.
'use strict';

const floorDiv = (a, b) => (a - (((a % b) + b) % b)) / b;
const ceilDiv = (a, b) => -floorDiv(-a, b);
const ascending = (a, b) => (a < b ? -1 : 1); // Math.max takes no BigInt
const most = (...values) => values.sort(ascending).at(-1);
const least = (...values) => values.sort(ascending)[0];

const NARROW_CAP = 2n ** 24n - 1n;
const WIDE_CAP = 2n ** 53n - 1n;

/** The least moment in (from, to] at which `isBelow` holds; it holds at `to`, and never ceases to. */
function firstMoment(from, to, isBelow) {
  let no = from;
  let yes = to;
  while (yes - no > 1n) {
    const middle = (no + yes) >> 1n;
    if (isBelow(middle)) yes = middle;
    else no = middle;
  }
  return yes;
}

/** The records of all attempts, and what they come to at a moment. */
class WindowCounts {
  /** Of each window, by its number. */
  counts = new Map();

  constructor({ interval }, cap) {
    this.interval = interval;
    this.cap = cap;
  }

  windowOf(time) {
    return floorDiv(time, this.interval);
  }

  countOf(window) {
    return this.counts.get(window) ?? 0n;
  }

  record(at, cost) {
    const window = this.windowOf(at);
    this.counts.set(window, least(this.countOf(window) + cost, this.cap));
  }

  /** Whether the window's count matters to a store that has last recorded at `newest`. */
  refund(at, cost, newest, windowsKept) {
    const window = this.windowOf(at);
    if (this.windowOf(newest) - window >= windowsKept) return false;
    const count = this.countOf(window);
    this.counts.set(window, most(count - cost, 0n));
    return count > 0n;
  }
}

class FixedWindow extends WindowCounts {
  usedAt(time) {
    return this.countOf(this.windowOf(time));
  }

  horizon(at) {
    return (this.windowOf(at) + 1n) * this.interval;
  }

  refund(at, cost, { newest }) {
    return super.refund(at, cost, newest, 1n);
  }
}

class SlidingWindowCounter extends WindowCounts {
  usedAt(time) {
    const window = this.windowOf(time);
    const left = (window + 1n) * this.interval - time;
    return this.countOf(window) + (this.countOf(window - 1n) * left) / this.interval;
  }

  horizon(at) {
    return (this.windowOf(at) + 2n) * this.interval;
  }

  refund(at, cost, { newest }) {
    return super.refund(at, cost, newest, 2n);
  }
}

class Gcra {
  arrival = null; // in units
  costs = []; // what was recorded, by attempts

  constructor({ interval, max }) {
    this.max = max;
    this.scale = max <= 1000n ? max : 1000n;
    this.emission = max <= 1000n ? interval : most(ceilDiv(interval * 1000n, max), 1n);
  }

  usedAt(time) {
    const ahead = (this.arrival ?? time * this.scale) - time * this.scale;
    return ahead <= 0n ? 0n : ceilDiv(ahead, this.emission);
  }

  horizon(at) {
    return most(ceilDiv(this.arrival ?? 0n, this.scale), at + 1n);
  }

  record(at, cost, attempt) {
    this.arrival = most(this.arrival ?? at * this.scale, at * this.scale) + cost * this.emission;
    this.costs.push({ attempt, cost });
  }

  /** What has not leaked of it yet. */
  refund(at, cost, { attempt, time }) {
    const units = time * this.scale;
    if (units - at * this.scale >= this.max * this.emission) return false;
    const later = this.costs.filter((each) => each.attempt > attempt);
    const sum = later.reduce((total, each) => total + each.cost, 0n);
    const end = this.arrival - sum * this.emission;
    if (end <= units) return false;
    this.arrival -= least(cost * this.emission, end - units);
    // Nothing is above the newest, so that it need not keep its place.
    if (sum === 0n) this.costs = this.costs.filter((each) => each.attempt !== attempt);
    return true;
  }
}

class SlidingWindowLog {
  records = [];

  constructor({ interval }) {
    this.interval = interval;
  }

  usedAt(time) {
    const inside = this.records.filter(({ at }) => at > time - this.interval);
    return inside.reduce((sum, { cost }) => sum + cost, 0n);
  }

  horizon(at) {
    return at + this.interval;
  }

  record(at, cost, attempt) {
    this.records.push({ at, cost, attempt });
  }

  refund(_at, _cost, { attempt }) {
    const before = this.records.length;
    this.records = this.records.filter((each) => each.attempt !== attempt);
    return this.records.length < before;
  }
}

const KINDS = {
  'sliding-window-log': SlidingWindowLog,
  'fixed-window': FixedWindow,
  'sliding-window-counter': SlidingWindowCounter,
  gcra: Gcra,
};

class PolicyOracle {
  newest = null;
  blockUntil = null;
  offences = 0;
  attempts = 0;

  /** Durations in us, all numbers; `limits` as in oracle.js. */
  constructor({ algorithm, limits, minDifference, countBlocked, blockFor = [] }) {
    this.clamps = algorithm !== 'gcra';
    this.countBlocked = countBlocked;
    this.minDifference = BigInt(minDifference);
    this.lengths = blockFor.map(BigInt);
    const windows = limits.map((limit) => ({
      interval: BigInt(limit.interval),
      max: BigInt(limit.maxInInterval),
    }));
    const isNarrow = windows.every(({ max }) => max < NARROW_CAP);
    const cap = isNarrow ? NARROW_CAP : WIDE_CAP;
    this.windows = windows.map((window) => ({
      ...window,
      state: new KINDS[algorithm](window, cap),
    }));
    // What gcra needs neither for a gap nor for a block, it need not know.
    this.keepsNewest = limits.length > 1 || minDifference > 0 || blockFor.length > 0;
    this.longestWindow = most(...windows.map(({ interval }) => interval));
  }

  /** The state, to be put back. */
  save() {
    const { newest, blockUntil, offences } = this;
    const states = this.windows.map(({ state }) => ({
      ...state,
      ...(state.counts && { counts: new Map(state.counts) }),
      ...(state.costs && { costs: [...state.costs] }),
      ...(state.records && { records: [...state.records] }),
    }));
    return { own: { newest, blockUntil, offences }, states };
  }

  putBack({ own, states }) {
    Object.assign(this, own);
    for (const [i, { state }] of this.windows.entries()) Object.assign(state, states[i]);
  }

  peek(now, cost = 1) {
    const saved = this.save();
    const answer = this.decide(BigInt(now), BigInt(cost));
    this.putBack(saved);
    return answer;
  }

  attempt(now, cost = 1) {
    this.attempts += 1;
    return { ...this.decide(BigInt(now), BigInt(cost)), attempt: this.attempts };
  }

  refund(now, { at, cost, attempt }) {
    const { newest } = this;
    const time = this.keepsNewest && newest !== null ? most(BigInt(now), newest) : BigInt(now);
    const found = this.windows.map(({ state }) => {
      return state.refund(BigInt(at), BigInt(cost), { newest, attempt, time });
    });
    const { records } = this.windows[0].state;
    if (records !== undefined) this.newest = records.at(-1)?.at ?? null; // a log forgets it
    return found.includes(true);
  }

  decide(now, cost) {
    const { newest } = this;
    const at = this.clamps && newest !== null ? most(now, newest) : now;
    const blockedBy = this.blockedBy(at, cost);
    const isRecorded = blockedBy === 0 || (blockedBy !== 4 && this.countBlocked);
    if (isRecorded && cost > 0n) {
      for (const { state } of this.windows) state.record(at, cost, this.attempts);
      this.newest = at;
    }
    if (blockedBy !== 0 && blockedBy !== 4 && this.lengths.length > 0) this.startBlock(at);
    const timeLeft = blockedBy === 0 ? 0n : this.waitFor(now, at, cost);
    const windows = this.windows.map((window) => this.useOf(window, now, at));
    const actionsLeft = least(...windows.map(({ remaining }) => remaining));
    const tightest = windows.filter(({ remaining }) => remaining === actionsLeft);
    return {
      blockedBy,
      timeLeft: Number(timeLeft),
      actionsLeft: Number(actionsLeft),
      resetIn: Number(blockedBy ? timeLeft : most(...tightest.map(({ resetIn }) => resetIn))),
      wait: Number(this.waitFor(now, at, 1n)),
      windows: windows.flatMap(({ used, resetIn }) => [Number(used), Number(resetIn)]),
    };
  }

  isBlockedAt(at) {
    return this.blockUntil !== null && at < this.blockUntil;
  }

  isTooSoon(at, cost) {
    const { newest, minDifference } = this;
    return cost > 0n && newest !== null && minDifference > 0n && at - newest < minDifference;
  }

  isOver({ state, max }, at, cost) {
    return cost > 0n && state.usedAt(at) + cost > max;
  }

  blockedBy(at, cost) {
    if (this.isBlockedAt(at)) return 4;
    const byCount = this.windows.some((window) => this.isOver(window, at, cost)) ? 1 : 0;
    return byCount + (this.isTooSoon(at, cost) ? 2 : 0);
  }

  startBlock(at) {
    if (this.blockUntil !== null && at >= this.blockUntil + this.longestWindow) this.offences = 0;
    this.offences = Math.min(this.offences + 1, this.lengths.length);
    this.blockUntil = at + this.lengths[this.offences - 1];
  }

  /** Until the same attempt would pass if it came again and again. */
  waitFor(now, at, cost) {
    const { newest, minDifference, blockUntil } = this;
    const passes = (time) => this.blockedBy(time, cost) === 0;
    if (passes(at)) return 0n;
    const latest = most(
      ...this.windows.map(({ state }) => state.horizon(most(at, newest ?? at))),
      (newest ?? at) + minDifference,
      blockUntil ?? at,
      at + 1n,
    );
    return firstMoment(at, latest, passes) - now;
  }

  useOf({ state, max }, now, at) {
    const used = least(state.usedAt(at), max);
    const isLess = (time) => state.usedAt(time) < used;
    const resetIn = used === 0n ? 0n : firstMoment(at, state.horizon(at), isLess) - now;
    return { used, remaining: max - used, resetIn };
  }
}

module.exports = { PolicyOracle };
