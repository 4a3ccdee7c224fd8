// What the backends of all ways to Redis have in common: keys, the calls that decide nothing, and the channel
// 'rollgate:redis'.
'use strict';

const { REDIS } = require('../../base/channels');
const { decisionLength } = require('../../base/decision');
const { errorOfFailure } = require('../../base/errors');
const { OPERATIONS, isDecision } = require('../remote/operations');
const failures = require('./failures');
const { Questions } = require('./questions');
const { checkInteger, operandsOf, readChange } = require('./script');

const KEYS_AT_ONCE = 250;
const MOST_OF_ONE_TURN = 5000;

/** What a call is in messages of the channel. */
function nameOf({ operation, actual }) {
  if (operation === OPERATIONS.PEEK) return 'peek';
  if (operation === OPERATIONS.SETTLE) return actual === 0 ? 'refund' : 'settle';
  if (operation === OPERATIONS.BLOCK) return 'block';
  if (operation === OPERATIONS.RECORD) return 'record';
  if (operation === OPERATIONS.LEASE) return 'lease';
  return operation === OPERATIONS.CLEAR ? 'clear' : 'attempt';
}

/**
 * A backend of remote/store.js. A subclass has `isCluster`, `maxQueue`, `commandTimeout`, nodeOf(key), which names
 * the node that serves the key now, roomAt(node), how many more calls may wait for it, stats() and close() as docs/design/remote-stores.md
 * specifies, and, each within a deadline:
 *
 * - askKey(call, question, amounts) ends a call by the reply to a question about its key: see questions.js
 * - command(key, words) promises the reply to a command, from the server of the key
 * - masters() promises functions of words that do the same, for each server that holds keys
 */
class RedisBackend {
  #owner;
  #start;
  #end;
  #questions;

  /** @param {string} prefix of all keys of the limiter; `suffix` follows the id in its braces */
  constructor(policy, prefix, suffix = '') {
    this.policy = policy;
    this.#questions = new Questions(policy);
    this.#start = `${prefix}{`;
    this.#end = `}${suffix}`;
  }

  keyOf(id) {
    return `${this.#start}${id}${this.#end}`;
  }

  /** Calls that were made keep the earlier limits. */
  setLimits(next) {
    this.#questions = new Questions(next);
  }

  /** Ids of one part become unreachable together: those of one node in a cluster, else all. */
  partOf(id) {
    return this.nodeOf(this.keyOf(id));
  }

  isOutage(failed) {
    return failures.isOutage(failed);
  }

  /** `owner` is the limiter in messages. */
  ownedBy(owner) {
    this.#owner = owner;
  }

  publishConnection(isUp) {
    if (REDIS.flag[0] === 0) return;
    REDIS.channel.publish({ type: 'connection', limiter: this.#owner, isUp });
  }

  /** `done` for a call that begins now, which is published when it ends. */
  #published(command, ids, done) {
    const startedAt = performance.now();
    return (failed, result) => {
      const durationMs = performance.now() - startedAt;
      const error = failed === null ? null : errorOfFailure(failed);
      done(error, result);
      const limiter = this.#owner;
      REDIS.channel.publish({ type: 'call', limiter, command, ids, durationMs, error });
    };
  }

  ask(call) {
    if (REDIS.flag[0] === 0 || call.operation === OPERATIONS.PROBE) this.#ask(call);
    else this.#ask({ ...call, done: this.#published(nameOf(call), 1, call.done) });
  }

  #ask(call) {
    if (isDecision(call.operation)) this.#decide(call);
    else if (call.operation === OPERATIONS.LEASE) this.#lease(call);
    else this.#resultOf(call).then((result) => call.done(null, result), call.done);
  }

  #decide(call) {
    const question = this.#questions.of(call);
    this.askKey(call, question, this.#questions.amountsOf(call.cost));
  }

  /** A call about leases has the `amounts` of leases.lua. */
  #lease(call) {
    this.askKey(call, this.#questions.ofLease(call), call.amounts);
  }

  /** Promises the reply to a call that settles or blocks. */
  #change(call) {
    const operands = operandsOf(this.policy, call);
    const question = this.#questions.ofChange(call, operands);
    const amounts = typeof operands.amounts === 'number' ? 0 : operands.amounts;
    return new Promise((resolve, reject) => {
      const done = (failed, _, integer) => (failed === null ? resolve([integer]) : reject(failed));
      this.askKey({ ...call, done }, question, amounts);
    });
  }

  async #resultOf(call) {
    const key = this.keyOf(call.id);
    switch (call.operation) {
      case OPERATIONS.CLEAR:
        return checkInteger(await this.command(key, ['unlink', key]), 0);
      case OPERATIONS.PROBE:
        return checkInteger(await this.command(key, ['pttl', key]), -2);
      default:
        return readChange(await this.#change(call), call.operation);
    }
  }

  attemptMany(ids, now) {
    const numbers = this.#attemptAll(ids, now);
    if (REDIS.flag[0] === 0) return numbers;
    return new Promise((resolve, reject) => {
      const settle = (failed, all) => (failed === null ? resolve(all) : reject(failed));
      const done = this.#published('attempt', ids.length, settle);
      numbers.then((all) => done(null, all), done);
    });
  }

  /** In turns of as many as may be pending at once. */
  async #attemptAll(ids, now) {
    const length = decisionLength(this.policy.windows.length);
    const all = new Float64Array(ids.length * length);
    const most = Math.min(this.maxQueue, MOST_OF_ONE_TURN);
    const attempt = { operation: OPERATIONS.ATTEMPT, cost: 1, isFull: true, now };
    for (let first = 0; first < ids.length; first += most) {
      const turn = ids.slice(first, first + most);
      this.#assertRoom(turn); // before any of them is recorded
      const attemptInto = (id, i) =>
        new Promise((resolve, reject) => {
          const done = (failed, numbers) => {
            if (failed !== null) return reject(failed);
            all.set(numbers, (first + i) * length); // now, because they are valid in the callback only
            return resolve();
          };
          this.#decide({ ...attempt, id, done });
        });
      await Promise.all(turn.map(attemptInto));
    }
    return all;
  }

  /** Throws if a node has no room for all of these calls. */
  #assertRoom(ids) {
    const calls = new Map();
    for (const id of ids) {
      const node = this.partOf(id);
      calls.set(node, (calls.get(node) ?? 0) + 1);
    }
    for (const [node, count] of calls) {
      if (count > this.roomAt(node)) throw failures.queueFull(this.maxQueue);
    }
  }

  /** In as many round trips as it takes. */
  async clearAll() {
    const masters = await this.masters();
    if (masters.length === 0) throw failures.unreachable('the client knows no node');
    for (const send of masters) await this.#clearNode(send);
  }

  /**
   * SCAN may return a key more than once, and pages without keys. Keys without a suffix end with a brace, so those with
   * one are not among them.
   */
  async #clearNode(send) {
    const pattern = `${this.#start.replace(/[\\*?[\]]/g, '\\$&')}*${this.#end}`;
    let cursor = '0';
    do {
      const reply = await send(['scan', cursor, 'match', pattern, 'count', String(KEYS_AT_ONCE)]);
      if (!Array.isArray(reply) || reply.length !== 2 || !Array.isArray(reply[1])) {
        throw failures.reply('Redis did not answer SCAN with a cursor and keys');
      }
      cursor = String(reply[0]);
      const keys = reply[1].map(String);
      if (keys.length > 0) await this.#unlink(keys);
    } while (cursor !== '0');
  }

  /** The keys of a cluster's node belong to many slots, and a slot may be moving to another node. */
  async #unlink(keys) {
    if (!this.isCluster) await this.command(keys[0], ['unlink', ...keys]);
    else await Promise.all(keys.map((key) => this.command(key, ['unlink', key])));
  }
}

module.exports = { RedisBackend };
