// What is measured of two revisions. A cell uses only what the package exports, because files move.
//
// `create(rollgate)` throws if the package does not have what the cell is about. It gives
//   run(checks)      makes that many checks; throws if an answer is wrong; may return times of other kinds, in ns
//   prepare(checks)  what must be done before, unmeasured; optional
'use strict';

const { idsInTurn, idsThatGo } = require('./ids');
const { behindHttp, onRedis } = require('./redis');
const { inRegion, throughMiddleware } = require('./stores');

const MINUTE = 60_000;

/** Checks in a loop, of which each must be allowed, or refused. */
function loop(check, nextId, isRefused) {
  function run(checks) {
    let refused = 0;
    for (let k = 0; k < checks; k++) if (check(nextId()) > 0) refused++;
    expect(refused, isRefused ? checks : 0);
  }
  return { run };
}

/** Attempts one after the other, of which each must be allowed. */
function loopOfAttempts(limiter, nextId, options) {
  function run(checks) {
    let refused = 0;
    for (let k = 0; k < checks; k++) if (!limiter.attempt(nextId(), options).allowed) refused++;
    expect(refused, 0);
  }
  return { run };
}

function expect(refused, expected) {
  if (refused !== expected) throw new Error(`${refused} checks were refused, not ${expected}`);
}

/** Uses up the limit of every id, so that all checks are refused from then on. */
function fill(check, nextId, ids, max) {
  for (let k = 0; k < ids * max; k++) check(nextId());
}

/** All are refused. */
function refused(ids, max) {
  return ({ RateLimiter }, options) => {
    const limit = { interval: MINUTE, maxInInterval: max, maxKeys: 2 * ids };
    const check = RateLimiter({ ...limit, ...options });
    const nextId = idsInTurn(ids);
    fill(check, nextId, ids, max);
    return loop(check, nextId, true);
  };
}

/** Allowed as long as each id has at most `max` checks in all. */
function allowed(ids, max) {
  return ({ RateLimiter }, options) => {
    const limit = { interval: MINUTE, maxInInterval: max, maxKeys: 2 * ids };
    const check = RateLimiter({ ...limit, ...options });
    return loop(check, idsInTurn(ids), false);
  };
}

/** A window of a microsecond, so that a hundred checks never fit. */
function oneAllowed({ RateLimiter }) {
  const check = RateLimiter({ interval: 0.001, maxInInterval: 100 });
  return loop(check, () => 'user-00000000042', false);
}

function oneRefused({ RateLimiter }) {
  const check = RateLimiter({ interval: MINUTE, maxInInterval: 100 });
  const nextId = () => 'user-00000000042';
  fill(check, nextId, 1, 100);
  return loop(check, nextId, true);
}

/** With each check, one id comes. The one of a million checks ago is evicted, or those of half a second ago expire. */
function churn(interval, maxKeys) {
  return ({ RateLimiter }) =>
    loop(RateLimiter({ interval, maxInInterval: 100, maxKeys }), idsThatGo(4e6), false);
}

function attempt({ RateLimiter }) {
  const limiter = RateLimiter({ interval: MINUTE, maxInInterval: 100 });
  return loopOfAttempts(limiter, idsInTurn(10_000));
}

function weighted({ RateLimiter }) {
  const limiter = RateLimiter({ interval: MINUTE, maxInInterval: 1000 });
  return loopOfAttempts(limiter, idsInTurn(10_000), { cost: 10 });
}

function usage({ RateLimiter }) {
  const limiter = RateLimiter({ interval: MINUTE, maxInInterval: 100 });
  const nextId = idsInTurn(10_000);
  fill(limiter, nextId, 10_000, 5);
  async function run(checks) {
    for (let k = 0; k < checks; k++) await limiter.usage(nextId());
  }
  return { run };
}

/** Without an addon; where there is no module either, creating a limiter throws. */
const WITHOUT_ADDON = { ROLLGATE_BINDING: 'wasm', ROLLGATE_PREBUILD: '/nonexistent' };

/** [name, title, create, checks to warm up, checks that are measured at once] */
const USUAL_CELLS = [
  ['one-refused', '1 id, max 100, refused', oneRefused, 200_000, 500_000],
  ['one-allowed', '1 id, max 100, allowed', oneAllowed, 200_000, 500_000],
  ['10k-refused', '10,000 ids, max 5, refused', refused(10_000, 5), 200_000, 150_000],
  ['10k-allowed', '10,000 ids, max 100, allowed', allowed(10_000, 100), 200_000, 150_000],
  ['1m-refused', '1,000,000 ids, max 1, refused', refused(1_000_000, 1), 100_000, 100_000],
  ['1m-allowed', '1,000,000 ids, max 100, allowed', allowed(1_000_000, 100), 1_000_000, 100_000],
  ['churn', 'a million ids that come and go', churn(MINUTE, 1e6), 1_200_000, 100_000],
  ['expiry', 'ids that come and expire after 0.5 s', churn(500, 4e6), 1_200_000, 100_000],
  ['attempt', 'attempt, 10,000 ids', attempt, 100_000, 50_000],
  ['usage', 'usage, 10,000 ids', usage, 100_000, 50_000],
  ['weighted', 'attempt of cost 10, 10,000 ids', weighted, 100_000, 50_000],
  ['shared-refused', 'shared, 10,000 ids, refused', inRegion(refused(10_000, 5)), 200_000, 150_000],
  [
    'shared-allowed',
    'shared, 10,000 ids, allowed',
    inRegion(allowed(10_000, 100)),
    200_000,
    200_000,
  ],
  ['wasm', 'WebAssembly, 10,000 ids, allowed', allowed(10_000, 100), 200_000, 150_000],
  ['middleware', 'middleware in process, allowed', throughMiddleware, 20_000, 4000],
  ['redis', 'Redis, 64 in flight, allowed', onRedis('url', 64), 200_000, 20_000],
];

/** The same, of cells that run only if they are named. */
const MORE_CELLS = [
  ['redis-one', 'Redis, 1 in flight', onRedis('url', 1), 20_000, 3000],
  ['redis-many', 'Redis, 512 in flight', onRedis('url', 512), 200_000, 40_000],
  ['redis-http', 'Redis, behind HTTP with 64 sockets', behindHttp, 30_000, 10_000],
  ['tls-one', 'Redis over TLS, 1 in flight', onRedis('tls', 1), 20_000, 3000],
  ['tls', 'Redis over TLS, 64 in flight', onRedis('tls', 64), 200_000, 20_000],
  ['tls-many', 'Redis over TLS, 512 in flight', onRedis('tls', 512), 200_000, 40_000],
  ['ioredis', 'ioredis, 64 in flight', onRedis('ioredis', 64), 100_000, 20_000],
  ['ioredis-many', 'ioredis, 512 in flight', onRedis('ioredis', 512), 100_000, 40_000],
  ['node-redis', 'node-redis, 64 in flight', onRedis('nodeRedis', 64), 100_000, 20_000],
  ['node-redis-many', 'node-redis, 512 in flight', onRedis('nodeRedis', 512), 100_000, 40_000],
];

const cellOf =
  (isByNameOnly) =>
  ([name, title, create, warmUp, checks]) => ({
    name,
    title,
    create,
    warmUp,
    checks,
    isByNameOnly,
    slices: name === 'middleware' ? 10 : 4,
    environment: name === 'wasm' ? WITHOUT_ADDON : {},
  });

const CELLS = [...USUAL_CELLS.map(cellOf(false)), ...MORE_CELLS.map(cellOf(true))];

module.exports = { CELLS };
