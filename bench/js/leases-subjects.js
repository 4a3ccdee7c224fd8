// Limiters on Redis that several processes share: rollgate with and without leases, and others that save requests to
// the server. Each function takes { url, interval, maxInInterval } and gives a holder:
//   attempt(id)   resolves to whether it is allowed
//   close()

const { openIoredis } = require('./redis-subjects');

const NAMESPACE = 'b';
const LEASE_MS = 100;
const SYNC_MS = 100;
const SYNC_EVERY = 10; // attempts
const PATIENCE_MS = 5000; // a busy machine is no failure
let opened = 0;

function rollgateOver(redis, { interval, maxInInterval, lease }) {
  const { RateLimiter } = require('../../lib');
  const limiter = RateLimiter({
    ...{ interval, maxInInterval, lease, redis, namespace: NAMESPACE },
    algorithm: 'sliding-window-log',
    countBlocked: false,
  });
  return {
    limiter,
    attempt: async (id) => (await limiter(id)) === 0,
    close: () => limiter.close(),
  };
}

/** Limiters share a connection whose options are the same, so one of them differs. */
function rollgate(options) {
  opened += 1;
  return rollgateOver({ url: options.url, commandTimeout: PATIENCE_MS + opened }, options);
}

const rollgateLeases = (options) => rollgate({ ...options, lease: LEASE_MS });

function flexibleOver(storeClient, { interval, maxInInterval }) {
  const { RateLimiterMemory, RateLimiterRedis } = require('rate-limiter-flexible');
  const limits = { keyPrefix: NAMESPACE, points: maxInInterval, duration: interval / 1000 };
  return {
    local: new RateLimiterMemory(limits),
    remote: new RateLimiterRedis({ ...limits, storeClient }),
  };
}

/** A refusal, which these limiters reject with. */
function refusalOf(reason) {
  if (reason instanceof Error) throw reason;
  return reason;
}

function flexible(options) {
  const client = openIoredis(options);
  const { remote } = flexibleOver(client, options);
  return {
    attempt: (id) =>
      remote.consume(id).then(
        () => true,
        (reason) => !refusalOf(reason),
      ),
    close: () => client.disconnect(),
  };
}

/**
 * The idea of rate-limiter-flexible's wiki, "Consume with periodic sync to reduce number of requests": a limiter in
 * memory decides; each tenth of its actions consumes ten on Redis; if these are refused, the limiter in memory takes
 * what Redis has counted.
 */
function flexibleWithSync(options) {
  const client = openIoredis(options);
  const { local, remote } = flexibleOver(client, options);
  async function attempt(id) {
    try {
      const { consumedPoints } = await local.consume(id);
      if (consumedPoints % SYNC_EVERY > 0) return true;
    } catch (reason) {
      return !refusalOf(reason);
    }
    try {
      await remote.consume(id, SYNC_EVERY);
      return true;
    } catch (reason) {
      const { consumedPoints, msBeforeNext } = refusalOf(reason);
      await local.set(id, consumedPoints, Math.max(1, msBeforeNext) / 1000);
      return false;
    }
  }
  return { attempt, close: () => client.disconnect() };
}

/**
 * The usual way to count locally in front of a store: fixed windows; what was counted here is added on Redis every
 * 100 ms, and the answer is what all have counted.
 */
function writeBehind(options) {
  const { interval, maxInInterval } = options;
  const client = openIoredis(options);
  const counts = new Map(); // of the current window, by id
  let current = -1;

  /** Counts of a window that is over are given up, as its key is. */
  function countOf(id) {
    const window = Math.floor(Date.now() / interval);
    if (window !== current) counts.clear();
    current = window;
    if (!counts.has(id)) counts.set(id, { everybody: 0, unsent: 0 });
    return counts.get(id);
  }

  async function attempt(id) {
    const count = countOf(id);
    if (count.everybody + count.unsent >= maxInInterval) return false;
    count.unsent += 1;
    return true;
  }

  async function send(id, count) {
    const added = count.unsent;
    count.everybody += added;
    count.unsent = 0;
    const key = `${NAMESPACE}{${id}}${current}`;
    const [[, everybody]] = await client.multi().incrby(key, added).pexpire(key, interval).exec();
    count.everybody = everybody;
  }

  const timer = setInterval(() => {
    for (const [id, count] of counts) send(id, count);
  }, SYNC_MS);
  return {
    attempt,
    close() {
      clearInterval(timer);
      client.disconnect();
    },
  };
}

module.exports = {
  LEASE_MS,
  SYNC_EVERY,
  SYNC_MS,
  flexible,
  flexibleWithSync,
  rollgate,
  rollgateLeases,
  writeBehind,
};
