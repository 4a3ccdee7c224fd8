// Calls of several limiters on one connection or client, sent in one command: each gets its own answer.
'use strict';

const RateLimiter = require('../..');
const { outcomeOf } = require('../support/outcome');
const { EACH_CLIENT, nativeLimiter, openings, runsOf } = require('../support/redis-clients');
const { redisForTests, startRedis } = require('../support/redis-server');
const { handClock } = require('../support/set-up');
const { patient } = require('../support/tiers');

const { createRedisConnection } = RateLimiter;
const REPLY = 'ERR_ROLLGATE_REDIS_REPLY';

const { using, closeAll } = openings();
const server = redisForTests();

afterEach(closeAll);

const times = (count, make) => Array.from({ length: count }, (_, i) => make(i));
const COMMON = { commandTimeout: patient(15_000) };
const limiterOn = (connection, options) =>
  nativeLimiter(undefined, { redis: connection, ...options });

/** What limiters share: a connection, or a user's client. */
function connectBy(open, url) {
  const opened = { ...open(url), ...COMMON };
  return opened.client === undefined ? createRedisConnection(opened) : using(opened);
}

const runsOfAll = (makeCalls) => runsOf(server, () => Promise.all(makeCalls()));

/** Logs that differ in every option of a policy, and the other algorithms. */
const POLICIES = [
  {},
  { maxInInterval: 3, countBlocked: false },
  { minDifference: 20 },
  { maxInInterval: 5, interval: 7 },
  { blockFor: [1000, 5000], countBlocked: false },
  { maxInInterval: 1_000_000 },
  {
    interval: undefined,
    maxInInterval: undefined,
    limits: [
      { interval: 100, maxInInterval: 4 },
      { interval: 9000, maxInInterval: 6, minDifference: 1 },
    ],
  },
  { algorithm: 'gcra', maxInInterval: 4 },
  { algorithm: 'gcra', maxInInterval: 9, interval: 500 },
  { algorithm: 'fixed-window' },
  { algorithm: 'sliding-window-counter', maxInInterval: 4 },
];
const ALGORITHMS = 4;

/** Brief, full, with a cost, and peeks; ids that repeat and ids that are new. */
const callsOf = (limiter) => [
  limiter('a'),
  limiter.attempt('a'),
  limiter.peek('a'),
  limiter('b'),
  limiter.attempt('b', { cost: 2 }),
  limiter('a'),
  limiter.peek('new'),
];

/** All calls in one turn, three times; `openOf` gives each limiter its connection. */
async function answersOn(openOf, { together }) {
  const time = handClock();
  const limiters = POLICIES.map((policy) => limiterOn(openOf(), { clock: time.clock, ...policy }));
  const rounds = [];
  for (let round = 0; round < 3; round++) {
    const answers = limiters.map((limiter) => () => Promise.all(callsOf(limiter)));
    if (together) rounds.push(await Promise.all(answers.map((answer) => answer())));
    else
      rounds.push(
        await answers.reduce(async (all, answer) => [...(await all), await answer()], []),
      );
    time.advance(6);
  }
  return rounds;
}

describe.each(EACH_CLIENT)('through %s', (name, open) => {
  const connect = () => connectBy(open, server.url);

  test('limiters that share a connection get the answers that they get on their own', async () => {
    const apart = await answersOn(connect, { together: false });
    const connection = connect();
    expect(await answersOn(() => connection, { together: true })).toEqual(apart);
  });

  // Kills one run for each limiter, and one for each policy.
  test('calls of one turn are one run of the script for each algorithm', async () => {
    const connection = connect();
    const limiters = POLICIES.map((policy) => limiterOn(connection, policy));
    await Promise.all(limiters.map((limiter) => limiter('warm')));
    const makeCalls = () => limiters.flatMap((limiter) => [limiter('a'), limiter.attempt('b')]);
    expect(await runsOfAll(makeCalls)).toBe(ALGORITHMS);
    const twenty = times(20, (i) => limiterOn(connection, { maxInInterval: 5 + i }));
    const runs = await runsOfAll(() =>
      twenty.flatMap((limiter) => [limiter('a'), limiter.peek('b')]),
    );
    expect(runs).toBe(1);
  });

  // Kills a batch that looks for repeated keys only among the calls of one limiter.
  test('limiters of one namespace count together', async () => {
    const connection = connect();
    const namespace = `one, ${name}`;
    const limiters = times(3, () => limiterOn(connection, { namespace }));
    const timesLeft = await Promise.all(times(12, (i) => limiters[i % 3]('a')));
    expect(timesLeft.filter((timeLeft) => timeLeft === 0)).toHaveLength(2);
  });

  test('a key that holds something else fails its own id alone', async () => {
    const connection = connect();
    const namespaces = times(3, (i) => `foreign, ${name}, ${i}`);
    const limiters = namespaces.map((namespace) => limiterOn(connection, { namespace }));
    await server.command('LPUSH', `${namespaces[1]}{bad}`, 'hello');
    for (const call of ['call', 'attempt', 'peek']) {
      const make = (limiter, id) => (call === 'call' ? limiter(id) : limiter[call](id));
      const outcomes = await Promise.all(
        limiters.flatMap((limiter) =>
          ['good', 'bad', 'other'].map((id) => outcomeOf(make(limiter, id))),
        ),
      );
      const failed = outcomes.flatMap((outcome, i) => (outcome === REPLY ? [i] : []));
      expect([call, failed]).toEqual([call, [4]]);
    }
    expect(await outcomeOf(limiters[1].attemptMany(['good', 'bad']))).toBe(REPLY);
    await limiters[1].clear('bad');
    expect(await limiters[1]('bad')).toBe(0);
  });

  // Kills: a call that joins an earlier group of its limiter past a later one.
  test('the order of the calls of one limiter stays among the calls of others', async () => {
    const usedOf = async (promise) => (await promise).limits[0].used;
    const connection = connect();
    const limiter = limiterOn(connection, { maxInInterval: 1000 });
    const other = limiterOn(connection, { maxInInterval: 1000, algorithm: 'sliding-window-log' });
    for (const between of [0, 1, 30, 62, 63, 64, 100]) {
      await limiter.clear('a');
      const first = await limiter.attempt('a', { cost: 5 });
      const noise = [];
      const step = (call) => {
        noise.push(...times(between, (i) => other(i)));
        return call;
      };
      const results = [
        usedOf(step(limiter.peek('a'))),
        step(limiter('a')),
        usedOf(step(limiter.peek('a'))),
        step(limiter.refund(first)),
        usedOf(step(limiter.attempt('a', { cost: 3 }))),
        step(limiter.attemptMany(['a', 'b', 'a'])).then((all) => all[2].limits[0].used),
        new Promise((resolve) => step(limiter('a', (...answer) => resolve(answer)))),
        step(limiter.limitWithInfo('a')).then((info) => info.actionsRemaining),
        step(limiter.clear('a')),
        usedOf(step(limiter.attempt('a'))),
        step(limiter('a')),
        usedOf(step(limiter.peek('a'))),
      ];
      expect([between, ...(await Promise.all(results))]).toEqual([
        ...[between, 6, 0, 7, true, 4, 6, [null, 0, 993], 992, undefined, 1, 0, 3],
      ]);
      await Promise.all(noise);
    }
  });

  // Kills: a batch that fails as a whole because its user may not use the keys of one limiter.
  test('keys that the user may not use fail alone', async () => {
    const locked = await startRedis();
    await locked.command('ACL', 'SETUSER', 'half', 'on', '>pass', '~good*', '+@all');
    const connection = connectBy(open, locked.url.replace('//', '//half:pass@'));
    const make = (namespace) => limiterOn(connection, { namespace });
    const limiters = ['good1', 'bad', 'good2'].map(make);
    await limiters[0]('warm');
    const outcomes = await Promise.all(limiters.map((limiter) => outcomeOf(limiter('a'))));
    expect(outcomes).toEqual([0, 'ERR_ROLLGATE_REDIS_AUTH', 0]);
  });
});
