// Processes that use leases over a proxy, while they are killed and stopped and their connections break, lose and
// delay: how many of their uses surely were in one interval, and what is still used after they have died.
'use strict';

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const path = require('node:path');
const { createInterface } = require('node:readline');
const { setTimeout: pause } = require('node:timers/promises');
const { RateLimiter } = require('../..');
const { startRedis, stopRedis } = require('./redis-server');
const { redisAt } = require('./redis-clients');
const { SureUses } = require('./sure-uses');
const { startProxy } = require('./tcp-proxy');
const { randomFrom } = require('./traces');

const HOLDER = path.join(__dirname, 'lease-holder.js');
const CLIENTS = ['native', 'ioredis', 'node-redis 6'];
const GUARD_MS = 1000; // how much longer than its lease a dead process is counted
const PROCESSES = 4;
const LONGEST_PAUSE_MS = 400; // between two faults
const DELAYS_MS = [20, 200, 1500];

/** A process that attempts. `note(place, moment, took)` gets its uses. */
class Holder {
  local = 0;
  leased = 0;
  #note;

  constructor({ url, client, limiters, seed, note }) {
    this.#note = note;
    const args = [HOLDER, url, client, JSON.stringify(limiters), String(seed)];
    this.child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    createInterface({ input: this.child.stdout }).on('line', (line) => this.#read(line));
    this.ended = once(this.child, 'close');
  }

  #read(line) {
    if (!line.endsWith(']')) return; // cut by a kill
    const values = JSON.parse(line);
    if (values.length === 2) {
      [this.local, this.leased] = values;
      return;
    }
    const [place, took, moment, cost] = values;
    for (let unit = 0; unit < cost; unit++) this.#note(place, moment, took);
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
 * @returns {Promise<{ uses: number, most: number[][], local: number, faults: object, usedAfter: number[] }>} `most`:
 *   for each limiter and window, the most uses that surely were in one interval; `local`: decisions without Redis;
 *   `usedAfter`: what is used when everything of the dead processes must be back
 */
async function leaseWithFaults({ seed, seconds, limiters }) {
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

  for (let i = 0; i < PROCESSES; i++) begin();
  await pause(1000); // they start
  const end = performance.now() + seconds * 1000;
  while (performance.now() < end) {
    const name = random.chance(95) ? random.pick(often) : 'freeze';
    faults[name] = (faults[name] ?? 0) + 1;
    await deeds[name]();
    await pause(random.between(0, LONGEST_PAUSE_MS));
  }
  await Promise.all([...holders].map((holder) => holder.kill()));
  await proxy.close();
  // Requests that are still on their way may get a lease.
  const lasts = Math.max(...limiters.map(({ options }) => longestOf(options)));
  await pause(Math.max(...DELAYS_MS) + lasts + GUARD_MS);
  const usedAfter = await Promise.all(limiters.map((limiter) => usedOf(server.url, limiter)));
  await stopRedis([server]);
  return {
    uses: uses.reduce((total, { count }) => total + count, 0),
    most: limiters.map(({ options }, place) =>
      options.limits.map(({ interval }) => uses[place].mostIn(interval * 1000)),
    ),
    local: all.reduce((total, holder) => total + holder.local, 0),
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
