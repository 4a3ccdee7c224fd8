// Worker threads that are started, left to use limiters for a while, and terminated at any moment.
'use strict';

const { once } = require('node:events');
const path = require('node:path');
const { setTimeout: pause } = require('node:timers/promises');
const { Worker } = require('node:worker_threads');
const { randomFrom } = require('../support/traces');

const PROGRAM = path.join(__dirname, '../support/worker-program.js');
const TASKS = [{ task: 'use' }, { task: 'spin' }, { task: 'spin', clock: true }, { task: 'make' }];
/** Leaves most of the time to the other loads. */
const REST_MS = 200;

function startAndTerminate(soak) {
  const random = randomFrom(soak.seed);
  return soak.repeat(async () => {
    const workerData = random.pick(TASKS);
    const worker = new Worker(PROGRAM, { workerData });
    const ended = once(worker, 'exit');
    worker.on('error', (error) => soak.violate(`in a thread: ${error.stack}`));
    if (random.chance(80)) await Promise.race([once(worker, 'message'), ended]);
    await pause(random.between(0, 100));
    if (workerData.task !== 'use' || random.chance(50)) worker.terminate();
    await ended;
    soak.count('threads');
    await pause(random.between(0, 2 * REST_MS));
  });
}

module.exports = { startAndTerminate };
