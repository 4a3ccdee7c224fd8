// What a measuring process does with limiters that hold leases: attempts at random times, what an exact log would have
// allowed at these times, and what the server was asked.

const { once } = require('node:events');
const net = require('node:net');
const { SureUses } = require('../../test/support/sure-uses');

const GREATEST = 2 ** 32;

/** Numbers from 0 to below 1, always the same for a seed other than 0. */
function randomUnits(seed) {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / GREATEST;
  };
}

/** Draws places of `weights`, each as often as its weight says. */
function weightedDraws(weights, unit) {
  const sum = weights.reduce((a, b) => a + b, 0);
  let before = 0;
  const ends = Float64Array.from(weights, (weight) => {
    before += weight / sum;
    return before;
  });
  return () => {
    const drawn = unit();
    let [low, high] = [0, ends.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (ends[middle] > drawn) high = middle;
      else low = middle + 1;
    }
    return low;
  };
}

/**
 * Calls `act(now)` at random times, `perSecond` times a second on average, each call independent of the others
 * (Poisson), until `end`. The timer has steps of a millisecond: what is due is done in one turn.
 */
function atRandomTimes({ perSecond, end, unit, act }) {
  const gap = () => (-Math.log(1 - unit()) * 1000) / perSecond;
  let due = performance.now() + gap();
  return new Promise((resolve) => {
    const turn = () => {
      const now = performance.now();
      for (; due <= now; due += gap()) act(performance.now());
      if (now < end) setTimeout(turn, 1);
      else resolve();
    };
    turn();
  });
}

/** Attempts of one id: when they were made and which were allowed. */
class Attempts {
  #origin = performance.now();
  #times = [];
  #allowed = [];
  #uses = new SureUses();

  /** `answer` resolves to whether it is allowed. */
  async make(now, answer) {
    const place = this.#times.push(now) - 1;
    if (!(await answer())) return;
    this.#allowed[place] = true;
    const us = (time) => (time - this.#origin) * 1000;
    this.#uses.note(us(now), us(performance.now()));
  }

  /** What they come to from `start` on. */
  since(start, { interval, maxInInterval }) {
    const exact = exactLog(this.#times, interval, maxInInterval);
    const count = (flags) => this.#times.filter((time, i) => time >= start && flags[i]).length;
    return {
      attempts: this.#times.filter((time) => time >= start).length,
      allowed: count(this.#allowed),
      exact: count(exact),
      most: this.#uses.mostIn(interval * 1000),
    };
  }
}

/** Which attempts an exact log allows that counts no refusals. */
function exactLog(times, interval, maxInInterval) {
  const log = []; // of those that were allowed
  return times.map((time) => {
    const isAllowed = !(log.at(-maxInInterval) > time - interval);
    if (isAllowed) log.push(time);
    return isAllowed;
  });
}

const RUN = /^\+?\d+\.\d+ \[\d+ (?!lua)\S+\] "evalsha" "[0-9a-f]{40}" "(\d+)"/i;
const WORD = / "((?:[^"\\]|\\.)*)"/y;

/**
 * Counts the runs of scripts by MONITOR, which shows each with its keys: `runs`, and for each id in how many of them
 * it was. Only while it has been started and not stopped.
 */
class RunsOfServer {
  #socket;
  #rest = '';
  #isCounting = false;
  runs = 0;
  ofIds = new Map();

  static async of(server) {
    const monitor = new RunsOfServer();
    monitor.#socket = net.connect(server.port, '127.0.0.1').setEncoding('latin1');
    monitor.#socket.write('MONITOR\r\n');
    await once(monitor.#socket, 'data');
    monitor.#socket.on('data', (text) => monitor.#read(text));
    return monitor;
  }

  start() {
    this.#isCounting = true;
  }

  stop() {
    this.#socket.destroy();
  }

  #read(text) {
    const lines = (this.#rest + text).split('\r\n');
    this.#rest = lines.pop();
    if (this.#isCounting) for (const line of lines) this.#note(line);
  }

  #note(line) {
    const found = RUN.exec(line);
    if (!found) return;
    this.runs += 1;
    const keys = new Set();
    WORD.lastIndex = found[0].length;
    for (let i = 0; i < Number(found[1]); i++) keys.add(WORD.exec(line)[1]);
    for (const key of keys) {
      const [, id] = /\{(.*)\}/.exec(key);
      this.ofIds.set(id, (this.ofIds.get(id) ?? 0) + 1);
    }
  }

  /** Of all ids: a run counts once for each of its keys. */
  get commands() {
    return [...this.ofIds.values()].reduce((sum, count) => sum + count, 0);
  }
}

module.exports = { Attempts, RunsOfServer, atRandomTimes, randomUnits, weightedDraws };
