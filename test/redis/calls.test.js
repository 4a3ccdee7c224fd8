// Calls through every client: sent in few commands, in their order, no more at once than maxQueue.
'use strict';

const { errorOf, outcomeOf } = require('../support/outcome');
const { EACH_CLIENT, nativeLimiter, openings, runsOf } = require('../support/redis-clients');
const { redisForTests } = require('../support/redis-server');

const QUEUE_FULL = 'ERR_ROLLGATE_REDIS_QUEUE_FULL';

const server = redisForTests();

const runsOfAll = (makeCalls) => runsOf(server, () => Promise.all(makeCalls()));

const times = (count, make) => Array.from({ length: count }, (_, i) => make(i));

describe.each(EACH_CLIENT)('through %s', (_name, open) => {
  const { using, closeAll } = openings();
  let redis;
  beforeAll(() => {
    redis = using(open(server.url));
  });
  afterAll(closeAll);

  const limiterWith = (options, connection) =>
    nativeLimiter({ ...redis, ...connection }, { maxInInterval: 1000, ...options });

  describe('script runs', () => {
    test.each([
      [1, 1],
      [64, 1],
      [65, 2],
      [200, 4],
    ])('%d checks in one turn take %d', async (checks, runs) => {
      const limiter = limiterWith();
      await limiter('warm');
      expect(await runsOfAll(() => times(checks, (i) => limiter(`a${i}`)))).toBe(runs);
      expect(await runsOfAll(() => times(checks, () => limiter('hot')))).toBe(runs);
      expect(await runsOfAll(() => times(checks, (i) => limiter.attempt(`a${i}`)))).toBe(runs);
      expect(await runsOfAll(() => [limiter.attemptMany(times(checks, String))])).toBe(runs);
    });

    test('one for each turn, whatever is asked', async () => {
      const limiter = limiterWith();
      await limiter('warm');
      expect(await runsOfAll(() => [limiter('a').then(() => limiter('a'))])).toBe(2);
      const ofThreeKinds = () => [
        ...times(10, () => limiter('a')),
        ...times(10, () => limiter.peek('a')),
        ...times(10, () => limiter.attempt('a', { cost: 2 })),
      ];
      expect(await runsOfAll(ofThreeKinds)).toBe(1);
    });

    test('calls made while results are handed on go out in few, too', async () => {
      const limiter = limiterWith();
      await limiter('warm');
      const runs = await runsOfAll(() => {
        return times(64, (i) => limiter(`a${i}`).then(() => limiter(`a${i}`)));
      });
      expect(runs).toBeLessThanOrEqual(4);
    });
  });

  test('each call counts once where a server forgets its scripts with several batches under way', async () => {
    const limiter = limiterWith({ maxInInterval: 10_000 });
    await limiter('warm');
    let made = 0;
    for (let round = 0; round < 10; round++) {
      const flushed = server.command('SCRIPT', 'FLUSH');
      for (let turn = 0; turn < 5; turn++) {
        const calls = times(100, () => limiter(`id ${made++ % 7}`));
        if (turn === 4) calls.push(flushed);
        await (turn === 4 ? Promise.all(calls) : new Promise(setImmediate));
      }
    }
    await limiter('id 0'); // answered after all the others
    const used = await Promise.all(times(7, (i) => limiter.peek(`id ${i}`)));
    const recorded = used.map(({ limits }) => limits[0].used - 1);
    expect(recorded.reduce((sum, count) => sum + count)).toBe(made + 1);
  });

  describe('maxQueue', () => {
    const maxQueue = 50;

    test('calls may be under way at once, however often', async () => {
      const limiter = limiterWith({ maxInInterval: 1e6 }, { maxQueue });
      for (let burst = 0; burst < 20; burst++) {
        const timesLeft = await Promise.all(times(maxQueue, (i) => limiter(`a${i}`)));
        expect(new Set(timesLeft)).toEqual(new Set([0]));
      }
      // And from where the last of a burst is answered.
      const chain = async () => {
        for (let i = 0; i < 50; i++) expect(await limiter('a')).toBe(0);
      };
      await Promise.all(times(maxQueue, chain));
    });

    test('and one call more is refused at once', async () => {
      const limiter = limiterWith({}, { maxQueue });
      const outcomes = await Promise.all(times(maxQueue + 1, () => outcomeOf(limiter('a'))));
      expect(outcomes.filter((outcome) => outcome === 0)).toHaveLength(maxQueue);
      expect(outcomes.at(-1)).toBe(QUEUE_FULL);
      expect((await errorOf(Promise.all(times(51, () => limiter('a'))))).message).toContain('50');
    });

    test('lets attemptMany have more ids, one turn after the other', async () => {
      const limiter = limiterWith({}, { maxQueue });
      const ids = times(4 * maxQueue + 7, () => 'a');
      const decisions = await limiter.attemptMany(ids);
      expect(decisions.map(({ limits }) => limits[0].used)).toEqual(ids.map((_, i) => i + 1));
    });

    test('refuses attemptMany as a whole, before it counts any', async () => {
      const limiter = limiterWith({}, { maxQueue });
      const other = limiter('b');
      expect(await outcomeOf(limiter.attemptMany(times(maxQueue, () => 'a')))).toBe(QUEUE_FULL);
      expect(await other).toBe(0);
      expect((await limiter.attempt('a')).limits[0].used).toBe(1);
    });
  });
});
