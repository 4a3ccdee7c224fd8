// Sends the checks of one turn of the event loop through a client in few commands.
'use strict';

const { setImmediate } = require('node:timers'); // as it is now: fake timers of tests must not stop it
const { keySlot } = require('./cluster');
const { messageOf } = require('./failures');
const { PendingCalls } = require('./pending-calls');
const { ScriptRequest } = require('./script-request');

/** Keys in one run of a script: more gain nothing, and other clients have to wait longer. */
const MOST_KEYS = 64;

/**
 * After so many NOSCRIPT replies a request sends the source itself instead of waiting for another one to do so, whose
 * EVAL may be refused, or may have gone to another node of a cluster.
 */
const MOST_TIMES_UNKNOWN = 8;

const isPending = ({ calls }) => calls.some((call) => call.isPending);

/** Asynchronous, because a user's client may throw. */
const replyTo = async (request, adapter) => request.send(adapter);

/** For all limiters on one client. */
class Batches {
  #separatesSlots;
  #open = new Map(); // requests with room for more calls of this turn, by script, in a cluster for each slot
  /** While a request sends the source of a script, others wait, because each source is long. By node and script. */
  #sources = new Map();

  /** @param {import('./clients').Adapter} adapter */
  constructor(adapter) {
    this.adapter = adapter;
    this.#separatesSlots = adapter.isCluster;
  }

  /** For the calls of one limiter. */
  createPendingCalls({ commandTimeout, maxQueue }) {
    const circumstances = { commandTimeout, maxQueue, ...this.adapter };
    return new PendingCalls(circumstances, () => this.#sendWaiting());
  }

  nodeOf(key) {
    return this.adapter.nodeOf(this.#slotOf(key));
  }

  #slotOf(key) {
    return this.#separatesSlots ? keySlot(key) : 0;
  }

  /** Asks a question of questions.js about one key. */
  ask(limiter, call, key, question, amounts) {
    const { algorithm, isChange } = question;
    const slot = this.#slotOf(key);
    const node = this.adapter.nodeOf(slot);
    const pending = limiter.begin(call, node);
    if (pending === undefined) return;
    if (isChange) this.flush(); // goes apart, because its key is not read together with others
    const place = slot === 0 ? algorithm : `${algorithm} ${slot}`;
    const request = this.#open.get(place) ?? this.#openRequest(place, algorithm, node);
    request.add(pending, key, question, amounts);
    if (!isChange && request.calls.length < MOST_KEYS) return;
    this.#open.delete(place);
    this.#send(request);
  }

  #openRequest(place, algorithm, node) {
    const request = new ScriptRequest(algorithm, node);
    this.#open.set(place, request);
    if (this.#open.size === 1) setImmediate(() => this.flush());
    return request;
  }

  /** Sends what waits for the end of the turn. */
  flush() {
    const requests = [...this.#open.values()];
    this.#open.clear();
    for (const request of requests) this.#send(request);
  }

  /** Any command, behind what was asked before: promises what `send()` promises, within the deadline. */
  command(limiter, node, send) {
    return new Promise((resolve, reject) => {
      const done = (failed, reply) => (failed === null ? resolve(reply) : reject(failed));
      const pending = limiter.begin({ done }, node);
      if (pending === undefined) return;
      this.flush();
      this.#send({ calls: [pending], send, answer: (reply) => limiter.end(pending, null, reply) });
    });
  }

  /** Sends a request unless all of its calls have timed out. */
  #send(request) {
    if (!isPending(request)) {
      for (const call of request.calls) call.limiter.end(call);
      return;
    }
    replyTo(request, this.adapter)
      .then(
        (reply) => request.answer(reply),
        (error) => {
          if (this.#sendAgain(request, error)) return;
          for (const call of request.calls) call.limiter.fail(call, error);
        },
      )
      .then(() => request.sendsSource && this.#sendWaiting());
  }

  /** Sends again what the server has not done for a reason that passes. Returns whether it does. */
  #sendAgain(request, error) {
    if (!(request instanceof ScriptRequest) || !isPending(request)) return false;
    const message = messageOf(error?.lastNodeError ?? error) ?? '';
    if (message.startsWith('NOSCRIPT') && !request.sendsSource) {
      this.#sendSource(request);
      return true;
    }
    if (!request.isForSomeKeys(message)) return false;
    // By a client that knows nothing of slots, to a proxy or a node of a cluster.
    this.#separatesSlots ||= message.startsWith('CROSSSLOT');
    for (const part of request.splitByKey()) this.#send(part);
    return true;
  }

  /** Sends the source of the script with this request, or this request after another one with the source. */
  #sendSource(request) {
    request.timesUnknown += 1;
    const place = `${request.node} ${request.algorithm}`;
    const source = this.#sources.get(place);
    if (source !== undefined && request.timesUnknown < MOST_TIMES_UNKNOWN) {
      source.waiting.add(request);
      return;
    }
    if (source === undefined) this.#sources.set(place, { sender: request, waiting: new Set() });
    request.sendsSource = true;
    this.#send(request);
  }

  /** Ends the wait for sources whose sender has ended, and that of requests whose calls have all timed out. */
  #sendWaiting() {
    for (const [place, { sender, waiting }] of this.#sources) {
      const isSending = isPending(sender);
      if (!isSending) this.#sources.delete(place);
      for (const request of waiting) {
        if (isSending && isPending(request)) continue;
        waiting.delete(request);
        this.#send(request);
      }
    }
  }
}

module.exports = { Batches };
