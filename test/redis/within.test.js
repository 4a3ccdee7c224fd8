// Limiters whose maximum is told at every attempt, through every way to connect.
'use strict';

const RateLimiter = require('../..');
const { ATTEMPT_WITHIN, PEEK_WITHIN, SETS_MAX } = require('../../lib/internal-methods');
const { handClock } = require('../support/hand-clock');
const { EACH_CLIENT, openings } = require('../support/redis-clients');
const { startRedis } = require('../support/redis-server');
const { randomFrom } = require('../support/traces');

const INTERVAL = 1000;

let server;
let namespaces = 0;
beforeAll(async () => {
  server = await startRedis();
});

describe.each(EACH_CLIENT)('%s', (_name, open) => {
  const { using, closeAll } = openings();
  let connection;
  beforeAll(() => {
    connection = using(open(server.url));
  });
  afterAll(closeAll);

  function make(options) {
    namespaces += 1;
    return RateLimiter({
      redis: { ...connection, commandTimeout: 10_000 },
      interval: INTERVAL,
      maxInInterval: 1,
      namespace: `within-${namespaces}`,
      [SETS_MAX]: true,
      ...options,
    });
  }

  test.each([
    ['sliding-window-log', false],
    ['sliding-window-log', true],
    ['sliding-window-counter', false],
    ['sliding-window-counter', true],
    ['fixed-window', false],
    ['fixed-window', true],
  ])('%s, refusals counted: %s: the same as in memory', async (algorithm, countBlocked) => {
    const random = randomFrom(11);
    const time = handClock(1_700_000_000_000);
    const common = { algorithm, countBlocked, clock: time.clock, blockFor: 50 };
    const limiter = make(common);
    const memory = RateLimiter({
      ...common,
      interval: INTERVAL,
      maxInInterval: 1,
      [SETS_MAX]: true,
    });
    for (let step = 0; step < 150; step++) {
      time.advance(random.between(0, 400));
      const how = random.chance(20) ? PEEK_WITHIN : ATTEMPT_WITHIN;
      const max = random.chance(5) ? 2 ** 40 : random.between(1, 8);
      expect(await limiter[how]('a', max)).toEqual(memory[how]('a', max));
    }
  });

  test('a low limit forgets nothing that a high one has allowed, from another process neither', async () => {
    const time = handClock(0);
    const common = { clock: time.clock, namespace: `within-shared-${namespaces++}` };
    const [limiter, other] = [make(common), make(common)];
    for (const max of [100, 400]) {
      for (let i = 0; i < max; i++) await limiter[ATTEMPT_WITHIN]('a', max);
      for (let i = 0; i < 3; i++) {
        expect(await other[ATTEMPT_WITHIN]('a', 5)).toMatchObject({ allowed: false });
        expect(await limiter[ATTEMPT_WITHIN]('a', max)).toMatchObject({ allowed: false });
      }
    }
  });

  test('a refund takes back one action, and no more', async () => {
    const limiter = make({ countBlocked: false });
    const decisions = [];
    for (let i = 0; i < 300; i++) decisions.push(await limiter[ATTEMPT_WITHIN]('a', 300));
    expect(await limiter[ATTEMPT_WITHIN]('a', 300)).toMatchObject({ allowed: false });
    expect(await limiter.refund(decisions[7])).toBe(true);
    expect((await limiter[PEEK_WITHIN]('a', 1000)).limits[0].used).toBe(300);
    expect(await limiter[ATTEMPT_WITHIN]('a', 300)).toMatchObject({ allowed: true });
    expect(await limiter[ATTEMPT_WITHIN]('a', 300)).toMatchObject({ allowed: false });
  });

  test('however large a limit, a log that has small ones grows to a thousand actions at most', async () => {
    const limiter = make({ namespace: 'within-huge' });
    await limiter[ATTEMPT_WITHIN]('admin', Number.MAX_SAFE_INTEGER);
    const attempts = Array.from({ length: 2500 }, () => limiter[ATTEMPT_WITHIN]('a', 5));
    await Promise.all(attempts);
    expect(await server.command('STRLEN', 'within-huge{a}')).toBeLessThan(18 + 12 + 4 * 1000);
    await limiter.clearAll();
  });

  test('calls at once are each judged by their own', async () => {
    const limiter = make({ countBlocked: false });
    const decisions = await Promise.all(
      [2, 1, 3, 2, 9].map((max) => limiter[ATTEMPT_WITHIN]('a', max)),
    );
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, false, true, false, true]);
    expect(decisions.map(({ limits }) => limits.length)).toEqual([1, 1, 1, 1, 1]);
    expect(decisions.map(({ limits }) => limits[0].maxInInterval)).toEqual([2, 1, 3, 2, 9]);
  });

  test('what was allowed can be given back', async () => {
    const limiter = make({ countBlocked: false });
    const decision = await limiter[ATTEMPT_WITHIN]('a', 1);
    expect(await limiter.refund(decision)).toBe(true);
    expect(await limiter[ATTEMPT_WITHIN]('a', 1)).toMatchObject({ allowed: true });
  });
});
