// The addon in worker threads: each thread counts for itself in memory, all together in shared memory,
// and threads that end while they count take nothing with them.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import RateLimiter, { unlinkShared } from 'rollgate';

const THREADS = 3;
const ATTEMPTS = 20_000;
const MAX = 10_000;

const options = { interval: 3_600_000, maxInInterval: MAX, countBlocked: false };
const shared = { name: workerData?.name ?? `runtimes-threads-${process.pid}`, maxKeys: 10 };

function countAllowed(limiter) {
  let allowed = 0;
  for (let i = 0; i < ATTEMPTS; i += 1) if (limiter('ada') === 0) allowed += 1;
  return allowed;
}

async function inThreads(task) {
  const workers = Array.from({ length: THREADS }, () => {
    return new Worker(new URL(import.meta.url), { workerData: { task, name: shared.name } });
  });
  const ended = workers.map((worker) => once(worker, 'exit'));
  const answers = await Promise.all(workers.map((worker) => once(worker, 'message')));
  return { workers, ended, answers: answers.map(([answer]) => answer) };
}

async function main() {
  const own = await inThreads('memory');
  assert.deepEqual(own.answers, Array(THREADS).fill(MAX));
  await Promise.all(own.ended);

  const together = await inThreads('shared');
  const sum = together.answers.reduce((total, allowed) => total + allowed, 0);
  assert.equal(sum, MAX);
  await Promise.all(together.ended);

  const endless = await inThreads('endless');
  await Promise.all(endless.workers.map((worker) => worker.terminate()));
  const limiter = RateLimiter({ ...options, shared });
  assert.ok(limiter('ada') > 0);
  assert.equal(limiter('bob'), 0);
}

const tasks = {
  memory: () => parentPort.postMessage(countAllowed(RateLimiter(options))),
  shared: () => parentPort.postMessage(countAllowed(RateLimiter({ ...options, shared }))),
  endless() {
    const limiters = [RateLimiter(options), RateLimiter({ ...options, shared })];
    parentPort.postMessage('counting');
    for (;;) for (const limiter of limiters) limiter('ada');
  },
};

if (isMainThread) {
  try {
    await main();
    console.log('result: works');
  } finally {
    unlinkShared(shared);
  }
} else {
  tasks[workerData.task]();
}
