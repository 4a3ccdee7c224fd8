// A process that uses the regions of the soak test in several threads, until it is killed.
// It writes a line for what its threads tell: '+' or '-' and the key; '0' before it terminates one.
'use strict';

const { writeSync } = require('node:fs');
const { setTimeout: pause } = require('node:timers/promises');
const { Worker, isMainThread, workerData } = require('node:worker_threads');
const { createLoad } = require('./shared-load');

const THREADS = 2;
const SLICE_MS = 20;
/** A pipe that is no stream of Node's: writing waits until there is room. */
const OUT = 3;

/** What is written is whole, or not there: lines are short, and a kill comes before or after. */
const tell = (key, isAllowed) => writeSync(OUT, `${isAllowed ? '+' : '-'}${key}\n`);

async function keepWorker(name) {
  for (;;) {
    const worker = new Worker(__filename, { workerData: name });
    await pause(100 + Math.random() * 1000);
    writeSync(OUT, '0\n');
    await worker.terminate();
  }
}

async function run(name) {
  process.stdin.on('end', () => process.exit()); // whoever started it is gone
  process.stdin.resume();
  for (let i = 1; i < THREADS; i++) keepWorker(name);
  const { step } = createLoad(name, tell);
  for (;;) {
    const until = performance.now() + SLICE_MS;
    while (performance.now() < until) step();
    await pause(1);
  }
}

if (isMainThread) run(process.argv[2]);
else {
  const { step } = createLoad(workerData, tell);
  for (;;) step();
}
