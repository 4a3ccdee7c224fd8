// What a worker thread does with the native Redis client in the tests: use it, and report.
'use strict';

const { parentPort, workerData } = require('node:worker_threads');
const RateLimiter = require('../..');

const limiterAt = (redis) =>
  RateLimiter({ redis, interval: 60_000, maxInInterval: 1e6, namespace: workerData.namespace });

const tasks = {
  /** Makes some calls and ends by itself. */
  async use() {
    const limiter = limiterAt(workerData.redis);
    const calls = Array.from({ length: workerData.calls }, () => limiter('a'));
    const timesLeft = await Promise.all(calls);
    parentPort.postMessage(timesLeft.every((timeLeft) => timeLeft === 0));
  },

  /** Never ends by itself: calls without end, whatever comes of them. */
  async call() {
    const limiters = [workerData.redis].flat().map(limiterAt);
    parentPort.postMessage('calling');
    const keepCalling = async (limiter) => {
      for (let i = 0; ; i++) {
        const calls = [limiter(i % 10), limiter.attempt('a'), limiter.attemptMany(['a', 'b'])];
        await Promise.allSettled(calls);
      }
    };
    await Promise.all(limiters.map(keepCalling));
  },
};

tasks[workerData.task]();
