// The native client's memory: what an outage piled up is gone when it is over.
'use strict';

const { startRedis } = require('../support/redis-server');
const { askProgram } = require('../support/run-program');

const weighs = process.env.ROLLGATE_SANITIZED ? test.skip : test;
const CALLS = 10_000;
const CODES = ['ERR_ROLLGATE_REDIS_TIMEOUT', 'ERR_ROLLGATE_REDIS_UNREACHABLE'];

/** Rounds of calls that an outage cuts off; tells how they ended and what memory was in use after each. */
const program = (rounds, begin, end) => `
  const RateLimiter = require('rollgate');
  const { startRedis } = require('./test/support/redis-server');
  const { waitUntil } = require('./test/support/wait-until');
  (async () => {
    const server = await startRedis();
    const redis = { url: server.url, retry: { min: 20, max: 50 } };
    const limiter = RateLimiter({ redis, interval: 60_000, maxInInterval: 1e6 });
    const codeOf = (promise) => promise.then(String, ({ code }) => code);
    const codes = new Set();
    const heap = [];
    const rss = [];
    let longestMs = 0;
    for (let round = 0; round < ${rounds}; round++) {
      await waitUntil('it serves', async () => (await limiter('a')) === 0);
      const began = performance.now();
      const calls = Array.from({ length: ${CALLS} }, (_, i) => codeOf(limiter('id ' + i)));
      ${begin}
      for (const code of await Promise.all(calls)) codes.add(code);
      longestMs = Math.max(longestMs, performance.now() - began);
      ${end}
      gc();
      heap.push(process.memoryUsage().heapUsed);
      rss.push(process.memoryUsage().rss);
    }
    await waitUntil('it serves', async () => (await limiter('a')) === 0);
    const { pending } = limiter.stats().connection;
    await server.dispose();
    console.log(JSON.stringify({ codes: [...codes].sort(), heap, rss, longestMs, pending }));
  })();
`;

const growth = (sizes) => (sizes.at(-1) - sizes[2]) / 2 ** 20;

weighs.each([
  ['is killed', 'await server.stop();', 'await server.restart();', CODES],
  ['freezes', 'await server.freeze();', 'server.thaw();', CODES],
])(
  'a server that %s with 10,000 calls under way leaves nothing behind',
  async (_what, begin, end) => {
    const source = program(7, begin, end);
    const seen = await askProgram(source, { flags: ['--expose-gc'] });
    for (const code of seen.codes) expect(['0', ...CODES]).toContain(code);
    expect(seen.codes.some((code) => code !== '0')).toBe(true);
    expect(seen.pending).toBe(0);
    expect(seen.longestMs).toBeLessThan(500 + 1500);
    expect(growth(seen.heap)).toBeLessThan(1);
    expect(growth(seen.rss)).toBeLessThan(16);
  },
);

weighs('two hundred thousand checks leave nothing behind', async () => {
  const server = await startRedis();
  const source = `
    const RateLimiter = require('rollgate');
    const redis = { url: '${server.url}', commandTimeout: 5000 };
    const limiter = RateLimiter({ redis, interval: 1000, maxInInterval: 5 });
    const heap = [];
    const rss = [];
    (async () => {
      for (let round = 0; round < 20; round++) {
        for (let i = 0; i < 10; i++) {
          await Promise.all(Array.from({ length: 1000 }, (_, id) => limiter(id)));
        }
        gc();
        heap.push(process.memoryUsage().heapUsed);
        rss.push(process.memoryUsage().rss);
      }
      console.log(JSON.stringify({ heap, rss }));
    })();
  `;
  const { heap, rss } = await askProgram(source, { flags: ['--expose-gc'] });
  expect(growth(heap)).toBeLessThan(1);
  expect(growth(rss)).toBeLessThan(16);
});
