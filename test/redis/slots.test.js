// Slots on Redis: what is on the server, what this process believes in, and what it gives back.
'use strict';

const { once } = require('node:events');
const http = require('node:http');
const { setTimeout: pause } = require('node:timers/promises');
const createFastify = require('fastify');
const { RateLimiter, ConcurrencyLimiter, concurrencyLimit } = require('../..');
const rollgate = require('../../lib/adapters/fastify');
const { concurrencyLimitFetch } = require('../../lib/adapters/fetch');
const SCRIPTS = require('../../lib/stores/redis/scripts');
const { clocks } = require('../../lib/stores/redis/clocks');
const { hasNativeRedis } = require('../support/bindings');
const { gatedClient } = require('../support/gated-client');
const { errorOf, outcomeOf, waitUntil } = require('../support/outcome');
const { EACH_CLIENT, clientAt, openings, scriptRuns } = require('../support/redis-clients');
const { callsOf, startRedis } = require('../support/redis-server');
const { runProgram } = require('../support/run-program');
const { handClock } = require('../support/set-up');
const { patient } = require('../support/tiers');

/** What is not given back stays for longer than a test. */
const TTL = 60_000;
/** For what takes its time. */
const SHORT = patient(1000);
const TIMEOUT = 'ERR_ROLLGATE_REDIS_TIMEOUT';
const PATIENT = { commandTimeout: patient(15_000) };

const { using, closeAll } = openings();
const limiters = [];
const stops = [];
let server;
let namespace;
let made = 0;

beforeAll(async () => {
  server = await startRedis();
});
beforeEach(() => {
  namespace = `slots-${++made}`;
});
afterEach(async () => {
  jest.restoreAllMocks();
  await Promise.all(limiters.splice(0).map((limiter) => limiter.close()));
  for (const stop of stops.splice(0)) await stop();
  await closeAll();
});

function make(options) {
  const redis = { client: clientAt(server.url), ...PATIENT };
  const limiter = ConcurrencyLimiter({ max: 1, ttl: TTL, redis, namespace, ...options });
  limiters.push(limiter);
  return limiter;
}

/** A limiter over a client whose commands can be held up. */
async function makeGated(options, commandTimeout = patient(15_000)) {
  const gated = await gatedClient(server.url);
  stops.push(gated.close);
  return [make({ redis: { client: gated.client, commandTimeout }, ...options }), gated];
}

const keyOf = (id) => `${namespace}{${id}}:slots`;
const isAbout = (operation) => (args) => args.includes(operation);
const usedBy = async (limiter, id = 'a') => (await limiter.usage(id)).used;
const isFree = (limiter) => waitUntil('it is free', async () => (await usedBy(limiter)) === 0);

/** Clocks of this host jump ahead. */
function sleepFor(ms, clock = 'wall') {
  const [owner, name] = clock === 'wall' ? [Date, 'now'] : [clocks, 'boot'];
  const read = owner[name].bind(owner);
  jest.spyOn(owner, name).mockImplementation(() => read() + ms);
}

describe.each(EACH_CLIENT)('%s', (_, open) => {
  const place = () => ({ redis: { ...using(open(server.url)), ...PATIENT } });

  test('a key lives until the last end and a second, and without slots there is none', async () => {
    const [long, short] = [make({ ...place(), max: 2, ttl: 60_000 }), make({ max: 2, ttl: 1000 })];
    const slots = [await long.acquire('a'), await short.acquire('a')];
    const lifetime = await server.command('PTTL', keyOf('a'));
    expect(lifetime).toBeGreaterThan(50_000);
    expect(lifetime).toBeLessThanOrEqual(62_000);
    await server.command('PERSIST', keyOf('a'));
    await slots.shift().release();
    slots.push(await long.acquire('a'));
    expect(await server.command('PTTL', keyOf('a'))).toBeGreaterThan(50_000);
    for (const slot of slots) await slot.release();
    expect(await server.command('KEYS', `${namespace}*`)).toEqual([]);
  });

  test('limiters and slots may share a namespace, and clearAll of one leaves the other', async () => {
    const slots = make({ ...place(), max: 1 });
    const ids = ['a', 'a}:slots', '}:slots', ''];
    const limiter = RateLimiter({ ...place(), namespace, interval: 60_000, maxInInterval: 1 });
    limiters.push(limiter);
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
    const before = await scriptRuns(server);
    const slots = await Promise.all(Array.from({ length: 64 }, () => limiter.acquire('a')));
    expect((await scriptRuns(server)) - before).toBe(1);
    expect(slots.map(({ used }) => used)).toEqual(slots.map((_slot, i) => i + 1));
    expect(await Promise.all(slots.map((slot) => slot.release()))).not.toContain(false);
    expect((await scriptRuns(server)) - before).toBe(2);
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
    await server.command('SCRIPT', 'FLUSH');
    const before = await scriptRuns(server);
    await pause(2.2 * SHORT); // longer than records live without renewal
    const used = await Promise.all([7, 39].map((i) => usedBy(limiter, `id ${i}`)));
    expect([...used, limiter.stats().held]).toEqual([50, 50, 2000]);
    const held = await Promise.all(slots); // still referred to
    expect(held.filter(({ lost }) => lost.aborted)).toEqual([]);
    expect((await scriptRuns(server)) - before).toBeLessThan(30); // two commands every 333 ms
  });
});

describe('what a process believes in', () => {
  test.each(['wall', 'boot'])(
    'a slot is lost after 7/8 of ttl by the %s clock, and given back',
    async (clock) => {
      const limiter = make({ ttl: TTL });
      const other = make({ ttl: TTL });
      const [slot, released] = [await limiter.acquire('a'), await limiter.acquire('b')];
      const { lost } = slot;
      sleepFor((TTL * 7) / 8 - 1000, clock);
      expect(slot.lost.aborted).toBe(false);
      jest.restoreAllMocks();
      sleepFor((TTL * 7) / 8, clock);
      expect(await released.release()).toBe(false);
      expect([lost.aborted, lost.reason.code]).toEqual([true, 'ERR_ROLLGATE_SLOT_LOST']);
      jest.restoreAllMocks();
      await isFree(other);
      expect(await usedBy(other, 'b')).toBe(0);
      expect(limiter.stats().held).toBe(0);
    },
  );

  test.each([
    ['lost', (slot) => slot.lost.aborted],
    ['usage', async (slot, limiter) => (await limiter.usage('x')).used === 0 && slot.lost.aborted],
    ['release', async (slot) => !(await slot.release()) && slot.lost.aborted],
    ['stats', (slot, limiter) => limiter.stats().held === 0 && slot.lost.aborted],
  ])('%s finds what was lost meanwhile', async (_name, find) => {
    const limiter = make({ ttl: TTL });
    const slot = await limiter.acquire('a');
    sleepFor(TTL);
    expect(await find(slot, limiter)).toBe(true);
  });

  // Kills: belief that counts from the answer; an earliest confirmation that is that of the first slot.
  test('it believes from the moment at which it asked, whichever answer came first', async () => {
    const [limiter, gated] = await makeGated({ ttl: TTL, max: 2 });
    await usedBy(limiter);
    let answer;
    gated.gate = async (args, send) => {
      gated.mend();
      const reply = await send(args);
      await new Promise((resolve) => {
        answer = resolve;
      });
      return reply;
    };
    const asked = limiter.acquire('a');
    await waitUntil('it was asked', () => answer !== undefined);
    sleepFor(TTL / 2);
    const later = await limiter.acquire('b');
    answer();
    const slot = await asked;
    const losses = () => [slot.lost.aborted, later.lost.aborted];
    expect(losses()).toEqual([false, false]);
    jest.restoreAllMocks();
    sleepFor((TTL * 7) / 8);
    expect(losses()).toEqual([true, false]);
  });

  // Kills: belief that counts from the answer to a renewal.
  test('a renewal confirms from when it was sent', async () => {
    const [limiter, gated] = await makeGated({ ttl: SHORT });
    const slot = await limiter.acquire('a');
    let isRenewed = false;
    gated.gate = async (args, send) => {
      if (!isAbout('renew')(args)) return send(args);
      gated.cut();
      const reply = await send(args);
      sleepFor(SHORT / 2);
      isRenewed = true;
      return reply;
    };
    await waitUntil('it is renewed', () => isRenewed);
    await new Promise(setImmediate);
    expect(slot.lost.aborted).toBe(false);
    jest.restoreAllMocks();
    sleepFor(0.9 * SHORT);
    expect(slot.lost.aborted).toBe(true);
  });

  // Kills: a listener that finds others alive which are lost as well.
  test('all that were lost in a stop are lost for the first listener', async () => {
    const limiter = make({ ttl: TTL, max: 3 });
    const slots = await Promise.all(['a', 'b', 'c'].map((id) => limiter.acquire(id)));
    const found = [];
    for (const { lost } of slots) {
      lost.addEventListener('abort', () => {
        found.push([...slots.map((slot) => slot.lost.aborted), limiter.stats().held]);
      });
    }
    sleepFor(TTL);
    expect(limiter.stats().held).toBe(0);
    expect(found).toEqual(Array(3).fill([true, true, true, 0]));
  });

  const sizesOf = (renewals) => renewals.map((args) => args.at(-1).split(' ').length / 2);

  // Kills: one command for all; a command for each id.
  test('a renewal has at most 1,000 tokens a command, of many ids', async () => {
    const [limiter, gated] = await makeGated({ max: 65_535, ttl: SHORT });
    const renewals = [];
    gated.gate = (args, send) => {
      if (isAbout('renew')(args)) renewals.push(args);
      return send(args);
    };
    const slots = await Promise.all(Array.from({ length: 2500 }, () => limiter.acquire('a')));
    await waitUntil('they are renewed', () => renewals.length >= 3);
    expect(sizesOf(renewals.slice(0, 3))).toEqual([1000, 1000, 500]);
    await limiter.clearAll();
    expect(slots.filter(({ lost }) => !lost.aborted)).toEqual([]);
    const held = await Promise.all(Array.from({ length: 100 }, (_, i) => limiter.acquire(i)));
    renewals.length = 0;
    await waitUntil('they are renewed', () => renewals.length > 0);
    expect([renewals[0][2], held.length]).toEqual(['100', 100]);
  });

  test('while a hash slot moves, each key is renewed by itself', async () => {
    const [limiter, gated] = await makeGated({ ttl: SHORT });
    const slots = await Promise.all(['a', 'b'].map((id) => limiter.acquire(id)));
    const counts = [];
    gated.gate = (args, send) => {
      if (!isAbout('renew')(args)) return send(args);
      counts.push(args[2]);
      if (args[2] === '1') return send(args);
      const message = 'TRYAGAIN Multiple keys request during rehashing of slot';
      return Promise.reject(Object.assign(new Error(message), { name: 'ErrorReply' }));
    };
    await waitUntil('they are renewed for long', () => counts.length >= 12);
    expect(counts.slice(0, 3)).toEqual(['2', '1', '1']);
    expect(slots.map(({ lost }) => lost.aborted)).toEqual([false, false]);
  });

  test('one renewal may fail, and after the second the slot is lost, without an answer of the server', async () => {
    const [limiter, gated] = await makeGated({ ttl: SHORT });
    const slot = await limiter.acquire('a');
    let renewals = 0;
    gated.gate = (args, send) => {
      if (!isAbout('renew')(args)) return send(args);
      renewals += 1;
      return renewals === 1 || renewals > 3 ? Promise.reject(new Error('cut')) : send(args);
    };
    const lost = new Promise((resolve) => {
      slot.lost.addEventListener('abort', resolve);
    });
    await waitUntil('three were sent', () => renewals === 3);
    expect(slot.lost.aborted).toBe(false);
    await lost;
    expect(await usedBy(limiter)).toBe(0);
    expect(limiter.stats().errors).toBeGreaterThanOrEqual(2);
  });

  test('a renewal that says that the slot is not there loses it, but not one that was released meanwhile', async () => {
    const [limiter, gated] = await makeGated({ max: 2, ttl: SHORT });
    const [kept, released] = [await limiter.acquire('a'), await limiter.acquire('a')];
    const { lost } = released;
    const held = [];
    gated.gate = (args, send) => {
      if (!isAbout('renew')(args)) return send(args);
      return new Promise((resolve) => held.push(() => resolve(send(args))));
    };
    await waitUntil('a renewal is on its way', () => held.length > 0);
    expect(await released.release()).toBe(true);
    await server.command('DEL', keyOf('a'));
    for (const go of held.splice(0)) go();
    await waitUntil('one is lost', () => kept.lost.aborted);
    expect([lost.aborted, await usedBy(limiter)]).toEqual([false, 0]);
  });

  test('clear elsewhere is found at the next renewal, and the slot never comes back', async () => {
    const [limiter, other] = [make({ ttl: SHORT }), make({ ttl: SHORT })];
    const slot = await limiter.acquire('a');
    await other.clear('a');
    const next = await other.acquire('a');
    await waitUntil('it is lost', () => slot.lost.aborted);
    expect([await slot.release(), await usedBy(other), next.lost.aborted]).toEqual([
      false,
      1,
      false,
    ]);
  });

  test('a slot that is older than maxAge is not renewed but given back, whether anybody asks or not', async () => {
    const limiter = make({ maxAge: 300, ttl: 60_000 });
    const other = make({ ttl: 60_000 });
    const slot = await limiter.acquire('a');
    await isFree(other);
    expect(slot.lost.aborted).toBe(true);
    const hand = handClock();
    const failing = make({ maxAge: 300, clock: hand.clock });
    await failing.acquire('b');
    hand.set(Number.NaN);
    expect((await errorOf(failing.acquire('c'))).code).toBe('ERR_ROLLGATE_CLOCK');
    expect(failing.stats).toThrow();
    expect(await usedBy(other, 'c')).toBe(0);
  });
});

describe('grants that nobody takes', () => {
  test.each(['timeout', 'lost answer'])('of a %s is given back', async (how) => {
    const [limiter, gated] = await makeGated({}, 100);
    const other = make();
    await usedBy(limiter);
    gated.gate = async (args, send) => {
      gated.mend();
      await send(args);
      if (how === 'lost answer') throw new Error('the connection is lost');
      return new Promise(() => {});
    };
    const code = how === 'timeout' ? TIMEOUT : 'ERR_ROLLGATE_REDIS_UNREACHABLE';
    expect(await outcomeOf(limiter.acquire('a'))).toBe(code);
    await isFree(other);
    expect(limiter.stats()).toMatchObject({ held: 0, errors: 1 });
  });

  // Kills: a slow process that is taken for an outage, and holds what counts nowhere.
  test('that came after its time is given back, and asked for again', async () => {
    const [limiter, gated] = await makeGated({ ttl: TTL, onError: 'allow' });
    await usedBy(limiter);
    gated.gate = async (args, send) => {
      gated.mend();
      const reply = await send(args);
      sleepFor(TTL);
      return reply;
    };
    const slot = await limiter.acquire('a');
    expect([slot.allowed, slot.lost.aborted, limiter.stats().fallbacks]).toEqual([true, false, 0]);
    expect(await usedBy(limiter)).toBe(1);
    expect(await slot.release()).toBe(true);
    await isFree(limiter);
  });

  test('a call that left the line gives its slot back', async () => {
    const [limiter, gated] = await makeGated();
    await usedBy(limiter);
    const controller = new AbortController();
    gated.gate = async (args, send) => {
      gated.mend();
      const reply = await send(args);
      controller.abort(new Error('has left'));
      return reply;
    };
    const error = await errorOf(limiter.wait('a', { signal: controller.signal }));
    expect(error.message).toBe('has left');
    await isFree(limiter);
  });

  test('close gives back what is held and what was asked for, and aborts nothing', async () => {
    const [limiter, gated] = await makeGated({ max: 5 });
    const other = make();
    const slot = await limiter.acquire('a');
    const { lost } = slot;
    gated.gate = (args, send) => {
      gated.mend();
      return send(args);
    };
    const asked = outcomeOf(limiter.acquire('a'));
    await limiter.close();
    expect(await asked).toBe('ERR_ROLLGATE_CLOSED');
    expect([lost.aborted, await slot.release(), await usedBy(other)]).toEqual([false, false, 0]);
  });
});

describe('others', () => {
  test('a slot that is released elsewhere goes to a waiting call, which asks with the others of its process', async () => {
    const [one, other] = [make(), make()];
    const ids = ['a', 'b', 'c'];
    const slots = await Promise.all(ids.map((id) => one.acquire(id)));
    const waiting = ids.flatMap((id) => [other.wait(id), other.wait(id)]);
    const before = await callsOf(server, 'evalsha');
    await pause(500);
    const polls = (await callsOf(server, 'evalsha')) - before;
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
        const redis = { url: '${server.url}', commandTimeout: ${patient(15_000)} };
        const limiter = ConcurrencyLimiter({ max: 1, redis, namespace: '${namespace}', ttl: ${SHORT} });
        limiter.acquire('a').then((slot) => console.log(slot.allowed));
      `);
      expect([code, stdout, stderr, await usedBy(other)]).toEqual([0, 'true\n', '', 1]);
      await isFree(other);
    },
  );

  test('only asyncDispose disposes of a slot', async () => {
    const limiter = make();
    const slot = await limiter.acquire('a');
    expect(slot[Symbol.dispose]).toBe(undefined);
    await slot[Symbol.asyncDispose]();
    expect(await usedBy(limiter)).toBe(0);
  });
});

describe('requests', () => {
  const options = () => ({
    max: 1,
    namespace,
    redis: { client: clientAt(server.url), ...PATIENT },
    keyGenerator: () => 'ada',
    validate: false,
  });
  const isReleased = (limiter) => waitUntil('it is released', () => limiter.stats().held === 0);

  test('hold a slot until the response has closed', async () => {
    const limit = concurrencyLimit({ ...options(), standardHeaders: 'draft-8' });
    limiters.push(limit.limiter);
    const finish = [];
    const app = http.createServer((req, res) => {
      limit(req, res, () => finish.push(() => res.end(String(req.concurrency.used))));
    });
    await once(app.listen(0, '127.0.0.1'), 'listening');
    stops.push(() => app.close());
    const ask = () => fetch(`http://127.0.0.1:${app.address().port}/`);
    const first = ask();
    await waitUntil('it runs', () => finish.length === 1);
    expect((await ask()).status).toBe(429);
    finish[0]();
    expect(await (await first).text()).toBe('1');
    await isReleased(limit.limiter);
    expect(await usedBy(make(), 'ada')).toBe(0);
  });

  test('of Fastify and of fetch do so, too', async () => {
    const app = createFastify();
    await app.register(rollgate, { concurrency: options() });
    app.get('/', async (request) => String(request.concurrency.used));
    const base = await app.listen({ port: 0, host: '127.0.0.1' });
    stops.push(() => app.close());
    expect(await (await fetch(base)).text()).toBe('1');
    await isFree(make());

    const limit = concurrencyLimitFetch(options());
    limiters.push(limit.limiter);
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

describe('what counts nowhere', () => {
  // Kills: an age of slots that nobody counts, by a clock that fails where nobody can catch it.
  test('has no age, whatever the clock does', async () => {
    let time = 0;
    const clock = () => time;
    const [limiter, gated] = await makeGated({ onError: 'allow', maxAge: 50, clock });
    gated.cut();
    const slot = await limiter.acquire('a');
    time = Number.NaN;
    await new Promise(setImmediate);
    time = 1000;
    expect([slot.allowed, slot.lost.aborted, await slot.release()]).toEqual([true, false, true]);
  });
});

describe('bad input', () => {
  test.each([
    [{ ttl: 999 }, 'ERR_ROLLGATE_OPTION'],
    [{ ttl: 1500.5 }, 'ERR_ROLLGATE_OPTION'],
    [{ ttl: null }, 'ERR_ROLLGATE_OPTION'],
    [{ ttl: '5000' }, 'ERR_ROLLGATE_OPTION'],
    [{ ttl: 5000, redis: undefined, shared: 'a' }, 'ERR_ROLLGATE_OPTION'],
    [{ onError: 'memory' }, 'ERR_ROLLGATE_OPTION'],
    [{ namespace: 'a{b' }, 'ERR_ROLLGATE_OPTION'],
    [{ redis: {}, connection: {} }, 'ERR_ROLLGATE_OPTION'],
    [{ redis: 5 }, 'ERR_ROLLGATE_OPTION'],
    [{ redis: undefined, kv: new Map() }, 'ERR_ROLLGATE_UNSUPPORTED'],
  ])('%j is refused', (options, code) => {
    expect(() => make(options)).toThrow(expect.objectContaining({ code }));
  });

  test('a foreign value at the key is an error, and stays', async () => {
    const limiter = make({ ttl: SHORT, max: 2 });
    const foreign = [
      ['SET', '5'],
      ['ZADD', '1', 'a'],
      ['ZADD', '-1', 'a'],
      ['ZADD', '9e15', 'a'],
      ['ZADD', '5', ''],
      ['RPUSH', 'a'],
    ];
    for (const [command, ...words] of foreign) {
      await server.command('DEL', keyOf('a'));
      await server.command(command, keyOf('a'), ...words);
      const dump = await server.command('DEBUG', 'DIGEST-VALUE', keyOf('a')).catch(() => 'same');
      const code = 'ERR_ROLLGATE_REDIS_REPLY';
      const others = [limiter.acquire('b'), limiter.acquire('a'), limiter.usage('a')];
      const [free, ...failed] = await Promise.all(others.map((one) => outcomeOf(one)));
      expect([free.allowed, await free.release(), ...failed]).toEqual([true, true, code, code]);
      expect(await server.command('DEBUG', 'DIGEST-VALUE', keyOf('a')).catch(() => 'same')).toEqual(
        dump,
      );
      expect(limiter.stats().held).toBe(0);
    }
    await server.command('DEL', keyOf('a'));
    const [slot, lost] = [await limiter.acquire('a'), await limiter.acquire('a')];
    await server.command('SET', keyOf('a'), '5');
    expect(await slot.release()).toBe(false);
    await waitUntil('the renewal finds it', () => lost.lost.aborted);
  });

  test.each([
    [
      'refuses scripts',
      ['ACL SETUSER default -eval -evalsha', 'ACL SETUSER default +eval +evalsha'],
      'ERR_ROLLGATE_REDIS_AUTH',
    ],
    ['is full', ['CONFIG SET maxmemory 1', 'CONFIG SET maxmemory 0'], 'ERR_ROLLGATE_REDIS_REPLY'],
    [
      'is a replica',
      ['REPLICAOF 127.0.0.1 1', 'REPLICAOF NO ONE'],
      /ERR_ROLLGATE_REDIS_(REPLY|UNREACHABLE)/,
    ],
  ])('a server that %s gives no slot', async (_what, [worsen, mend], code) => {
    const limiter = make();
    await usedBy(limiter);
    await server.command(...worsen.split(' '));
    stops.push(() => server.command(...mend.split(' ')));
    expect(await outcomeOf(limiter.acquire('a'))).toMatch(code);
    await stops.pop()();
    expect([await usedBy(limiter), limiter.stats().held]).toEqual([0, 0]);
    expect((await limiter.acquire('a')).allowed).toBe(true);
  });

  test('a full server renews and takes back', async () => {
    const limiter = make({ max: 2, ttl: SHORT });
    const [slot, kept] = [await limiter.acquire('a'), await limiter.acquire('a')];
    await server.command('CONFIG', 'SET', 'maxmemory', '1');
    stops.push(() => server.command('CONFIG', 'SET', 'maxmemory', '0'));
    expect(await slot.release()).toBe(true);
    await pause(2.2 * SHORT);
    expect([kept.lost.aborted, await usedBy(limiter)]).toEqual([false, 1]);
  });
});

describe('sums', () => {
  const stateOf = async (id) => {
    const words = await server.command('ZRANGE', keyOf(id), '0', '-1', 'WITHSCORES');
    return { units: -words[1], tokens: words.length / 2 - 1 };
  };

  // Kills: units of an acquisition that are forgotten by a release in the same command; costs of one byte.
  test('are right after calls of all kinds in one command, and for large costs', async () => {
    const limiter = make({ max: 1000 });
    const [one, other] = [await limiter.acquire('a', { cost: 300 }), await limiter.acquire('a')];
    const calls = [
      limiter.acquire('a', { cost: 2 }),
      one.release(),
      limiter.acquire('a', { cost: 600 }),
      limiter.usage('a'),
      other.release(),
      limiter.acquire('a', { cost: 3 }),
    ];
    const [two, , six] = await Promise.all(calls);
    expect([two.used, six.used, await usedBy(limiter)]).toEqual([303, 603, 605]);
    expect(await stateOf('a')).toEqual({ units: 605, tokens: 3 });
    await limiter.close();
    expect(await server.command('EXISTS', keyOf('a'))).toBe(0);
  });

  // Kills: a renewal that cuts the life of a key to its own ttl.
  test('live as long as the longest ttl', async () => {
    const [long, short] = [make({ max: 2 }), make({ max: 2, ttl: SHORT })];
    const slots = [await long.acquire('a'), await short.acquire('a')];
    const runs = await scriptRuns(server);
    await waitUntil('it is renewed', async () => (await scriptRuns(server)) > runs);
    expect(await server.command('PTTL', keyOf('a'))).toBeGreaterThan(50_000);
    expect(slots.map(({ lost }) => lost.aborted)).toEqual([false, false]);
  });
});

describe('the script', () => {
  const SECOND = 1_000_000;
  const START = 1_000_000 * SECOND;
  const OPERATIONS = { usage: 0, acquire: 1, release: 2 };

  function wordOf(calls, time, ttl) {
    const numbers = [calls.length, 1, 2, time, ttl, ...calls.flat()];
    const word = Buffer.alloc(8 * numbers.length);
    for (const [i, number] of numbers.entries()) word.writeDoubleLE(number, 8 * i);
    return word;
  }

  /** Calls about one key at a time in us: [operation, number, cost, max]. */
  function run(key, calls, { time = START, ttl = 1000 } = {}) {
    const named = calls.map(([name, number = 0, cost = 1, max = 9]) => [
      OPERATIONS[name],
      number,
      cost,
      max,
    ]);
    const keys = calls.map(() => key);
    const words = [
      SCRIPTS.slots.source,
      keys.length,
      ...keys,
      'together',
      wordOf(named, time, ttl),
    ];
    return clientAt(server.url).eval(...words);
  }

  const many = (operation, key, tokens) =>
    clientAt(server.url).eval(SCRIPTS.slots.source, 1, key, operation, '1 2', '1000', tokens);

  test('an acquisition that is repeated is granted once', async () => {
    const calls = [['acquire', 5, 2, 3], ['acquire', 5, 2, 3], ['acquire', 6, 2, 3], ['usage']];
    expect(await run('repeated', calls)).toEqual([5, 5, 4, 2]);
    expect(await run('repeated', [['acquire', 5, 2, 3]])).toEqual([5]);
    // Its end does not move: 2 s after the start it has ended.
    expect(await run('repeated', [['acquire', 5, 2, 3]], { time: START + SECOND })).toEqual([5]);
    expect(await run('repeated', [['acquire', 7, 3, 3]], { time: START + 2 * SECOND })).toEqual([
      7,
    ]);
  });

  test('a token is released once, by any process, and no other', async () => {
    await run('released', [
      ['acquire', 1],
      ['acquire', 2],
    ]);
    expect(
      await run('released', [['release', 1], ['release', 1], ['release', 3], ['usage']]),
    ).toEqual([1, 0, 0, 1]);
    expect(await run('released', [['release', 2], ['usage'], ['release', 2]])).toEqual([1, 0, 0]);
    expect(await server.command('EXISTS', 'released')).toBe(0);
  });

  test('a token counts until its end, and the server drops it then', async () => {
    await run('ended', [['acquire', 1, 1, 1]]);
    const at = (ms) => ({ time: START + ms * 1000 });
    expect(await run('ended', [['acquire', 2, 1, 1]], at(1999))).toEqual([2]);
    expect(await run('ended', [['acquire', 2, 1, 1]], at(2000))).toEqual([3]);
    expect(await run('ended', [['release', 1], ['usage']], at(2000))).toEqual([0, 1]);
    expect(await run('ended', [['usage']], at(4000))).toEqual([0]);
  });

  // Kills: a renewal that creates what was released or cleared.
  test('renewal makes ends later and creates nothing', async () => {
    await run('renewed', [
      ['acquire', 1],
      ['acquire', 2],
    ]);
    expect(await many('renew', 'renewed', '3 1 1 1 4 1 2 1')).toEqual([0, 2]);
    expect(await run('renewed', [['usage']], { time: Date.now() * 1000 })).toEqual([2]);
    expect(await many('release', 'renewed', '1 1 3 1')).toEqual([1]);
    expect(await many('renew', 'renewed', '1 1')).toEqual([0]);
    expect(await many('release', 'renewed', '2 1')).toEqual([]);
    expect(await many('renew', 'renewed', '2 1')).toEqual([0]);
    expect(await server.command('EXISTS', 'renewed')).toBe(0);
  });

  test('many that have ended are dropped as far as they are in the way', async () => {
    const acquisitions = Array.from({ length: 2500 }, (_, i) => ['acquire', i, 1, 3000]);
    await run('many', acquisitions.slice(0, 1500));
    await run('many', acquisitions.slice(1500));
    const later = { time: START + 2000 * 1000 };
    expect(await run('many', [['acquire', 9999, 1, 3000]], later)).toEqual([2 * 1501 + 1]);
    expect(await run('many', [['acquire', 9998, 1, 2]], later)).toEqual([2 * 2 + 1]);
    expect(await run('many', [['usage']], later)).toEqual([2]);
  });
});
