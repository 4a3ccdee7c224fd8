// What a limiter's slots ask the script slots.lua: calls about an id, which share commands as checks do, and commands
// about many tokens.
'use strict';

const { randomBytes } = require('node:crypto');
const { errorOfFailure } = require('../../base/errors');
const { remoteIdToString } = require('../../base/ids');
const { OPERATIONS, askFor } = require('../remote/operations');
const { keySlot } = require('./cluster');
const failures = require('./failures');
const { SERVER_TIME, groupHead } = require('./script');
const SCRIPTS = require('./scripts');

const ALGORITHM = 'slots';
const SUFFIX = ':slots';

/** As for a limiter without windows. */
const POLICY = { algorithm: ALGORITHM, windows: [], minDifference: 0, blockFor: [] };

/** As in slots.lua. */
const USAGE = 0;
const ACQUIRE = 1;
const RELEASE = 2;

const MOST_OF_A_COMMAND = 1000;

const SPLIT = /\b(TRYAGAIN|CROSSSLOT)\b/;

/** A command about tokens: its holds by their keys. */
class TokenCommand {
  count = 0;
  holdsOf = new Map();

  add(key, hold) {
    const holds = this.holdsOf.get(key);
    if (holds === undefined) this.holdsOf.set(key, [hold]);
    else holds.push(hold);
    this.count += 1;
  }

  get holds() {
    return [...this.holdsOf.values()].flat();
  }

  /** One for each key. */
  split() {
    return Array.from(this.holdsOf, ([key, holds]) => {
      const part = new TokenCommand();
      for (const hold of holds) part.add(key, hold);
      return part;
    });
  }
}

/** A token is the number of a hold, `handle`, of this process: the numbers are never used again. */
class SlotCommands {
  #backend;
  #process;
  #ttl;
  #question;
  #lastNumber = 0;

  constructor({ Backend, connection, namespace, ttl }) {
    this.#backend = new Backend({ connection, policy: POLICY, namespace, suffix: SUFFIX });
    const bytes = randomBytes(8);
    this.#process = [bytes.readUInt32LE(0), bytes.readUInt32LE(4)];
    this.#ttl = ttl;
    const head = groupHead(this.#process, [SERVER_TIME, ttl]);
    const headText = head.latin1Slice();
    const together = { isApart: false, isChange: false, isFull: false, length: 1 };
    this.#question = { algorithm: ALGORITHM, head, headText, ...together };
  }

  /** For outages: see remote/on-error.js. */
  get backend() {
    return this.#backend;
  }

  nextNumber() {
    this.#lastNumber += 1;
    return this.#lastNumber;
  }

  /** Ends by done(failed, _, answer): twice the units that are held, plus 1 if it is granted. */
  acquire(id, { handle, cost }, max, done) {
    this.#ask(id, [ACQUIRE, handle, cost, max], done);
  }

  /** answer: 1 if it was held, else 0. */
  release({ id, handle, cost }, done) {
    this.#ask(remoteIdToString(id), [RELEASE, handle, cost, 0], done);
  }

  /** Promises the units that are held. */
  usage(id) {
    return new Promise((resolve, reject) => {
      const done = (failed, _, units) => (failed === null ? resolve(units) : reject(failed));
      this.#ask(id, [USAGE, 0, 0, 0], done);
    });
  }

  #ask(id, numbers, done) {
    this.#backend.askKey({ id, done }, this.#question, Float64Array.from(numbers));
  }

  /**
   * `operation` is 'renew' or 'release'. Sends all at once, at most 1,000 a command, in a cluster one for each hash
   * slot. Calls back once for each command: done(failed, holds, isMissing), with functions of a place in `holds`.
   */
  change(operation, holds, done) {
    const open = new Map();
    const commands = [];
    for (const hold of holds) {
      const key = this.#backend.keyOf(remoteIdToString(hold.id));
      const place = this.#backend.isCluster ? keySlot(key) : 0;
      let command = open.get(place);
      if (command === undefined || command.count === MOST_OF_A_COMMAND) {
        command = new TokenCommand();
        open.set(place, command);
        commands.push(command);
      }
      command.add(key, hold);
    }
    return Promise.all(commands.map((command) => this.#change(operation, command, done)));
  }

  async #change(operation, command, done) {
    let missing;
    try {
      missing = await this.#send(operation, command);
    } catch (failed) {
      // While a hash slot moves, its keys are on two nodes.
      const isSplit = command.holdsOf.size > 1 && SPLIT.test(errorOfFailure(failed).message);
      if (!isSplit) return done(failed, command.holds);
      return Promise.all(command.split().map((part) => this.#change(operation, part, done)));
    }
    return done(null, command.holds, (place) => missing.has(place));
  }

  async #send(operation, { holdsOf, count }) {
    const { source, sha1 } = SCRIPTS[ALGORITHM];
    const keys = [...holdsOf.keys()];
    const tokens = Array.from(holdsOf.values(), (holds) =>
      holds.map(({ handle, cost }) => `${handle} ${cost}`).join(' '),
    );
    const words = [String(keys.length), ...keys, operation, this.#process.join(' ')];
    words.push(String(this.#ttl), ...tokens);
    const run = (...script) => this.#backend.command(keys[0], [...script, ...words]);
    const reply = await run('evalsha', sha1).catch((failed) => {
      if (!/\bNOSCRIPT\b/.test(errorOfFailure(failed).message)) throw failed;
      return run('eval', source);
    });
    const isPlace = (place) => Number.isInteger(place) && place >= 0 && place < count;
    const places = Array.isArray(reply) ? reply.map(Number) : [Number.NaN];
    if (places.every(isPlace)) return new Set(places);
    throw failures.reply('Redis returned an unexpected reply');
  }

  clear(id) {
    return askFor((call) => this.#backend.ask(call), { operation: OPERATIONS.CLEAR, id });
  }

  clearAll() {
    return this.#backend.clearAll();
  }

  /** Promises nothing; fails if Redis does not answer for this id. */
  probe(id) {
    return askFor((call) => this.#backend.ask(call), { operation: OPERATIONS.PROBE, id });
  }

  close() {
    return this.#backend.close();
  }
}

module.exports = { SlotCommands };
