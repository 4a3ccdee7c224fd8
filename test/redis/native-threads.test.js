// The native client in worker threads: used, terminated at any moment, nothing left behind.
'use strict';

const { once } = require('node:events');
const path = require('node:path');
const { Worker } = require('node:worker_threads');
const { clientsNamed, nativeLimiter } = require('../support/native-redis');
const { startRedis } = require('../support/redis-server');
const { askProgram } = require('../support/run-program');
const peers = require('../support/tcp-peers');
const { waitUntil } = require('../support/wait-until');

const PROGRAM = path.join(__dirname, '..', 'support', 'worker-program.js');
const ROUNDS = process.env.ROLLGATE_SANITIZED ? 10 : 30;

let server;

beforeAll(async () => {
  server = await startRedis();
});

const connectionsGone = (name) =>
  waitUntil('their connections are gone', async () => {
    return (await clientsNamed(server, name)).length === 0;
  });

test('workers count together, and end by themselves', async () => {
  const workerData = {
    task: 'use',
    calls: 500,
    namespace: 'together',
    redis: { url: server.url, connectionName: 'use' },
  };
  const workers = Array.from({ length: 4 }, () => new Worker(PROGRAM, { workerData }));
  const ends = workers.map((worker) => once(worker, 'exit'));
  const answers = await Promise.all(workers.map((worker) => once(worker, 'message')));
  expect(answers).toEqual([[true], [true], [true], [true]]);
  expect(await Promise.all(ends)).toEqual([[0], [0], [0], [0]]);
  const limiter = nativeLimiter(server.url, { maxInInterval: 1e6, namespace: 'together' });
  expect((await limiter.peek('a')).limits[0].used).toBe(2001);
  await Promise.all([limiter.close(), connectionsGone('use')]);
});

// A crash must not take the test along: hence a process of its own.
test('a worker can be terminated with calls under way, whatever the state of its connections', async () => {
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
    const workerData = ${JSON.stringify({ task: 'call', namespace: 'terminated', redis })};
    const terminateMany = async (start) => {
      for (let i = start; i < ${ROUNDS}; i += 3) {
        const worker = new Worker(${JSON.stringify(PROGRAM)}, { workerData });
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
