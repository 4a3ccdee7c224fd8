// Processes that race on one namespace through the native client get the limit exactly, all in all.
'use strict';

const { startRedis } = require('../support/redis-server');
const { askProgram } = require('../support/run-program');

const MAX = 200;
const IDS = Array.from({ length: 50 }, (_, i) => `id ${i}`);

let server;

beforeAll(async () => {
  server = await startRedis();
});

/** Asks for each of its ids, by turns in several ways; prints how often each was allowed. */
const racer = (ids, namespace, attempts) => `
  const RateLimiter = require('rollgate');
  const ids = ${JSON.stringify(ids)};
  const limiter = RateLimiter({
    redis: { url: '${server.url}', commandTimeout: 15_000, retry: { min: 5, max: 20 } },
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
