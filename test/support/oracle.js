// The brute-force limiter that real ones are held against: keeps every time stamp of one id for ever.
'use strict';

/** Whole microseconds to whole ms, rounded up. */
const toMs = (micros) => Math.ceil(micros / 1000);

/**
 * Judges by counting. Times and intervals are whole microseconds; answers are in ms as a limiter's
 * Decisions are.
 */
class Oracle {
  /** @param {{ limits: { interval: number, maxInInterval: number }[], minDifference: number,
   *    countBlocked: boolean }} policy */
  constructor(policy) {
    this.policy = policy;
    this.actions = []; // { at, attempt }, times never descending
    this.attempts = 0;
  }

  attempt(now, cost = 1) {
    const answer = this.peek(now, cost);
    this.attempts += 1;
    this.actions = this.after(answer, cost, this.attempts);
    return { ...answer, attempt: this.attempts };
  }

  peek(now, cost = 1) {
    const verdict = this.judge(this.actions, now, cost);
    const after = this.after(verdict, cost, 0);
    const limits = this.policy.limits.map(({ interval, maxInInterval }) => {
      // Of a window that holds more than it may, the newest count.
      const inside = after.filter(({ at }) => at > verdict.at - interval).slice(-maxInInterval);
      const resetIn = inside.length === 0 ? 0 : toMs(inside[0].at + interval - now);
      const used = inside.length;
      return {
        interval: interval / 1000,
        maxInInterval,
        used,
        remaining: maxInInterval - used,
        resetIn,
      };
    });
    const timeLeft = verdict.allowed ? 0 : toMs(this.firstPass(after, now, cost) - now);
    const actionsLeft = Math.min(...limits.map(({ remaining }) => remaining));
    const tightest = limits.filter(({ remaining }) => remaining === actionsLeft);
    return {
      ...verdict,
      timeLeft,
      actionsLeft,
      resetIn: verdict.allowed ? Math.max(...tightest.map(({ resetIn }) => resetIn)) : timeLeft,
      limits,
    };
  }

  refund(attempt) {
    const before = this.actions.length;
    this.actions = this.actions.filter((action) => action.attempt !== attempt);
    return this.actions.length < before;
  }

  clear() {
    this.actions = [];
  }

  judge(actions, now, cost) {
    const newest = actions.at(-1);
    const at = newest === undefined ? now : Math.max(now, newest.at);
    const tooMany = this.policy.limits.some(({ interval, maxInInterval }) => {
      const inside = actions.filter((action) => action.at > at - interval).length;
      return inside + cost > maxInInterval;
    });
    const tooSoon = newest !== undefined && at - newest.at < this.policy.minDifference;
    const blockedBy = tooMany ? 'count' : tooSoon ? 'minDifference' : null;
    return { at, allowed: blockedBy === null, blockedBy };
  }

  /** The actions as they are once the attempt is made. */
  after({ at, allowed }, cost, attempt) {
    if (!allowed && !this.policy.countBlocked) return this.actions;
    return [...this.actions, ...Array.from({ length: cost }, () => ({ at, attempt }))];
  }

  /** The first reading of the clock at which the attempt passes: tries all at which anything changes. */
  firstPass(actions, now, cost) {
    const moments = actions.flatMap(({ at }) => [
      at + this.policy.minDifference,
      ...this.policy.limits.map(({ interval }) => at + interval),
    ]);
    const later = moments.filter((moment) => moment >= now).sort((a, b) => a - b);
    return later.find((moment) => this.judge(actions, moment, cost).allowed);
  }
}

module.exports = { Oracle };
