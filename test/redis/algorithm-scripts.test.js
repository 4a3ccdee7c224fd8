// The scripts of the algorithms against their definitions: every form of a state, blocks, huge numbers.
'use strict';

const Redis = require('ioredis');
const { attemptOn } = require('../../lib/redis/script');
const SCRIPTS = require('../../lib/redis/scripts');
const { PolicyOracle } = require('../support/policy-oracle');
const { startRedis } = require('../support/redis-server');
const { randomFrom, randomPolicy, randomStep } = require('../support/traces');

const TRACES = process.env.ROLLGATE_SANITIZED ? 10 : 40;
const STEPS = 60;
const START_US = 1_700_000_000_000_001;
const FUTURE_US = 2_000_000_000_000_001; // by when keys do not end yet
const IDS = ['a', 'b', 'c'];
const OF_FRAME = ['fixed-window', 'sliding-window-counter', 'gcra'];
const LOG = 'sliding-window-log';

/** Where the scripts find the server's time in tests that move it. */
const TIME = 'time';

/** By a clock of the server's that moves as it is told. */
function inMovedTime(source) {
  return source.replace(/(redis\.)?call\('TIME'\)/, `redis.call('HMGET', '${TIME}', 's', 'us')`);
}

/** With every log long that has a stamp. */
const LONG_LOGS = SCRIPTS[LOG].source.replace(
  'local MOST_STAMPS_OF_SHORT = 256',
  'local MOST_STAMPS_OF_SHORT = 0',
);

let redis;

function argumentsOf({ countBlocked, minDifference, blockFor = [], limits }) {
  return [
    countBlocked ? '1' : '0',
    minDifference,
    blockFor.join(),
    ...limits.flatMap(({ interval, maxInInterval }) => [interval, maxInInterval]),
  ];
}

function run(policy, keys, words) {
  const { sha1 } = policy.script ?? SCRIPTS[policy.algorithm];
  return redis.evalsha(sha1, keys.length, ...keys, ...words, ...argumentsOf(policy));
}

/** The same where time is only told: the server's own must not end a key that is a second old. */
function runInToldTime(policy, keys, [operation, detail, now, cost]) {
  let time = now;
  if (policy.isByServer) {
    redis.hset(TIME, { s: Math.floor(now / 1e6), us: now % 1e6 });
    time = '';
  }
  const reply = run(policy, keys, [operation, detail, time, cost]);
  for (const key of new Set(keys)) redis.persist(key);
  return reply;
}

const lengthOf = ({ limits }) => 7 + 2 * limits.length;

/** What the oracle says too; the rest is for refunds alone. */
function answerOf(reply, policy, i = 0) {
  const [blockedBy, timeLeft, actionsLeft, resetIn, wait, , , ...windows] = reply.slice(
    i * lengthOf(policy),
    (i + 1) * lengthOf(policy),
  );
  return { blockedBy, timeLeft, actionsLeft, resetIn, wait, windows };
}

function receiptOf(reply, policy, i = 0) {
  const [at, generation] = reply.slice(i * lengthOf(policy) + 5);
  return { at, generation };
}

function expectedOf({ attempt: _, ...answer }) {
  return answer;
}

/** Policies of all kinds; `unit` as in traces.js. Durations and counts are so many times theirs. */
function policyOf(random, algorithm, { scale = 1, crowd = 1 }) {
  const countBlocked = algorithm !== 'gcra' && random.chance(50);
  const { unit, limits, minDifference } = randomPolicy(random, { countBlocked });
  const isSingle = random.chance(50);
  const blockFor = random.chance(35)
    ? Array.from({ length: random.between(1, 3) }, () => random.between(1, 60) * unit * scale)
    : [];
  return {
    algorithm,
    countBlocked,
    unit: unit * scale,
    limits: (isSingle ? limits.slice(0, 1) : limits).map(({ interval, maxInInterval }) => ({
      interval: interval * scale,
      maxInInterval: maxInInterval * crowd - random.between(0, crowd - 1),
    })),
    minDifference: random.chance(60) ? 0 : minDifference * scale,
    blockFor,
  };
}

/**
 * Exact with logs unless refusals count there, and while the clock is not behind what was refunded. By
 * its own clock Redis gives back nothing that had leaked before the clock stepped back.
 */
function canRefund({ algorithm, countBlocked, isByServer }, now, latest) {
  return algorithm === LOG ? !countBlocked : !isByServer || now >= latest;
}

const retentionOf = ({ minDifference, limits }) =>
  Math.max(minDifference, ...limits.map(({ interval }) => interval));

async function runTrace(seed, policy, random, { start = START_US, crowd = 1 }) {
  const smallestMax = Math.min(...policy.limits.map((limit) => limit.maxInInterval));
  const oracles = Object.fromEntries(IDS.map((id) => [id, new PolicyOracle(policy)]));
  const refundable = [];
  let now = start;
  let notBefore = Number.NEGATIVE_INFINITY;
  let latest = start;
  for (let step = 0; step < STEPS; step++) {
    const context = { seed, step, policy, now };
    now += randomStep(random, policy.unit);
    if (random.chance(6)) now -= random.between(1, 20 * policy.unit);
    now = Math.max(now, notBefore);
    latest = Math.max(latest, now);
    const cost = random.chance(30)
      ? random.between(1, Math.min(smallestMax, 50))
      : Math.min(smallestMax, crowd);
    const kind = random.between(1, 8);
    if (kind <= 2) {
      const id = random.pick(IDS);
      const peekCost = random.chance(20) ? 0 : cost;
      const words = ['peek', 'full', now, peekCost];
      const answer = answerOf(await runInToldTime(policy, [id], words), policy);
      const expected = oracles[id].peek(now, peekCost);
      expect({ ...context, ...answer }).toEqual({ ...context, ...expectedOf(expected) });
      const [brief] = await runInToldTime(policy, [id], ['peek', 'brief', now, peekCost]);
      expect({ ...context, brief }).toEqual({ ...context, brief: expected.timeLeft });
    } else if (kind === 3) {
      const ids = Array.from({ length: random.between(1, 5) }, () => random.pick(IDS));
      const reply = await runInToldTime(policy, ids, [attemptOn(ids), 'brief', now, cost]);
      const expected = ids.map((id) => oracles[id].attempt(now, cost).timeLeft);
      expect({ ...context, reply }).toEqual({ ...context, reply: expected });
    } else if (kind === 4 && refundable.length > 0 && canRefund(policy, now, latest)) {
      const [taken] = refundable.splice(random.between(0, refundable.length - 1), 1);
      const words = ['refund', `${taken.at},${taken.generation}`, now, taken.cost];
      const [found] = await runInToldTime(policy, [taken.id], words);
      const was = taken.oracle === oracles[taken.id] && taken.oracle.refund(now, taken);
      if (policy.algorithm === LOG) {
        notBefore = Math.max(notBefore, taken.at);
        // What has left every window may be forgotten, also where the clock steps back later.
        if (found === 0 && latest - taken.at >= retentionOf(policy)) continue;
      }
      expect({ ...context, found }).toEqual({ ...context, found: was ? 1 : 0 });
    } else if (kind === 5 && policy.isByServer) {
      // A life that begins later than this is told from it.
      const id = random.pick(IDS);
      await redis.del(id);
      oracles[id] = new PolicyOracle(policy);
      now = latest + 1;
    } else {
      const ids = Array.from({ length: random.between(1, 3) }, () => random.pick(IDS));
      const reply = await runInToldTime(policy, ids, [attemptOn(ids), 'full', now, cost]);
      for (const [i, id] of ids.entries()) {
        const oracle = oracles[id];
        const expected = oracle.attempt(now, cost);
        const answer = answerOf(reply, policy, i);
        expect({ ...context, i, ...answer }).toEqual({ ...context, i, ...expectedOf(expected) });
        if (expected.blockedBy !== 0) continue;
        const receipt = receiptOf(reply, policy, i);
        refundable.push({ id, oracle, cost, attempt: expected.attempt, ...receipt });
      }
    }
  }
}

describe('the scripts of algorithms', () => {
  beforeAll(async () => {
    const server = await startRedis();
    redis = new Redis(server.url).on('error', () => {});
    for (const { source } of Object.values(SCRIPTS)) await redis.script('LOAD', source);
  });

  afterEach(() => redis.flushall());

  afterAll(() => redis.disconnect());

  describe.each([
    ['short logs', undefined],
    ['long logs', LONG_LOGS],
  ])('sliding-window-log, %s', (_name, source) => {
    test('decides as defined, with blocks', async () => {
      expect(LONG_LOGS).not.toBe(SCRIPTS[LOG].source);
      const script = source && { sha1: await redis.script('LOAD', source) };
      for (let seed = 1; seed <= 2 * TRACES; seed++) {
        const random = randomFrom(seed);
        const policy = { ...policyOf(random, LOG, {}), script };
        await runTrace(seed, policy, random, {});
        await redis.flushall();
      }
    });
  });

  describe.each(OF_FRAME)('%s', (algorithm) => {
    test.each([
      ['short windows', {}],
      ['windows that have a compact form', { scale: 5000 }],
      ['times about the epoch', { start: -20_000 }],
      ['windows of months', { scale: 400_000_003 }],
      ['thousands of actions', { scale: 5000, crowd: 5003 }],
      ['millions of actions in hours', { scale: 1_000_003, crowd: 3_000_017 }],
      [
        'more actions than a number of 32 bits in months',
        { scale: 300_000_007, crowd: 2 ** 40 + 9 },
      ],
    ])('decides as defined: %s', async (_, kind) => {
      for (let seed = 1; seed <= TRACES; seed++) {
        const random = randomFrom(seed);
        const policy = policyOf(random, algorithm, kind);
        await runTrace(seed, policy, random, kind);
        await redis.flushall();
      }
    });

    test.each([
      ['short windows', {}],
      ['windows of seconds', { scale: 5000 }],
      ['windows of minutes', { scale: 99_991 }],
      ['windows of months', { scale: 400_000_003 }],
      ['thousands of actions', { scale: 5000, crowd: 5003 }],
    ])('decides as defined by the clock of the server: %s', async (_, kind) => {
      const sha1 = await redis.script('LOAD', inMovedTime(SCRIPTS[algorithm].source));
      for (let seed = 1; seed <= TRACES; seed++) {
        const random = randomFrom(seed);
        const own = { ...policyOf(random, algorithm, kind), isByServer: true, script: { sha1 } };
        await runTrace(seed, own, random, { ...kind, start: FUTURE_US });
        await redis.flushall();
      }
    });
  });

  test.each([
    [1_000_000, 1000],
    [1_500_500, 3001],
    [1_000_001, 1],
  ])(
    'gcra in %d us gives nothing back of a cleared life some %d us before',
    async (length, turn) => {
      const sha1 = await redis.script('LOAD', inMovedTime(SCRIPTS.gcra.source));
      const policy = {
        algorithm: 'gcra',
        countBlocked: false,
        minDifference: 0,
        limits: [{ interval: length, maxInInterval: 1000 }],
        isByServer: true,
        script: { sha1 },
      };
      for (let k = 1; k <= 100; k++) {
        const now = FUTURE_US + k;
        const words = (time) => ['attempt', 'full', time, 300];
        const cleared = receiptOf(await runInToldTime(policy, ['a'], words(now)), policy);
        await redis.del('a');
        const later = now + turn * k;
        await runInToldTime(policy, ['a'], words(later));
        const back = ['refund', `${cleared.at},${cleared.generation}`, later, 300];
        expect({ k, found: await runInToldTime(policy, ['a'], back) }).toEqual({ k, found: [0] });
        await redis.del('a');
      }
    },
  );

  test.each([
    [1_000_000, 999],
    [3_600_000_000, 5003],
  ])(
    'gcra of %d us, %d actions gives nothing back of a cleared life to what is no integer',
    async (length, most) => {
      const sha1 = await redis.script('LOAD', inMovedTime(SCRIPTS.gcra.source));
      const limits = [{ interval: length, maxInInterval: most }];
      const policy = {
        countBlocked: false,
        minDifference: 0,
        limits,
        isByServer: true,
        script: { sha1 },
      };
      for (let k = 1; k <= 100; k++) {
        const attemptAt = async (now, cost) =>
          receiptOf(await runInToldTime(policy, ['a'], ['attempt', 'full', now, cost]), policy);
        const refundAt = (now, cost, { at, generation }) =>
          runInToldTime(policy, ['a'], ['refund', `${at},${generation}`, now, cost]);
        const cleared = await attemptAt(FUTURE_US, 300);
        await redis.del('a');
        const now = FUTURE_US + k;
        const first = await attemptAt(now, 1);
        await attemptAt(now, 600);
        expect(await refundAt(now, 1, first)).toEqual([1]);
        expect({ k, found: await refundAt(now, 300, cleared) }).toEqual({ k, found: [0] });
        await redis.del('a');
      }
    },
  );

  test.each([['a'], ['text', 'a']])(
    'fixed-window has no integers of low moments (%s)',
    async (...keys) => {
      const sha1 = await redis.script('LOAD', inMovedTime(SCRIPTS['fixed-window'].source));
      await redis.hset(TIME, { s: Math.floor(FUTURE_US / 1e6), us: FUTURE_US % 1e6 });
      const limits = [{ interval: 60_000_000, maxInInterval: 3 }];
      const policy = { countBlocked: false, minDifference: 0, limits, script: { sha1 } };
      const now = FUTURE_US % 2 ** 24; // so that the generation is what an integer's would be
      await redis.set('text', 'x');
      for (let i = 1; i <= 3; i++) {
        const reply = await run(policy, keys, ['attempt', 'full', now, 1]);
        expect(reply.at(-2)).toBe(i);
        expect(await redis.strlen('a')).toBe(12);
      }
    },
  );
});
