// A queue whose members can be removed from anywhere in constant time.
'use strict';

/** A doubly linked list of objects, whose `next` and `previous` belong to it. */
class Queue {
  first = null;
  length = 0;
  #last = null;

  add(member) {
    member.next = null;
    member.previous = this.#last;
    if (this.#last === null) this.first = member;
    else this.#last.next = member;
    this.#last = member;
    this.length += 1;
  }

  /** @param {object} member one that is in the queue */
  remove(member) {
    const { next, previous } = member;
    if (previous === null) this.first = next;
    else previous.next = next;
    if (next === null) this.#last = previous;
    else next.previous = previous;
    this.length -= 1;
  }
}

module.exports = { Queue };
