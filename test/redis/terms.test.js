// Limits, calendars and records of limiters on Redis: batches, each client, clocks that differ, outages.
'use strict';

const { Calendar } = require('../../lib/base/calendar');
const {
  EACH_CLIENT,
  ONE_CLIENT,
  nativeLimiter,
  openings,
  scriptRuns,
} = require('../support/redis-clients');
const { startRedis } = require('../support/redis-server');
const { handClock } = require('../support/set-up');

describe('limiters', () => {
  const { using, closeAll } = openings();
  const clients = {};
  let server;
  beforeAll(async () => {
    server = await startRedis();
    for (const [name, open] of EACH_CLIENT) clients[name] = using(open(server.url));
  });
  afterEach(() => jest.restoreAllMocks());
  afterAll(closeAll);

  const make = (client, options) =>
    nativeLimiter(clients[client], { countBlocked: false, ...options });
  const daily = { algorithm: 'fixed-window', interval: undefined, maxInInterval: undefined };
  const makeDaily = (client, options) =>
    make(client, { ...daily, limits: [{ calendar: 'day', maxInInterval: 3 }], ...options });

  describe.each(EACH_CLIENT)('%s', (client) => {
    test('calendar windows by the clock of the server, in batches', async () => {
      const limiter = makeDaily(client);
      const many = await limiter.attemptMany(['a', 'a', 'b']);
      expect(many.map(({ actionsLeft }) => actionsLeft)).toEqual([2, 1, 2]);
      const { end } = new Calendar('day', 'UTC').windowAt(Date.now());
      const [{ resetIn, calendar }] = (await limiter.usage('a')).limits;
      expect(calendar).toBe('day');
      expect(Math.abs(resetIn - (end - Date.now()))).toBeLessThan(5000);
      // Another zone, where no window lasts: it has another end. Where one lasts, it is that one.
      const zone = { calendar: { timeZone: 'Asia/Kathmandu' } };
      const theirs = new Calendar('day', 'Asia/Kathmandu').windowAt(Date.now()).end;
      const decision = await limiter.attempt('c', zone);
      expect(Math.abs(decision.resetIn - (theirs - Date.now()))).toBeLessThan(5000);
      expect((await limiter.attempt('a', zone)).actionsLeft).toBe(0);
      expect((await limiter.attempt('a', zone)).allowed).toBe(false);
    });

    test('calls with equal terms share a run, and others are in it', async () => {
      const limiter = make(client, { maxInInterval: 2 });
      await limiter('before');
      const runs = await scriptRuns(server);
      const calls = Array.from({ length: 20 }, (_, i) => {
        return limiter.attempt(`id${i}`, i % 2 === 0 ? { limits: 7 } : undefined);
      });
      const lefts = (await Promise.all(calls)).map(({ actionsLeft }) => actionsLeft);
      expect(lefts).toEqual(calls.map((_, i) => (i % 2 === 0 ? 6 : 1)));
      expect((await scriptRuns(server)) - runs).toBe(1);
    });

    // Kills: a clock that is wrong as an outage; a refusal in its place.
    test.each(['throw', 'allow', 'block', 'memory'])(
      'a process whose clock is days off gets an error, and counts nothing, onError: %s',
      async (onError) => {
        const limiter = makeDaily(client, { onError });
        await limiter('a');
        const real = Date.now();
        for (const days of [-3, 3]) {
          jest.spyOn(Date, 'now').mockReturnValue(real + days * 86_400_000);
          for (const call of ['attempt', 'usage', 'record']) {
            await expect(limiter[call]('a')).rejects.toMatchObject({ code: 'ERR_ROLLGATE_CLOCK' });
          }
          await expect(limiter.attemptMany(['a'])).rejects.toMatchObject({
            code: 'ERR_ROLLGATE_CLOCK',
          });
          jest.restoreAllMocks();
        }
        expect((await limiter.usage('a')).used).toBe(1);
        expect(limiter.stats()).toMatchObject({ fallbacks: 0, allowed: 1, recorded: 0 });
        const decision = await limiter.attempt('a');
        jest.spyOn(Date, 'now').mockReturnValue(real + 3 * 86_400_000);
        expect(await limiter.refund(decision)).toBe(true);
        await limiter.block('a', 1000);
      },
    );
  });

  test('records forget the refusals that were remembered', async () => {
    const limit = { name: 'n', interval: 60_000, maxInInterval: 1 };
    const limiter = make(ONE_CLIENT, { limits: [limit], localRefusals: true });
    for (let i = 0; i < 3; i++) await limiter('a');
    expect(limiter.stats()).toMatchObject({ localRefusals: 1 });
    expect(await limiter.record('a', { cost: 5 })).toMatchObject({ allowed: false, used: 6 });
    expect((await limiter.attempt('a')).limits[0].used).toBe(6);
    expect(limiter.stats()).toMatchObject({ recorded: 1, localRefusals: 1 });
  });

  test('limits above 257 read logs apart, and what they allowed counts under small ones', async () => {
    const limiter = make(ONE_CLIENT, { maxInInterval: 2 });
    const calls = Array.from({ length: 400 }, () => limiter.attempt('a', { limits: 1000 }));
    expect((await Promise.all(calls)).every(({ allowed }) => allowed)).toBe(true);
    expect((await limiter.usage('a')).used).toBe(400);
    expect((await limiter.attempt('a')).allowed).toBe(false);
    expect((await limiter.attempt('a', { limits: 401 })).actionsLeft).toBe(0);
  });

  // Kills: a log that is cut to the lower limit although the higher one needs it, as in a rolling deploy.
  test('a limiter with a lower limit drops nothing that another one of its namespace counts', async () => {
    const [low, high] = [2, 4].map((maxInInterval) => {
      return make(ONE_CLIENT, { namespace: 'deploy', maxInInterval });
    });
    const first = await low.attempt('a');
    for (let i = 0; i < 3; i++) expect(await high('a')).toBe(0);
    expect(await low.refund(first)).toBe(true);
    const calls = [await low.attempt('a'), await high.attempt('a'), await high.attempt('a')];
    expect(calls.map(({ allowed }) => allowed)).toEqual([false, true, false]);
  });

  // Kills: a log that counted refusals make longer than the limits need.
  test('a log under small limits of calls stays small', async () => {
    const limiter = make(ONE_CLIENT, { namespace: 'small', countBlocked: true, maxInInterval: 3 });
    await Promise.all(Array.from({ length: 500 }, () => limiter.attempt('a', { limits: 5 })));
    expect(await server.command('STRLEN', 'small{a}')).toBe(17 + 4 * 4);
  });

  describe('in an outage', () => {
    const terms = { limits: 7 };
    const down = (onError, options) =>
      nativeLimiter({ url: 'redis://127.0.0.1:1' }, { countBlocked: false, onError, ...options });

    test("onError: 'allow' and 'block' answer with the limits of the call", async () => {
      const allowing = down('allow');
      const blocking = down('block');
      await allowing('a').catch(() => {});
      await blocking('a').catch(() => {});
      expect(await allowing.attempt('a', terms)).toMatchObject({ allowed: true, actionsLeft: 6 });
      expect(await blocking.attempt('a', terms)).toMatchObject({
        limits: [{ maxInInterval: 7, used: 7 }],
        blockedBy: 'block',
      });
      expect(await blocking.attempt('a')).toMatchObject({
        limits: [{ maxInInterval: 2, used: 2 }],
      });
      expect(await blocking.attempt('a', { ...terms, cost: 8 })).toMatchObject({
        timeLeft: Number.POSITIVE_INFINITY,
      });
      expect(await allowing.record('a')).toMatchObject({ used: 0 });
      expect(await blocking.record('a', { cost: 99 })).toMatchObject({
        allowed: false,
        timeLeft: 1000,
      });
    });

    test("onError: 'memory' goes on with them, and counts records", async () => {
      const time = handClock(Date.UTC(2026, 0, 5, 12));
      const limiter = down('memory', {
        ...daily,
        limits: [{ calendar: 'day', maxInInterval: 3 }],
        clock: time.clock,
      });
      expect((await limiter.record('a', { cost: 2 })).used).toBe(2);
      expect(await limiter.attempt('a', { limits: 2 })).toMatchObject({
        allowed: false,
        resetIn: 43_200_000,
      });
      expect(await limiter.attempt('a')).toMatchObject({ allowed: true, actionsLeft: 0 });
      expect(limiter.stats().recorded).toBe(1);
      const zone = { calendar: { timeZone: 'Asia/Kathmandu' } };
      expect((await limiter.attempt('b', zone)).resetIn).toBe((6 * 60 + 15) * 60_000);
    });
  });
});
