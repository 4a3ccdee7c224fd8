// One limiter for all who have its name: in one thread, in worker threads, in processes, and for those
// who are killed.
'use strict';

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const path = require('node:path');
const { Worker } = require('node:worker_threads');
const RateLimiter = require('../..');
const { ALGORITHMS } = require('../../lib/algorithms');
const { handClock } = require('../support/set-up');
const { askProgram } = require('../support/run-program');
const { newName } = require('../support/shared-regions');
const { patient, slow } = require('../support/tiers');

const ROOT = path.join(__dirname, '..', '..');

/** One window of the epoch, whenever the test runs: the second begins in the year 2255. */
const FOR_EVER = 9_007_199_254_740;

describe('two limiters of one name', () => {
  const pair = (options) => {
    const all = {
      interval: 60_000,
      maxInInterval: 1,
      maxKeys: 1000,
      shared: newName(),
      ...options,
    };
    return [RateLimiter(all), RateLimiter({ ...all })];
  };

  test.each(ALGORITHMS)('are one: %s', (algorithm) => {
    const { clock } = handClock();
    const [one, other] = pair({ algorithm, maxInInterval: 3, countBlocked: false, clock });
    expect([one('a'), other('a'), one('a')]).toEqual([0, 0, 0]);
    expect(other('a')).toBeGreaterThan(0);
    expect(one.peek('a')).toEqual(other.peek('a'));
    expect([one('b'), other.peek('b').actionsLeft]).toEqual([0, 1]);
  });

  test('know every kind of id as the same one', () => {
    const [one, other] = pair();
    const long = 'x'.repeat(100_000);
    const ids = ['', 'a', 1, 2n, 0.5, 'ä', 'жид', '\ud800', '\udc00', '__proto__', 'a\0b', long];
    for (const id of ids) expect(one(id)).toBe(0);
    for (const id of [...ids, null, '1']) expect(other.peek(id).allowed).toBe(false);
    expect(one.stats().keys).toBe(ids.length);
  });

  test('clear and clear all for each other', async () => {
    const [one, other] = pair();
    const allowed = () => ['a', 'b'].map((id) => one.peek(id).allowed);
    one.attemptMany(['a', 'b']);
    await other.clear('a');
    expect(allowed()).toEqual([true, false]);
    await other.clearAll();
    expect(allowed()).toEqual([true, true]);
  });

  test('take back their own attempts, which the other sees, and not those of the other', () => {
    const [one, other] = pair({ countBlocked: false });
    const decision = one.attempt('a');
    expect(() => other.refund(decision)).toThrow(
      expect.objectContaining({ code: 'ERR_ROLLGATE_DECISION' }),
    );
    expect(other.peek('a').allowed).toBe(false);
    expect([one.refund(decision), one.refund(decision)]).toEqual([true, false]);
    expect(other.peek('a').allowed).toBe(true);
  });

  test('report the keys and bytes of all, and the attempts of each', () => {
    const [one, other] = pair({ countBlocked: false });
    one('a');
    one('b');
    other('a');
    const bytes = expect.any(Number);
    expect(one.stats()).toEqual({ keys: 2, allowed: 2, blocked: 0, evicted: 0, errors: 0, bytes });
    expect(other.stats()).toEqual({ ...one.stats(), allowed: 0, blocked: 1 });
  });

  test('block for each other', () => {
    const { clock, advance } = handClock();
    const [one, other] = pair({ interval: 10, blockFor: 5000, clock });
    one('a');
    other('a');
    advance(100);
    expect(one.peek('a')).toMatchObject({ blockedBy: 'block', timeLeft: 4900 });
  });
});

/** A log of each fits into a region of a few megabytes, as /dev/shm of a container is small. */
const RACED = { ids: 10, max: process.env.ROLLGATE_SANITIZED ? 100 : 1000 };

/** Asks for each of a few ids again and again until each is refused, and calls `allow(id)` for the rest. */
const RACE = (name, algorithm = 'sliding-window-log') => `
  const RateLimiter = require(${JSON.stringify(ROOT)});
  const limiter = RateLimiter({ shared: '${name}', maxKeys: 10, interval: ${FOR_EVER},
    maxInInterval: ${RACED.max}, algorithm: '${algorithm}', countBlocked: false });
  for (let refused = 0; refused < ${RACED.ids};) {
    refused = 0;
    for (let id = 0; id < ${RACED.ids}; id++) {
      if (limiter('id' + id) === 0) allow(id);
      else refused += 1;
    }
  }
`;
const COUNT = `
  const allowed = Array(${RACED.ids}).fill(0);
  const allow = (id) => { allowed[id] += 1; };
`;

describe.each(ALGORITHMS)('exactly the limit passes: %s', (algorithm) => {
  const exactly = Array(RACED.ids).fill(RACED.max);
  const sums = (reports) =>
    exactly.map((_, id) => reports.reduce((sum, allowed) => sum + allowed[id], 0));

  test('among worker threads', async () => {
    const source = `${COUNT}${RACE(newName(), algorithm)}
      require('node:worker_threads').parentPort.postMessage(allowed);`;
    const workers = Array.from({ length: 4 }, () => new Worker(source, { eval: true }));
    const reports = await Promise.all(
      workers.map(async (worker) => (await once(worker, 'message'))[0]),
    );
    expect(sums(reports)).toEqual(exactly);
  });

  slow.test('among processes, and the region outlives them', async () => {
    const source = `${COUNT}${RACE(newName(), algorithm)} console.log(JSON.stringify(allowed));`;
    const reports = await Promise.all([1, 2, 3].map(() => askProgram(source)));
    expect(sums(reports)).toEqual(exactly);
    expect(await askProgram(source)).toEqual(exactly.map(() => 0));
  });
});

slow.describe('processes that are killed', () => {
  test(
    'have counted what they counted, and the others go on',
    async () => {
      const KILLS = 12;
      const source = `
      const { writeSync } = require('node:fs');
      const allow = (id) => writeSync(1, String.fromCharCode(97 + id));
      ${RACE(newName())}
    `;
      const allowed = Array(RACED.ids).fill(0);

      /** Runs the program; kills it once it has written so much, if it does. */
      async function countUntil(killAfter) {
        const child = spawn(process.execPath, ['-e', source], {
          stdio: ['ignore', 'pipe', 'inherit'],
        });
        let written = 0;
        child.stdout.setEncoding('latin1');
        child.stdout.on('data', (letters) => {
          for (const letter of letters) allowed[letter.charCodeAt(0) - 97] += 1;
          written += letters.length;
          if (written >= killAfter) child.kill('SIGKILL');
        });
        const [code, signal] = await once(child, 'close');
        return { code, signal };
      }

      const ends = [];
      const line = async () => {
        while (ends.length < KILLS) ends.push(await countUntil(1 + ((ends.length * 197) % 700)));
      };
      await Promise.all([line(), line(), line()]);
      const killed = ends.filter(({ signal }) => signal === 'SIGKILL').length;
      expect(killed).toBeGreaterThan(KILLS / 2);
      expect(await countUntil(Infinity)).toEqual({ code: 0, signal: null });
      // A process that is killed between counting and writing has counted one that nobody knows of.
      const total = allowed.reduce((sum, count) => sum + count, 0);
      expect(Math.max(...allowed)).toBeLessThanOrEqual(RACED.max);
      expect(total).toBeGreaterThanOrEqual(RACED.ids * RACED.max - killed);
    },
    patient(60_000),
  );

  test(
    'in the middle of calls leave the others an exact limiter',
    async () => {
      const options = {
        shared: newName(),
        maxKeys: 1000,
        interval: FOR_EVER,
        maxInInterval: 5,
        countBlocked: false,
      };
      const limiter = RateLimiter(options);
      const source = `
      const limiter = require('rollgate')(${JSON.stringify(options)});
      limiter('-');
      process.stdout.write('go');
      for (let i = 0; ; i++) { limiter(i % 3000); if (i % 7 === 0) limiter.refund(limiter.attempt(i % 50)); }
    `;
      for (let round = 0; round < 10; round++) {
        const child = spawn(process.execPath, ['--eval', source], { cwd: ROOT });
        await once(child.stdout, 'data');
        for (let i = 0; i < 20_000; i++) limiter(i % 3000);
        child.kill('SIGKILL');
        await once(child, 'close');
        await limiter.clear('x');
        const answers = Array.from({ length: 7 }, () => limiter('x') === 0);
        expect(answers).toEqual([true, true, true, true, true, false, false]);
      }
      expect(limiter.stats().keys).toBeGreaterThan(500);
      await limiter.clearAll();
      expect(limiter.stats().keys).toBe(0);
    },
    patient(60_000),
  );
});
