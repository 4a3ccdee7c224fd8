// One limiter for all that have its name: in worker threads, and in processes that may be killed.
'use strict';

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const path = require('node:path');
const { Worker } = require('node:worker_threads');
const RateLimiter = require('../..');
const { ALGORITHMS } = require('../../lib/options/algorithms');
const { askProgram } = require('../support/run-program');
const { newName } = require('../support/shared-regions');
const { patient, slow } = require('../support/tiers');

const ROOT = path.join(__dirname, '..', '..');

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

/** One window of the epoch, whenever the test runs: the second begins in the year 2255. */
const FOR_EVER = 9_007_199_254_740;

describe('two limiters of one name', () => {
  const LIMITS = { interval: 60_000, maxInInterval: 1, maxKeys: 1000 };

  // Kills: an attempt that is not taken back; a refusal that counts, and would reset later.
  test('leave no trace if one takes the last place after the other has asked for several', () => {
    const shared = newName();
    const other = RateLimiter({ ...LIMITS, shared, clock: () => 1000 });
    let readings = 0;
    function clock() {
      readings += 1; // first for the question, then for the attempt
      if (readings > 1) other.attempt();
      return 1000 + readings;
    }
    const user = RateLimiter(LIMITS);
    const everybody = RateLimiter({ ...LIMITS, shared, clock });
    const result = RateLimiter.attemptAll([{ limiter: user }, { limiter: everybody }]);
    expect(result).toMatchObject({ allowed: false, refusedBy: 1 });
    expect(user.usage()).toMatchObject({ used: 0 });
    expect(other.usage()).toMatchObject({ used: 1, resetIn: 60_000 });
  });

  test('report the keys and bytes of all, and the attempts of each', () => {
    const shared = newName();
    const [one, other] = [1, 2].map(() => RateLimiter({ ...LIMITS, shared, countBlocked: false }));
    one('a');
    one('b');
    other('a');
    expect(one.stats()).toMatchObject({ keys: 2, allowed: 2, blocked: 0, errors: 0 });
    expect(other.stats()).toEqual({ ...one.stats(), allowed: 0, blocked: 1 });
  });
});

/** A log of each fits into a region of a few megabytes, as /dev/shm of a container is small. */
const RACED = { ids: 10, max: process.env.ROLLGATE_SANITIZED ? 100 : 1000 };

/** Asks for each of a few ids again and again until each is refused, and calls `allow(id)` for the rest. */
const RACE = (name, algorithm) => `
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

describe.each(ALGORITHMS)('exactly the limit passes: %s', (algorithm) => {
  const exactly = Array(RACED.ids).fill(RACED.max);
  const sums = (reports) => exactly.map((_, id) => sum(reports.map((allowed) => allowed[id])));
  const race = (report) => `
    const allowed = Array(${RACED.ids}).fill(0);
    const allow = (id) => { allowed[id] += 1; };
    ${RACE(newName(), algorithm)}
    ${report}
  `;

  test('among worker threads', async () => {
    const source = race(`require('node:worker_threads').parentPort.postMessage(allowed);`);
    const workers = Array.from({ length: 4 }, () => new Worker(source, { eval: true }));
    const reports = await Promise.all(workers.map((worker) => once(worker, 'message')));
    expect(sums(reports.flat())).toEqual(exactly);
  });

  slow.test('among processes, and the region outlives them', async () => {
    const source = race('console.log(JSON.stringify(allowed));');
    const reports = await Promise.all([1, 2, 3].map(() => askProgram(source)));
    expect(sums(reports)).toEqual(exactly);
    expect(await askProgram(source)).toEqual(exactly.map(() => 0));
  });
});

/**
 * Runs a program, killed once it has written so many letters, and adds up how often it wrote each; the promise
 * of how it ended.
 */
async function countLetters(source, counts, killAfter) {
  const child = spawn(process.execPath, ['-e', source], { stdio: ['ignore', 'pipe', 'inherit'] });
  let written = 0;
  child.stdout.setEncoding('latin1').on('data', (letters) => {
    for (const letter of letters) counts[letter.charCodeAt(0) - 97] += 1;
    written += letters.length;
    if (written >= killAfter) child.kill('SIGKILL');
  });
  const [code, signal] = await once(child, 'close');
  return code ?? signal;
}

// Kills: attempts without a question before that are not taken back after a refusal.
slow.test(
  'processes that are killed have counted what they counted, but for the attempts that they were making',
  async () => {
    const MAXIMA = [60, 200, 350]; // of ten users, of two organisations, of everybody
    const regions = MAXIMA.map((maxInInterval) => ({ shared: newName(), maxInInterval }));
    const limiters = `
      const RateLimiter = require(${JSON.stringify(ROOT)});
      const [user, organisation, everybody] = ${JSON.stringify(regions)}.map((region) =>
        RateLimiter({ maxKeys: 10, interval: ${FOR_EVER}, ...region }));
    `;
    const source = `
      const { writeSync } = require('node:fs');
      ${limiters}
      // Most are taken back, so that processes meet at the limits again and again.
      for (let step = 0, refused = 0; refused < 300; step++) {
        const limiters = [user, organisation, everybody];
        const ids = ['u' + step % 10, 'o' + step % 2, ''];
        const { allowed, decisions } = RateLimiter.attemptAll(limiters.map((limiter, i) => ({ limiter, id: ids[i] })));
        if (!allowed) refused += 1;
        else refused = 0;
        if (allowed && step % 37 === 0) writeSync(1, String.fromCharCode(97 + step % 10));
        else if (allowed) limiters.forEach((limiter, i) => limiter.refund(decisions[i]));
      }
    `;
    const counts = Array(10).fill(0);
    const ends = [];
    const line = async () => {
      while (ends.length < 12) {
        ends.push(await countLetters(source, counts, 1 + ((ends.length * 197) % 30)));
      }
    };
    await Promise.all([line(), line(), line()]);
    const killed = ends.filter((end) => end === 'SIGKILL').length;
    expect(killed).toBeGreaterThan(6);
    expect(await countLetters(source, counts, Infinity)).toBe(0);
    const used = await askProgram(`
      ${limiters}
      const of = (limiter, ids) => ids.map((id) => limiter.usage(id).used);
      const ids = Array.from({ length: 10 }, (_, i) => 'u' + i);
      console.log(JSON.stringify([of(user, ids), of(organisation, ['o0', 'o1']), of(everybody, [''])]));
    `);
    const organisations = [0, 1].map((i) => sum(counts.filter((_, user) => user % 2 === i)));
    for (const [i, counted] of [counts, organisations, [sum(counts)]].entries()) {
      for (const [j, count] of counted.entries()) {
        expect(used[i][j]).toBeLessThanOrEqual(MAXIMA[i]);
        expect(used[i][j]).toBeGreaterThanOrEqual(count);
      }
      expect(sum(used[i]) - sum(counted)).toBeLessThanOrEqual(killed);
    }
  },
  patient(60_000),
);
