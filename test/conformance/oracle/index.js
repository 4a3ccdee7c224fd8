// The oracle that every store is held against: one id's history, judged by counting and by search.
//
// Shares no formula with the stores: how much is used at a moment is counted from all that was ever
// recorded, and every wait is searched for.
'use strict';

const { ALGORITHMS } = require('../../../lib/algorithms');

/**
 * What is told of each algorithm, in the file of its name; times are us.
 *
 * - `clampsTime`: whether time counts as no earlier than the newest action
 * - `newestOf(history)`: when that was, as far as minDifference asks
 * - `usedBy(history, limit, policy)`: what is used of the limit, as a function of the moment
 * - `findsIn(history, record, policy, now)`: whether a refund finds the attempt; undefined where that is
 *   a store's own affair
 * - `keepsTo(admissions, limit)`: whether { at, cost } in the order of their times keep to the rule
 * - `examples`: moments of admissions under two in 100 us: those that keep to the rule, and others
 * - `countsBlocked`: whether a refusal can count
 * - `fullFor(interval, max)`: how long a window stays full that is filled as it begins, by one attempt
 * - `fullForAfterRefusal(interval)`: where max is one and a refusal counts in the middle of the window,
 *   how long it is full from then on; undefined where none can count
 */
const RULES = Object.fromEntries(ALGORITHMS.map((name) => [name, require(`./${name}`)]));
const BLOCKED_BY = { COUNT: 1, MIN_DIFFERENCE: 2, BLOCK: 4 };

/** The least n >= 0 for which a predicate holds that stays true once it is. */
function leastFor(holds) {
  if (holds(0)) return 0;
  let above = 1;
  while (!holds(above)) above *= 2;
  let below = Math.floor(above / 2);
  while (above - below > 1) {
    const middle = below + Math.floor((above - below) / 2);
    if (holds(middle)) above = middle;
    else below = middle;
  }
  return above;
}

/** A history under a policy, with the block it has come to: what there is to ask of it. */
class View {
  constructor({ history, blockUntil, offences }, policy) {
    const rule = RULES[policy.algorithm];
    this.history = history;
    this.blockUntil = blockUntil;
    this.offences = offences;
    this.policy = policy;
    this.newest = rule.newestOf(history);
    this.clampsTime = rule.clampsTime;
    this.used = policy.limits.map((limit) => rule.usedBy(history, limit, policy));
  }

  /** When an attempt counts as made. */
  atOf(now) {
    return this.clampsTime && this.newest !== undefined ? Math.max(now, this.newest) : now;
  }

  /** Why an attempt is refused, in bits; 0 if it is not. */
  blockedBy(now, cost) {
    const { limits, minDifference } = this.policy;
    const at = this.atOf(now);
    if (this.blockUntil !== undefined && at < this.blockUntil) return BLOCKED_BY.BLOCK;
    const isFull = limits.some(({ maxInInterval }, i) => cost > maxInInterval - this.used[i](at));
    const isSoon =
      minDifference > 0 && this.newest !== undefined && at - this.newest < minDifference;
    return (isFull ? BLOCKED_BY.COUNT : 0) + (isSoon ? BLOCKED_BY.MIN_DIFFERENCE : 0);
  }

  waitFor(now, cost) {
    return leastFor((micros) => this.blockedBy(now + micros, cost) === 0);
  }

  windowsAt(now, at) {
    return this.policy.limits.map(({ maxInInterval }, i) => {
      const used = Math.min(this.used[i](at), maxInInterval);
      const resetIn =
        used === 0 ? 0 : at - now + leastFor((micros) => this.used[i](at + micros) < used);
      return { used, remaining: maxInInterval - used, resetIn };
    });
  }
}

/**
 * All durations and times are whole microseconds.
 *
 * @typedef {{ algorithm: string, limits: { interval: number, maxInInterval: number }[],
 *   minDifference: number, countBlocked: boolean, blockFor: number[] }} OraclePolicy
 * @typedef {{ attempt: number, allowed: boolean, blockedBy: number, at: number, timeLeft: number,
 *   wait: number, actionsLeft: number, resetIn: number,
 *   windows: { used: number, remaining: number, resetIn: number }[] }} Answer
 */
class Oracle {
  /** @param {OraclePolicy} policy */
  constructor(policy) {
    this.policy = policy;
    this.attempts = 0;
    this.clear();
  }

  /** @returns {Answer} */
  attempt(now, cost = 1) {
    const attempt = this.attempts + 1;
    const { answer, state } = this.judge(now, cost, attempt);
    this.attempts = attempt;
    this.become(state);
    if (answer.allowed) this.refundable.set(attempt, { at: answer.at, cost, attempt });
    return answer;
  }

  /** @returns {Answer} what attempt() would answer; changes nothing */
  peek(now, cost = 1) {
    return this.judge(now, cost, 0).answer;
  }

  /** How much each window holds, with no attempt in it. */
  usage(now) {
    return this.view.windowsAt(now, this.view.atOf(now));
  }

  /**
   * Takes an attempt back; whether there was anything. Undefined, and nothing changed, where the
   * answer is a store's own affair.
   */
  refund(attempt, now) {
    const record = this.refundable.get(attempt);
    if (record === undefined) return false;
    const { findsIn } = RULES[this.policy.algorithm];
    const found = findsIn(this.state.history, record, this.policy, now);
    if (found) this.takeBack(attempt, now);
    if (found === false) this.refundable.delete(attempt);
    return found;
  }

  /** Takes an allowed attempt back, whatever a store would find of it. */
  takeBack(attempt, now) {
    this.refundable.delete(attempt);
    const history = [...this.state.history, { takesBack: attempt, now }];
    this.become({ ...this.state, history });
  }

  /** Forgets all. Nothing of what was before can be taken back. */
  clear() {
    this.refundable = new Map();
    this.become({ history: [], blockUntil: undefined, offences: 0 });
  }

  become(state) {
    this.state = state;
    this.view = new View(state, this.policy);
  }

  judge(now, cost, attempt) {
    const at = this.view.atOf(now);
    const blockedBy = this.view.blockedBy(now, cost);
    const state = this.stateAfter(blockedBy, at, { at, cost, attempt });
    const after = state === this.state ? this.view : new View(state, this.policy);
    const allowed = blockedBy === 0;
    const timeLeft = allowed ? 0 : after.waitFor(now, cost);
    const windows = after.windowsAt(now, at);
    const actionsLeft = Math.min(...windows.map(({ remaining }) => remaining));
    const tightest = windows.filter(({ remaining }) => remaining === actionsLeft);
    const answer = {
      attempt,
      allowed,
      blockedBy,
      at,
      timeLeft,
      wait: after.waitFor(now, 1),
      actionsLeft,
      resetIn: allowed ? Math.max(...tightest.map(({ resetIn }) => resetIn)) : timeLeft,
      windows,
    };
    return { answer, state };
  }

  stateAfter(blockedBy, at, record) {
    if (blockedBy === BLOCKED_BY.BLOCK) return this.state;
    const isRecorded = blockedBy === 0 || this.policy.countBlocked;
    const history = isRecorded ? [...this.state.history, record] : this.state.history;
    if (blockedBy === 0) return { ...this.state, history };
    return { ...this.state, history, ...this.blockAfterRefusal(at) };
  }

  /** Each offence takes the next length, until the id has been good for long enough. */
  blockAfterRefusal(at) {
    const { blockFor, limits } = this.policy;
    if (blockFor.length === 0) return {};
    const longest = Math.max(...limits.map(({ interval }) => interval));
    const { blockUntil, offences } = this.state;
    const isForgotten = blockUntil === undefined || at >= blockUntil + longest;
    const offence = Math.min((isForgotten ? 0 : offences) + 1, blockFor.length);
    return { blockUntil: at + blockFor[offence - 1], offences: offence };
  }
}

module.exports = { ALGORITHM_NAMES: ALGORITHMS, BLOCKED_BY, Oracle, RULES };
