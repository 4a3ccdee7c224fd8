// The cells on Redis. Beside the CPU of this process they measure that of the server, and the time that passes.
'use strict';

const { fork } = require('node:child_process');
const { once } = require('node:events');
const http = require('node:http');
const path = require('node:path');
const { openIoredis, openNodeRedis } = require('../js/redis-subjects');
const { serverCpu } = require('../js/redis-workload');
const { pemOf, startRedis, startRedisWithTls } = require('../../test/support/redis-server');
const { idsInTurn } = require('./ids');

const IDS = 10_000;
const LIMIT = { interval: 60_000, maxInInterval: 100 };
const SOCKETS = 64;
const HTTP_CLIENT = path.join(__dirname, 'http-client.js');

/** What `redis` is of a limiter, and the server. */
const WAYS = {
  async url() {
    const server = await startRedis();
    return { server, redis: server.url };
  },
  async tls() {
    const { server, url } = await startRedisWithTls();
    return { server, redis: { url, tls: { ca: pemOf('ca.pem') } } };
  },
  async ioredis() {
    const server = await startRedis();
    return { server, redis: openIoredis(server) };
  },
  async nodeRedis() {
    const server = await startRedis();
    return { server, redis: await openNodeRedis(server) };
  },
};

/** Checks with so many of them in flight. */
function onRedis(way, inFlight) {
  return async ({ RateLimiter }) => {
    const { server, redis } = await WAYS[way]();
    const check = RateLimiter({ ...LIMIT, redis });
    const nextId = idsInTurn(IDS);
    let begun = 0;

    async function caller(checks) {
      while (begun < checks) {
        begun++;
        if ((await check(nextId())) > 0) throw new Error('a check was refused');
      }
    }

    async function run(checks) {
      begun = 0;
      await Promise.all(Array.from({ length: inFlight }, () => caller(checks)));
    }
    return { run: (checks) => withOtherTimes(server, () => run(checks)) };
  };
}

/** Requests to a server in this process, from another one that has so many sockets. Each waits for a check. */
async function behindHttp({ RateLimiter }) {
  const { server, redis } = await WAYS.url();
  const check = RateLimiter({ ...LIMIT, redis });
  const nextId = idsInTurn(IDS);
  const web = http.createServer(async (_req, res) => {
    res.statusCode = (await check(nextId())) > 0 ? 429 : 200;
    res.end();
  });
  await once(web.listen(0, '127.0.0.1'), 'listening');
  const client = fork(HTTP_CLIENT, [web.address().port, SOCKETS]);

  async function run(requests) {
    client.send(requests);
    const [refused] = await once(client, 'message');
    if (refused > 0) throw new Error(`${refused} requests were refused`);
  }
  return { run: (requests) => withOtherTimes(server, () => run(requests)) };
}

/** The ns that the server needs, and that pass. */
async function withOtherTimes(server, run) {
  const before = await serverCpu(server);
  const start = performance.now();
  await run();
  const passed = performance.now() - start;
  return { server: ((await serverCpu(server)) - before) * 1000, passed: passed * 1e6 };
}

module.exports = { behindHttp, onRedis };
