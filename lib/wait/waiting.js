// Everybody who waits for one limiter: a line for each id that somebody waits for.
'use strict';

const { failure, closedError } = require('../errors');
const { idToString } = require('../ids');
const { Line } = require('./line');
const { fromNow } = require('./moments');

class Waiting {
  #store;
  #lines = new Map();

  /** @param {object} store as Line takes it */
  constructor(store) {
    this.#store = store;
  }

  /**
   * Promises the Decision of the attempt that was allowed.
   *
   * @param {object} options as ./options.js reads them
   */
  wait(id, { cost, signal, deadline, maxQueue }) {
    return new Promise((resolve, reject) => {
      const text = idToString(id);
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      const waiting = this.#lines.get(text)?.length ?? 0;
      if (waiting >= maxQueue) {
        const message = `${waiting} are waiting for this id already (maxQueue ${maxQueue})`;
        throw failure('ERR_ROLLGATE_WAIT_QUEUE', message);
      }
      const deadlineAt = deadline === undefined ? Infinity : fromNow(deadline);
      this.#lineOf(text).add({ id, cost, signal, deadline, deadlineAt, resolve, reject });
    });
  }

  /** To be told what may let an id pass earlier than the store said. */
  changed(id) {
    if (this.#lines.size > 0) this.#lines.get(idToString(id))?.wake();
  }

  changedAll() {
    for (const line of [...this.#lines.values()]) line.wake();
  }

  close() {
    for (const line of [...this.#lines.values()]) line.close(closedError());
    this.#lines.clear();
  }

  #lineOf(text) {
    const found = this.#lines.get(text);
    if (found !== undefined) return found;
    const line = new Line(this.#store, () => {
      if (this.#lines.get(text) === line) this.#lines.delete(text);
    });
    this.#lines.set(text, line);
    return line;
  }
}

module.exports = { Waiting };
