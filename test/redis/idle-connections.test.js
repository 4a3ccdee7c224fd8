// Connections that the other side closes, or forgets, while the process stands still or asks nothing.
'use strict';

const { once } = require('node:events');
const net = require('node:net');
const { setTimeout: pause } = require('node:timers/promises');
const { outcomeOf, standsStill, waitUntil } = require('../support/outcome');
const { nativeLimiter } = require('../support/redis-clients');
const { pemOf, startRedis, startRedisWithTls } = require('../support/redis-server');
const { serve } = require('../support/run-program');
const peers = require('../support/tcp-peers');
const { startProxy } = require('../support/tcp-proxy');
const { patient } = require('../support/tiers');

const TIMEOUT = 'ERR_ROLLGATE_REDIS_TIMEOUT';

/**
 * A program that connects and then stops itself. Once it goes on, two limiters on its connection ask in the same turn,
 * before the event loop has read anything. It prints how that ended, and how often it connected.
 */
const stoppedProgram = (redis) => `
  const fs = require('node:fs');
  const RateLimiter = require('rollgate');
  const redis = ${JSON.stringify({ commandTimeout: patient(15_000), ...redis })};
  const limiterOf = (namespace) => RateLimiter({ redis, namespace, interval: 60_000, maxInInterval: 100 });
  const limiters = ['one', 'two'].map(limiterOf);
  (async () => {
    await limiters[0]('a');
    fs.writeSync(1, 'connected');
    process.kill(process.pid, 'SIGSTOP');
    for (const end = Date.now() + 200; Date.now() < end; ); // longer than the shortest pause
    const calls = [...limiters, limiters[1]].map((limiter) => limiter('a'));
    const outcomes = await Promise.all(calls.map((call) => call.catch(({ message }) => message)));
    const used = await Promise.all(limiters.map((limiter) => limiter.usage('a').then(({ used }) => used, () => null)));
    const { connections } = limiters[0].stats().connection;
    console.log(JSON.stringify({ outcomes, used, connections }));
  })();
`;

/** What the program prints for whom `cut` closes the connection while it stands still. */
async function afterStandstill(redis, cut) {
  const { child, output, ended } = await serve(['-e', stoppedProgram(redis)], {}, /connected/);
  await standsStill(child.pid);
  await cut();
  child.kill('SIGCONT');
  const { code, stderr } = await ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(output.stdout.replace('connected', ''));
}

const killClients = (server) => () =>
  server.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');

async function startClusterOfOne() {
  const server = await startRedis({ args: ['--cluster-enabled', 'yes'] });
  await server.command('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
  await waitUntil('the cluster serves', async () =>
    (await server.command('CLUSTER', 'INFO')).includes('cluster_state:ok'),
  );
  return server;
}

/** Passes everything on, but not that the server closes. `serverClosed` resolves once it has. */
async function startHalfClosedPeer(port) {
  const upstream = net.connect(port, '127.0.0.1');
  const serverClosed = once(upstream, 'end');
  let isFirst = true;
  const { url } = await peers.listen((socket) => {
    const to = isFirst ? upstream : net.connect(port, '127.0.0.1');
    to.pipe(socket, { end: !isFirst });
    socket.pipe(to);
    isFirst = false;
  });
  return { url, serverClosed };
}

describe('the first calls of a process that stood still succeed on a new connection', () => {
  test.each([
    ['its server closed the connection', () => startRedis(), ({ url }) => ({ url })],
    ['a unix socket was closed', () => startRedis({ unixSocket: true }), ({ url }) => ({ url })],
    ['the node of a cluster closed it', startClusterOfOne, ({ url }) => ({ cluster: [url] })],
  ])('%s', async (_, start, redisOf) => {
    const server = await start();
    const seen = await afterStandstill(redisOf(server), killClients(server));
    expect(seen).toEqual({ outcomes: [0, 0, 0], used: [2, 2], connections: 2 });
  });

  test('something between them reset it', async () => {
    const server = await startRedis();
    const proxy = await startProxy(server.port);
    const seen = await afterStandstill({ url: proxy.url }, () => proxy.reset());
    expect(seen).toEqual({ outcomes: [0, 0, 0], used: [2, 2], connections: 2 });
  });

  test('its server ended TLS, and the connection stayed open', async () => {
    const { server, port } = await startRedisWithTls();
    const peer = await startHalfClosedPeer(port);
    const tls = { ca: pemOf('ca.pem'), servername: 'localhost' };
    const seen = await afterStandstill(
      { url: peer.url.replace('redis', 'rediss'), tls },
      async () => {
        await killClients(server)();
        await peer.serverClosed;
      },
    );
    expect(seen).toEqual({ outcomes: [0, 0, 0], used: [2, 2], connections: 2 });
  });

  test('unless the next attempt to connect is too late for them', async () => {
    const server = await startRedis();
    const redis = { url: server.url, retry: { min: 2 ** 31 - 1 } };
    const { outcomes } = await afterStandstill(redis, killClients(server));
    for (const outcome of outcomes) expect(outcome).toContain('the server closed the connection');
  });
});

test('a connection that owes an answer for too long is given up, and only what was sent on it is lost', async () => {
  const runs = [];
  let silent;
  const peer = await peers.scriptedPeer((words, socket) => {
    const [, id] = /\{(.)\}/.exec(words);
    runs.push(id);
    if (id === 'b') silent = socket;
    return socket === silent ? undefined : '*1\r\n:0\r\n';
  });
  const commandTimeout = patient(1000);
  const limiter = nativeLimiter({ url: peer.url, commandTimeout, connectTimeout: patient(15_000) });
  expect(await limiter('a')).toBe(0);
  const lost = outcomeOf(limiter('b'));
  await pause(0.75 * commandTimeout); // from half of the time on, calls wait
  const saved = outcomeOf(limiter('c'));
  expect(await lost).toBe(TIMEOUT);
  expect(await outcomeOf(limiter('d'))).toBe(0);
  expect(await saved).toBe(0);
  expect(runs.join('')).toMatch(/^ab(cd|dc)$/);
  expect(peer.connections).toBe(2);
});

// Kills: writing to a socket that still has bytes to send.
test('what a server does not take waits, and is sent on the next connection', async () => {
  let isStuck = true;
  const answers = await peers.scriptedPeer(() => '*1\r\n:0\r\n');
  const peer = await peers.listen((socket) => {
    if (isStuck) socket.pause();
    else socket.pipe(net.connect(answers.port, '127.0.0.1')).pipe(socket);
    isStuck = false;
  });
  const commandTimeout = patient(1000);
  const limiter = nativeLimiter({ url: peer.url, commandTimeout, connectTimeout: patient(15_000) });
  const long = Array.from({ length: 2000 }, (_, i) => outcomeOf(limiter(`${i}`.padEnd(10_000))));
  await pause(0.25 * commandTimeout);
  const saved = outcomeOf(limiter('a'));
  expect(new Set(await Promise.all(long))).toContain(TIMEOUT);
  expect(await saved).toBe(0);
  expect(peer.connections).toBe(2);
});
