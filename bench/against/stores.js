// The cells of the other stores and of the middleware: what they need around a limiter.
'use strict';

const { createRequests } = require('../js/middleware-subjects');
const { serverCpu } = require('../js/redis-workload');
const { startRedis } = require('../../test/support/redis-server');
const { idsInTurn } = require('./ids');

const IDS = 10_000;
const LIMIT = { interval: 60_000, maxInInterval: 100 };
const IN_FLIGHT = 64;

/** The cell with a limiter in a region of this process, which goes with it. */
function inRegion(create) {
  return (rollgate) => {
    const shared = `bench-against-${process.pid}`;
    process.once('exit', () => rollgate.unlinkShared(shared));
    return create(rollgate, { shared });
  };
}

/** Checks with 64 of them in flight; also measures the CPU of the server. */
async function onRedis({ RateLimiter }) {
  const server = await startRedis();
  const check = RateLimiter({ ...LIMIT, redis: server.url });
  const nextId = idsInTurn(IDS);
  let begun = 0;

  async function callerOf(checks) {
    while (begun < checks) {
      begun++;
      if ((await check(nextId())) > 0) throw new Error('a check was refused');
    }
  }

  async function run(checks) {
    begun = 0;
    const before = await serverCpu(server);
    await Promise.all(Array.from({ length: IN_FLIGHT }, () => callerOf(checks)));
    return { server: ((await serverCpu(server)) - before) * 1000 };
  }
  return { run };
}

/** Requests and responses of Node without sockets, made before the clock starts. All are allowed. */
function throughMiddleware({ rateLimit }) {
  const limit = rateLimit({ windowMs: 900_000, limit: 100 });
  const nextRequest = createRequests(IDS);
  let requests = [];
  return {
    prepare(checks) {
      requests = Array.from({ length: checks }, nextRequest);
    },
    async run() {
      for (const { req, res } of requests) {
        await new Promise((resolve) => limit(req, res, resolve));
        if (res.writableEnded) throw new Error('a request was refused');
      }
    },
  };
}

module.exports = { inRegion, onRedis, throughMiddleware };
