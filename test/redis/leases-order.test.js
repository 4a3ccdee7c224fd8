// Leases among calls and replies that come in another order than usual: a reply or a command that is held back, a clock
// that steps back.
'use strict';

const { setImmediate: turn } = require('node:timers/promises');
const { LEASE, SECOND, leasesOnRedis } = require('../support/leases-on-redis');
const { waitUntil } = require('../support/outcome');
const { patient } = require('../support/tiers');

const { withLease, withGatedLease } = leasesOnRedis();

const patiently = { commandTimeout: patient(3000) };
const LARGE = { ...patiently, maxInInterval: 100_000 };
const COST = 100;
const CALLS = 100;
const USED = 61 + COST * CALLS; // with that of withLease()

/** A lease that is open while the reply to an earlier command of its request is held back. */
async function withReplyHeld(options) {
  const made = await withGatedLease({ ...LARGE, ...options });
  const { limiter, gated } = made;
  const held = gated.holdReply();
  // Two commands, because none of these attempts can wait for the lease that the second one asks for.
  const attempts = Array.from({ length: CALLS }, () => limiter.attempt('a', { cost: COST }));
  const settled = Promise.allSettled(attempts);
  const release = await held;
  await attempts.at(-1);
  expect(limiter.stats().leases).toBe(1);
  const arrive = () => {
    release();
    return settled;
  };
  return { ...made, arrive };
}

/** For a refusal of 500 in place of a lease. */
const fill = (plain) => plain.record('a', { cost: 2000 });

describe('while a reply from before the lease is held back', () => {
  // Kills: a lease that decides until this reply comes.
  test('`block` is at once, and gives the lease back', async () => {
    const { limiter, plain, arrive } = await withReplyHeld();
    await limiter.block('a', 5000);
    expect((await limiter.peek('a')).timeLeft).toBe(5000);
    expect((await plain.usage('a')).used).toBe(USED);
    await arrive();
    expect(await limiter('a')).toBe(5000);
  });

  // Kills: a settlement that is sent after it.
  test.each(['clear', 'clearAll'])('`%s` forgets what maxKeys has ended', async (method) => {
    const { limiter, plain, arrive } = await withReplyHeld({ maxKeys: 1 });
    await limiter.attempt('a');
    await limiter.attempt('b');
    await limiter[method]('a');
    await arrive();
    await limiter.close();
    expect((await plain.usage('a')).used).toBe(0);
  });

  // Kills: a timer that waits for this reply, and runs again and again.
  test('a lease ends in time', async () => {
    const { limiter, plain, advance, arrive } = await withReplyHeld();
    advance(LEASE);
    await waitUntil('it is settled', async () => (await plain.usage('a')).used === USED);
    expect(limiter.stats().leases).toBe(0);
    await arrive();
  });

  // Kills: windows as a settlement shows them, after the grant.
  test('the windows shown are those of the latest reply', async () => {
    const { limiter, arrive } = await withReplyHeld();
    await arrive();
    expect((await limiter.attempt('a')).limits[0].used).toBe(USED + 1);
  });

  // Kills: permits that are given back when it has come or timed out.
  test('`close` gives permits back at once', async () => {
    const { limiter, gated, arrive } = await withReplyHeld();
    const { sent } = gated;
    const closed = limiter.close();
    await turn();
    expect(gated.sent).toBe(sent + 1);
    await arrive();
    await closed;
  });
});

describe('a refusal is not remembered', () => {
  // Kills: one that arrives later.
  test.each([
    ['setLimits', (limiter) => limiter.setLimits([{ interval: SECOND, maxInInterval: 100_000 }])],
    ['clear', (limiter) => limiter.clear('a')],
  ])('that was decided before `%s`', async (_method, call) => {
    const { limiter, gated, plain } = await withGatedLease(patiently);
    await fill(plain);
    const held = gated.holdReply();
    const refused = limiter.attempt('a', { cost: 500 });
    const release = await held;
    await call(limiter);
    release();
    expect((await refused).allowed).toBe(false);
    expect((await limiter.attempt('a', { cost: 500 })).timeLeft).toBe(0);
  });

  // Kills: one that is over only when the clock is where it was.
  test('when the clock steps back behind it', async () => {
    const { limiter, plain, advance } = await withLease();
    await fill(plain);
    await limiter.attempt('a', { cost: 500 });
    advance(-10_000);
    await plain.clear('a');
    advance(2000);
    expect((await limiter.attempt('a', { cost: 500 })).allowed).toBe(true);
  });
});

describe('a lease that is granted while a call is under way', () => {
  // Kills: a call that ends only the lease from before it.
  test.each([
    ['block', (limiter) => limiter.block('a', 5000), 5000],
    ['clear', (limiter) => limiter.clear('a'), 0],
  ])('does not decide after `%s`', async (_method, call, timeLeft) => {
    const { limiter, gated, plain, advance } = await withGatedLease(patiently);
    advance(LEASE);
    await waitUntil('it is settled', async () => (await plain.usage('a')).used === 61);
    let release;
    gated.gate = async (args, send) => {
      gated.mend();
      await new Promise((resolve) => {
        release = resolve;
      });
      return send(args);
    };
    const called = call(limiter);
    await waitUntil('it is held', () => release !== undefined);
    expect(await limiter('a')).toBe(0);
    expect(limiter.stats().leases).toBe(1);
    release();
    await called;
    expect((await plain.peek('a')).timeLeft).toBe(timeLeft);
    const { local } = limiter.stats();
    expect(await limiter('a')).toBe(timeLeft);
    expect(limiter.stats().local).toBe(local);
  });
});

// Kills: calls that are sent before what waits for the end of the turn.
test('calls of one turn are decided in their order', async () => {
  const { limiter, plain, advance } = await withLease();
  advance(LEASE);
  const attempt = limiter.attempt('a', { cost: 400 });
  const usage = await limiter.usage('a');
  expect(usage.used).toBeGreaterThanOrEqual(61 + 400);
  await attempt;
  for (const method of ['clear', 'clearAll']) {
    await Promise.all([limiter.attempt('a'), limiter[method]('a')]);
    expect((await plain.usage('a')).used).toBe(0);
  }
  const lowered = limiter.attempt('a', { cost: 400 });
  limiter.setLimits([{ interval: SECOND, maxInInterval: 200 }]);
  expect((await lowered).allowed).toBe(true);
});

// Kills: a balance that an overdraft leaves at 0, to which the refund adds.
test('what a refund frees goes to an overdraft first', async () => {
  const { limiter } = await withLease();
  const [large, small] = [await limiter.attempt('a'), await limiter.attempt('a', { cost: 4 })];
  const settled = [limiter.settle(large, 2000), limiter.refund(small)];
  const decisions = await Promise.all(Array.from({ length: 4 }, () => limiter.attempt('a')));
  expect(await Promise.all(settled)).toEqual([true, true]);
  expect(decisions.map(({ allowed }) => allowed)).toEqual(Array(4).fill(false));
});

// Kills: an age below 0 that ends the round of the timer.
test('a lease ends in time behind one that was granted before the clock stepped back', async () => {
  const { limiter, plain, advance } = await withLease();
  advance(-10_000);
  for (let i = 0; i < 60; i++) {
    await limiter('b');
    advance(4);
  }
  advance(LEASE);
  await limiter('b');
  expect(limiter.stats().leases).toBe(2);
  advance(LEASE);
  await waitUntil('it is settled', async () => (await plain.usage('b')).used === 61);
});
