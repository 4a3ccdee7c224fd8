// Worker threads and processes on one namespace: they get the limit together, end at any moment, leave nothing behind.
'use strict';

const { once } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const { Worker } = require('node:worker_threads');
const { waitUntil } = require('../support/outcome');
const { clientsNamed, nativeLimiter, REDIS_CLIENTS } = require('../support/redis-clients');
const { startRedis } = require('../support/redis-server');
const { askProgram, runProgram } = require('../support/run-program');
const peers = require('../support/tcp-peers');
const { patient } = require('../support/tiers');

const WORKER = path.join(__dirname, '..', 'support', 'worker-program.js');
const ROUNDS = process.env.ROLLGATE_SANITIZED ? 10 : 30;
const MAX = 200;
const IDS = Array.from({ length: 50 }, (_, i) => `id ${i}`);
const LONG = patient(15_000);

let server;

beforeAll(async () => {
  server = await startRedis();
});

describe('worker threads', () => {
  const connectionsGone = (name) =>
    waitUntil('their connections are gone', async () => {
      return (await clientsNamed(server, name)).length === 0;
    });

  test('count together, and end by themselves', async () => {
    const workerData = {
      task: 'useRedis',
      calls: 500,
      namespace: 'together',
      redis: { url: server.url, connectionName: 'use', commandTimeout: LONG },
    };
    const workers = Array.from({ length: 4 }, () => new Worker(WORKER, { workerData }));
    const ends = workers.map((worker) => once(worker, 'exit'));
    const answers = await Promise.all(workers.map((worker) => once(worker, 'message')));
    expect(answers).toEqual([[true], [true], [true], [true]]);
    expect(await Promise.all(ends)).toEqual([[0], [0], [0], [0]]);
    const limiter = nativeLimiter(server.url, { maxInInterval: 1e6, namespace: 'together' });
    expect((await limiter.peek('a')).limits[0].used).toBe(2001);
    await Promise.all([limiter.close(), connectionsGone('use')]);
  });

  // A crash must not take the test along: hence a process of its own.
  test('can be terminated with calls under way, whatever the state of their connections', async () => {
    const [silent, closing] = await Promise.all([peers.silentPeer(), peers.closingPeer()]);
    const redis = [
      { url: server.url, connectionName: 'terminated' },
      { url: silent.url, commandTimeout: 20 },
      { url: closing.url, commandTimeout: 20, retry: { min: 1, max: 5 } },
      { host: 'localhost', port: server.port, connectionName: 'terminated' },
      { host: 'localhost', port: 1, commandTimeout: 20, retry: { min: 1, max: 5 } },
      { host: 'no-such-host.invalid', commandTimeout: 20, retry: { min: 1, max: 5 } },
      { cluster: [server.url, silent.url], commandTimeout: 20 },
    ];
    const source = `
      const { Worker } = require('node:worker_threads');
      const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
      const workerData = ${JSON.stringify({ task: 'callRedis', namespace: 'terminated', redis })};
      const terminateMany = async (start) => {
        for (let i = start; i < ${ROUNDS}; i += 3) {
          const worker = new Worker(${JSON.stringify(WORKER)}, { workerData });
          await new Promise((resolve) => worker.once('message', resolve));
          await later((i * 7) % 40);
          await worker.terminate();
        }
      };
      Promise.all([0, 1, 2].map(terminateMany)).then(() => console.log(JSON.stringify('lives')));
    `;
    expect(await askProgram(source)).toBe('lives');
    await connectionsGone('terminated');
  });
});

describe('processes', () => {
  /** Asks for each of its ids, by turns in several ways; prints how often each was allowed. */
  const racer = (ids, namespace, attempts) => `
    const RateLimiter = require('rollgate');
    const ids = ${JSON.stringify(ids)};
    const limiter = RateLimiter({
      redis: { url: '${server.url}', commandTimeout: ${LONG}, retry: { min: 5, max: 20 } },
      namespace: '${namespace}',
      interval: 3_600_000,
      maxInInterval: ${MAX},
      countBlocked: false,
    });
    const allowed = Object.fromEntries(ids.map((id) => [id, 0]));
    const ways = [
      async (id) => { if ((await limiter(id)) === 0) allowed[id] += 1; },
      async (id) => { if (!(await limiter.limit(id))) allowed[id] += 1; },
      async (id) => { if ((await limiter.attempt(id, { cost: 3 })).allowed) allowed[id] += 3; },
      async (id) => {
        for (const decision of await limiter.attemptMany([id, id])) {
          if (decision.allowed) allowed[id] += 1;
        }
      },
      async (id) => {
        const decision = await limiter.attempt(id);
        if (decision.allowed && !(await limiter.refund(decision))) allowed[id] += 1e6;
      },
      (id) => new Promise((resolve, reject) => limiter(id, (error, timeLeft) => {
        if (error) return reject(error);
        if (timeLeft === 0) allowed[id] += 1;
        resolve();
      })),
    ];
    (async () => {
      for (let i = 0; i < ${attempts}; i += 10) {
        await Promise.all(ids.flatMap((id, at) =>
          Array.from({ length: 10 }, (_, j) => ways[(i + j + at) % ways.length](id))));
      }
      // What was refunded late may be had again.
      for (const id of ids) while ((await limiter(id)) === 0) allowed[id] += 1;
      console.log(JSON.stringify(allowed));
    })();
  `;

  test.each([
    ['one id', ['hot'], 2000],
    ['fifty ids', IDS, 150],
  ])('four processes that race for %s', async (namespace, ids, attempts) => {
    const sources = Array.from({ length: 4 }, () => racer(ids, namespace, attempts));
    const results = await Promise.all(sources.map((source) => askProgram(source)));
    const totals = ids.map((id) => [id, results.reduce((sum, own) => sum + own[id], 0)]);
    expect(totals).toEqual(ids.map((id) => [id, MAX]));
  });

  /** A process that hurries through attempts and prints how many were allowed. */
  const racerThrough = (clientName) => `
    const RateLimiter = require('rollgate');
    const { REDIS_CLIENTS } = require('./test/support/redis-clients');
    const redis = {
      ...REDIS_CLIENTS[${JSON.stringify(clientName)}].open('${server.url}'),
      commandTimeout: ${LONG},
    };
    const limit = { interval: 3_600_000, maxInInterval: 100, countBlocked: false };
    (async () => {
      const limiter = RateLimiter({ ...limit, redis, namespace: 'clients' });
      let allowed = 0;
      for (let i = 0; i < 10; i++) {
        const answers = await Promise.all(Array.from({ length: 20 }, () => limiter('a')));
        allowed += answers.filter((timeLeft) => timeLeft === 0).length;
      }
      console.log(allowed);
      process.exit();
    })();
  `;

  test('processes that race through different clients', async () => {
    const names = Object.keys(REDIS_CLIENTS).filter((name) => !/ [345]$/.test(name));
    const racing = [...names, ...names].map((name) => askProgram(racerThrough(name)));
    const allowed = await Promise.all(racing);
    expect(allowed.reduce((sum, own) => sum + own, 0)).toBe(100);
  });

  const waiter = (count) => `
    const RateLimiter = require('rollgate');
    const limiter = RateLimiter({
      redis: { url: '${server.url}', commandTimeout: ${LONG} },
      namespace: 'racers',
      interval: 50,
      maxInInterval: 5,
    });
    (async () => {
      const waiting = Array.from({ length: ${count} }, (_, i) => limiter.wait('a').then(() => i));
      const order = [];
      for (const one of waiting) one.then((i) => order.push(i));
      await Promise.all(waiting);
      const { allowed, blocked } = limiter.stats();
      console.log(JSON.stringify({ allowed, blocked, inOrder: order.every((i, at) => i === at) }));
    })();
  `;

  test('processes that wait for one id are all let in, each in its order, and end by themselves', async () => {
    const results = await Promise.all(Array.from({ length: 3 }, () => askProgram(waiter(12))));
    for (const { allowed, blocked, inOrder } of results) {
      expect({ allowed, inOrder }).toEqual({ allowed: 12, inOrder: true });
      // Each refusal is a race lost to an action of another process.
      expect(blocked).toBeLessThanOrEqual(24);
    }
  });
});

describe('the servers that tests start end, and their folders go, with', () => {
  /** Whether a process has ended, even if nobody took note yet (which leaves a zombie). */
  function hasEnded(pid) {
    const status = `/proc/${pid}/stat`;
    if (fs.existsSync(status)) return / Z /.test(fs.readFileSync(status, 'utf8'));
    try {
      return !process.kill(pid, 0);
    } catch {
      return true;
    }
  }

  test.each([
    ['that comes to its end', ''],
    ['that exits', 'process.exit(0);'],
    ['that fails', 'throw new Error("on purpose");'],
    ['that is killed', 'process.kill(process.pid, "SIGKILL");'],
    [
      'that is killed with the server frozen',
      'await server.freeze(); process.kill(process.pid, 9);',
    ],
  ])('a program %s', async (_, end) => {
    const { stdout, stderr } = await runProgram(`
      const { startRedis } = require('./test/support/redis-server');
      (async () => {
        const server = await startRedis();
        const [, folder] = await server.command('CONFIG', 'GET', 'dir');
        require('node:fs').writeSync(1, JSON.stringify({ pid: server.pid, folder }));
        ${end}
      })();
    `);
    expect(stderr.replace(/.*on purpose[\s\S]*/, '')).not.toMatch(/Error/);
    const { pid, folder } = JSON.parse(stdout);
    await waitUntil(
      'its server and folder are gone',
      () => hasEnded(pid) && !fs.existsSync(folder),
    );
  });
});
