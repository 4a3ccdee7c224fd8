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

/** First and last use of each unit of each slot, by id. */
class Uses {
  #ofIds = new Map();
  count = 0;

  note(id, unit, time) {
    if (!this.#ofIds.has(id)) this.#ofIds.set(id, new Map());
    const uses = this.#ofIds.get(id);
    const known = uses.get(unit);
    if (known === undefined) {
      uses.set(unit, [time, time]);
      this.count += 1;
    } else {
      known[1] = time;
    }
  }

  /** The most units that were in use at once, of any id. */
  get mostAtOnce() {
    let most = 0;
    for (const uses of this.#ofIds.values()) {
      const edges = [];
      for (const [first, last] of uses.values()) edges.push([first, 1], [last, -1]);
      edges.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
      let now = 0;
      for (const [, change] of edges) {
        now += change;
        most = Math.max(most, now);
      }
    }
    return most;
  }
}

/**
 * @param {number} options.longHolds in percent
 * @returns {Promise<{ uses: number, mostUsed: number, mostOnServer: number, inconsistent: number, faults: object,
 *   usedAfter: number }>} `usedAfter`: units that are held `ttl` and a second after all processes were killed
 */
async function holdWithFaults({
  seed,
  seconds,
  processes = 4,
  max = 5,
  ttl = 1000,
  ids = 'a,b,c',
  longHolds = 10,
}) {
  const random = randomFrom(seed);
  const server = await startRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
  const proxy = await startProxy(server.port);
  const namespace = 'faults';
  const uses = new Uses();
  const holders = new Set();
  const faults = {};
  let isOver = false;
  let begun = 0;

  function begin() {
    begun += 1;
    const options = JSON.stringify({ max, ttl, namespace });
    const client = CLIENTS[begun % CLIENTS.length];
    const args = [HOLDER, proxy.url, client, options, ids, longHolds, seed * 1000 + begun];
    const child = spawn(process.execPath, args.map(String), {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    holders.add(child);
    child.read = new Promise((resolve) => {
      const lines = readline.createInterface({ input: child.stdout });
      lines.on('line', (line) => {
        const [id, unit, time] = line.split(' ');
        if (/^\d+$/.test(time)) uses.note(id, unit, Number(time));
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
      setTimeout(() => holder.kill('SIGCONT'), random.between(10, 3 * ttl));
    },
    drop: async () => proxy.drop(),
    reset: async () => proxy.reset(),
    async stall() {
      proxy.stall();
      await pause(random.between(10, ttl));
      proxy.heal();
    },
    async cut() {
      proxy.endReplies(random.between(0, 2000), { stalls: random.chance(50) });
      proxy.drop();
      await pause(random.between(10, ttl));
      proxy.heal();
    },
    async freeze() {
      await server.freeze();
      await pause(random.between(10, 2 * ttl));
      server.thaw();
    },
    restart: () => server.restart(),
  };
  const often = ['kill', 'kill', 'kill', 'stop', 'stop', 'drop', 'reset', 'stall', 'cut'];

  const found = { mostOnServer: 0, inconsistent: 0 };
  async function watch() {
    const keys = ids.split(',').map((id) => `${namespace}{${id}}:slots`);
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

  for (let i = 0; i < processes; i++) begin();
  const watched = watch();
  await pause(1000); // they start
  const end = performance.now() + seconds * 1000;
  while (performance.now() < end) {
    const name = random.chance(90) ? random.pick(often) : random.pick(['freeze', 'restart']);
    faults[name] = (faults[name] ?? 0) + 1;
    await deeds[name]();
    await pause(random.between(0, 300));
  }
  for (const holder of holders) holder.kill('SIGKILL');
  const killedAt = performance.now();
  await Promise.all([...holders].map((holder) => holder.read));
  isOver = true;
  await watched;
  await pause(killedAt + ttl + 1000 - performance.now());
  const { ConcurrencyLimiter } = require('../..');
  const limiter = ConcurrencyLimiter({ max, redis: server.url, namespace });
  const usages = await Promise.all(ids.split(',').map((id) => limiter.usage(id)));
  await limiter.close();
  await proxy.close();
  await stopRedis([server]);
  const usedAfter = usages.reduce((sum, { used }) => sum + used, 0);
  return { uses: uses.count, mostUsed: uses.mostAtOnce, ...found, faults, usedAfter };
}

module.exports = { holdWithFaults };
