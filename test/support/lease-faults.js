// Processes that use leases over a proxy, while they are killed and stopped and their connections break, lose and
// delay: how many of their uses surely were in one interval, and what is still used after they have died.
'use strict';

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const path = require('node:path');
const { setTimeout: pause } = require('node:timers/promises');
const { RateLimiter } = require('../..');
const { RECORD_BYTES, STATS } = require('./lease-holder');
const { startRedis, stopRedis } = require('./redis-server');
const { redisAt } = require('./redis-clients');
const { SureUses } = require('./sure-uses');
const { startProxy } = require('./tcp-proxy');
const { randomFrom } = require('./traces');

const HOLDER = path.join(__dirname, 'lease-holder.js');
const CLIENTS = ['native', 'ioredis', 'node-redis 6'];
const GUARD_MS = 1000; // how much longer than its lease a dead process is counted
const DELAYS_MS = [20, 200, 1500];

/** A process that attempts. `note` gets its uses, `notes` counts what it did without Redis. */
class Holder {
  local = 0;
  leased = 0;
  #rest = Buffer.alloc(0);
  #note;

  constructor({ url, client, limiters, seed, note }) {
    this.#note = note;
    const args = [HOLDER, url, client, JSON.stringify(limiters), String(seed)];
    this.child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    this.child.stdout.on('data', (chunk) => this.#read(chunk));
    this.ended = once(this.child, 'close');
  }

  #read(chunk) {
    const bytes = this.#rest.length > 0 ? Buffer.concat([this.#rest, chunk]) : chunk;
    let at = 0;
    for (; at + RECORD_BYTES <= bytes.length; at += RECORD_BYTES) {
      const place = bytes.readUInt32LE(at);
      const took = bytes.readUInt32LE(at + 4);
      const moment = bytes.readDoubleLE(at + 8);
      if (place === STATS) [this.local, this.leased] = [took, moment];
      else this.#note(place, moment, took);
    }
    this.#rest = bytes.subarray(at);
  }

  /** Rejects if it had ended before. */
  async kill() {
    this.child.kill('SIGKILL');
    const [code, signal] = await this.ended;
    if (signal !== 'SIGKILL') throw new Error(`a holder ended by itself: ${code ?? signal}`);
  }
}

/**
 * @param {{ id: string, perSecond: number, options: object }[]} options.limiters their windows in `options.limits`
 * @param {number} [options.seconds]
 * @param {number} [options.pauseMs] the longest pause between two faults
 * @returns {Promise<{ uses: number, most: number[][], local: number, leased: number, faults: object,
 *   usedAfter: number[] }>} `most`: for each limiter and window, the most uses that surely were in one interval;
 *   `local`: decisions without Redis; `usedAfter`: what is used when everything of the dead processes must be back
 */
async function leaseWithFaults({ seed, seconds, limiters, pauseMs = 400, processes = 4 }) {
  const random = randomFrom(seed);
  const server = await startRedis();
  let slowest = 0;
  const delayOf = () => (slowest > 0 && random.chance(30) ? random.between(0, slowest) : 0);
  const proxy = await startProxy(server.port, { delayOf });
  const origin = Number(process.hrtime.bigint() / 1000n);
  const uses = limiters.map(() => new SureUses());
  const note = (place, begin, took) => uses[place].note(begin - origin, begin - origin + took);
  const all = [];
  const holders = new Set();
  const faults = {};

  function begin() {
    const client = CLIENTS[all.length % CLIENTS.length];
    const holderSeed = seed * 1000 + all.length;
    const holder = new Holder({ url: proxy.url, client, limiters, seed: holderSeed, note });
    all.push(holder);
    holders.add(holder);
  }

  const anyHolder = () => random.pick([...holders]);
  const deeds = {
    async kill() {
      const holder = anyHolder();
      holders.delete(holder);
      await holder.kill();
      begin();
    },
    async stop() {
      const { child } = anyHolder();
      child.kill('SIGSTOP');
      setTimeout(() => child.kill('SIGCONT'), random.between(10, random.pick([200, 4000])));
    },
    drop: async () => proxy.drop(),
    reset: async () => proxy.reset(),
    async stall() {
      proxy.stall();
      await pause(random.between(10, 500));
      proxy.heal();
    },
    async cut() {
      proxy.endReplies(random.between(0, 20_000), { stalls: random.chance(50) });
      proxy.drop();
      await pause(random.between(10, 1000));
      proxy.heal();
    },
    async delay() {
      slowest = random.pick(DELAYS_MS);
      await pause(random.between(10, 1000));
      slowest = 0;
    },
    async freeze() {
      await server.freeze();
      await pause(random.between(10, 500));
      server.thaw();
    },
  };
  const often = ['kill', 'kill', 'stop', 'stop', 'drop', 'reset', 'stall', 'cut', 'delay', 'delay'];

  for (let i = 0; i < processes; i++) begin();
  await pause(1000); // they start
  const end = performance.now() + seconds * 1000;
  while (performance.now() < end) {
    const name = random.chance(95) ? random.pick(often) : 'freeze';
    faults[name] = (faults[name] ?? 0) + 1;
    await deeds[name]();
    await pause(random.between(0, pauseMs));
  }
  await Promise.all([...holders].map((holder) => holder.kill()));
  await proxy.close();
  // Requests that are still on their way may get a lease.
  const lasts = Math.max(...limiters.map(({ options }) => longestOf(options)));
  await pause(Math.max(...DELAYS_MS) + lasts + GUARD_MS);
  const usedAfter = await Promise.all(limiters.map((limiter) => usedOf(server.url, limiter)));
  await stopRedis([server]);
  const sum = (name) => all.reduce((total, holder) => total + holder[name], 0);
  return {
    uses: uses.reduce((total, { count }) => total + count, 0),
    most: limiters.map(({ options }, place) =>
      options.limits.map(({ interval }) => uses[place].mostIn(interval * 1000)),
    ),
    local: sum('local'),
    leased: sum('leased'),
    faults,
    usedAfter,
  };
}

const longestOf = ({ limits, lease = 0 }) =>
  lease + Math.max(...limits.map(({ interval }) => interval));

async function usedOf(url, { id, options }) {
  const limiter = RateLimiter({ ...options, redis: redisAt(url) });
  const { used } = await limiter.usage(id);
  await limiter.close();
  return used;
}

module.exports = { Holder, leaseWithFaults };
