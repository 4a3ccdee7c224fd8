// What a process believes to hold on Redis, when it has lost it, and what it gives back.
'use strict';

const { errorOf, outcomeOf, waitUntil } = require('../support/outcome');
const { handClock } = require('../support/set-up');
const { SHORT, TTL, sleepFor, slotsOnRedis } = require('../support/slots-on-redis');

const redis = slotsOnRedis();
const { isFree, keyOf, make, makeGated, usedBy } = redis;
const TIMEOUT = 'ERR_ROLLGATE_REDIS_TIMEOUT';
const isAbout = (operation) => (args) => args.includes(operation);

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

  // Kills: an earliest confirmation that is that of the first slot.
  test('it believes from the moment at which it asked, whichever answer came first', async () => {
    const [limiter, gated] = await makeGated({ ttl: TTL, max: 2 });
    await usedBy(limiter); // so that the server has the script
    const held = gated.holdReply();
    const asked = limiter.acquire('a');
    const release = await held;
    sleepFor(TTL / 2);
    const later = await limiter.acquire('b');
    release();
    const slot = await asked;
    const losses = () => [slot.lost.aborted, later.lost.aborted];
    expect(losses()).toEqual([false, false]);
    jest.restoreAllMocks();
    sleepFor((TTL * 7) / 8);
    expect(losses()).toEqual([true, false]);
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
    await waitUntil('all are renewed', () => sizesOf(renewals).join().includes('1000,1000,500'));
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
    await redis.server.command('DEL', keyOf('a'));
    gated.mend();
    for (const go of held.splice(0)) go();
    await waitUntil('one is lost', () => kept.lost.aborted);
    expect([lost.aborted, await usedBy(limiter)]).toEqual([false, 0]);
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
    const [limiter, gated] = await makeGated({}, { commandTimeout: 100 });
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
    expect(slot[Symbol.dispose]).toBe(undefined); // it would not be waited for
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
