// The calls of one limiter that a client has not answered: their deadlines, and how many each node has.
'use strict';

const { Deadlines } = require('../remote/deadlines');
const failures = require('./failures');

const { nextTick } = process; // as it is now: fake timers of tests must not stop it

class PendingCalls {
  #circumstances;
  #deadlines;
  /**
   * How many calls each node has, by its name: a node that hangs uses up its own budget only. Includes those that have
   * timed out as long as the client holds them.
   */
  #queues = new Map();

  /** @param {object} circumstances of failures.fromClientError */
  constructor(circumstances, onTimeout) {
    const { commandTimeout } = circumstances;
    const timedOut = failures.timeout(commandTimeout);
    this.#circumstances = circumstances;
    this.#deadlines = new Deadlines(commandTimeout, ({ call }) => {
      call.done(timedOut);
      onTimeout();
    });
  }

  stats() {
    let unanswered = 0;
    for (const { size } of this.#queues.values()) unanswered += size;
    return { pending: this.#deadlines.pending, unanswered };
  }

  roomAt(node) {
    return this.#circumstances.maxQueue - (this.#queues.get(node)?.size ?? 0);
  }

  /** What end() and fail() take, with `isPending` until the deadline; undefined if there is no room: the call fails. */
  begin(call, node) {
    const { maxQueue } = this.#circumstances;
    const queue = this.#queues.get(node) ?? { node, size: 0 };
    if (queue.size >= maxQueue) {
      nextTick(call.done, failures.queueFull(maxQueue));
      return undefined;
    }
    if (queue.size === 0) this.#queues.set(node, queue);
    queue.size += 1;
    const pending = { call, limiter: this, queue, deadline: 0, isPending: false };
    this.#deadlines.begin(pending);
    return pending;
  }

  /** The client has finished with it. Ends the call as well, unless that has timed out. */
  end(pending, failed, result, integer) {
    const { call, queue } = pending;
    queue.size -= 1;
    if (queue.size === 0) this.#queues.delete(queue.node);
    if (this.#deadlines.end(pending)) call.done(failed, result, integer);
  }

  fail(pending, error) {
    this.end(pending, failures.fromClientError(error, this.#circumstances));
  }
}

module.exports = { PendingCalls };
