// Limiters come and go: dropped ones are freed, live ones keep no program up, threads end with theirs.
'use strict';

const { once } = require('node:events');
const path = require('node:path');
const { spawnSync } = require('node:child_process');
const { Worker } = require('node:worker_threads');
const RateLimiter = require('../..');
const { hasAddon } = require('../support/bindings');
const { askProgram, runProgram } = require('../support/run-program');
const { casesOf } = require('../support/tiers');

const ROOT = path.join(__dirname, '../..');

/** What the programs below share. */
const PRELUDE = `
  const RateLimiter = require('rollgate');
  const { liveLimiters } = require('./lib/native').loadBinding();
  const OPTIONS = { interval: 1e6, maxInInterval: 5 };
  function used() { // as WebAssembly, a limiter has a store from its first call on
    const limiter = RateLimiter(OPTIONS);
    limiter('used');
    return limiter;
  }
  const tick = () => new Promise((resolve) => setImmediate(resolve));
  async function collect() {
    for (let i = 0; i < 10; i++) { gc(); await tick(); }
  }
  async function main(program) {
    console.log(JSON.stringify(await program()));
  }
`;
const ask = (program) => askProgram(PRELUDE + program, { flags: ['--expose-gc'] });

/** By kind of limiter: what makes one, uses it and drops it. */
const DROPPED = {
  'that was called': "const limiter = RateLimiter(OPTIONS); limiter('a'); limiter.attempt('b');",
  'whose clock refers to it':
    "let limiter; limiter = RateLimiter({ ...OPTIONS, clock: () => (limiter ? 1 : 2) }); limiter('a');",
  'that refers to itself':
    "const limiter = RateLimiter(OPTIONS); limiter.self = limiter; limiter('a');",
  'that was called back, and whose callback refers to it':
    "const limiter = RateLimiter(OPTIONS); limiter('a', () => limiter('b')); limiter(() => limiter);",
  'whose promises are settled':
    "const limiter = RateLimiter(OPTIONS); limiter.limit('a'); limiter.clear();",
  'that is closed': "const limiter = RateLimiter(OPTIONS); limiter('a'); limiter.close();",
  'of a subclass': "class Mine extends RateLimiter { own = this; } new Mine(OPTIONS)('a');",
  'that dropped ids':
    'const limiter = RateLimiter({ ...OPTIONS, maxKeys: 1 }); limiter(1); limiter(2);',
  'whose construction failed': 'try { RateLimiter({ ...OPTIONS, maxKeys: 0 }); } catch {}',
  'whose calls failed': 'const limiter = RateLimiter(OPTIONS); try { limiter({}); } catch {}',
  'behind a middleware':
    'const middleware = RateLimiter.rateLimit(OPTIONS); middleware.self = middleware;',
};

describe('a dropped limiter is freed', () => {
  test('however it was made and used', async () => {
    const kinds = Object.entries(DROPPED).map(
      ([kind, code]) => `[${JSON.stringify(kind)}, () => { ${code} }]`,
    );
    const live = await ask(`
      main(async () => {
        process.on('warning', () => {});
        const found = {};
        for (const [kind, drop] of [${kinds.join()}]) {
          for (let i = 0; i < 50; i++) drop();
          await collect();
          found[kind] = liveLimiters();
        }
        return found;
      });
    `);
    for (const kind of Object.keys(DROPPED))
      expect({ kind, live: live[kind] }).toEqual({ kind, live: 0 });
  });

  test('but not while anything of it is in use', async () => {
    const found = await ask(`
      main(async () => {
        const kept = [used(), used()];
        kept.push(RateLimiter(OPTIONS).attempt('a')); // a Decision can still be refunded
        kept.push(used().bind(null, 'a'));
        await collect();
        const live = liveLimiters();
        const answers = [kept[0]('a'), kept[1].attempt('a').allowed, kept[3]()];
        kept.length = 0;
        await collect();
        return [live, answers, liveLimiters()];
      });
    `);
    expect(found).toEqual([4, [0, true, 0], 0]);
  });

  test('once no call waits, and not while one does', async () => {
    const found = await ask(`
      const giveUp = new AbortController();
      function begin() {
        const hour = RateLimiter({ interval: 3_600_000, maxInInterval: 1 });
        hour('a');
        return hour.wait('a', { signal: giveUp.signal }).catch(() => 'gave up');
      }
      main(async () => {
        let waiting = begin();
        await collect();
        const counts = [liveLimiters()];
        giveUp.abort();
        counts.push(await waiting);
        waiting = undefined;
        await collect();
        return [...counts, liveLimiters()];
      });
    `);
    expect(found).toEqual([1, 'gave up', 0]);
  });
});

/** test/wasm has its own: under such a limit there is no module at all. */
const canLimit = process.platform === 'linux' && !process.env.ROLLGATE_SANITIZED && hasAddon;
const whereLimited = canLimit ? test : test.skip;

whereLimited('memory that is not there makes an attempt fail, and nothing is recorded', () => {
  const program = `
    const buffers = [];
    try { for (;;) buffers.push(new ArrayBuffer(2 ** 26)); } catch {}
    buffers.pop(); // for Node itself: less than the log needs to grow
    gc();
    const limiter = require('rollgate')({ interval: 3_600_000, maxInInterval: 2 ** 31 });
    const codes = [];
    let allowed = 0;
    try { for (;;) { limiter('a'); allowed++; } } catch ({ code }) { codes.push(code); }
    try { limiter('a'); } catch ({ code }) { codes.push(code); }
    const isAllCounted = limiter.usage('a').used === allowed;
    console.log(JSON.stringify({ codes, isAllCounted, other: limiter('b') }));
  `;
  const command = ['-c', 'ulimit -v 3000000 && exec "$0" --expose-gc -e "$1"', process.execPath];
  const options = { cwd: ROOT, encoding: 'utf8' };
  const { stdout, stderr } = spawnSync('sh', [...command, program], options);
  expect(stderr).toBe('');
  const code = 'ERR_ROLLGATE_MEMORY';
  expect(JSON.parse(stdout)).toEqual({ codes: [code, code], isAllCounted: true, other: 0 });
});

describe('a program with live limiters exits by itself', () => {
  const body = `
    globalThis.kept = [
      RateLimiter({ interval: 1e9, maxInInterval: 1 }),
      RateLimiter({ interval: 1e9, maxInInterval: 1, clock: Date.now }),
      rateLimit({ windowMs: 1e9 }),
      RateLimiter({ interval: 20, maxInInterval: 1 }),
    ];
    kept[0]('a');
    kept[1]('a', () => console.log('called back'));
    kept[0].limit('b').then(() => console.log('resolved'));
    kept[0].attemptMany(['a', 'b']);
    for (let i = 0; i < 2; i++) kept[3].wait('a').then(() => console.log('let in'));
    process.on('exit', (code) => console.log('exit', code, process.getActiveResourcesInfo().length));
  `;
  test('with calls that are waited for and called back', async () => {
    const load = "const RateLimiter = require('rollgate'); const { rateLimit } = RateLimiter;";
    const { code, stdout, stderr } = await runProgram(`${load}\n${body}`);
    const lines = stdout.trim().split('\n').sort();
    expect([code, stderr]).toEqual([0, '']);
    const exit = expect.stringMatching(/^exit 0 /);
    expect(lines).toEqual(['called back', exit, 'let in', 'let in', 'resolved']);
  });

  test('through process.exit, an exception, and in the middle of a call', async () => {
    const load = "const limiter = require('rollgate')({ interval: 1e9, maxInInterval: 1";
    const ends = [
      [`${load} }); limiter('a'); process.exit(7);`, 7],
      [`${load} }); limiter('a'); throw new Error('mine');`, 1],
      [`${load}, clock: () => process.exit(8) }); limiter('a');`, 8],
      [`${load} }); limiter('a', () => process.exit(9));`, 9],
      [`${load} }); process.on('exit', () => limiter('a')); limiter('a');`, 0],
    ];
    for (const [source, code] of ends) {
      expect(await runProgram(source)).toMatchObject({ code, signal: null });
    }
  });
});

describe('worker threads', () => {
  const PROGRAM = path.join(ROOT, 'test/support/worker-program.js');
  const MANY = casesOf(20);

  const start = (task, data) => new Worker(PROGRAM, { workerData: { task, ...data } });

  // A native call that fails because its thread is to end must not take the process along: hence a process
  // of its own, and moments spread over loading, creating and using.
  test('a worker can be terminated at any moment while it loads, creates and uses limiters', async () => {
    const rounds = 2 * MANY;
    const source = `
      const { Worker } = require('node:worker_threads');
      const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
      (async () => {
        for (let i = 0; i < ${rounds}; i++) {
          const making = new Worker(${JSON.stringify(PROGRAM)}, { workerData: { task: 'make' } });
          const loading = new Worker(${JSON.stringify(PROGRAM)}, { workerData: { task: 'make' } });
          await Promise.all([
            new Promise((resolve) => making.once('message', resolve)).then(() => later(i % 4)),
            later(10 + ((i * 7) % 60)).then(() => loading.terminate()),
          ]);
          await making.terminate();
        }
        console.log(JSON.stringify('lives'));
      })();
    `;
    expect(await askProgram(source)).toBe('lives');
  });

  test('each thread counts for itself, and the main thread is not disturbed', async () => {
    const limiter = RateLimiter({ interval: 1e9, maxInInterval: 1, clock: () => 0 });
    limiter('a');
    const worker = start('serve');
    const answers = [];
    worker.on('message', (answer) => answers.push(answer));
    for (let i = 0; i < 4; i++) worker.postMessage('a');
    worker.postMessage('stop');
    for (let i = 0; i < 1000; i++) {
      limiter(i);
      if (i % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await once(worker, 'exit');
    expect(answers.map(([, isAllowed]) => isAllowed)).toEqual([true, true, true, false]);
    expect(limiter('a')).toBe(1e9);
    expect(limiter.stats()).toMatchObject({ keys: 1001, allowed: 1001, blocked: 1 });
  });

  test('what workers had is freed when they end, however they end', async () => {
    const found = await ask(`
      const { once } = require('node:events');
      const { Worker } = require('node:worker_threads');
      const start = (task, clock) => new Worker('./test/support/worker-program.js', { workerData: { task, clock } });
      main(async () => {
        globalThis.kept = [1, 2, 3].map(used);
        const levels = [liveLimiters()];
        for (let i = 0; i < ${Math.ceil(MANY / 5)}; i++) {
          const spinning = [start('spin'), start('spin', true)]; // by its own clock, and by a user's
          await Promise.all(spinning.map((worker) => once(worker, 'message')));
          if (i === 0) levels.push(liveLimiters());
          await Promise.all(spinning.map((worker) => worker.terminate()));
          await once(start('use'), 'exit');
          const failing = start('fail').on('error', () => {});
          await new Promise((resolve) => failing.once('exit', resolve));
        }
        return [...levels, liveLimiters(), kept[0]('a')];
      });
    `);
    const during = hasAddon ? 23 : 3; // each thread has a WebAssembly instance of its own
    expect(found).toEqual([3, during, 3, 0]);
  });
});
