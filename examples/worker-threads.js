// The addon in worker threads: each thread counts for itself. Run it: node examples/worker-threads.js
'use strict';

const { Worker, isMainThread, parentPort, threadId } = require('node:worker_threads');
const RateLimiter = require('rollgate');

const limiter = RateLimiter({ interval: 1000, maxInInterval: 2 });

function countAllowed(attempts) {
  let allowed = 0;
  for (let i = 0; i < attempts; i++) {
    if (limiter('ada') === 0) allowed += 1;
  }
  return allowed;
}

if (isMainThread) {
  console.log(`main thread: ${countAllowed(5)} of 5 allowed`);
  for (let i = 0; i < 2; i++) {
    new Worker(__filename).on('message', (message) => console.log(message));
  }
} else {
  parentPort.postMessage(`worker thread ${threadId}: ${countAllowed(5)} of 5 allowed`);
}
