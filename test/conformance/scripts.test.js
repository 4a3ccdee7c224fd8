// Every script answers the traces as the oracle did, to the microsecond, on a real server.
'use strict';

const fs = require('node:fs');
const Redis = require('ioredis');
const SCRIPTS = require('../../lib/redis/scripts');
const { startRedis } = require('../support/redis-server');
const { ALGORITHM_NAMES } = require('./oracle');
const { readTraces } = require('./traces/format');
const { TRACE_FILE } = require('./write-traces');

const AT_ONCE = 13;
const MOMENT = 5; // its place in an answer of the trace file
const traces = readTraces(fs.readFileSync(TRACE_FILE, 'utf8'));

/** As policyArguments() of lib has it, from ARGV[5] on. */
function policyWords({ countBlocked, minDifference, limits, blockFor }) {
  const windows = limits.flatMap(({ interval, maxInInterval }) => [interval, maxInInterval]);
  return [countBlocked ? 1 : 0, minDifference, blockFor.join(), ...windows];
}

/**
 * The answer of a full reply in the order of the trace file, without the moment: a script may tell any
 * by which it finds the attempt again, as refunds show.
 */
function answerOf([blockedBy, timeLeft, actionsLeft, resetIn, wait, , , ...windows]) {
  return [blockedBy, timeLeft, wait, actionsLeft, resetIn, ...windows];
}

/** One trace on keys of its own. */
class Replay {
  #run;
  #clearAll;
  #words;
  #receipts = new Map();

  constructor(redis, prefix, { policy }) {
    const { sha1 } = SCRIPTS[policy.algorithm];
    this.#words = policyWords(policy);
    this.#run = (id, ...words) =>
      redis.evalsha(sha1, 1, `${prefix}{${id}}`, ...words, ...this.#words);
    this.clear = (id) => redis.del(`${prefix}{${id}}`);
    this.#clearAll = async () => {
      const keys = await redis.keys(`${prefix}{*`);
      if (keys.length > 0) await redis.del(...keys);
    };
  }

  /** [what came, what the oracle says] */
  async perform({ kind, numbers }, place) {
    const [id, ...rest] = numbers;
    switch (kind) {
      case 'attempt':
      case 'peek': {
        const [now, cost, ...expected] = rest;
        const reply = await this.#run(id, kind, 'full', now, cost);
        if (kind === 'attempt') this.#receipts.set(place, { reply, cost });
        expected.splice(MOMENT, 1);
        return [answerOf(reply), expected];
      }
      case 'usage': {
        const [now, ...expected] = rest;
        const reply = await this.#run(id, 'peek', 'full', now, 0);
        return [answerOf(reply).slice(MOMENT), expected];
      }
      case 'refund': {
        const [now, of, found] = rest;
        return [await this.#refund(id, now, of), found];
      }
      case 'clear':
        await this.clear(id);
        return [null, null];
      default:
        await this.#clearAll();
        return [null, null];
    }
  }

  /** As lib does it: once, and only what was allowed. */
  async #refund(id, now, place) {
    const { reply, cost } = this.#receipts.get(place);
    const [blockedBy, , , , , at, generation] = reply;
    if (blockedBy !== 0) return 0;
    const [found] = await this.#run(id, 'refund', `${at},${generation}`, now, cost);
    if (found === 1) reply[0] = -1;
    return found;
  }
}

describe('the script of', () => {
  let redis;
  beforeAll(async () => {
    const server = await startRedis();
    redis = new Redis(server.url).on('error', () => {});
    for (const { source } of Object.values(SCRIPTS)) await redis.script('LOAD', source);
  });
  afterAll(() => {
    redis.disconnect();
  });

  async function expectSame(trace, name) {
    const replay = new Replay(redis, name, trace);
    for (const [place, operation] of trace.operations.entries()) {
      const [came, expected] = await replay.perform(operation, place);
      const context = { line: operation.line, kind: operation.kind };
      expect({ ...context, answer: came }).toEqual({ ...context, answer: expected });
    }
  }

  test.each(ALGORITHM_NAMES)('%s answers the traces as the oracle', async (algorithm) => {
    const own = traces.filter(({ policy }) => policy.algorithm === algorithm);
    expect(own.length).toBeGreaterThan(20);
    while (own.length > 0) {
      const some = own.splice(0, AT_ONCE);
      await Promise.all(
        some.map((trace, i) => expectSame(trace, `${algorithm}${own.length}.${i}`)),
      );
    }
  });
});
