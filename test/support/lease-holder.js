// A process that attempts at rates that change, and prints each use that was allowed. Arguments: URL, client, limiters
// as JSON ([{ id, perSecond, options }]), seed. Each line is JSON:
//   [place of the limiter, us from call to answer, moment of the call in us, by the clock of the host, units of cost]
// or what the limiters decided without Redis since the last such line: ['local', decisions]
'use strict';

const fs = require('node:fs');
const { RateLimiter } = require('../..');
const { REDIS_CLIENTS } = require('./redis-clients');
const { randomFrom } = require('./traces');

const STATS_EVERY_MS = 200;
const MOST_WAITING = 500; // attempts of one limiter that wait for Redis
const RATES = [0, 0.1, 0.5, 1, 1, 2, 4]; // shares of `perSecond`

const now = () => Number(process.hrtime.bigint() / 1000n);

/** Lines since the last write. They are written before anything else happens, so that a kill loses few. */
let lines = '';

const print = (values) => {
  lines += `${JSON.stringify(values)}\n`;
};

function write() {
  try {
    for (let bytes = Buffer.from(lines); bytes.length > 0; ) {
      bytes = bytes.subarray(fs.writeSync(1, bytes));
    }
  } catch {
    process.exit(); // the reader is gone
  }
  lines = '';
}

/** An attempt, a settled one or a question. What is taken back later is not printed, so no more is than counts. */
async function attempt({ limiter, id, place }, random) {
  const begin = now();
  const note = (cost) => print([place, now() - begin, begin, cost]);
  const way = random.between(1, 100);
  if (way <= 80) {
    if ((await limiter(id)) === 0) note(1);
  } else if (way <= 90) {
    if ((await limiter.attempt(id, { cost: 3 })).allowed) note(3);
  } else if (way <= 97) {
    const actual = way <= 94 ? 1 : 0;
    const decision = await limiter.attempt(id, { cost: 1 + actual });
    if (!decision.allowed) return;
    if (actual > 0) note(actual);
    await limiter.settle(decision, actual);
  } else {
    await (way <= 99 ? limiter.peek(id) : limiter.usage(id));
  }
}

/** A function that makes the attempts of the last `ms` on one limiter; their rate changes now and then. */
function attemptsOn({ perSecond, ...target }, random) {
  let [waiting, due, perMs, turns] = [0, 0, 0, 0];
  return (ms) => {
    if (turns-- === 0) {
      perMs = (random.pick(RATES) * perSecond) / 1000;
      turns = random.between(100, 1000);
    }
    for (due += perMs * ms; due >= 1; due--) {
      if (waiting >= MOST_WAITING) continue;
      waiting += 1;
      attempt(target, random)
        .catch((error) => {
          if (!String(error.code).startsWith('ERR_ROLLGATE_')) throw error;
        })
        .finally(() => {
          waiting -= 1;
        });
    }
  };
}

const [url, client, limiters, seed] = process.argv.slice(2);
const random = randomFrom(Number(seed));
const redis = { ...REDIS_CLIENTS[client].open(url), commandTimeout: 300 };
const all = JSON.parse(limiters).map(({ options, ...given }, place) => {
  const limiter = RateLimiter({ ...options, redis });
  return { limiter, makeAttempts: attemptsOn({ ...given, limiter, place }, random) };
});
let last = performance.now();
let statsAt = last;
let told = 0;
setInterval(() => {
  const time = performance.now();
  // After a stop, not all of it at once.
  for (const { makeAttempts } of all) makeAttempts(Math.min(time - last, 100));
  last = time;
  if (time >= statsAt) {
    statsAt = time + STATS_EVERY_MS;
    const local = all.reduce((sum, { limiter }) => sum + limiter.stats().local, 0);
    print(['local', local - told]);
    told = local;
  }
  setImmediate(write);
}, 1);
