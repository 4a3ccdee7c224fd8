// One limiter for all who have its name: in one thread, in worker threads, in processes.
'use strict';

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { Worker } = require('node:worker_threads');
const RateLimiter = require('../..');
const { ALGORITHMS } = require('../../lib/algorithms');
const { handClock } = require('../support/set-up');
const { askProgram } = require('../support/run-program');
const { newName } = require('../support/shared-regions');

const SMALL = { maxKeys: 1000 };
const ROOT = `${__dirname}/../..`;
const SHARE = process.env.ROLLGATE_SANITIZED ? 0.1 : 1;

/** One window of the epoch, whenever the test runs: the second begins in the year 2255. */
const FOR_EVER = 9_007_199_254_740;

describe('two limiters of one name', () => {
  const pair = (options) => {
    const all = { interval: 60_000, maxInInterval: 3, ...SMALL, shared: newName(), ...options };
    return [RateLimiter(all), RateLimiter({ ...all })];
  };

  test.each(ALGORITHMS)('are one: %s', (algorithm) => {
    const { clock } = handClock();
    const [one, other] = pair({ algorithm, countBlocked: false, clock });
    expect([one('a'), other('a'), one('a')]).toEqual([0, 0, 0]);
    expect(other('a')).toBeGreaterThan(0);
    expect(one.peek('a')).toEqual(other.peek('a'));
    expect([one('b'), other.peek('b').actionsLeft]).toEqual([0, 1]);
  });

  test('know every kind of id as the same one', () => {
    const [one, other] = pair({ maxInInterval: 1 });
    const long = 'x'.repeat(100_000);
    const ids = ['', 'a', 1, 2n, 0.5, 'ä', 'жид', '\ud800', '\udc00', '__proto__', 'a\0b', long];
    for (const id of ids) expect(one(id)).toBe(0);
    for (const id of ids) expect(other.peek(id).allowed).toBe(false);
    expect(other.peek(null).allowed).toBe(false);
    expect(other.peek('1').allowed).toBe(false);
    expect(one.stats().keys).toBe(ids.length);
  });

  test('clear and clear all for each other', async () => {
    const [one, other] = pair({ maxInInterval: 1 });
    one.attemptMany(['a', 'b', 'c']);
    await other.clear('a');
    expect([one.peek('a').allowed, one.peek('b').allowed]).toEqual([true, false]);
    await other.clearAll();
    expect(one.attemptMany(['a', 'b', 'c']).map(({ allowed }) => allowed)).toEqual([
      true,
      true,
      true,
    ]);
  });

  test('take back their own attempts, which the other sees, and not those of the other', () => {
    const [one, other] = pair({ maxInInterval: 1, countBlocked: false });
    const decision = one.attempt('a');
    expect(() => other.refund(decision)).toThrow(
      expect.objectContaining({ code: 'ERR_ROLLGATE_DECISION' }),
    );
    expect(other.peek('a').allowed).toBe(false);
    expect([one.refund(decision), one.refund(decision)]).toEqual([true, false]);
    expect(other.peek('a').allowed).toBe(true);
  });

  test('tell of the keys and bytes of all, and of the attempts of each', () => {
    const [one, other] = pair({ maxInInterval: 1, countBlocked: false });
    one('a');
    one('b');
    other('a');
    expect(one.stats()).toEqual({
      keys: 2,
      allowed: 2,
      blocked: 0,
      evicted: 0,
      errors: 0,
      bytes: expect.any(Number),
    });
    expect(other.stats()).toEqual({ ...one.stats(), allowed: 0, blocked: 1 });
  });

  test('block for each other', () => {
    const { clock, advance } = handClock();
    const [one, other] = pair({ maxInInterval: 1, interval: 10, blockFor: 5000, clock });
    one('a');
    other('a');
    advance(100);
    expect(one.peek('a')).toMatchObject({ blockedBy: 'block', timeLeft: 4900 });
  });

  test('the maxKeys of the first is that of all', () => {
    const shared = newName();
    const options = { interval: 60_000, maxInInterval: 1, shared };
    const first = RateLimiter({ ...options, maxKeys: 10 });
    const { bytes } = first.stats();
    expect(RateLimiter({ ...options, maxKeys: 100_000 }).stats().bytes).toBe(bytes);
  });
});

/** A log of each fits into a region of a few megabytes, as /dev/shm of a container is small. */
const RACED = { ids: 10, max: Math.ceil(1000 * SHARE) };

/** Asks for each of a few ids again and again, until each was refused; sends how often it was allowed. */
const RACE = (name, algorithm) => `
  const RateLimiter = require(${JSON.stringify(ROOT)});
  const limiter = RateLimiter({ shared: '${name}', maxKeys: 10, interval: ${FOR_EVER},
    maxInInterval: ${RACED.max}, algorithm: '${algorithm}', countBlocked: false });
  const allowed = Array(${RACED.ids}).fill(0);
  for (let refused = 0; refused < ${RACED.ids};) {
    refused = 0;
    for (let id = 0; id < ${RACED.ids}; id++) {
      if (limiter('id' + id) === 0) allowed[id] += 1;
      else refused += 1;
    }
  }
`;

describe.each(ALGORITHMS)('exactly the limit passes: %s', (algorithm) => {
  const exactly = Array(RACED.ids).fill(RACED.max);
  const sums = (reports) =>
    exactly.map((_, id) => reports.reduce((sum, allowed) => sum + allowed[id], 0));

  test('among worker threads', async () => {
    const name = newName();
    const source = `${RACE(name, algorithm)} require('node:worker_threads').parentPort.postMessage(allowed);`;
    const workers = Array.from({ length: 4 }, () => new Worker(source, { eval: true }));
    const reports = await Promise.all(
      workers.map(async (worker) => (await once(worker, 'message'))[0]),
    );
    expect(sums(reports)).toEqual(exactly);
  });

  test('among processes, and the region outlives them', async () => {
    const name = newName();
    const source = `${RACE(name, algorithm)} console.log(JSON.stringify(allowed));`;
    const reports = await Promise.all([1, 2, 3].map(() => askProgram(source)));
    expect(sums(reports)).toEqual(exactly);
    expect(await askProgram(source)).toEqual(exactly.map(() => 0));
  });
});

test('a process killed in the middle of calls leaves the others an exact limiter', async () => {
  const name = newName();
  const options = { shared: name, ...SMALL, interval: FOR_EVER, maxInInterval: 5 };
  const limiter = RateLimiter({ ...options, countBlocked: false });
  const source = `
    const RateLimiter = require('rollgate');
    const limiter = RateLimiter({ ...${JSON.stringify(options)}, countBlocked: false });
    limiter('-');
    process.stdout.write('go');
    for (let i = 0; ; i++) { limiter(i % 3000); if (i % 7 === 0) limiter.refund(limiter.attempt(i % 50)); }
  `;
  for (let round = 0; round < Math.ceil(10 * SHARE); round++) {
    const child = spawn(process.execPath, ['--eval', source], { cwd: ROOT });
    await once(child.stdout, 'data');
    for (let i = 0; i < 20_000; i++) limiter(i % 3000);
    child.kill('SIGKILL');
    await once(child, 'close');
    await limiter.clear('x');
    const answers = Array.from({ length: 7 }, () => limiter('x') === 0);
    expect(answers).toEqual([true, true, true, true, true, false, false]);
  }
  const { keys } = limiter.stats();
  await limiter.clearAll();
  expect(keys).toBeGreaterThan(500);
  expect(limiter.stats().keys).toBe(0);
});
