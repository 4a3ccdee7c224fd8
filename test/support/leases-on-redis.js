// Limiters that lease ids on a real server, by a clock that moves by hand. All are closed after each test.
'use strict';

const RateLimiter = require('../..');
const { gatedClient } = require('./gated-client');
const { redisAt } = require('./redis-clients');
const { redisForTests } = require('./redis-server');
const { handClock } = require('./set-up');
const { patient } = require('./tiers');

const LEASE = 100;
const SECOND = 1000;

/** At the top of a test file. `later(stop)` is for what else is stopped after a test, after what is made then. */
function leasesOnRedis() {
  const server = redisForTests();
  const stops = [];
  let namespaces = 0;
  afterEach(async () => {
    for (const stop of stops.splice(0).reverse()) await stop();
  });
  const later = (stop) => stops.push(stop);

  /** Limiters on one namespace and one clock. */
  function group(options) {
    namespaces += 1;
    const namespace = `leases-${namespaces}`;
    const { clock, advance } = handClock();
    const create = (more) => {
      const limiter = new RateLimiter({
        ...{ interval: SECOND, maxInInterval: 1000, countBlocked: false, lease: LEASE },
        ...{ namespace, clock, redis: redisAt(server.url), ...options, ...more },
      });
      later(() => limiter.close());
      return limiter;
    };
    return { clock, advance, create };
  }

  /** A limiter with a lease of 'a' that has room, and one without leases, which tells what is used. */
  async function withLease({ redis, ...options } = {}) {
    const { clock, advance, create } = group(options);
    const [plain, limiter] = [create({ lease: undefined }), create(redis && { redis })];
    for (let i = 0; i < 60; i++) {
      await limiter('a');
      advance(4);
    }
    advance(LEASE);
    await limiter('a'); // settles what it has, and gets a new lease
    expect(limiter.stats()).toMatchObject({ leases: 1 });
    const used = async () => (await plain.usage('a')).used;
    return { clock, advance, limiter, plain, used };
  }

  /** The same over a client that can be held up. */
  async function withGatedLease({ commandTimeout = patient(300), maxQueue, ...options } = {}) {
    const gated = await gatedClient(server.url);
    later(() => gated.close());
    const redis = { client: gated.client, commandTimeout, maxQueue };
    const made = await withLease({ redis, ...options });
    later(() => gated.mend());
    return { ...made, gated };
  }

  return { server, later, group, withLease, withGatedLease };
}

module.exports = { LEASE, SECOND, leasesOnRedis };
