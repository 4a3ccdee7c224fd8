// What is measured of two revisions. A cell uses only what the package exports, because files move.
//
// `create(rollgate)` gives a function that makes that many checks, and throws if the package does not have what
// the cell is about, or if an answer is wrong. Each call of it is as dear as the next, after the first, which
// warms up.
'use strict';

const { idsInTurn, idsThatGo } = require('./ids');

const MINUTE = 60_000;
const SLICES = 5;

/** Checks in a loop, of which each must be allowed, or refused. */
function loop(check, nextId, isRefused) {
  return (checks) => {
    let refused = 0;
    for (let k = 0; k < checks; k++) if (check(nextId()) > 0) refused++;
    expect(refused, isRefused ? checks : 0);
  };
}

async function loopOfAttempts(attempt, checks) {
  let refused = 0;
  for (let k = 0; k < checks; k++) if ((await attempt()).blocked) refused++;
  expect(refused, 0);
}

function expect(refused, expected) {
  if (refused !== expected) throw new Error(`${refused} checks were refused, not ${expected}`);
}

/** Uses up the limit of every id, so that all checks are refused from then on. */
function fill(check, nextId, ids, max) {
  for (let k = 0; k < ids * max; k++) check(nextId());
}

function refused(ids, max, options) {
  return ({ RateLimiter }) => {
    const check = RateLimiter({
      interval: MINUTE,
      maxInInterval: max,
      maxKeys: 2 * ids,
      ...options,
    });
    const nextId = idsInTurn(ids);
    fill(check, nextId, ids, max);
    return loop(check, nextId, true);
  };
}

/** Allowed as long as each id has at most `max` checks in all. */
function allowed(ids, max, options) {
  return ({ RateLimiter }) => {
    const settings = { interval: MINUTE, maxInInterval: max, maxKeys: 2 * ids, ...options };
    return loop(RateLimiter(settings), idsInTurn(ids), false);
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

/** With each check, one id comes and the one of a million checks ago goes. The clock is moved by hand. */
function churn({ RateLimiter }) {
  let micros = 0;
  const clock = () => micros++ / 1000;
  const check = RateLimiter({ interval: 1000, maxInInterval: 100, maxKeys: 4e6, clock });
  return loop(check, idsThatGo(4e6), false);
}

function attempt({ RateLimiter }) {
  const limiter = RateLimiter({ interval: MINUTE, maxInInterval: 100 });
  const nextId = idsInTurn(10_000);
  return (checks) => loopOfAttempts(() => limiter.attempt(nextId()), checks);
}

function weighted({ RateLimiter }) {
  const limiter = RateLimiter({ interval: MINUTE, maxInInterval: 1000 });
  const nextId = idsInTurn(10_000);
  const options = { cost: 10 };
  return (checks) => loopOfAttempts(() => limiter.attempt(nextId(), options), checks);
}

async function usage({ RateLimiter }) {
  const limiter = RateLimiter({ interval: MINUTE, maxInInterval: 100 });
  const nextId = idsInTurn(10_000);
  fill(limiter, nextId, 10_000, 5);
  return async (checks) => {
    for (let k = 0; k < checks; k++) await limiter.usage(nextId());
  };
}

/** `warmUp` checks, then `slices` times `checks`, of which the least time is taken. */
const CELLS = [
  {
    name: 'one-refused',
    title: '1 id, max 100, refused',
    warmUp: 500_000,
    checks: 1_000_000,
    create: oneRefused,
  },
  {
    name: 'one-allowed',
    title: '1 id, max 100, allowed',
    warmUp: 500_000,
    checks: 1_000_000,
    create: oneAllowed,
  },
  {
    name: '10k-refused',
    title: '10,000 ids, max 5, refused',
    warmUp: 300_000,
    checks: 300_000,
    create: refused(10_000, 5),
  },
  {
    name: '10k-allowed',
    title: '10,000 ids, max 100, allowed',
    warmUp: 200_000,
    checks: 150_000,
    create: allowed(10_000, 100),
  },
  {
    name: '1m-refused',
    title: '1,000,000 ids, max 1, refused',
    warmUp: 100_000,
    checks: 150_000,
    create: refused(1_000_000, 1),
  },
  {
    name: '1m-allowed',
    title: '1,000,000 ids, max 100, allowed',
    warmUp: 1_000_000,
    checks: 150_000,
    create: allowed(1_000_000, 100),
  },
  {
    name: 'churn',
    title: 'a million ids that come and go',
    warmUp: 1_200_000,
    checks: 150_000,
    create: churn,
  },
  {
    name: 'attempt',
    title: 'attempt, 10,000 ids',
    warmUp: 200_000,
    checks: 100_000,
    create: attempt,
  },
  { name: 'usage', title: 'usage, 10,000 ids', warmUp: 200_000, checks: 100_000, create: usage },
  {
    name: 'weighted',
    title: 'attempt of cost 10, 10,000 ids',
    warmUp: 200_000,
    checks: 100_000,
    create: weighted,
  },
].map((cell) => ({ slices: SLICES, ...cell }));

module.exports = { CELLS };
