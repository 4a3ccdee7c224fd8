// The script itself against the brute-force oracle: short logs, long ones, and such as change their form.
'use strict';

const Redis = require('ioredis');
const { attemptOn } = require('../../lib/redis/script');
const SCRIPTS = require('../../lib/redis/scripts');
const { Oracle } = require('../support/oracle');
const { startRedis } = require('../support/redis-server');
const { randomFrom, randomPolicy, randomStep } = require('../support/traces');

const TRACES = process.env.ROLLGATE_SANITIZED ? 10 : 40;
const STEPS = 80;
const START_US = 1_700_000_000_000_001;
const SOURCE = SCRIPTS['sliding-window-log'].source;
const LIMIT_OF_SHORT = 'local MOST_STAMPS_OF_SHORT = 256';
const IDS = ['a', 'b', 'c'];

/** The script as it is, and with every log long that has a stamp. */
const FORMS = {
  short: SOURCE,
  long: SOURCE.replace(LIMIT_OF_SHORT, 'local MOST_STAMPS_OF_SHORT = 0'),
};

const toMs = (micros) => Math.ceil(micros / 1000);

let redis;

const policyWords = ({ limits, minDifference, countBlocked }) => [
  countBlocked ? '1' : '0',
  minDifference,
  '',
  ...limits.flatMap(({ interval, maxInInterval }) => [interval, maxInInterval]),
];

/** Time is only told here: the server's own must not end a key that is a second old. */
function run(source, keys, words, policy) {
  const reply = redis.eval(source, keys.length, ...keys, ...words, ...policyWords(policy));
  for (const key of new Set(keys)) redis.persist(key);
  return reply;
}

/** What the oracle says, as the script says it, but for what only refunds need. */
function expectedOf(answer) {
  const { blockedBy, timeLeft, actionsLeft, resetIn, limits } = answer;
  const windows = limits.map(({ used, resetIn: windowResetIn }) => [used, windowResetIn]);
  return { blockedBy, timeLeft, actionsLeft, resetIn, windows };
}

function answerOf(reply, policy, at = 0) {
  const [blocked, timeLeft, actionsLeft, resetIn] = reply.slice(at);
  const blockedBy = blocked === 0 ? null : blocked & 1 ? 'count' : 'minDifference';
  const windows = policy.limits.map((_, i) => {
    const first = at + 7 + 2 * i;
    return [reply[first], toMs(reply[first + 1])];
  });
  return {
    blockedBy,
    timeLeft: toMs(timeLeft),
    actionsLeft,
    resetIn: toMs(resetIn),
    windows,
  };
}

const receiptOf = (reply, at = 0) => ({ at: reply[at + 5], generation: reply[at + 6] });

describe('the script', () => {
  beforeAll(async () => {
    const server = await startRedis();
    redis = new Redis(server.url).on('error', () => {});
  });

  afterEach(async () => {
    await redis.flushall();
  });

  afterAll(() => {
    redis.disconnect();
  });

  test('an attempt says whether keys repeat, for what was written is noted only then', () => {
    expect(attemptOn(['a', 'b', 'c'])).toBe('attempt');
    expect(attemptOn(['a', 'b', 'a'])).toBe('attempt, keys repeat');
  });

  describe('the test itself', () => {
    test('finds the line that it replaces', () => {
      expect(SOURCE).toContain(LIMIT_OF_SHORT);
    });
  });

  describe.each([
    ['short logs', () => FORMS.short],
    ['long logs', () => FORMS.long],
    ['logs that change their form all the time', (random) => random.pick(Object.values(FORMS))],
  ])('%s', (_, sourceFor) => {
    test.each([true, false])('decide as the oracle, countBlocked: %s', async (countBlocked) => {
      for (let seed = 1; seed <= TRACES; seed++) {
        const random = randomFrom(seed);
        const policy = randomPolicy(random, { countBlocked });
        const largestCost = Math.min(...policy.limits.map((limit) => limit.maxInInterval));
        const oracles = Object.fromEntries(IDS.map((id) => [id, new Oracle(policy)]));
        const length = 7 + 2 * policy.limits.length;
        const refundable = [];
        let now = START_US;
        let notBefore = 0;
        for (let step = 0; step < STEPS; step++) {
          const context = { seed, step };
          const source = sourceFor(random);
          now += randomStep(random, policy.unit);
          if (random.chance(5)) now = Math.max(notBefore, now - random.between(1, 5 * policy.unit));
          const id = random.pick(IDS);
          const oracle = oracles[id];
          const cost = random.chance(30) ? random.between(1, largestCost) : 1;
          const kind = random.between(1, 6);
          if (kind === 1) {
            const reply = await run(source, [id], ['peek', 'full', now, cost], policy);
            const expected = expectedOf(oracle.peek(now, cost));
            expect({ ...context, ...answerOf(reply, policy) }).toEqual({ ...context, ...expected });
          } else if (kind === 2) {
            const ids = Array.from({ length: random.between(1, 5) }, () => random.pick(IDS));
            const words = [attemptOn(ids), 'brief', now, cost];
            const reply = await run(source, ids, words, policy);
            const expected = ids.map((each) => oracles[each].attempt(now, cost).timeLeft);
            expect({ ...context, reply: reply.map(toMs) }).toEqual({ ...context, reply: expected });
          } else if (kind === 3 && refundable.length > 0 && !countBlocked) {
            const [taken] = refundable.splice(random.between(0, refundable.length - 1), 1);
            const words = ['refund', `${taken.at},${taken.generation}`, now, taken.cost];
            const [found] = await run(source, [taken.id], words, policy);
            const was = oracles[taken.id].refund(taken.attempt);
            // What left every window may be forgotten already.
            if (found === 0) expect(now - taken.at).toBeGreaterThanOrEqual(taken.retention);
            else expect({ ...context, was }).toEqual({ ...context, was: true });
            notBefore = Math.max(notBefore, taken.at);
            now = Math.max(now, notBefore);
          } else {
            const ids = Array.from({ length: random.between(1, 3) }, () => random.pick(IDS));
            const words = [attemptOn(ids), 'full', now, cost];
            const reply = await run(source, ids, words, policy);
            for (const [i, each] of ids.entries()) {
              const answer = oracles[each].attempt(now, cost);
              const actual = answerOf(reply, policy, i * length);
              expect({ ...context, i, ...actual }).toEqual({
                ...context,
                i,
                ...expectedOf(answer),
              });
              if (!answer.allowed) continue;
              const retention = Math.max(
                policy.minDifference,
                ...policy.limits.map(({ interval }) => interval),
              );
              const { attempt } = answer;
              const receipt = receiptOf(reply, i * length);
              refundable.push({ id: each, cost, attempt, retention, ...receipt });
            }
          }
        }
        await redis.flushall();
      }
    });
  });

  /** What a batch of the native client is: one window and nothing else, brief answers. */
  describe('brief attempts under a single window', () => {
    const ids = ['a', 'b', 'c', 'd', 'e'];

    test.each([true, false])('decide as the oracle, countBlocked: %s', async (countBlocked) => {
      await redis.config('RESETSTAT');
      for (let seed = 1; seed <= TRACES; seed++) {
        const random = randomFrom(seed);
        const interval = random.pick([1000, 1_000_000, 60_000_000, 4_200_000_000]);
        const limits = [{ interval, maxInInterval: random.between(1, 8) }];
        const policy = { limits, minDifference: 0, countBlocked };
        const oracles = Object.fromEntries(ids.map((id) => [id, new Oracle(policy)]));
        let now = START_US;
        for (let step = 0; step < 2 * STEPS; step++) {
          now += randomStep(random, interval / 8);
          if (random.chance(5)) now -= random.between(1, interval / 2);
          const some = Array.from({ length: random.between(1, 5) }, () => random.pick(ids));
          const reply = await run(SOURCE, some, [attemptOn(some), 'brief', now, 1], policy);
          const expected = some.map((id) => oracles[id].attempt(now, 1).timeLeft);
          expect({ seed, step, reply: reply.map(toMs) }).toEqual({ seed, step, reply: expected });
        }
        await redis.flushall();
      }
      // Else not all ways to write were tried.
      const stats = await redis.info('commandstats');
      expect(stats).toMatch(/cmdstat_setrange:calls=\d{3}/);
      expect(stats).toMatch(/cmdstat_set:calls=\d{4}/);
    });
  });

  test.each([
    ['brief', [0, -1, 0, -1, 0], 5],
    ['brief', [0, -1, 0, -1, 60_000_000], 1],
    ['full', [0, -1, 0, -1, 0], 5],
    ['full', [0, -1, 0, -1, 1], 1],
  ])(
    'a key of another type does not stop the others: %s, %j, max %d',
    async (words, first, max) => {
      const policy = { limits: [{ interval: 60_000_000, maxInInterval: max }], minDifference: 0 };
      await redis.rpush('list', 'x');
      const ids = ['a', 'list', 'b', 'list', 'a'];
      const reply = await run(SOURCE, ids, [attemptOn(ids), words, START_US, 1], policy);
      const length = reply.length / ids.length;
      expect(ids.map((_, i) => reply[i * length])).toEqual(first);
      expect(await redis.lrange('list', 0, -1)).toEqual(['x']);
      await redis.flushall();
    },
  );

  /** Refusals that count push actions out: a bit of the log tells it, which a refund asks. */
  test.each([
    ['brief', 0],
    ['full', 0],
    ['brief', 1],
  ])(
    'a refund frees no place that refusals have taken (%s, minDifference %d)',
    async (how, gap) => {
      const limits = [{ interval: 60_000_000, maxInInterval: 4 }];
      const policy = { limits, minDifference: gap, countBlocked: true };
      const ids = Array.from({ length: 16 }, (_, i) => `id${i}`);
      const length = how === 'full' ? 9 : 1;
      const areAllowed = async (now) => {
        const reply = await run(SOURCE, ids, ['attempt', how, now, 1], policy);
        const answers = ids.map((_, i) => reply[i * length] === 0);
        expect(new Set(answers).size).toBe(1);
        return answers[0];
      };
      const refund = async (at) => {
        for (const id of ids) {
          const generation = (await run(SOURCE, [id], ['peek', 'full', at, 1], policy))[6];
          const words = ['refund', `${at},${generation}`, at, 1];
          expect(await run(SOURCE, [id], words, policy)).toEqual([1]);
        }
      };
      for (let i = 0; i < 4; i++) expect(await areAllowed(START_US + 10 * i)).toBe(true);
      expect(await areAllowed(START_US + 40)).toBe(false);
      await refund(START_US + 30);
      expect(await areAllowed(START_US + 50)).toBe(false);
      // Nothing of that is in the window any more.
      const later = START_US + 120_000_000;
      for (let i = 0; i < 4; i++) expect(await areAllowed(later + 10 * i)).toBe(true);
      await refund(later + 30);
      expect(await areAllowed(later + 50)).toBe(true);
      await redis.flushall();
    },
  );

  describe('a log', () => {
    const policy = { limits: [{ interval: 1_000_000, maxInInterval: 3 }], minDifference: 0 };

    test.each(Object.entries(FORMS))(
      'has no more bytes than its limit asks for: %s',
      async (_, source) => {
        for (let i = 0; i < 50; i++) {
          const words = ['attempt', 'brief', START_US + i, 1];
          await run(source, ['a'], words, { ...policy, countBlocked: true });
        }
        expect(await redis.strlen('a')).toBe(source === FORMS.short ? 18 + 2 * 4 : 30 + 2 * 4);
      },
    );

    test.each([
      ['41 minutes', 41 * 60e6, 4],
      ['a day', 86_400e6, 5],
      ['a month', 30 * 86_400e6, 6],
      ['a century', 100 * 366 * 86_400e6, 7],
    ])('of %s has stamps as short as that allows, and is exact', async (_, interval, bytes) => {
      const long = {
        limits: [{ interval, maxInInterval: 3 }],
        minDifference: 0,
        countBlocked: false,
      };
      const attempt = async (now) => {
        const [timeLeft] = await run(SOURCE, ['a'], ['attempt', 'brief', now, 1], long);
        return timeLeft;
      };
      const times = [START_US, START_US + Math.floor(interval / 2), START_US + interval - 1];
      for (const time of times) expect(await attempt(time)).toBe(0);
      expect(await attempt(times[2])).toBe(1);
      expect(await redis.strlen('a')).toBe(18 + 2 * bytes);
      expect(await attempt(times[0] + interval)).toBe(0);
      expect(await attempt(times[1] + interval - 1)).toBe(1);
      expect(await attempt(times[1] + interval)).toBe(0);
    });

    test('of a large cost is written at once', async () => {
      const max = 2_000_000;
      const limits = [{ interval: 60e6, maxInInterval: max }];
      const large = { limits, minDifference: 0, countBlocked: true };
      const words = (cost) => ['attempt', 'brief', START_US, cost];
      expect(await run(SOURCE, ['a'], words(max), large)).toEqual([0]);
      expect(await run(SOURCE, ['a'], words(1), large)).toEqual([60e6]);
      expect(await redis.strlen('a')).toBe(30 + 4 * (max - 1));
    });
  });
});
