// A program with live limiters ends by itself, and however else it ends, it is by no signal.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { isMainThread, Worker } from 'node:worker_threads';
import RateLimiter, { rateLimit, unlinkShared } from 'rollgate';

const program = fileURLToPath(import.meta.url);
const how = process.argv[2];
const shared = { name: `runtimes-exit-${how ? process.ppid : process.pid}`, maxKeys: 10 };
const options = { interval: 3_600_000, maxInInterval: 100 };
const limiters = [RateLimiter(options), RateLimiter({ ...options, shared })];
globalThis.kept = [limiters, rateLimit({ windowMs: 1000, limit: 2 })];

function count() {
  for (const limiter of limiters) limiter('ada');
}

/** By the name of an end: what leads to it, and the exit code that it has. */
const ends = {
  'nothing left to do': [0, () => {}],
  'process.exit': [7, () => process.exit(7)],
  'an exception': [
    1,
    () => {
      throw new Error('on purpose');
    },
  ],
  'an exception in a callback': [
    1,
    () =>
      limiters[0]('ada', () => {
        throw new Error('on purpose');
      }),
  ],
  'process.exit while a thread counts': [
    7,
    async () => {
      const worker = new Worker(new URL(import.meta.url), { argv: [how] });
      await once(worker, 'message');
      process.exit(7);
    },
  ],
};

async function endOf(name) {
  const [command, ...first] = JSON.parse(process.env.RUNTIME);
  const child = spawn(command, [...first, program, name], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (text) => {
      output += text;
    });
  }
  const [code, signal] = await once(child, 'close');
  return { code, signal, output };
}

async function main() {
  for (const [name, [expected]] of Object.entries(ends)) {
    const { code, signal, output } = await endOf(name);
    assert.deepEqual({ name, code, signal }, { name, code: expected, signal: null }, output);
    if (expected === 1) assert.match(output, /on purpose/);
  }
}

count();
if (!isMainThread) {
  const { parentPort } = await import('node:worker_threads');
  parentPort.postMessage('counting');
  for (;;) count();
} else if (how) {
  await ends[how][1]();
} else {
  try {
    await main();
    console.log('result: works');
  } finally {
    unlinkShared(shared);
  }
}
