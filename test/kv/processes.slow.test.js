// Processes over key-value stores: they share counts, leave what they did, and end by themselves.
'use strict';

const RateLimiter = require('../..');
const { ALGORITHMS } = require('../../lib/algorithms');
const { openDenoKv } = require('../support/kv-stores');
const { askProgram } = require('../support/run-program');

describe('several on one database file', () => {
  const MAX = 60;
  const IDS = ['hot', 'a', 'b'];
  let store;
  beforeEach(async () => {
    store = await openDenoKv();
  });
  afterEach(() => store.close());

  const optionsOf = (algorithm) => ({
    namespace: `race-${algorithm}`,
    algorithm,
    interval: 9_007_199_254_740, // one window of the epoch: the second begins in the year 2255
    maxInInterval: MAX,
    countBlocked: false,
    commandTimeout: 10_000,
  });

  const program = (algorithm, run) => `
    const { openKv } = require('@deno/kv');
    const RateLimiter = require('rollgate');
    (async () => {
      const kv = await openKv(${JSON.stringify(store.file)});
      const limiter = RateLimiter({ ...${JSON.stringify(optionsOf(algorithm))}, kv });
      ${run}
    })();
  `;

  /** Prints how often each id was allowed for certain, and how often a timeout left that open. */
  const racer = (algorithm) =>
    program(
      algorithm,
      `const report = { allowed: {}, unknown: {} };
      const add = (kind, id) => (report[kind][id] = (report[kind][id] ?? 0) + 1);
      const ask = async (id) => {
        try {
          if ((await limiter(id)) === 0) add('allowed', id);
        } catch (error) {
          if (error.code !== 'ERR_ROLLGATE_KV_TIMEOUT') throw error;
          add('unknown', id);
        }
      };
      for (let i = 0; i < 15; i++) {
        await Promise.all(${JSON.stringify(IDS)}.flatMap((id) => [ask(id), ask(id)]));
      }
      kv.close();
      console.log(JSON.stringify(report));`,
    );

  test.each(ALGORITHMS)('%s: four racing processes admit exactly the limit', async (algorithm) => {
    const reports = await Promise.all([1, 2, 3, 4].map(() => askProgram(racer(algorithm))));
    const limiter = RateLimiter({ ...optionsOf(algorithm), kv: store.kv });
    for (const id of IDS) {
      let rest = 0;
      while ((await limiter(id)) === 0) rest += 1;
      const sum = (kind) => reports.reduce((all, report) => all + (report[kind][id] ?? 0), 0);
      const allowed = sum('allowed') + rest;
      expect(allowed).toBeLessThanOrEqual(MAX);
      expect(allowed).toBeGreaterThanOrEqual(MAX - sum('unknown'));
    }
  });

  test('what a process did counts after its end, also if it was killed', async () => {
    const end = (how) =>
      program(
        'sliding-window-log',
        `const { actionsLeft } = await limiter.attempt('a', { cost: 20 });
        require('node:fs').writeSync(1, JSON.stringify(actionsLeft));
        ${how}`,
      );
    expect(await askProgram(end('kv.close()'))).toBe(40);
    await expect(askProgram(end("process.kill(process.pid, 'SIGKILL')"))).rejects.toThrow(
      'the program ended with SIGKILL: 20',
    );
    expect(await askProgram(end('kv.close()'))).toBe(0);
  });
});

describe('one', () => {
  const SET_UP = `
    const RateLimiter = require('rollgate');
    const { createPlainKv } = require('./test/support/kv-stores');
    const kv = createPlainKv();
    const LIMIT = { namespace: 'n', interval: 60_000, maxInInterval: 3, commandTimeout: 300 };
    const limiter = RateLimiter({ kv, ...LIMIT });
  `;

  test('ends by itself when its calls are answered', async () => {
    const timers = "process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length";
    const run = `limiter('a').then(() => limiter.clearAll()).then(() => console.log(${timers}));`;
    expect(await askProgram(SET_UP + run)).toBe(0);
  });

  const HANG = '() => new Promise(() => {})';
  test.each([
    ['get that hangs', `kv.get = ${HANG}; const call = limiter('a');`],
    ['set that hangs', `kv.set = ${HANG}; const call = limiter('a');`],
    ['lost race after another', "kv.set = async () => false; const call = limiter('a');"],
    ['list that hangs', `kv.list = ${HANG}; const call = limiter.clearAll();`],
  ])('ends only when a call has settled: a %s', async (_name, run) => {
    const print = 'call.catch((error) => console.log(JSON.stringify(error.code)));';
    expect(await askProgram(SET_UP + run + print)).toBe('ERR_ROLLGATE_KV_TIMEOUT');
  });

  test('frees a dropped limiter and its store', async () => {
    const run = `
      (async () => {
        const refs = [];
        for (let i = 0; i < 20; i++) {
          const own = createPlainKv();
          const dropped = RateLimiter({ kv: own, ...LIMIT });
          await dropped('a');
          refs.push(new WeakRef(dropped), new WeakRef(own));
        }
        for (let i = 0; i < 20; i++) {
          await new Promise((resolve) => setTimeout(resolve, 5));
          global.gc();
        }
        console.log(refs.filter((ref) => ref.deref() !== undefined).length);
      })();
    `;
    expect(await askProgram(SET_UP + run, { flags: ['--expose-gc'] })).toBeLessThanOrEqual(2);
  });

  test('keeps nothing of an idle id', async () => {
    const run = `
      (async () => {
        kv.set = async () => true; // keeps nothing itself
        for (let i = 0; i < 2000; i++) await limiter('warm ' + i);
        global.gc();
        const before = process.memoryUsage().heapUsed;
        for (let i = 0; i < 50_000; i++) await limiter('id ' + i);
        global.gc();
        console.log(process.memoryUsage().heapUsed - before);
      })();
    `;
    expect(await askProgram(SET_UP + run, { flags: ['--expose-gc'] })).toBeLessThan(2_000_000);
  });
});
