// A process that takes slots, uses them as long as they are not lost, some of them for long, and writes each use as JSON:
//   [id, token, time in us of the clock that all processes of a host share]
'use strict';

const fs = require('node:fs');
const { setTimeout: pause } = require('node:timers/promises');
const { ConcurrencyLimiter } = require('../..');
const { REDIS_CLIENTS } = require('./redis-clients');
const { randomFrom } = require('./traces');

const [url, client, given, seed] = process.argv.slice(2);
const { ids, ...options } = JSON.parse(given);
const random = randomFrom(Number(seed));
const LOOPS = 24;
const redis = { ...REDIS_CLIENTS[client].open(url), commandTimeout: 300 };
const limiter = ConcurrencyLimiter({ ...options, redis });
const now = () => Number(process.hrtime.bigint() / 1000n);
let acquisitions = 0;

function write(...values) {
  try {
    fs.writeSync(1, `${JSON.stringify(values)}\n`);
  } catch {
    process.exit(); // whoever reads is gone
  }
}

/** The time is read before the look, so at that time it was not lost. */
async function use(id, slot, ms) {
  const token = `${process.pid}-${++acquisitions}`;
  const end = performance.now() + ms;
  for (;;) {
    const time = now();
    if (slot.lost.aborted) break;
    for (let unit = 0; unit < slot.cost; unit++) write(id, `${token}-${unit}`, time);
    if (performance.now() >= end) break;
    await pause(random.between(1, 4));
  }
}

async function hold() {
  for (;;) {
    const id = random.pick(ids);
    try {
      const cost = random.chance(80) ? 1 : 2;
      const slot = random.chance(50)
        ? await limiter.acquire(id, { cost })
        : await limiter.wait(id, { cost, deadline: random.between(1, 200) });
      if (!slot.allowed) {
        await pause(random.between(0, 3));
        continue;
      }
      await use(id, slot, random.chance(10) ? random.between(500, 2500) : random.between(0, 8));
      if (random.chance(98)) await slot.release();
      else slot.release();
    } catch (error) {
      if (!String(error.code).startsWith('ERR_ROLLGATE_')) throw error;
      await pause(1);
    }
  }
}

for (let i = 0; i < LOOPS; i++) hold();
