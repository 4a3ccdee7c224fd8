// Slots on Redis: by each client, beside other processes, for requests, in outages.
'use strict';

const { setTimeout: pause } = require('node:timers/promises');
const { RateLimiter } = require('../..');
const { concurrencyLimitFetch } = require('../../lib/adapters/fetch');
const { hasNativeRedis } = require('../support/bindings');
const { outcomeOf, waitUntil } = require('../support/outcome');
const { EACH_CLIENT, openings, scriptRuns } = require('../support/redis-clients');
const { callsOf } = require('../support/redis-server');
const { runProgram } = require('../support/run-program');
const { PATIENT, SHORT, slotsOnRedis } = require('../support/slots-on-redis');

const redis = slotsOnRedis();
const { closeLater, isFree, keyOf, make, makeGated, usedBy } = redis;

describe.each(EACH_CLIENT)('%s', (_, open) => {
  const { using, closeAll } = openings();
  afterAll(closeAll);
  const place = () => ({ redis: { ...using(open(redis.server.url)), ...PATIENT } });

  test('a key lives until the last end and a second, and without slots there is none', async () => {
    const [long, short] = [make({ ...place(), max: 2, ttl: 60_000 }), make({ max: 2, ttl: 1000 })];
    const slots = [await long.acquire('a'), await short.acquire('a')];
    const lifetime = await redis.server.command('PTTL', keyOf('a'));
    expect(lifetime).toBeGreaterThan(50_000);
    expect(lifetime).toBeLessThanOrEqual(62_000);
    await redis.server.command('PERSIST', keyOf('a'));
    await slots.shift().release();
    slots.push(await long.acquire('a'));
    expect(await redis.server.command('PTTL', keyOf('a'))).toBeGreaterThan(50_000);
    for (const slot of slots) await slot.release();
    expect(await redis.server.command('EXISTS', keyOf('a'))).toBe(0);
  });

  test('limiters and slots may share a namespace, and clearAll of one leaves the other', async () => {
    const slots = make({ ...place(), max: 1 });
    const ids = ['a', 'a}:slots', '}:slots', ''];
    const limiter = closeLater(
      RateLimiter({ ...redis.place(), ...place(), interval: 60_000, maxInInterval: 1 }),
    );
    for (const id of ids) {
      expect([(await slots.acquire(id)).allowed, await limiter(id)]).toEqual([true, 0]);
    }
    await limiter.clearAll();
    for (const id of ids) expect(await usedBy(slots, id)).toBe(1);
    for (const id of ids) expect(await limiter(id)).toBe(0);
    await slots.clearAll();
    for (const id of ids)
      expect([await usedBy(slots, id), (await limiter(id)) > 0]).toEqual([0, true]);
  });

  test('the calls of one turn share commands', async () => {
    const limiter = make({ ...place(), max: 64 });
    await (await limiter.acquire('warm')).release();
    const before = await scriptRuns(redis.server);
    const slots = await Promise.all(Array.from({ length: 64 }, () => limiter.acquire('a')));
    expect((await scriptRuns(redis.server)) - before).toBe(1);
    expect(slots.map(({ used }) => used)).toEqual(slots.map((_slot, i) => i + 1));
    expect(await Promise.all(slots.map((slot) => slot.release()))).not.toContain(false);
    expect((await scriptRuns(redis.server)) - before).toBe(2);
    const [again, , refused] = await Promise.all([
      limiter.acquire('b'),
      limiter.usage('b'),
      limiter.acquire('b', { max: 1 }),
    ]);
    expect([again.used, refused.allowed]).toEqual([1, false]);
  });

  test('slots are renewed by name, 1,000 a command, also by a server that forgot the script', async () => {
    const limiter = make({ ...place(), max: 65_535, ttl: SHORT });
    const slots = [];
    for (let i = 0; i < 2000; i++) slots.push(limiter.acquire(`id ${i % 40}`));
    await Promise.all(slots);
    await redis.server.command('SCRIPT', 'FLUSH');
    const before = await scriptRuns(redis.server);
    await pause(2.2 * SHORT); // longer than records live without renewal
    const used = await Promise.all([7, 39].map((i) => usedBy(limiter, `id ${i}`)));
    expect([...used, limiter.stats().held]).toEqual([50, 50, 2000]);
    const held = await Promise.all(slots); // still referred to
    expect(held.filter(({ lost }) => lost.aborted)).toEqual([]);
    expect((await scriptRuns(redis.server)) - before).toBeLessThan(30); // two commands every 333 ms
  });
});

describe('others', () => {
  test('a slot that is released elsewhere goes to a waiting call, which asks with the others of its process', async () => {
    const [one, other] = [make(), make()];
    const ids = ['a', 'b', 'c'];
    const slots = await Promise.all(ids.map((id) => one.acquire(id)));
    const waiting = ids.flatMap((id) => [other.wait(id), other.wait(id)]);
    const before = await callsOf(redis.server, 'evalsha');
    await pause(500);
    const polls = (await callsOf(redis.server, 'evalsha')) - before;
    expect(polls).toBeGreaterThan(0);
    expect(polls).toBeLessThanOrEqual(14); // one command for all of them in each pass
    for (const slot of slots) await slot.release();
    for (const i of [0, 2, 4]) await (await waiting[i]).release();
    await Promise.all(waiting);
  });

  test('attemptAll takes slots on Redis with limiters, and holds nothing where one refuses', async () => {
    const slots = make();
    const limiter = RateLimiter({ interval: 60_000, maxInInterval: 1 });
    const entries = [
      { limiter: slots, id: 'a' },
      { limiter, id: 'a' },
    ];
    const first = await RateLimiter.attemptAll(entries);
    expect([first.allowed, await first.decisions[0].release()]).toEqual([true, true]);
    const second = await RateLimiter.attemptAll(entries);
    expect([second.allowed, second.refusedBy, await usedBy(slots)]).toEqual([false, 1, 0]);
  });

  (hasNativeRedis ? test : test.skip)(
    'a process that holds a slot ends, and its slots run out',
    async () => {
      const other = make();
      const { code, stdout, stderr } = await runProgram(`
        const { ConcurrencyLimiter } = require('./lib');
        const redis = { url: '${redis.server.url}', ...${JSON.stringify(PATIENT)} };
        const limiter = ConcurrencyLimiter({ max: 1, redis, namespace: '${redis.place().namespace}', ttl: ${SHORT} });
        limiter.acquire('a').then((slot) => console.log(slot.allowed));
      `);
      expect([code, stdout, stderr, await usedBy(other)]).toEqual([0, 'true\n', '', 1]);
      await isFree(other);
    },
  );
});

// Kills: an adapter that does not wait for its slot.
test('requests get their slots later, and give them back', async () => {
  const options = { max: 1, ...redis.place(), keyGenerator: () => 'ada', validate: false };
  const limit = concurrencyLimitFetch(options);
  closeLater(limit.limiter);
  const request = new Request('http://host.test/');
  const held = await limit(request);
  const refused = await limit(request);
  expect([held.allowed, refused.response.status]).toEqual([true, 429]);
  expect([await held.release(), await held.release(), refused.release()]).toEqual([
    true,
    false,
    false,
  ]);
  const waits = concurrencyLimitFetch({ max: 1, maxWait: 5000, limiter: limit.limiter });
  const [one, other] = [await limit(request), waits(request)];
  await one.release();
  expect(await (await other).release()).toBe(true);
});

describe('onError', () => {
  const cutOff = async (onError) => {
    const [limiter, gated] = await makeGated({ onError, max: 2 });
    const slot = await limiter.acquire('a');
    gated.cut();
    return { limiter, gated, slot };
  };

  test("'throw' fails the calls, and a release is true without an answer", async () => {
    const { limiter, slot } = await cutOff('throw');
    const code = 'ERR_ROLLGATE_REDIS_UNREACHABLE';
    expect([await outcomeOf(limiter.acquire('a')), await outcomeOf(limiter.usage('a'))]).toEqual([
      code,
      code,
    ]);
    expect([await outcomeOf(limiter.clear('a')), await outcomeOf(limiter.clearAll())]).toEqual([
      code,
      code,
    ]);
    expect([await slot.release(), await slot.release()]).toEqual([true, false]);
  });

  test("'allow' gives slots that count nowhere, until Redis answers again", async () => {
    const { limiter, gated, slot } = await cutOff('allow');
    const loose = await Promise.all(Array.from({ length: 4 }, () => limiter.acquire('a')));
    expect(loose.map(({ allowed, used }) => [allowed, used])).toEqual(Array(4).fill([true, 1]));
    expect((await limiter.acquire('a', { cost: 2, max: 1 })).allowed).toBe(false);
    expect(await limiter.usage('a')).toEqual({ max: 2, used: 0, remaining: 2 });
    expect(limiter.stats()).toMatchObject({ held: 1, fallbacks: 6 });
    gated.mend();
    await waitUntil('Redis decides again', async () => (await usedBy(limiter)) === 1);
    await limiter.clear('a');
    expect(loose.map(({ lost }) => lost.aborted)).toEqual(Array(4).fill(false));
    expect([await loose[0].release(), await loose[0].release()]).toEqual([true, false]);
    expect(await slot.release()).toBe(false);
  });

  test("'block' refuses with used 0 and remaining 0, and waiting calls go on", async () => {
    const { limiter, gated } = await cutOff('block');
    const refusal = { max: 2, used: 0, remaining: 0 };
    expect(await limiter.acquire('a')).toEqual({ allowed: false, ...refusal });
    expect(await limiter.usage('a')).toEqual(refusal);
    const waiting = limiter.wait('a');
    gated.mend();
    expect((await waiting).used).toBe(2);
  });
});
