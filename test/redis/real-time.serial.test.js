// What depends on real time: busy event loops, memory. Nothing else may run beside it.
'use strict';

const { spawnSync } = require('node:child_process');
const { setTimeout: pause } = require('node:timers/promises');
const RateLimiter = require('../..');
const { outcomeOf, waitUntil } = require('../support/outcome');
const { EACH_CLIENT, nativeLimiter, openings, scriptRuns } = require('../support/redis-clients');
const { redisForTests } = require('../support/redis-server');
const { askProgram } = require('../support/run-program');
const { patient } = require('../support/tiers');

const TIMEOUT = 'ERR_ROLLGATE_REDIS_TIMEOUT';
const PLAIN = { ...process.env, LD_PRELOAD: '' };
const times = (count, make) => Array.from({ length: count }, (_, i) => make(i));
const server = redisForTests();

afterEach(() => {
  if (server.frozen) server.thaw();
});

const limiterAt = (redis) => nativeLimiter({ url: server.url, ...redis }, { maxInInterval: 1e6 });

describe('a program that is busy for longer than commandTimeout', () => {
  const commandTimeout = patient(300);
  const { using, closeAll } = openings();
  afterAll(closeAll);

  function blockFor(ms) {
    const until = performance.now() + ms;
    while (performance.now() < until);
  }

  const UNTIL_RUN = `
    const [port, wanted] = process.argv.slice(1).map(Number);
    const socket = require('node:net').connect(port, '127.0.0.1').setEncoding('latin1');
    const ask = () => socket.write('INFO commandstats\\r\\n');
    let text = '';
    socket.on('data', (part) => {
      text += part;
      if (!text.endsWith('\\r\\n\\r\\n')) return;
      const runs = Array.from(text.matchAll(/cmdstat_eval(?:sha)?:calls=(\\d+)/g), ([, n]) => Number(n));
      if (runs.reduce((sum, one) => sum + one, 0) >= wanted) process.exit();
      text = '';
      ask();
    });
    ask();
  `;

  /** Blocks the event loop until the server has run so many scripts. */
  function blockUntilRun(wanted) {
    const args = ['-e', UNTIL_RUN, String(server.port), String(wanted)];
    const { status } = spawnSync(process.execPath, args, { env: PLAIN, timeout: patient(15_000) });
    expect(status).toBe(0);
  }

  test.each(EACH_CLIENT)('%s: gets answers that came meanwhile', async (_name, open) => {
    const limiter = RateLimiter({
      redis: { ...using(open(server.url)), commandTimeout },
      interval: 600_000,
      maxInInterval: 1000,
    });
    await waitUntil('it is connected', async () => (await limiter('a')) === 0);
    const runs = (await scriptRuns(server)) + 1; // those of one turn are in one command
    await server.freeze();
    const began = performance.now();
    const calls = times(10, () => limiter('a'));
    await pause(commandTimeout / 10); // they are on their way
    server.thaw();
    blockUntilRun(runs);
    blockFor(began + 2 * commandTimeout - performance.now());
    expect(await Promise.all(calls)).toEqual(calls.map(() => 0));
    await limiter.close();
  });

  test('while it connects gets its answer', async () => {
    for (const host of ['127.0.0.1', 'localhost']) {
      for (const turns of [0, 1, 2, 3]) {
        const call = limiterAt({ url: undefined, host, port: server.port, commandTimeout })('a');
        for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate);
        blockFor(2 * commandTimeout);
        expect(await outcomeOf(call)).toBe(0);
      }
    }
  });

  test('again and again does not put off the deadline for ever', async () => {
    const limiter = limiterAt({ commandTimeout });
    await limiter('a');
    await server.freeze();
    const call = outcomeOf(limiter('a'));
    let isBusy = true;
    const work = () => {
      if (!isBusy) return;
      blockFor(70); // commandTimeout is no multiple of it, so the deadline passes during a turn
      setImmediate(work);
    };
    work();
    expect(await call).toBe(TIMEOUT);
    isBusy = false;
  });
});

(process.env.ROLLGATE_SANITIZED ? describe.skip : describe)('memory', () => {
  const CALLS = 10_000;
  const CODES = [TIMEOUT, 'ERR_ROLLGATE_REDIS_UNREACHABLE'];

  /** Rounds of calls that an outage cuts off; prints how they ended and the memory in use after each. */
  const program = (begin, end) => `
    const RateLimiter = require('rollgate');
    const { startRedis } = require('./test/support/redis-server');
    const { waitUntil } = require('./test/support/outcome');
    (async () => {
      const server = await startRedis();
      const redis = { url: server.url, retry: { min: 20, max: 50 } };
      const limiter = RateLimiter({ redis, interval: 60_000, maxInInterval: 1e6 });
      const codeOf = (promise) => promise.then(String, ({ code }) => code);
      const codes = new Set();
      const heap = [];
      const rss = [];
      for (let round = 0; round < 7; round++) {
        await waitUntil('it serves', async () => (await limiter('a')) === 0);
        const calls = Array.from({ length: ${CALLS} }, (_, i) => codeOf(limiter('id ' + i)));
        ${begin}
        for (const code of await Promise.all(calls)) codes.add(code);
        ${end}
        gc();
        heap.push(process.memoryUsage().heapUsed);
        rss.push(process.memoryUsage().rss);
      }
      await waitUntil('it serves', async () => (await limiter('a')) === 0);
      const { pending } = limiter.stats().connection;
      await server.dispose();
      console.log(JSON.stringify({ codes: [...codes].sort(), heap, rss, pending }));
    })();
  `;

  const growth = (sizes) => (sizes.at(-1) - sizes[2]) / 2 ** 20;

  test.each([
    ['is killed', 'await server.stop();', 'await server.restart();'],
    ['freezes', 'await server.freeze();', 'server.thaw();'],
  ])(
    'a server that %s with 10,000 calls under way leaves nothing behind',
    async (_what, begin, end) => {
      const seen = await askProgram(program(begin, end), { flags: ['--expose-gc'] });
      for (const code of seen.codes) expect(['0', ...CODES]).toContain(code);
      expect(seen.codes.some((code) => code !== '0')).toBe(true);
      expect(seen.pending).toBe(0);
      expect(growth(seen.heap)).toBeLessThan(1);
      expect(growth(seen.rss)).toBeLessThan(16);
    },
  );
});
