// What a worker thread does in the tests: use limiters, in memory or on Redis, and report.
'use strict';

const { parentPort, workerData } = require('node:worker_threads');
const RateLimiter = require('../..');

const limiterAt = (redis) =>
  RateLimiter({ redis, interval: 60_000, maxInInterval: 1e6, namespace: workerData.namespace });

const tasks = {
  /** Uses a few limiters and ends by itself. */
  use() {
    const limiter = RateLimiter({ interval: 1e9, maxInInterval: 2 });
    const answers = [limiter('a'), limiter('a'), limiter('a') > 0];
    limiter('a', (error, timeLeft) => {
      parentPort.postMessage([...answers, error, timeLeft > 0]);
    });
  },

  /** Never ends by itself. */
  spin() {
    const limiters = Array.from({ length: 10 }, () =>
      RateLimiter({
        interval: 1,
        maxInInterval: 2,
        clock: workerData.clock ? Date.now : undefined,
      }),
    );
    parentPort.postMessage('spinning');
    for (let i = 0; ; i++) {
      const limiter = limiters[i % limiters.length];
      limiter(i % 1000);
      limiter.attempt(`id ${i}`);
      if (i % 100 === 0) limiter(i, () => {});
    }
  },

  /** Never ends by itself, either: makes limiters, and ids of every kind. */
  make() {
    parentPort.postMessage('making');
    for (;;) {
      const limiter = RateLimiter({ interval: 1000, maxInInterval: 2 });
      limiter(0.5);
      limiter(5n);
      limiter.attemptMany([1, 'a', 2n]);
      limiter.refund(limiter.attempt('a'));
    }
  },

  /** Answers every id it is sent with its time left. */
  serve() {
    const limiter = RateLimiter({ interval: 1e9, maxInInterval: 3 });
    parentPort.on('message', (id) => {
      if (id === 'stop') parentPort.close();
      else parentPort.postMessage([id, limiter(id) === 0]);
    });
  },

  fail() {
    globalThis.kept = RateLimiter({ interval: 1e9, maxInInterval: 3 });
    globalThis.kept(() => {
      throw new Error('mine');
    });
  },

  /** Makes some calls and ends by itself. */
  async useRedis() {
    const limiter = limiterAt(workerData.redis);
    const calls = Array.from({ length: workerData.calls }, () => limiter('a'));
    const timesLeft = await Promise.all(calls);
    parentPort.postMessage(timesLeft.every((timeLeft) => timeLeft === 0));
  },

  /** Never ends by itself: calls without end, whatever comes of them. */
  async callRedis() {
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
