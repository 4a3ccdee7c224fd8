// One address behind which servers change, hang, refuse or cut connections: calls settle, and succeed again soon.
'use strict';

const net = require('node:net');
const { setTimeout: pause } = require('node:timers/promises');
const { outcomeOf, waitUntil } = require('../support/outcome');
const { nativeLimiter } = require('../support/redis-clients');
const { callingEach, startLoad } = require('../support/redis-cluster');
const { startRedis } = require('../support/redis-server');
const { startProxy } = require('../support/tcp-proxy');
const { patient } = require('../support/tiers');

const HOUR = 3_600_000;
const MAX = 300;
const IDS = Array.from({ length: 8 }, (_, i) => `id ${i}`);
const CODE = /^ERR_ROLLGATE_REDIS_(TIMEOUT|UNREACHABLE|REPLY)$/;
const SHORT = patient(500);

const limiterAt = (redis, options) =>
  nativeLimiter(redis, { interval: HOUR, maxInInterval: MAX, countBlocked: false, ...options });

/** Resolves once a call succeeds that a replica would refuse. */
const succeedsAgain = (limiter) =>
  waitUntil('calls succeed again', async () => (await limiter('probe')) === 0, {
    withinMs: patient(5000),
  });

/** Begins to use up all ids. `ends()` resolves once that is done; nobody must have got more, and no call hang. */
function useUp(limiter) {
  const load = startLoad(callingEach(limiter, IDS), { atOnce: 8 });
  return {
    begun: () => waitUntil('calls are allowed', () => load.allowed.size === IDS.length),
    async ends() {
      await waitUntil('all ids are used up', async () => {
        const peeks = await limiter.attemptMany(IDS);
        return peeks.every(({ allowed }) => !allowed);
      });
      const { allowed, failures } = await load.stop();
      for (const id of IDS) expect(allowed.get(id)).toBeLessThanOrEqual(MAX);
      for (const { code } of failures) expect(code).toMatch(CODE);
    },
  };
}

/** A replica of a server, in step with it. */
async function startReplicaOf({ port }) {
  const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(port)] });
  await waitUntil(
    'the replica is in step',
    async () => (await replica.command('ROLE'))[3] === 'connected',
  );
  return replica;
}

test('a server that has become a replica is left for the one that its address leads to now', async () => {
  const old = await startRedis({ args: ['--repl-diskless-sync-delay', '0'] });
  const heir = await startReplicaOf(old);
  const proxy = await startProxy(old.port);
  const limiter = limiterAt(proxy.url);
  const using = useUp(limiter);
  await using.begun();
  await old.command('FAILOVER'); // loses nothing: both stand still until the replica has it all
  await waitUntil('roles are swapped', async () => (await heir.command('ROLE'))[0] === 'master');
  proxy.moveTo(heir.port);
  await succeedsAgain(limiter);
  await using.ends();
});

/** What a server replies to PING on a new connection, if it does. */
function replyTo(socket) {
  socket.write('PING\r\n');
  return new Promise((resolve) => {
    socket.on('data', (bytes) => resolve(bytes.toString()));
    socket.on('error', () => {}); // refused, and it closes
    socket.on('close', () => resolve('nothing'));
  });
}

/** Takes all connections of the server; resolves to a function that gives them back. */
async function takeAllConnections({ port }) {
  const idle = [];
  do idle.push(net.connect(port, '127.0.0.1'));
  while ((await replyTo(idle.at(-1))) === '+PONG\r\n');
  return () => {
    for (const socket of idle) socket.destroy();
  };
}

test('a server with too many clients is tried less and less often, and used once it has room', async () => {
  const server = await startRedis({ args: ['--maxclients', '20'] });
  const proxy = await startProxy(server.port);
  const giveBack = await takeAllConnections(server);
  const limiter = limiterAt({ url: proxy.url, commandTimeout: SHORT });
  const load = startLoad(callingEach(limiter, IDS));
  await waitUntil('calls fail', () => load.failures.length > 0);
  await pause(2000); // attempts are counted in real time: with waits of 50 ms there would be 40
  expect(proxy.connections).toBeGreaterThan(1);
  expect(proxy.connections).toBeLessThanOrEqual(12);
  giveBack();
  await succeedsAgain(limiter);
  const { failures } = await load.stop();
  for (const { code } of failures) expect(code).toMatch(CODE);
});

test('sixty connections that are killed in a row cost nothing but the calls that were on them', async () => {
  const server = await startRedis();
  const limiter = limiterAt({ url: server.url, retry: { min: 5, max: 50 } });
  const using = useUp(limiter);
  await using.begun();
  for (let killed = 0; killed < 60; killed++) {
    await waitUntil(
      'there is a connection to kill',
      async () => (await server.command('CLIENT', 'KILL', 'TYPE', 'normal')) > 0,
    );
  }
  await succeedsAgain(limiter);
  await using.ends();
});

describe('a server that stops in the middle of its first replies', () => {
  /** Those to AUTH, SELECT and CLIENT SETNAME have 15 bytes together; what follows answers calls. */
  const PHASES = Array.from({ length: 20 }, (_, bytes) => bytes);

  test.each([
    ['and closes the connection', false],
    ['and keeps the connection open', true],
  ])('%s: calls fail in time, and succeed once it goes on', async (_, stalls) => {
    const server = await startRedis({ password: 'Sesame' });
    const begin = async (bytes) => {
      const proxy = await startProxy(server.port);
      proxy.endReplies(bytes, { stalls });
      const url = `${server.url.replace(String(server.port), String(proxy.port))}/1`;
      const connection = { url, connectionName: 'phase', connectTimeout: SHORT };
      return { proxy, limiter: limiterAt({ ...connection, commandTimeout: SHORT }) };
    };
    const phases = await Promise.all(PHASES.map(begin));
    const calls = phases.flatMap(({ limiter }) => IDS.map((id) => outcomeOf(limiter(id))));
    for (const outcome of await Promise.all(calls)) expect(outcome).toMatch(CODE);
    for (const { proxy } of phases) proxy.endReplies(Infinity, { stalls });
    await Promise.all(phases.map(({ limiter }) => succeedsAgain(limiter)));
  });
});
