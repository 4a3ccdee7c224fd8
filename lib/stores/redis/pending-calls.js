// The calls of one limiter that a client has not answered: their deadlines, and how many each node has.
'use strict';

const { Deadlines } = require('../remote/deadlines');
const failures = require('./failures');

/** A call until the client has answered it, which may be after its deadline. */
class PendingCall {
  deadline = 0;
  isPending = false;
  request; // what it is sent with

  constructor(call, limiter, queue) {
    this.call = call;
    this.limiter = limiter;
    this.queue = queue;
  }

  /** The client has finished with it. Ends the call as well, unless that has timed out. */
  end(failed, result, integer) {
    if (this.limiter.release(this)) this.call.done(failed, result, integer);
  }
}

class PendingCalls {
  #circumstances;
  #timedOut;
  #queueFull;
  #deadlines;
  /**
   * How many calls each node has, by its name: a node that hangs uses up its own budget only. Includes calls that have
   * timed out as long as the client holds them.
   */
  #queues = new Map();

  /**
   * @param {object} circumstances as of failures.fromClientError
   * @param {(request: object) => void} onTimeout gets the request of each call that has timed out
   */
  constructor(circumstances, onTimeout) {
    const { commandTimeout, maxQueue } = circumstances;
    this.#circumstances = circumstances;
    this.#timedOut = failures.timeout(commandTimeout);
    this.#queueFull = failures.queueFull(maxQueue);
    this.#deadlines = new Deadlines(commandTimeout, ({ call, request }) => {
      call.done(this.#timedOut);
      onTimeout(request);
    });
  }

  get pending() {
    return this.#deadlines.pending;
  }

  get unanswered() {
    let unanswered = 0;
    for (const { size } of this.#queues.values()) unanswered += size;
    return unanswered;
  }

  roomAt(node) {
    return this.#circumstances.maxQueue - (this.#queues.get(node)?.size ?? 0);
  }

  /** A PendingCall to this node, whose `request` the caller sets; undefined if there is no room: then the call fails. */
  begin(call, node) {
    let queue = this.#queues.get(node);
    if (queue === undefined) {
      queue = { node, size: 0 };
      this.#queues.set(node, queue);
    } else if (queue.size >= this.#circumstances.maxQueue) {
      process.nextTick(call.done, this.#queueFull);
      return undefined;
    }
    queue.size += 1;
    const pending = new PendingCall(call, this, queue);
    this.#deadlines.begin(pending);
    return pending;
  }

  /** Returns whether the call has not timed out. */
  release(pending) {
    const { queue } = pending;
    queue.size -= 1;
    if (queue.size === 0) this.#queues.delete(queue.node);
    return this.#deadlines.end(pending);
  }

  failureOf(error) {
    return failures.fromClientError(error, this.#circumstances);
  }
}

module.exports = { PendingCalls };
