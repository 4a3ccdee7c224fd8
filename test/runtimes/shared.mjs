// This runtime and Node count in one region of shared memory, in a race, and exactly.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import RateLimiter, { unlinkShared } from 'rollgate';

const ROUNDS = 10;
const ATTEMPTS = 20_000; // of each process in each round
const MAX = 10_000;

const name = process.argv[2] ?? `runtimes-${process.pid}`;
const shared = { name, maxKeys: 20 };
const gate = { name: `${name}-gate`, maxKeys: 20 };
const options = { interval: 3_600_000, maxInInterval: MAX, countBlocked: false };

/** What this process was allowed in each round; both begin a round together. */
function race() {
  const limiter = RateLimiter({ ...options, shared });
  const arrivals = RateLimiter({ ...options, shared: gate });
  return Array.from({ length: ROUNDS }, (_, round) => {
    arrivals(round);
    while (arrivals.peek(round).limits[0].used < 3); // both, and the one that is peeked for
    let allowed = 0;
    for (let i = 0; i < ATTEMPTS; i += 1) if (limiter(round) === 0) allowed += 1;
    return allowed;
  });
}

/** What a process printed as JSON. */
async function answerOf([command, ...first]) {
  const child = spawn(command, [...first, fileURLToPath(import.meta.url), name], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.on('data', (chunk) => {
    text += chunk;
  });
  const [code, signal] = await once(child, 'close');
  assert.deepEqual({ command, code, signal }, { command, code: 0, signal: null });
  return JSON.parse(text);
}

async function main() {
  const commands = [JSON.parse(process.env.RUNTIME), [process.env.NODE]];
  const [here, node] = await Promise.all(commands.map(answerOf));
  const sums = here.map((allowed, round) => allowed + node[round]);
  assert.deepEqual(sums, Array(ROUNDS).fill(MAX));
  const raced = here.filter((allowed) => allowed > 0 && allowed < MAX);
  assert.ok(raced.length > 0, 'in no round both were allowed something');

  const limiter = RateLimiter({ ...options, shared });
  assert.equal(limiter.stats().keys, ROUNDS);
  assert.equal(limiter.peek(0).allowed, false);
  const other = RateLimiter({ ...options, algorithm: 'gcra', shared });
  assert.throws(() => other('ada'), { code: 'ERR_ROLLGATE_SHARED_MISMATCH' });
  await limiter.clearAll();
  assert.equal(limiter(0), 0);
}

if (process.argv[2]) {
  console.log(JSON.stringify(race()));
} else {
  try {
    await main();
    console.log('result: works');
  } finally {
    assert.ok(unlinkShared(shared));
    unlinkShared(gate);
  }
  assert.equal(unlinkShared(shared), false);
}
