// The scripts, asked by hand about one key of a real server; policies that lead to each form of a state.
'use strict';

const { createHash } = require('node:crypto');
const Redis = require('ioredis');
const RateLimiter = require('../..');
const { ALGORITHMS } = require('../../lib/options/algorithms');
const { callNumbers, groupHead, runWords } = require('../../lib/stores/redis/script');
const { OPERATIONS, isAttempt } = require('../../lib/stores/remote/operations');
const SCRIPTS = require('../../lib/stores/redis/scripts');
const { startRedis } = require('./redis-server');
const { patient } = require('./tiers');

const START_US = 1_700_000_000_000_001;
const KEY = 'api{0123456789abcdef}';
const MINUTE = 60_000_000;
const LOG = 'sliding-window-log';
const OF_FRAME = ALGORITHMS.filter((algorithm) => algorithm !== LOG);

const policyOf = (algorithm, changes) => ({
  algorithm,
  countBlocked: false,
  minDifference: 0,
  blockFor: [],
  limits: [{ interval: MINUTE, maxInInterval: 3 }],
  ...changes,
});

const windows = (...pairs) => ({
  limits: pairs.map(([interval, maxInInterval]) => ({ interval, maxInInterval })),
});
const window = (interval, maxInInterval) => windows([interval, maxInInterval]);

/** The numbers of a policy, which may have `keep` and the numbers `around` a time, as in frame.lua. */
function policyNumbers({ countBlocked, minDifference, blockFor, limits, keep = 0, around = [] }) {
  return [
    ...[countBlocked ? 1 : 0, minDifference, keep, limits.length, blockFor.length],
    ...limits.flatMap(({ interval, maxInInterval }) => [interval, maxInInterval]),
    ...blockFor,
    ...around,
  ];
}

/** The numbers of one group. `detail` is 'brief' or 'full', [moment, generation] of a refund, or [us] of a block. */
function numbersOf(policy, operation, detail, now, cost) {
  const more = Array.isArray(detail) ? detail : [];
  const number = OPERATIONS[operation === 'refund' ? 'SETTLE' : operation.toUpperCase()];
  const time = now === '' ? undefined : now;
  return [...callNumbers(number, detail === 'full', time, cost, ...more), ...policyNumbers(policy)];
}

/** A group without amounts, as runWords takes it. */
function groupOf({ policy, keys, call }) {
  const numbers = numbersOf(policy, ...call);
  const isLong = policy.limits.some(({ maxInInterval }) => maxInInterval > 257);
  const isApart = (policy.algorithm === LOG && isLong) || !isAttempt(numbers[0]);
  return { question: { head: groupHead(numbers, []), isApart }, keys, amounts: [] };
}

/** Of EVALSHA. A policy may name a script of its own by `sha1`. */
function argumentsOf(policy, keys, ...call) {
  const { algorithm, sha1 = SCRIPTS[algorithm].sha1 } = policy;
  return [sha1, ...runWords([groupOf({ policy, keys, call })])];
}

const FORMS = [
  ['a single window', {}],
  ['minDifference', { minDifference: 5_000_000 }],
  ['blocks', { blockFor: [1_000_000, 3_600_000_000] }],
  ['two windows', windows([MINUTE, 3], [1000 * MINUTE, 9])],
  ['wide counts', window(MINUTE, 2 ** 53 - 1)],
];

const EACH_FORM = ALGORITHMS.flatMap((algorithm) =>
  FORMS.map(([name, changes]) => [algorithm, name, policyOf(algorithm, changes)]),
);

/** Windows so long that none ends while a test lasts that goes by the clock of the server. */
function lengthened({ limits, ...policy }) {
  const longer = ({ interval, ...limit }) => ({ ...limit, interval: interval * 40_000 });
  return { ...policy, limits: limits.map(longer) };
}

/** By a given time and by the server's own, unless all leaks there before it can be seen. */
function byEachClock(policy) {
  const leaksAtOnce = policy.algorithm === 'gcra' && policy.limits[0].maxInInterval > 1e6;
  const given = [policy, START_US];
  return leaksAtOnce ? [given] : [given, [lengthened(policy), '']];
}

/** Where scripts in moved time find the server's time. */
const TIME = 'time';

/** The script by a clock of the server's that setTime() moves. */
function inMovedTime(source) {
  return source.replace("call('TIME')", `call('HMGET', '${TIME}', 's', 'us')`);
}

/** The script of the log with some words replaced, each of which occurs in it. */
const changedLog = (...changes) =>
  changes.reduce((source, [from, to]) => {
    if (!source.includes(from)) throw new Error(`the script has no ${from}`);
    return source.replace(from, to);
  }, SCRIPTS[LOG].source);

const timeOf = (micros) => ({ s: Math.floor(micros / 1e6), us: micros % 1e6 });

/**
 * A client as node-redis has, for limiters of one algorithm. Whatever script they send, it runs `source`, which is
 * loaded, and keeps the keys from expiring. `clock` gives the time of a source in moved time, in ms.
 */
function clientOf(redis, source, clock) {
  const sha1 = createHash('sha1').update(source).digest('hex');
  return {
    ...{ isOpen: true, isReady: true, options: {} },
    async sendCommand([name, ...words]) {
      if (!/^eval/i.test(name)) return redis.call(name, ...words);
      if (clock) redis.hset(TIME, timeOf(Math.round(clock() * 1000)));
      const [, count, ...rest] = words;
      const reply = redis.evalsha(sha1, count, ...rest);
      for (const key of rest.slice(0, count)) redis.persist(key).catch(() => {}); // closed
      return reply;
    },
  };
}

/** Inside of a describe: what asks the scripts on a server of its own, with all keys gone after each test. */
function scriptsOnRedis() {
  let redis;
  let opened = 0;
  beforeAll(async () => {
    const { url } = await startRedis();
    redis = new Redis(url).on('error', () => {});
    for (const { source } of Object.values(SCRIPTS)) await redis.script('LOAD', source);
  });
  afterEach(() => redis.flushall());
  afterAll(() => redis.disconnect());

  const runOn = (keys, policy, ...words) => redis.evalsha(...argumentsOf(policy, keys, ...words));
  const run = (policy, ...words) => runOn([KEY], policy, ...words);
  return {
    run,
    runOn,
    attempt: (policy, now = '', cost = 1) => run(policy, 'attempt', 'full', now, cost),
    peek: (policy, now = '', cost = 1) => run(policy, 'peek', 'full', now, cost),
    refund: async (policy, reply, now = '', cost = 1) => {
      const [found] = await run(policy, 'refund', [reply[5], reply[6]], now, cost);
      return found;
    },
    block: async (policy, us, now = '') => {
      const [reply] = await run(policy, 'block', [us], now, 0);
      return reply;
    },
    ttl: () => redis.pttl(KEY),
    load: (source) => redis.script('LOAD', source),
    setTime: (micros) => redis.hset(TIME, timeOf(micros)),
    /** Opens limiters of one client that run `source`, by their clock; each of its own by the server's, which is set. */
    openOn(source, byServer = false) {
      const shared = clientOf(redis, source);
      return ({ clock, ...options }) => {
        const client = byServer ? clientOf(redis, source, clock) : shared;
        const own = byServer ? {} : { clock };
        const connection = { client, commandTimeout: patient(60_000) };
        return RateLimiter({
          namespace: `opened-${++opened}`,
          redis: connection,
          ...own,
          ...options,
        });
      };
    },
    get redis() {
      return redis;
    },
  };
}

module.exports = {
  argumentsOf,
  byEachClock,
  changedLog,
  EACH_FORM,
  FORMS,
  inMovedTime,
  KEY,
  LOG,
  MINUTE,
  OF_FRAME,
  policyNumbers,
  policyOf,
  scriptsOnRedis,
  START_US,
  window,
};
