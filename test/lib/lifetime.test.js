// Limiters come and go: dropped ones are freed with all they hold, live ones keep no program up.
'use strict';

const { askProgram, runProgram } = require('../support/run-program');

const weighs = process.env.ROLLGATE_SANITIZED ? test.skip : test;

/** What the programs below share. */
const PRELUDE = `
  const RateLimiter = require('rollgate');
  const { liveLimiters } = require('./lib/native').loadAddon();
  const OPTIONS = { interval: 1e6, maxInInterval: 5 };
  const tick = () => new Promise((resolve) => setImmediate(resolve));
  async function collect() {
    for (let i = 0; i < 10; i++) { gc(); await tick(); }
  }
  async function main(program) {
    console.log(JSON.stringify(await program()));
  }
`;
const ask = (program) => askProgram(PRELUDE + program, { flags: ['--expose-gc'] });

describe('a dropped limiter is freed', () => {
  test.each([
    ['that was never called', 'RateLimiter(OPTIONS);'],
    [
      'that was called',
      "const limiter = RateLimiter(OPTIONS); limiter('a'); limiter.attempt('b');",
    ],
    [
      'whose clock refers to it',
      "let limiter; limiter = RateLimiter({ ...OPTIONS, clock: () => (limiter ? 1 : 2) }); limiter('a');",
    ],
    [
      'that refers to itself',
      "const limiter = RateLimiter(OPTIONS); limiter.self = limiter; limiter('a');",
    ],
    [
      'that was called back, and whose callback refers to it',
      "const limiter = RateLimiter(OPTIONS); limiter('a', () => limiter('b')); limiter(() => limiter);",
    ],
    [
      'whose promises are settled',
      "const limiter = RateLimiter(OPTIONS); limiter.limit('a'); limiter.clear();",
    ],
    [
      'that is closed',
      "const limiter = RateLimiter(OPTIONS); limiter('a'); limiter.close(); limiter.close();",
    ],
    ['of a subclass', "class Mine extends RateLimiter { own = this; } new Mine(OPTIONS)('a');"],
    [
      'that dropped ids',
      'const limiter = RateLimiter({ ...OPTIONS, maxKeys: 1 }); limiter(1); limiter(2);',
    ],
    ['whose construction failed', 'try { RateLimiter({ ...OPTIONS, maxKeys: 0 }); } catch {}'],
    ['whose calls failed', 'const limiter = RateLimiter(OPTIONS); try { limiter({}); } catch {}'],
    [
      'with its decisions',
      'const limiter = RateLimiter(OPTIONS); limiter.decisions = limiter.attemptMany([1, 2, 3]);',
    ],
    [
      'in a WeakMap keyed by it',
      'const limiter = RateLimiter(OPTIONS); (globalThis.weak ??= new WeakMap()).set(limiter, limiter);',
    ],
    [
      'behind a middleware',
      'const middleware = RateLimiter.rateLimit(OPTIONS); middleware.self = middleware;',
    ],
  ])('%s', async (_kind, code) => {
    const live = await ask(`
      main(async () => {
        process.on('warning', () => {});
        for (let i = 0; i < 50; i++) (() => { ${code} })();
        const during = liveLimiters();
        await collect();
        return [during <= 50, liveLimiters()];
      });
    `);
    expect(live).toEqual([true, 0]);
  });

  test('but not while anything of it is in use', async () => {
    const found = await ask(`
      main(async () => {
        const kept = [RateLimiter(OPTIONS), RateLimiter(OPTIONS)];
        kept.push(RateLimiter(OPTIONS).attempt('a')); // a Decision can still be refunded
        kept.push(RateLimiter(OPTIONS).bind(null, 'a'));
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

  test('and what its functions lean on lives as long as they', async () => {
    const found = await ask(`
      main(async () => {
        const free = RateLimiter({ ...OPTIONS, maxInInterval: 1, clock: () => ({}).none ?? 0 });
        for (let i = 0; i < 50; i++) RateLimiter(OPTIONS)('a');
        await collect();
        const answers = [free('a'), free('a') > 0];
        try { free({}); } catch ({ code }) { answers.push(code); }
        free('b', () => answers.push('called'));
        gc();
        await tick();
        return answers;
      });
    `);
    expect(found).toEqual([0, true, 'ERR_ROLLGATE_ID', 'called']);
  });
});

describe('memory', () => {
  weighs('comes back with close and with clearAll', async () => {
    const found = await ask(`
      main(async () => {
        const fill = (limiter) => { for (let i = 0; i < 600_000; i++) limiter(i); return limiter; };
        await collect();
        const base = process.memoryUsage().rss;
        const used = [];
        const note = () => used.push((process.memoryUsage().rss - base) / 1e6);
        const cleared = RateLimiter(OPTIONS);
        for (let round = 0; round < 3; round++) {
          const closed = fill(RateLimiter(OPTIONS)); note();
          await closed.close();
          fill(cleared); note();
          await cleared.clearAll();
        }
        return used;
      });
    `);
    // What comes back need not go back to the system, but is there for the next.
    const [first, ...later] = found;
    expect(first).toBeGreaterThan(20);
    for (const fullMb of later) expect(fullMb).toBeLessThan(first + 12);
  });

  weighs(
    'of limiters that are made and dropped stays bounded without asking for collection',
    async () => {
      const grownMb = await ask(`
      main(async () => {
        const fill = (limiter) => { for (let i = 0; i < 50_000; i++) limiter(i); };
        fill(RateLimiter(OPTIONS));
        const base = process.memoryUsage().rss;
        let peak = base;
        for (let i = 0; i < 100; i++) {
          fill(RateLimiter(OPTIONS));
          peak = Math.max(peak, process.memoryUsage().rss);
          await tick();
        }
        return (peak - base) / 1e6;
      });
    `);
      expect(grownMb).toBeLessThan(200); // all at once: more than 300
    },
  );

  weighs('of ten thousand limiters is small, and they are made quickly', async () => {
    const [bytesEach, ms, live] = await ask(`
      main(async () => {
        await collect();
        const base = process.memoryUsage().rss;
        const start = performance.now();
        const limiters = Array.from({ length: 10_000 }, () => RateLimiter(OPTIONS));
        for (const limiter of limiters) limiter('a');
        const ms = performance.now() - start;
        const live = liveLimiters();
        return [(process.memoryUsage().rss - base) / limiters.length, ms, live];
      });
    `);
    expect(live).toBe(10_000);
    expect(bytesEach).toBeLessThan(30_000);
    expect(ms).toBeLessThan(5000);
  });

  weighs('of one id does not grow while it is hammered in any form', async () => {
    const grownMb = await ask(`
      main(async () => {
        const limiter = RateLimiter(OPTIONS);
        const hammer = async (count) => {
          for (let i = 0; i < count; i++) {
            limiter('a');
            limiter.attempt('a');
            if (i % 100 === 0) { limiter('a', () => {}); await limiter.limit('a'); }
          }
        };
        await hammer(20_000);
        await collect();
        const base = process.memoryUsage();
        await hammer(200_000);
        await collect();
        const now = process.memoryUsage();
        return (now.heapUsed - base.heapUsed + now.external - base.external) / 1e6;
      });
    `);
    expect(grownMb).toBeLessThan(2);
  });
});

describe('a program with live limiters exits by itself', () => {
  const body = `
    globalThis.kept = [
      RateLimiter({ interval: 1e9, maxInInterval: 1 }),
      RateLimiter({ interval: 1e9, maxInInterval: 1, clock: Date.now }),
      rateLimit({ windowMs: 1e9 }),
    ];
    kept[0]('a');
    kept[1]('a', () => console.log('called back'));
    kept[0].limit('b').then(() => console.log('resolved'));
    kept[0].attemptMany(['a', 'b']);
    process.on('exit', (code) => console.log('exit', code, process.getActiveResourcesInfo().length));
  `;
  test.each([
    ['commonjs', `const RateLimiter = require('rollgate'); const { rateLimit } = RateLimiter;`],
    ['module', `import RateLimiter, { rateLimit } from 'rollgate';`],
  ])('loaded as %s', async (type, load) => {
    const { code, stdout, stderr } = await runProgram(`${load}\n${body}`, { type });
    const lines = stdout.trim().split('\n').sort();
    expect([code, stderr]).toEqual([0, '']);
    expect(lines).toEqual(['called back', expect.stringMatching(/^exit 0 /), 'resolved']);
  });

  test('after loading alone', async () => {
    expect(await runProgram("require('rollgate');")).toMatchObject({ code: 0, stderr: '' });
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

  test('and no limiter makes a handle, a timer or a listener', async () => {
    const found = await ask(`
      main(async () => {
        const events = ['exit', 'beforeExit', 'warning', 'uncaughtException', 'SIGINT'];
        const state = () => [
          process.getActiveResourcesInfo().sort().join(),
          process._getActiveHandles().length,
          process._getActiveRequests().length,
          ...events.map((event) => process.listenerCount(event)),
        ];
        const before = state();
        const limiters = Array.from({ length: 100 }, () => RateLimiter(OPTIONS));
        for (const limiter of limiters) { limiter('a'); limiter.attempt('b'); await limiter.limit('c'); }
        return [before, state()];
      });
    `);
    expect(found[1]).toEqual(found[0]);
  });
});
