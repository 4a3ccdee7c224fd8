// Leases while Redis does not answer, answers late, or loses answers.
'use strict';

const { setImmediate: turn } = require('node:timers/promises');
const { LEASE, leasesOnRedis } = require('../support/leases-on-redis');
const { waitUntil } = require('../support/outcome');
const { patient } = require('../support/tiers');

const TIMEOUT = 'ERR_ROLLGATE_REDIS_TIMEOUT';
const { withGatedLease } = leasesOnRedis();

const codeOf = (promise) => promise.then(Object, ({ code }) => code);
/** What is sent arrives, but no answer comes back. */
const loseAnswers = (gated) => {
  gated.gate = (args, send) => {
    send(args).catch(() => {});
    return new Promise(() => {});
  };
};

test('an open lease decides until it ends', async () => {
  const { limiter, gated, advance } = await withGatedLease();
  gated.cut();
  expect(await limiter('a')).toBe(0);
  advance((LEASE * 7) / 8 - 1);
  expect(await limiter('a')).toBe(0);
  advance(1);
  await expect(limiter('a')).rejects.toMatchObject({
    code: expect.stringMatching(/^ERR_ROLLGATE/),
  });
});

test('the end of a lease is followed by onError', async () => {
  const { limiter, gated, advance } = await withGatedLease({ onError: 'allow' });
  gated.cut();
  advance(LEASE);
  expect(await limiter('a')).toBe(0);
  expect(limiter.stats().fallbacks).toBe(1);
});

test('a lease whose grant was lost is given back by the next request, its uses are forgotten', async () => {
  const { limiter, plain, gated, advance } = await withGatedLease();
  loseAnswers(gated);
  advance(LEASE);
  expect(await codeOf(limiter('a'))).toBe(TIMEOUT);
  expect(limiter.stats().leases).toBe(0);
  const lost = (await plain.usage('a')).used;
  expect(lost).toBeGreaterThan(62); // permits of the lease that nobody has
  gated.mend();
  await limiter('a');
  await limiter.close();
  expect((await plain.usage('a')).used).toBe(63);
});

test('a call that waits for a request has a deadline of its own', async () => {
  const { limiter, gated, advance } = await withGatedLease({ commandTimeout: patient(600) });
  loseAnswers(gated);
  advance(LEASE);
  const calls = [limiter('a')];
  await turn();
  calls.push(limiter('a'), limiter('a'));
  expect(await Promise.all(calls.map(codeOf))).toEqual([TIMEOUT, TIMEOUT, TIMEOUT]);
  gated.mend();
  // A request for the later ones may have been lost after the first deadline; one more call can wait for it in vain.
  await waitUntil('it answers', async () => (await limiter('a')) === 0);
});

test('slow answers end leases only until an answer is fast again, and hold up nobody', async () => {
  const { limiter, gated, advance } = await withGatedLease({ commandTimeout: patient(1000) });
  const held = [];
  gated.gate = async (args, send) => {
    const reply = await send(args);
    await new Promise((resolve) => held.push(resolve));
    return reply;
  };
  const answer = async (slowly) => {
    await waitUntil('it is held', () => held.length > 0);
    advance(slowly);
    held.shift()();
  };
  advance(LEASE);
  const calls = [limiter('a')];
  await answer(LEASE * 0.6);
  await calls[0];
  advance(LEASE);
  calls.push(limiter('a'));
  await turn();
  calls.push(limiter('a'));
  await answer(LEASE * 0.6);
  const { sent } = gated;
  for (let i = 0; i < 8; i++) {
    calls.push(limiter('a'));
    await turn();
  }
  expect(gated.sent - sent).toBeGreaterThan(4); // they do not wait for each other
  // There is always one more that waits.
  for (let i = 0; i < 40 && limiter.stats().leases === 0; i++) {
    calls.push(limiter('a'));
    await answer(0);
    await turn();
    advance(1);
  }
  expect(limiter.stats().leases).toBe(1);
  gated.mend();
  for (const release of held.splice(0)) release();
  expect(await Promise.all(calls)).toEqual(calls.map(() => 0));
});

// Kills: leases that are never asked for, or always, while answers are slow.
test('while answers are slow, a lease is asked for in one of four round trips', async () => {
  const { limiter, gated, advance } = await withGatedLease({ maxInInterval: 1000 });
  gated.gate = async (args, send) => {
    const reply = await send(args);
    advance(LEASE * 0.6);
    return reply;
  };
  const asked = [];
  for (let i = 0; i < 20; i++) {
    advance(LEASE * 0.4);
    const { leased } = limiter.stats();
    expect((await limiter.attempt('a', { cost: 5 })).allowed).toBe(true);
    asked.push(limiter.stats().leased > leased);
  }
  const times = asked.filter(Boolean).length;
  expect(times).toBeGreaterThanOrEqual(4);
  expect(times).toBeLessThanOrEqual(10);
});

test('of a burst, what a lease will hardly be large enough for goes to Redis at once', async () => {
  const { limiter, gated } = await withGatedLease({
    commandTimeout: patient(2000),
    maxInInterval: 100_000,
  });
  const { sent } = gated;
  const burst = Array.from({ length: 640 }, () => limiter('a'));
  expect(await Promise.all(burst)).toEqual(burst.map(() => 0));
  expect(gated.sent - sent).toBeLessThan(16); // with up to 64 calls each
});

test('what comes while `clearAll` is under way is forgotten when it ends', async () => {
  const { limiter, gated, plain, advance } = await withGatedLease({ maxInInterval: 100 });
  let release;
  gated.gate = async (args, send) => {
    if (String(args[0]).toLowerCase() === 'unlink') {
      await new Promise((resolve) => {
        release = resolve;
      });
    }
    return send(args);
  };
  const cleared = limiter.clearAll();
  await waitUntil('it is held', () => release !== undefined);
  let decision;
  do {
    decision = await limiter.attempt('a');
    advance(0.1);
  } while (decision.allowed);
  expect(decision.timeLeft).toBeGreaterThan(0);
  release();
  await cleared;
  expect(await limiter('a')).toBe(0);
  await limiter.close();
  expect((await plain.usage('a')).used).toBe(1);
});

test('no more calls than maxQueue wait', async () => {
  const { limiter, gated, advance } = await withGatedLease({ maxQueue: 4 });
  loseAnswers(gated);
  advance(LEASE);
  const codes = [];
  const calls = Array.from({ length: 6 }, async () => codes.push(await codeOf(limiter('a'))));
  await turn();
  expect(codes).toEqual(Array(2).fill('ERR_ROLLGATE_REDIS_QUEUE_FULL'));
  await Promise.all(calls);
  expect(codes).toContain(TIMEOUT);
});

test('`close` fails what waits', async () => {
  const { limiter, gated, advance } = await withGatedLease();
  loseAnswers(gated);
  advance(LEASE);
  const calls = [limiter('a')];
  await turn();
  calls.push(limiter('a'));
  const closed = limiter.close();
  expect(await Promise.all(calls.map(codeOf))).toEqual(Array(2).fill('ERR_ROLLGATE_CLOSED'));
  await closed;
});
