// Limiters in worker threads: loaded, used, terminated at any moment, beside a main thread that goes on.
'use strict';

const { once } = require('node:events');
const path = require('node:path');
const { Worker } = require('node:worker_threads');
const RateLimiter = require('../..');
const { askProgram } = require('../support/run-program');

const PROGRAM = path.join(__dirname, '..', 'support', 'worker-program.js');
const MANY = process.env.ROLLGATE_SANITIZED ? 5 : 20;

const start = (task, data) => new Worker(PROGRAM, { workerData: { task, ...data } });

test('a worker uses limiters and ends by itself', async () => {
  const worker = start('use');
  const ended = once(worker, 'exit');
  expect((await once(worker, 'message'))[0]).toEqual([0, 0, true, null, true]);
  expect(await ended).toEqual([0]);
});

test('many workers, one after the other and at once', async () => {
  for (let round = 0; round < 3; round++) {
    const workers = Array.from({ length: Math.ceil(MANY / 3) }, () => start('use'));
    const codes = await Promise.all(workers.map((worker) => once(worker, 'exit')));
    expect(codes.every(([code]) => code === 0)).toBe(true);
  }
});

test.each([
  ['its own clock', false],
  ["a user's clock", true],
])('a worker can be terminated in the middle of a hot loop, with %s', async (_clock, clock) => {
  for (let i = 0; i < MANY / 4; i++) {
    const workers = [start('spin', { clock }), start('spin', { clock })];
    await Promise.all(workers.map((worker) => once(worker, 'message')));
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
});

// A native call that fails because its thread is to end must not take the process along: hence a process
// of its own, and moments spread over loading, creating and using.
test('a worker can be terminated at any moment while it loads, creates and uses limiters', async () => {
  const rounds = MANY * 2;
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

test('a worker can be terminated before it has loaded anything', async () => {
  for (let i = 0; i < MANY / 2; i++) await start('spin').terminate();
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
  expect(answers).toEqual([
    ['a', true],
    ['a', true],
    ['a', true],
    ['a', false],
  ]);
  expect(limiter('a')).toBe(1e9);
  expect(limiter.stats()).toMatchObject({ keys: 1001, allowed: 1001, blocked: 1 });
});

test('messages flow while several workers limit', async () => {
  const workers = Array.from({ length: 3 }, () => start('serve'));
  const counts = await Promise.all(
    workers.map(async (worker) => {
      let allowed = 0;
      worker.on('message', ([, isAllowed]) => {
        if (isAllowed) allowed += 1;
      });
      for (let i = 0; i < 2000; i++) worker.postMessage(i % 100);
      worker.postMessage('stop');
      await once(worker, 'exit');
      return allowed;
    }),
  );
  expect(counts).toEqual([300, 300, 300]);
});

test('an exception in a callback of a worker is an error of that worker alone', async () => {
  const worker = start('fail');
  const [error] = await once(worker, 'error');
  expect(error.message).toBe('mine');
  expect(RateLimiter({ interval: 1, maxInInterval: 1 })('a')).toBe(0);
});

test('a limiter cannot be sent to another thread', () => {
  const limiter = RateLimiter({ interval: 1, maxInInterval: 1 });
  expect(() => structuredClone(limiter)).toThrow(/could not be cloned/);
});

test('what workers had is freed when they end, however they end', async () => {
  const found = await askProgram(
    `
    const { once } = require('node:events');
    const { Worker } = require('node:worker_threads');
    const RateLimiter = require('rollgate');
    const { liveLimiters } = require('./lib/native').loadAddon();
    const start = (task) => new Worker('./test/support/worker-program.js', { workerData: { task } });
    async function main() {
      globalThis.kept = [1, 2, 3].map(() => RateLimiter({ interval: 1e9, maxInInterval: 1 }));
      const levels = [liveLimiters()];
      for (let i = 0; i < ${MANY / 5}; i++) {
        const spinning = [start('spin'), start('spin')];
        await Promise.all(spinning.map((worker) => once(worker, 'message')));
        if (i === 0) levels.push(liveLimiters());
        await Promise.all(spinning.map((worker) => worker.terminate()));
        const using = start('use');
        await once(using, 'exit');
        const failing = start('fail').on('error', () => {});
        await new Promise((resolve) => failing.once('exit', resolve));
      }
      levels.push(liveLimiters(), kept[0]('a'));
      console.log(JSON.stringify(levels));
    }
    main();
  `,
    { flags: ['--expose-gc'] },
  );
  expect(found).toEqual([3, 23, 3, 0]);
});

test('a worker that is the only one to load the package works, and so does loading it twice', async () => {
  const found = await askProgram(`
    const { once } = require('node:events');
    const { Worker } = require('node:worker_threads');
    const start = () => new Worker('./test/support/worker-program.js', { workerData: { task: 'use' } });
    async function main() {
      const codes = [];
      for (let i = 0; i < 3; i++) codes.push((await once(start(), 'exit'))[0]);
      codes.push(require('rollgate')({ interval: 1, maxInInterval: 1 })('a'));
      console.log(JSON.stringify(codes));
    }
    main();
  `);
  expect(found).toEqual([0, 0, 0, 0]);
});
