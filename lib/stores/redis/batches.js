// Sends the checks of one turn of the event loop through a client in few commands.
'use strict';

const { setImmediate } = require('node:timers'); // the own one: fake timers must not hold up checks
const { keySlot } = require('./cluster');
const { PendingCalls } = require('./pending-calls');
const { PlainRequest, ScriptRequest } = require('./requests');

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

/** For all limiters on one client. `adapter` is of clients/index.js. */
class Batches {
  #separatesSlots;
  /** The requests of this turn that have room for more calls, by script, in a cluster for each slot. */
  #open = new Map();
  #isFlushDue = false;
  /**
   * If a node does not have a script, one request sends the source and the others wait for it, because the source in
   * each would be long. By node and script.
   */
  #sources = new Map();

  constructor(adapter) {
    this.adapter = adapter;
    this.#separatesSlots = adapter.isCluster;
  }

  /** The calls of one limiter. */
  createPendingCalls({ commandTimeout, maxQueue }) {
    const circumstances = { commandTimeout, maxQueue, ...this.adapter };
    return new PendingCalls(circumstances, (request) => this.#noteTimeout(request));
  }

  nodeOf(key) {
    return this.adapter.nodeOf(this.#slotOf(key));
  }

  #slotOf(key) {
    return this.#separatesSlots ? keySlot(key) : 0;
  }

  /** A call about one key. `question` is of questions.js; `amounts` of the key, or a number if it has the cost. */
  ask(limiter, call, key, question, amounts) {
    const slot = this.#slotOf(key);
    const node = this.adapter.nodeOf(slot);
    const pending = limiter.begin(call, node);
    if (pending === undefined) return;
    if (question.isChange) {
      // Apart from attempts, because these keys are not read together with others.
      const request = new ScriptRequest(question.algorithm, node);
      request.add(pending, key, question, amounts);
      this.#flush();
      this.#send(request);
      return;
    }
    const place = slot === 0 ? question.algorithm : `${question.algorithm} ${slot}`;
    const request = this.#open.get(place) ?? this.#openRequest(place, question.algorithm, node);
    request.add(pending, key, question, amounts);
    if (request.size < MOST_KEYS) return;
    this.#open.delete(place);
    this.#send(request);
  }

  #openRequest(place, algorithm, node) {
    const request = new ScriptRequest(algorithm, node);
    this.#open.set(place, request);
    if (!this.#isFlushDue) setImmediate(this.#flushDue);
    this.#isFlushDue = true;
    return request;
  }

  #flushDue = () => {
    this.#isFlushDue = false;
    this.#flush();
  };

  #flush() {
    const requests = [...this.#open.values()];
    this.#open.clear();
    for (const request of requests) this.#send(request);
  }

  /** Any command, behind what was asked before: promises what `send()` of the adapter promises. */
  command(limiter, node, send) {
    return new Promise((resolve, reject) => {
      const done = (failed, reply) => (failed === null ? resolve(reply) : reject(failed));
      const pending = limiter.begin({ done }, node);
      if (pending === undefined) return;
      this.#flush();
      this.#send(new PlainRequest(pending, send));
    });
  }

  /** Sends a request unless all of its calls have timed out. */
  #send(request) {
    if (!isPending(request)) {
      for (const call of request.calls) call.end();
      return;
    }
    replyTo(request, this.adapter).then(
      (reply) => {
        this.#endSource(request);
        request.answer(reply);
      },
      (error) => {
        if (!this.#sendAgain(request, error)) this.#fail(request, error);
      },
    );
  }

  /** Sends again what the server has not done for a reason that passes. Returns whether it does. */
  #sendAgain(request, error) {
    if (!(request instanceof ScriptRequest) || !isPending(request)) return false;
    const message = String((error?.lastNodeError ?? error)?.message);
    if (message.startsWith('NOSCRIPT') && !request.sendsSource) {
      this.#sendSource(request);
      return true;
    }
    if (!request.isForSomeKeys(message)) return false;
    // A proxy or a node of a cluster, through a client that knows nothing of slots.
    this.#separatesSlots ||= message.startsWith('CROSSSLOT');
    this.#endSource(request);
    for (const part of request.splitByKey()) this.#send(part);
    return true;
  }

  /** Sends the source of the script with this request, or after another one has sent it. */
  #sendSource(request) {
    request.timesUnknown += 1;
    const place = `${request.node} ${request.algorithm}`;
    const source = this.#sources.get(place);
    if (source !== undefined && request.timesUnknown < MOST_TIMES_UNKNOWN) {
      request.source = source;
      source.waiting.add(request);
      return;
    }
    if (source === undefined) {
      request.source = { place, sender: request, waiting: new Set() };
      this.#sources.set(place, request.source);
    }
    request.sendsSource = true;
    this.#send(request);
  }

  /** If this request has sent a source, or has failed to, those that wait for it are sent. */
  #endSource(request) {
    const { source } = request;
    if (source?.sender !== request) return;
    request.source = undefined;
    this.#sources.delete(source.place);
    for (const waiting of source.waiting) {
      waiting.source = undefined;
      this.#send(waiting);
    }
  }

  /** A request whose calls have all timed out waits for no source, and none waits for it. */
  #noteTimeout(request) {
    const { source } = request;
    if (source === undefined || isPending(request)) return;
    this.#endSource(request);
    if (!source.waiting.delete(request)) return;
    request.source = undefined;
    this.#send(request);
  }

  #fail(request, error) {
    this.#endSource(request);
    let limiter;
    let failed;
    for (const call of request.calls) {
      if (call.limiter !== limiter) failed = call.limiter.failureOf(error);
      limiter = call.limiter;
      call.end(failed);
    }
  }
}

module.exports = { Batches };
