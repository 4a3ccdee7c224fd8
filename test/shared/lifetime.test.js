// Limiters in shared memory come and go: what they held of a region is given back, however they end.
'use strict';

const { askProgram } = require('../support/run-program');
const { ATTACHMENTS_OF, newName } = require('../support/shared-regions');
const { slow } = require('../support/tiers');

const MANY = process.env.ROLLGATE_SANITIZED ? 4 : 15;
const SMALL = { interval: 1e6, maxInInterval: 5, maxKeys: 50 };

/** What the programs below share. */
const PRELUDE = `
  const { once } = require('node:events');
  const { Worker } = require('node:worker_threads');
  const RateLimiter = require('rollgate');
  const { liveLimiters } = require('./lib/native/addon').loadAddon();
  ${ATTACHMENTS_OF}
  const tick = () => new Promise((resolve) => setImmediate(resolve));
  async function collect() {
    for (let i = 0; i < 10; i++) { gc(); await tick(); }
  }
  async function main(program) {
    console.log(JSON.stringify(await program()));
  }
`;

/** Runs a program with OPTIONS for a region of its own. */
function ask(program) {
  const shared = newName();
  const options = `
    const name = '${shared}';
    const OPTIONS = ${JSON.stringify({ ...SMALL, shared })};
  `;
  return askProgram(PRELUDE + options + program, { flags: ['--expose-gc'] });
}

const none = { maps: 0, files: 0 };
const one = { maps: 1, files: 1 };

test('an attachment is one mapping and one open file, until close', async () => {
  const found = await ask(`
    main(async () => {
      const limiter = RateLimiter(OPTIONS);
      const seen = [attachmentsOf(name)];
      limiter('a'); seen.push(attachmentsOf(name));
      await limiter.close(); seen.push(attachmentsOf(name));
      await limiter.close();
      return seen;
    });
  `);
  expect(found).toEqual([none, one, none]);
});

slow.describe('a dropped limiter lets go of its region', () => {
  test('whatever was done with it, or refers to it', async () => {
    const found = await ask(`
      process.removeAllListeners('warning');
      const slotsOf = () => RateLimiter.ConcurrencyLimiter({ max: 20, maxKeys: 50, shared: name + '-slots' });
      const makers = {
        called() { const limiter = RateLimiter(OPTIONS); limiter('a'); limiter.attempt('b'); },
        neverCalled() { RateLimiter(OPTIONS); },
        referringToItself() { const limiter = RateLimiter(OPTIONS); limiter.self = limiter; limiter('a'); },
        thatDroppedIds() { const limiter = RateLimiter(OPTIONS); for (let i = 0; i < 200; i++) limiter(i); },
        refused() { try { RateLimiter({ ...OPTIONS, interval: 7 })('a'); } catch {} },
        withItsDecisions() { const limiter = RateLimiter(OPTIONS); limiter.own = limiter.attempt(1); },
        ofSlots() { slotsOf().acquire('a').release(); },
        ofSlotsThatHeldOne() { slotsOf().acquire('a'); },
        ofSlotsThatHeldOneWithASignal() { slotsOf().acquire('a').lost.onabort = () => {}; },
        withAClockThatRefersToIt() {
          const clock = () => (limiter ? 1 : 2);
          const limiter = RateLimiter({ ...OPTIONS, shared: name + '-clock', clock });
          limiter('a');
        },
      };
      main(async () => {
        const left = {};
        for (const [what, make] of Object.entries(makers)) {
          for (let i = 0; i < 20; i++) make();
          await collect();
          const { maps, files } = attachmentsOf(name);
          left[what] = liveLimiters() + maps + files;
        }
        return left;
      });
    `);
    expect(Object.keys(found)).toHaveLength(10);
    for (const left of Object.values(found)) expect(left).toBe(0);
  });

  test('but not while it is in use, or a decision of it', async () => {
    const found = await ask(`
      main(async () => {
        let kept = RateLimiter(OPTIONS).attempt('a');
        await collect();
        const seen = [attachmentsOf(name)];
        kept = undefined;
        await collect();
        return [...seen, attachmentsOf(name)];
      });
    `);
    expect(found).toEqual([one, none]);
  });

  test('soon enough for others to attach, without anybody asking for collection', async () => {
    const found = await ask(`
      main(async () => {
        let most = 0;
        for (let i = 0; i < ${MANY * 100}; i++) {
          RateLimiter(OPTIONS)(i % 7);
          if (i % 50 === 0) { most = Math.max(most, liveLimiters()); await tick(); }
        }
        return most <= 1000;
      });
    `);
    expect(found).toBe(true);
  });
});

slow.test(
  'a region has room for many limiters at once, and says so when it has no more',
  async () => {
    const found = await ask(`
    main(async () => {
      const limiters = [];
      try {
        for (;;) { limiters.push(RateLimiter(OPTIONS)); limiters.at(-1)('a'); }
      } catch ({ code, message }) {
        await limiters[0].close();
        const last = limiters.at(-1);
        return { code, message, count: limiters.length - 1, again: last('b') };
      }
    });
  `);
    expect(found).toMatchObject({ code: 'ERR_ROLLGATE_SHARED_FULL', again: 0 });
    expect(found.count).toBe(1024);
  },
);

slow.test(
  'workers that end, or are terminated at any moment, also while they attach, take nobody along',
  async () => {
    const found = await ask(`
    const source = \`
      const { workerData } = require('node:worker_threads');
      const RateLimiter = require(process.cwd());
      globalThis.kept = [];
      for (let i = 0; i < workerData.calls; i++) {
        const limiter = RateLimiter(\${JSON.stringify(OPTIONS)});
        limiter('a'); limiter.refund(limiter.attempt(i)); limiter.attemptMany([1, 'x']); limiter.stats();
        if (Math.random() < 0.9) limiter.close();
        else kept.push(limiter);
      }
    \`;
    main(async () => {
      const limiter = RateLimiter(OPTIONS);
      limiter('mine');
      for (let i = 0; i < ${2 * MANY}; i++) {
        const calls = i % 2 === 0 ? 30 : Infinity;
        const worker = new Worker(source, { eval: true, workerData: { calls } });
        worker.on('error', () => {}); // full, for a moment
        const ended = once(worker, 'exit');
        if (calls === Infinity) {
          await new Promise((resolve) => setTimeout(resolve, 20 + (i * 7) % 40));
          await worker.terminate();
        }
        await ended;
      }
      await limiter.clear('mine');
      const answers = Array.from({ length: 6 }, () => limiter('mine') === 0);
      return [liveLimiters(), attachmentsOf(name), answers];
    });
  `);
    expect(found).toEqual([1, one, [true, true, true, true, true, false]]);
  },
);
