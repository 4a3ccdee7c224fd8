// One command to a server, and the calls that wait for its reply.
'use strict';

const { isIntegers, readInteger, readOne, readTimeLeft, runWords } = require('./script');
const SCRIPTS = require('./scripts');

/** Any command. Its reply is passed on unchanged. */
class PlainRequest {
  constructor(call, send) {
    call.request = this;
    this.calls = [call];
    this.send = send;
  }

  answer(reply) {
    this.calls[0].end(null, reply);
  }
}

/** One run of a script, for one or more groups of calls. */
class ScriptRequest {
  size = 0; // calls
  sendsSource = false; // instead of its SHA-1
  timesUnknown = 0; // NOSCRIPT replies
  source; // of batches.js
  #groups = [];
  #latest; // the group of the latest call, which is of this limiter
  #limiter;
  #latestOf = new Map(); // the same for each limiter
  #latestAs = new Map(); // the latest group, by its head

  constructor(algorithm, node) {
    this.algorithm = algorithm;
    this.node = node;
  }

  /** `amounts` of the key: a number if the question has the cost. */
  add(call, key, question, amounts) {
    call.request = this;
    this.size += 1;
    const group = this.#groupOf(call.limiter, question);
    group.calls.push(call);
    group.keys.push(key);
    if (typeof amounts !== 'number') group.amounts.push(...amounts);
  }

  get calls() {
    return [].concat(...this.#groups.map(({ calls }) => calls)); // much faster than flatMap
  }

  /** A limiter's calls are judged in their order, so never in a group before that of its latest. */
  #groupOf(limiter, question) {
    if (this.#limiter === limiter && this.#latest.question === question) return this.#latest;
    let group = this.#latestAs.get(question.headText);
    if (group === undefined || group.place < this.#latestOf.get(limiter)?.place) {
      group = { place: this.#groups.length, question, calls: [], keys: [], amounts: [] };
      this.#groups.push(group);
      this.#latestAs.set(question.headText, group);
    }
    this.#latestOf.set(limiter, group);
    this.#limiter = limiter;
    this.#latest = group;
    return group;
  }

  send(adapter) {
    const { sha1, source } = SCRIPTS[this.algorithm];
    const script = this.sendsSource ? ['eval', source] : ['evalsha', sha1];
    // Their ids are compared first, because keys are new strings, which takes longer.
    const ids = this.calls.map(({ call }) => call.id);
    const mayRepeat = new Set(ids).size < ids.length;
    return adapter.send(this.#groups[0].keys[0], [...script, ...runWords(this.#groups, mayRepeat)]);
  }

  answer(reply) {
    let count = 0;
    for (const { question, calls } of this.#groups) count += calls.length * question.replyLength;
    const isAnswer = isIntegers(reply, count);
    let first = 0;
    for (const { question, calls } of this.#groups) {
      const { isFull, numbers, replyLength } = question;
      for (const call of calls) {
        const integer = isAnswer ? readInteger(reply[first]) : Number.NaN;
        if (isAnswer && isFull) call.end(readOne(reply, first, numbers), numbers);
        else call.end(readTimeLeft(integer, numbers), numbers, integer);
        first += replyLength;
      }
    }
  }

  /**
   * Whether the script has not run because of some of its keys, while others may be good: they are on several nodes, or
   * the user may not use the keys of one limiter ("... to access one of the keys", from Redis 8 on "... to access a
   * key").
   */
  isForSomeKeys(message) {
    if (this.size < 2) return false;
    const isForbidden = message.startsWith('NOPERM') && message.includes(' key');
    return /^(TRYAGAIN|CROSSSLOT) /.test(message) || (isForbidden && this.#latestOf.size > 1);
  }

  /** A request for each key. */
  splitByKey() {
    return this.#groups.flatMap(({ question, calls, keys, amounts }) => {
      const perCall = amounts.length / calls.length;
      return calls.map((call, i) => {
        const part = new ScriptRequest(this.algorithm, this.node);
        part.sendsSource = this.sendsSource;
        part.add(call, keys[i], question, amounts.slice(i * perCall, (i + 1) * perCall));
        return part;
      });
    });
  }
}

module.exports = { PlainRequest, ScriptRequest };
