// Two processes with one limit on a server, which lends them permits: a model of the option `lease`, without delays.
'use strict';

const { runClients } = require('./clients');
const { PRESETS } = require('./presets');

/** The server remembers a refusal for this part of a lease at least. */
const REFUSED_FOR = 1 / 4;
const FEWEST_PERMITS = 2;

/** How long a process may decide on the permits that it takes ahead, in ms. */
const leaseOf = ({ windowMs }) => windowMs / 2;

/** Whether a lane has leases: they need the log, and refusals that do not count. */
const hasLeases = ({ preset, countBlocked }, algorithm) =>
  PRESETS[preset].limiters === 'leases' && algorithm.name === 'sliding-window-log' && !countBlocked;

/** What Redis knows of the id: the actions that are recorded, and the permits that are out. */
class Server {
  #recorded = [];
  #out = new Map(); // by process

  constructor({ limit, windowMs }) {
    Object.assign(this, { limit, windowMs });
  }

  /** Permits that are out count as used. */
  used(now) {
    this.#recorded = this.#recorded.filter((at) => at > now - this.windowMs);
    const lent = [...this.#out.values()].reduce((sum, { permits }) => sum + permits, 0);
    return this.#recorded.length + lent;
  }

  /** The process has ended its lease: its uses are recorded at their times, and the rest is free. */
  settle(process, uses) {
    this.#out.delete(process);
    this.#recorded = [...this.#recorded, ...uses].sort((a, b) => a - b);
  }

  attempt(now) {
    const allowed = this.used(now) < this.limit;
    if (allowed) this.#recorded.push(now);
    return allowed;
  }

  /** Half of the room, in equal parts: so room stays for others. */
  lend(process, wanted, now, until) {
    const room = this.limit - this.used(now);
    const permits = Math.min(wanted, Math.floor(room / (2 * (this.#out.size + 1))));
    if (permits < FEWEST_PERMITS) return 0;
    this.#out.set(process, { permits, until });
    return permits;
  }

  /** Until an action leaves the window, or a lease ends. */
  timeLeft(now) {
    const leaves = this.#recorded.slice(0, 1).map((at) => at + this.windowMs);
    const ends = [...this.#out.values()].map(({ until }) => until);
    return Math.min(...leaves, ...ends) - now;
  }

  resetIn(now) {
    this.used(now);
    return this.#recorded.length === 0 ? 0 : this.#recorded[0] + this.windowMs - now;
  }
}

/** A process. It measures how often it is asked, and asks for as many permits as it needs in one lease. */
class Holder {
  balance = 0;
  until = 0;
  uses = [];
  /** What the server said last, its own permits not counted; and until when a refusal is repeated. */
  usedByOthers = 0;
  refusedUntil = 0;
  #asked = [];

  constructor(lease) {
    this.lease = lease;
  }

  /** The permits that it needs in one lease. */
  wanted(now) {
    this.#asked = [...this.#asked.filter((at) => at > now - this.lease), now];
    return this.#asked.length - 1;
  }
}

/**
 * The requests of a run against a limiter with leases.
 *
 * @param {{ preset: string, limit: number, windowMs: number }} settings
 * @returns {{ requests: object[], lent: { from: number, to: number, permits: number[] }[] }} `isLocal` of a request:
 *   whether its process has decided on it; `lent`: how many permits each process held unused, and when
 */
function runLeases(settings) {
  const { limit, windowMs } = settings;
  const lease = leaseOf(settings);
  const server = new Server(settings);
  const holders = PRESETS[settings.preset].clients(settings).map(() => new Holder(lease));
  const lent = [];
  let since = 0;

  /** What was lent until now is drawn as it was. */
  function note(now) {
    const permits = holders.map(({ balance }) => balance);
    if (now > since && permits.some((count) => count > 0))
      lent.push({ from: since, to: now, permits });
    since = now;
  }

  function settle(process, now) {
    const holder = holders[process];
    note(now);
    server.settle(process, holder.uses);
    Object.assign(holder, { balance: 0, until: 0, uses: [] });
  }

  /** Leases end by themselves, in their order. */
  function endUntil(now) {
    const ended = holders
      .map(({ until }, process) => ({ until, process }))
      .filter(({ until }) => until > 0 && until <= now)
      .sort((a, b) => a.until - b.until);
    for (const { until, process } of ended) settle(process, until);
  }

  function borrow(process, wanted, now) {
    const holder = holders[process];
    note(now);
    holder.balance = server.lend(process, wanted, now, now + lease);
    if (holder.balance > 0) holder.until = now + lease;
    holder.usedByOthers = server.used(now) - holder.balance;
  }

  function decision(allowed, used, timeLeft, now) {
    const remaining = Math.max(0, limit - used);
    const resetIn = Math.max(0, Math.ceil(allowed ? server.resetIn(now) : timeLeft));
    const window = { interval: windowMs, maxInInterval: limit, used, remaining, resetIn };
    const blockedBy = allowed ? null : 'count';
    const rest = { actionsLeft: remaining, resetIn, blockedBy, limits: [window] };
    return { allowed, timeLeft: Math.ceil(timeLeft), ...rest };
  }

  const requests = runClients(settings, (now, process) => {
    endUntil(now);
    const holder = holders[process];
    const wanted = holder.wanted(now);
    if (holder.balance > 0) {
      note(now);
      holder.balance -= 1;
      holder.uses.push(now);
      const used = holder.usedByOthers + holder.uses.length;
      const answer = { isLocal: true, decision: decision(true, used, 0, now) };
      if (holder.balance === 0) {
        settle(process, now); // at once, for the next request
        borrow(process, wanted, now);
      }
      return answer;
    }
    if (now < holder.refusedUntil) {
      return { isLocal: true, decision: decision(false, limit, holder.refusedUntil - now, now) };
    }
    const allowed = server.attempt(now);
    const used = Math.min(limit, server.used(now));
    if (allowed) {
      borrow(process, wanted, now);
      return { isLocal: false, decision: decision(true, used, 0, now) };
    }
    const mayLend = wanted >= FEWEST_PERMITS;
    const timeLeft = Math.max(1, server.timeLeft(now), mayLend ? lease * REFUSED_FOR : 0);
    if (mayLend) holder.refusedUntil = now + timeLeft;
    return { isLocal: false, decision: decision(false, used, timeLeft, now) };
  });
  endUntil(Number.POSITIVE_INFINITY);
  return { requests, lent };
}

module.exports = { hasLeases, leaseOf, runLeases };
