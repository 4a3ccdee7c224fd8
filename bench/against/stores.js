// The cells in shared memory and of the middleware: what they need around a limiter.
'use strict';

const { createRequests } = require('../js/middleware-subjects');

const IDS = 10_000;

/** The cell with a limiter in a region of this process, which goes with it. */
function inRegion(create) {
  return (rollgate) => {
    const shared = `bench-against-${process.pid}`;
    process.once('exit', () => rollgate.unlinkShared(shared));
    return create(rollgate, { shared });
  };
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

module.exports = { inRegion, throughMiddleware };
