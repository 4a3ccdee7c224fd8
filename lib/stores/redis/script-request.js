// One run of a script, for one or more groups of calls.
'use strict';

const { readIntegers, readOne, readTimeLeft, runWords } = require('./script');
const SCRIPTS = require('./scripts');

class ScriptRequest {
  calls = []; // of PendingCalls
  sendsSource = false; // instead of its SHA-1
  timesUnknown = 0; // NOSCRIPT replies
  #groups = [];
  #latestOf = new Map(); // the group of the latest call, by limiter
  #latestAs = new Map(); // the latest group, by its head

  constructor(algorithm, node) {
    this.algorithm = algorithm;
    this.node = node;
  }

  /** `amounts` is an array, or one number; 0 and 1 are part of the question. */
  add(call, key, question, amounts) {
    const group = this.#groupOf(call.limiter, question);
    this.calls.push(call);
    group.calls.push(call);
    group.keys.push(key);
    if (typeof amounts !== 'number') group.amounts.push(...amounts);
    else if (amounts > 1) group.amounts.push(amounts);
  }

  /** A limiter's calls are judged in their order, so never in a group before that of its latest. */
  #groupOf(limiter, question) {
    const latest = this.#latestOf.get(limiter);
    if (latest?.question === question) return latest;
    let group = this.#latestAs.get(question.headText);
    if (group === undefined || group.place < latest?.place) {
      group = { place: this.#groups.length, question, calls: [], keys: [], amounts: [] };
      this.#groups.push(group);
      this.#latestAs.set(question.headText, group);
    }
    this.#latestOf.set(limiter, group);
    return group;
  }

  send(adapter) {
    const { sha1, source } = SCRIPTS[this.algorithm];
    const ids = this.calls.map(({ call }) => call.id); // keys are new strings, which takes longer to compare
    const words = runWords(this.#groups, new Set(ids).size < ids.length);
    const [, firstKey] = words;
    return adapter.send(firstKey, [
      ...(this.sendsSource ? ['eval', source] : ['evalsha', sha1]),
      ...words,
    ]);
  }

  answer(reply) {
    let count = 0;
    for (const { question, calls } of this.#groups) count += calls.length * question.length;
    const integers = readIntegers(reply, count);
    let first = 0;
    for (const { question, calls } of this.#groups) {
      const { isFull, length } = question;
      const numbers = new Float64Array(Math.max(2, length));
      for (const call of calls) {
        const integer = integers[first];
        const failed = isFull ? readOne(integers, first, numbers) : readTimeLeft(integer, numbers);
        call.limiter.end(call, failed, numbers, integer);
        first += length;
      }
    }
  }

  /**
   * Whether the script has not run because of some of its keys, while others may be good: they are on several nodes, or
   * the user may not use those of one limiter ("... to access one of the keys", since Redis 8 "... to access a key").
   */
  isForSomeKeys(message) {
    if (this.calls.length < 2) return false;
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

module.exports = { ScriptRequest };
