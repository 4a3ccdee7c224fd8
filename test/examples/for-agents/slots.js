// What docs/for-agents.md says about limits of what runs at once.
'use strict';

const { randomUUID } = require('node:crypto');
const RateLimiter = require('../../..');
const { runProgram } = require('../../support/run-program');
const { appWith, get } = require('../../middleware/apps');

/** One slot for each id, by a clock that `hand.now` moves. */
function slotsOf(options) {
  const hand = { now: 0 };
  const slots = RateLimiter.ConcurrencyLimiter({ max: 1, clock: () => hand.now, ...options });
  return { hand, slots };
}

exports.sections = {
  Slots: {
    '`ConcurrencyLimiter` limits what runs at once, `RateLimiter` how often something begins: `maxInInterval: 1` does not keep two actions from running at the same time.':
      async () => {
        const { hand, slots } = slotsOf();
        const often = RateLimiter({ interval: 1000, maxInInterval: 1, clock: () => hand.now });
        const startBoth = () => [slots.acquire('ada').allowed, often('ada') === 0];
        expect(startBoth()).toEqual([true, true]);
        hand.now = 1000; // while the first still runs
        expect(startBoth()).toEqual([false, true]);
      },
    '`acquire` does not wait: it returns a Slot or a refusal, and both are truthy objects. A refusal has no `release`, so look at `allowed` first. `wait` and `run` wait.':
      async () => {
        const { slots } = slotsOf();
        const slot = slots.acquire('ada');
        const refusal = slots.acquire('ada');
        expect(refusal).toMatchObject({ allowed: false, used: 1, remaining: 0 });
        expect(refusal.release).toBeUndefined();
        const waiting = slots.wait('ada');
        slot.release();
        expect((await waiting).allowed).toBe(true);
      },
    'A slot that is not released stays held: no time-out is set by default (`maxAge`). `run` releases it however its function ends.':
      async () => {
        const { hand, slots } = slotsOf();
        const slot = slots.acquire('ada');
        hand.now = 1e9;
        expect(slots.acquire('ada').allowed).toBe(false);
        slot.release();
        const fails = () => Promise.reject(new Error('failed'));
        await expect(slots.run('ada', fails)).rejects.toThrow('failed');
        expect(await slots.run('ada', () => 'done')).toBe('done');
        expect(slots.usage('ada').used).toBe(0);
      },
    'Call `release` as a method: `once("close", slot.release)` throws, `once("close", () => slot.release())` does not. It is `true` once, and `false` later.'() {
      const slot = slotsOf().slots.acquire('ada');
      const { release } = slot;
      expect(() => release()).toThrow(TypeError);
      expect([slot.release(), slot.release()]).toEqual([true, false]);
    },
    'A slot that is lost, for example by `maxAge` or `clear`, does not stop its action: `slot.lost` is an AbortSignal that says so.':
      async () => {
        const { hand, slots } = slotsOf({ maxAge: 1000 });
        const [cleared, aged] = [slots.acquire('ada'), slots.acquire('bob')];
        expect([cleared.lost.aborted, aged.lost.aborted]).toEqual([false, false]);
        await slots.clear('ada');
        hand.now = 1000;
        slots.acquire('bob');
        for (const slot of [cleared, aged]) {
          expect(slot.lost.reason).toMatchObject({ code: 'ERR_ROLLGATE_SLOT_LOST' });
          expect(slot.release()).toBe(false);
        }
      },
    '`run` within `run` of the same id waits for itself if no slot is left; a `deadline` ends that.':
      async () => {
        const { slots } = slotsOf();
        const nested = slots.run('ada', () => slots.run('ada', { deadline: 20 }, () => 'done'));
        await expect(nested).rejects.toMatchObject({ code: 'ERR_ROLLGATE_WAIT_DEADLINE' });
      },
    'In memory, a call that waits for a slot does not keep the program running, unlike `wait` of a rate limiter.':
      async () => {
        const { code, stdout } = await runProgram(`
          const slots = require('rollgate').ConcurrencyLimiter({ max: 1 });
          globalThis.slot = slots.acquire('ada');
          slots.wait('ada').then(() => console.log('got it'));
          process.on('exit', () => console.log('ended'));`);
        expect([code, stdout]).toEqual([0, 'ended\n']);
      },
    'On Redis, `acquire`, `usage` and `release` return promises.': async ({ redisUrl }) => {
      const redis = { url: redisUrl, commandTimeout: 10_000 };
      const { slots } = slotsOf({ redis, namespace: randomUUID(), clock: undefined });
      const slot = await slots.acquire('ada');
      expect([slot.allowed, (await slots.usage('ada')).used]).toEqual([true, 1]);
      const released = slot.release();
      expect(typeof released.then).toBe('function');
      expect(await released).toBe(true);
      await slots.close();
    },
    'A refusal of `concurrencyLimit` has no `Retry-After`: nobody knows when a slot will be free.':
      async () => {
        const { status, headers } = await get(appWith(RateLimiter.concurrencyLimit({ max: 0 })));
        expect([status, headers['retry-after']]).toEqual([429, undefined]);
      },
  },
};
