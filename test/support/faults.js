// Processes that use a Redis server over a proxy, while they are killed and stopped, their connections break, lose and
// delay, and their server stands still.
'use strict';

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const path = require('node:path');
const { createInterface } = require('node:readline');
const { setTimeout: pause } = require('node:timers/promises');
const { startProxy } = require('./tcp-proxy');
const { randomFrom } = require('./traces');

const CLIENTS = ['native', 'ioredis', 'node-redis 6'];
const PROCESSES = 4;
const LONGEST_PAUSE_MS = 400; // between two faults
const DELAYS_MS = [20, 200, 1500];

/**
 * Starts four processes of a program of this folder, and others for those that it kills. When the seconds are over, it
 * kills all of them, and waits until the server has what they sent.
 *
 * @param {object} options.given as JSON, what a program gets between the URL, the name of a client, and a seed
 * @param {(values: any[]) => void} options.note gets each line that is printed: JSON of an array
 * @param {object} [options.more] further rare faults, by name
 * @returns {Promise<object>} how often each fault was
 */
async function runWithFaults({ server, program, given, seed, seconds, note, more }) {
  const random = randomFrom(seed);
  let slowest = 0;
  const delayOf = () => (slowest > 0 && random.chance(30) ? random.between(0, slowest) : 0);
  const proxy = await startProxy(server.port, { delayOf });
  const running = new Set();
  let begun = 0;

  function begin() {
    const client = CLIENTS[begun % CLIENTS.length];
    const own = [proxy.url, client, JSON.stringify(given), String(seed * 1000 + begun)];
    begun += 1;
    const stdio = ['ignore', 'pipe', 'inherit'];
    const child = spawn(process.execPath, [path.join(__dirname, program), ...own], { stdio });
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.endsWith(']')) note(JSON.parse(line)); // else it was cut by a kill
    });
    running.add({ child, ended: once(child, 'close') });
  }

  /** Rejects if it had ended before. */
  async function kill(one) {
    running.delete(one);
    one.child.kill('SIGKILL');
    const [code, signal] = await one.ended;
    if (signal !== 'SIGKILL') throw new Error(`a process ended by itself: ${code ?? signal}`);
  }

  const anyOne = () => random.pick([...running]);
  const faults = {
    async kill() {
      await kill(anyOne());
      begin();
    },
    async stop() {
      const { child } = anyOne();
      child.kill('SIGSTOP');
      setTimeout(() => child.kill('SIGCONT'), random.between(10, random.pick([200, 4000])));
    },
    drop: async () => proxy.drop(),
    reset: async () => proxy.reset(),
    async stall() {
      proxy.stall();
      await pause(random.between(10, 1000));
      proxy.heal();
    },
    async cut() {
      const bytes = random.between(0, random.pick([2000, 20_000]));
      proxy.endReplies(bytes, { stalls: random.chance(50) });
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
      await pause(random.between(10, 2000));
      server.thaw();
    },
    ...more,
  };
  const often = ['kill', 'kill', 'stop', 'stop', 'drop', 'reset', 'stall', 'cut', 'delay', 'delay'];
  const rare = ['freeze', ...Object.keys(more ?? {})];

  const counts = {};
  try {
    for (let i = 0; i < PROCESSES; i++) begin();
    await pause(1000); // they start
    const end = performance.now() + seconds * 1000;
    while (performance.now() < end) {
      const name = random.pick(random.chance(90) ? often : rare);
      counts[name] = (counts[name] ?? 0) + 1;
      await faults[name]();
      await pause(random.between(0, LONGEST_PAUSE_MS));
    }
    await Promise.all([...running].map(kill));
  } finally {
    for (const { child } of running) child.kill('SIGKILL');
    await proxy.close();
  }
  await pause(Math.max(...DELAYS_MS));
  return counts;
}

module.exports = { runWithFaults };
