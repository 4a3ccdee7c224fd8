// The backend over a user's client, whose limiters share batches.
'use strict';

const { decisionLength } = require('../../base/decision');
const { isAttempt, isDecision } = require('../remote/operations');
const { RedisBackend } = require('./backend');
const { Batches } = require('./batches');
const script = require('./script');

const batchesByClient = new WeakMap();

/** One for each client, as long as its key prefix stays. */
function batchesOf({ kind, client }) {
  const adapter = kind.connect(client);
  const known = batchesByClient.get(client);
  if (known?.adapter.prefix === adapter.prefix) return known;
  const batches = new Batches(adapter);
  batchesByClient.set(client, batches);
  return batches;
}

class ClientBackend extends RedisBackend {
  #batches;
  #calls;
  #numbers; // of a decision
  #policyNumbers;
  #questions; // those that many calls have in common

  constructor({ connection, policy, namespace }) {
    const batches = batchesOf(connection);
    super(policy, `${batches.adapter.prefix}${namespace}`);
    this.detectedClientType = connection.kind.type;
    this.maxQueue = connection.maxQueue;
    this.isCluster = batches.adapter.isCluster;
    this.#batches = batches;
    this.#calls = batches.createPendingCalls(connection);
    this.#numbers = new Float64Array(decisionLength(policy.windows.length));
    this.setLimits(policy);
  }

  nodeOf(key) {
    return this.#batches.nodeOf(key);
  }

  roomAt(node) {
    return this.#calls.roomAt(node);
  }

  decide(call) {
    const { cost } = call;
    // Amounts are not in the question, so calls of different costs share a group.
    const isOneAmount = cost > 1 && !this.policy.isWeighted;
    const amounts = isOneAmount ? [cost] : script.amountsOf(this.policy, cost);
    const question = this.#questionOf(call, script.costNumberOf(this.policy, amounts));
    this.#batches.ask(this.#calls, call, this.keyOf(call.id), question, amounts);
  }

  /** `cost` is -2 to 1. */
  #questionOf({ operation, isFull, now, max }, cost) {
    const { within } = this.#policyNumbers;
    const isCommon = now === undefined && within === undefined;
    const place = 8 * operation + (isFull ? 4 : 0) + cost + 2;
    if (isCommon && this.#questions[place] !== undefined) return this.#questions[place];
    const numbers = script.callNumbers(operation, isFull, now, cost);
    const question = this.#createQuestion(numbers, within?.(max, operation));
    if (isCommon) this.#questions[place] = question;
    return question;
  }

  /** What a group asks about its keys. */
  #createQuestion(call, ofPolicy = this.#policyNumbers.numbers) {
    const [operation, isFull] = call;
    const head = script.groupHead(call, ofPolicy);
    return {
      algorithm: this.policy.algorithm,
      head,
      headText: head.latin1Slice(), // calls whose heads are equal share a group
      isApart: this.#policyNumbers.hasLongLogs || !isAttempt(operation),
      isChange: !isDecision(operation),
      isFull: isFull === 1,
      numbers: this.#numbers,
    };
  }

  change({ operation, id, now }, { amounts, at, generation }) {
    const cost = script.costNumberOf(this.policy, amounts);
    const numbers = script.callNumbers(operation, false, now, cost, at, generation);
    const question = this.#createQuestion(numbers);
    return new Promise((resolve, reject) => {
      const done = (failed, _, integer) => (failed === null ? resolve([integer]) : reject(failed));
      this.#batches.ask(this.#calls, { done }, this.keyOf(id), question, amounts);
    });
  }

  command(key, words) {
    return this.#ask(this.nodeOf(key), ({ send }) => send(key, words));
  }

  async masters() {
    const masters = await this.#ask('', (adapter) => adapter.masters());
    return masters.map((send) => (words) => this.#ask('', () => send(words)));
  }

  #ask(node, send) {
    return this.#batches.command(this.#calls, node, send);
  }

  setLimits(next) {
    this.#policyNumbers = script.createPolicyNumbers(next);
    this.#questions = [];
  }

  stats() {
    return { isUp: this.#batches.adapter.isUp(), ...this.#calls.stats() };
  }

  /** The owner closes the client; pending calls settle within their deadlines. */
  async close() {}
}

module.exports = { ClientBackend };
