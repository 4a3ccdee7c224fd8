// Processes that hold slots over a proxy, while they are killed and stopped, their connections break, and their server
// is killed and stopped: how many hold at once, as they say and as the server says.
'use strict';

const { spawn } = require('node:child_process');
const path = require('node:path');
const readline = require('node:readline');
const { setTimeout: pause } = require('node:timers/promises');
const { startRedis, stopRedis } = require('./redis-server');
const { startProxy } = require('./tcp-proxy');
const { randomFrom } = require('./traces');

const HOLDER = path.join(__dirname, 'slot-holder.js');
const CLIENTS = ['native', 'ioredis', 'node-redis 6'];
const IDS = ['a', 'b', 'c'];
const PROCESSES = 4;
const TTL = 1000;

/** Of each id: the units that its state claims, and those of its tokens. */
const UNITS = `
  local found = {}
  for _, key in ipairs(KEYS) do
    local units = 0
    for _, token in ipairs(redis.call('ZRANGE', key, 0, -1)) do
      if token ~= '' then units = units + token:byte(15) + 256 * token:byte(16) end
    end
    found[#found + 1] = units
    found[#found + 1] = -(redis.call('ZSCORE', key, '') or 0)
  end
  return found`;

/** The most that were in use at once, of { first, last } times. */
function mostAtOnce(uses) {
  const edges = uses.flatMap(({ first, last }) => [
    [first, 1],
    [last, -1],
  ]);
  edges.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  let now = 0;
  return Math.max(...edges.map(([, change]) => (now += change)));
}

/**
 * @returns {Promise<{ uses: number, mostUsed: number, mostOnServer: number, inconsistent: number, usedAfter: number }>}
 *   `usedAfter`: units that are held `TTL` and a second after all processes were killed
 */
async function holdWithFaults({ seed, seconds, max }) {
  const random = randomFrom(seed);
  const server = await startRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
  const proxy = await startProxy(server.port);
  const namespace = 'faults';
  /** First and last use of each unit of each slot. */
  const uses = new Map();
  const holders = new Set();
  let isOver = false;
  let begun = 0;

  function begin() {
    begun += 1;
    const options = JSON.stringify({ max, ttl: TTL, namespace });
    const client = CLIENTS[begun % CLIENTS.length];
    const args = [HOLDER, proxy.url, client, options, IDS.join(), String(seed * 1000 + begun)];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    holders.add(child);
    child.read = new Promise((resolve) => {
      const lines = readline.createInterface({ input: child.stdout });
      lines.on('line', (line) => {
        const [id, unit, time] = line.split(' ');
        if (!/^\d+$/.test(time)) return; // cut by a kill
        const { first = Number(time) } = uses.get(unit) ?? {};
        uses.set(unit, { id, first, last: Number(time) });
      });
      lines.on('close', resolve);
    });
  }

  const anyHolder = () => random.pick([...holders]);
  const deeds = {
    async kill() {
      const holder = anyHolder();
      holders.delete(holder);
      holder.kill('SIGKILL');
      begin();
    },
    async stop() {
      const holder = anyHolder();
      holder.kill('SIGSTOP');
      setTimeout(() => holder.kill('SIGCONT'), random.between(10, 3 * TTL));
    },
    drop: async () => proxy.drop(),
    reset: async () => proxy.reset(),
    async stall() {
      proxy.stall();
      await pause(random.between(10, TTL));
      proxy.heal();
    },
    async cut() {
      proxy.endReplies(random.between(0, 2000), { stalls: random.chance(50) });
      proxy.drop();
      await pause(random.between(10, TTL));
      proxy.heal();
    },
    async freeze() {
      await server.freeze();
      await pause(random.between(10, 2 * TTL));
      server.thaw();
    },
    restart: () => server.restart(),
  };
  const often = ['kill', 'kill', 'kill', 'stop', 'stop', 'drop', 'reset', 'stall', 'cut'];

  const found = { mostOnServer: 0, inconsistent: 0 };
  async function watch() {
    const keys = IDS.map((id) => `${namespace}{${id}}:slots`);
    while (!isOver) {
      await pause(5);
      if (server.frozen || server.pid === undefined) continue;
      const units = await server.command('EVAL', UNITS, keys.length, ...keys).catch(() => []);
      for (let i = 0; i < units.length; i += 2) {
        found.mostOnServer = Math.max(found.mostOnServer, units[i], units[i + 1]);
        if (units[i] !== units[i + 1]) found.inconsistent += 1;
      }
    }
  }

  for (let i = 0; i < PROCESSES; i++) begin();
  const watched = watch();
  await pause(1000); // they start
  const end = performance.now() + seconds * 1000;
  while (performance.now() < end) {
    await deeds[random.pick(random.chance(90) ? often : ['freeze', 'restart'])]();
    await pause(random.between(0, 300));
  }
  for (const holder of holders) holder.kill('SIGKILL');
  const killedAt = performance.now();
  await Promise.all([...holders].map((holder) => holder.read));
  isOver = true;
  await watched;
  await pause(killedAt + TTL + 1000 - performance.now());
  const { ConcurrencyLimiter } = require('../..');
  const limiter = ConcurrencyLimiter({ max, redis: server.url, namespace });
  const usages = await Promise.all(IDS.map((id) => limiter.usage(id)));
  await limiter.close();
  await proxy.close();
  await stopRedis([server]);
  const usedAfter = usages.reduce((sum, { used }) => sum + used, 0);
  const usesOf = (id) => [...uses.values()].filter((use) => use.id === id);
  const mostUsed = Math.max(...IDS.map((id) => mostAtOnce(usesOf(id))));
  return { uses: uses.size, mostUsed, ...found, usedAfter };
}

module.exports = { holdWithFaults };
