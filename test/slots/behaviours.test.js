// The behaviours of slots on each store.
'use strict';

const { ConcurrencyLimiter } = require('../..');
const { errorOf, waitUntil } = require('../support/outcome');
const { EACH_CLIENT, EACH_CLUSTER_CLIENT, openings } = require('../support/redis-clients');
const { startCluster } = require('../support/redis-cluster');
const { startRedis } = require('../support/redis-server');
const { handClock } = require('../support/set-up');
const { hasShared, newName } = require('../support/shared-regions');
const { all, patient } = require('../support/tiers');
const TOPICS = require('./behaviours');

const { using, closeAll } = openings();
const servers = {};
const PATIENT = { commandTimeout: patient(15_000) };

/** By name: what gives the options that say where. */
const STORES = [['memory', () => ({})]];
/** In a container there is little shared memory. */
const newRegion = () => ({ shared: { name: newName(), maxKeys: 100 } });
if (hasShared) STORES.push(['shared', newRegion]);
for (const [name, open] of EACH_CLIENT) {
  STORES.push([name, () => ({ redis: { ...using(open(servers.redis.url)), ...PATIENT } })]);
}
for (const [name, open] of all ? EACH_CLUSTER_CLIENT : []) {
  const redis = () => ({ ...using(open(servers.cluster.urls)), ...PATIENT });
  STORES.push([`${name}, a cluster`, () => ({ redis: redis() })]);
}

beforeAll(async () => {
  servers.redis = await startRedis();
  if (all) servers.cluster = await startCluster();
});

const failureOf = (call) => errorOf(Promise.resolve().then(call));
let made = 0;

describe.each(STORES)('%s', (_, openPlace) => {
  const limiters = [];
  let place;
  let time;
  beforeAll(async () => {
    place = openPlace();
    const limiter = ConcurrencyLimiter({ max: 1, clock: () => 0, ...place });
    await waitUntil('the store answers', async () => (await limiter.usage()).remaining === 1);
    await limiter.close();
  });
  afterAll(closeAll);
  beforeEach(() => {
    time = handClock();
  });
  afterEach(() => Promise.all(limiters.splice(0).map((limiter) => limiter.close())));

  function make(options) {
    made += 1;
    const own = place.shared ? newRegion() : { namespace: `slots-${process.pid}-${made}` };
    const limiter = ConcurrencyLimiter({ max: 1, clock: time.clock, ...place, ...own, ...options });
    limiters.push(limiter);
    return limiter;
  }

  describe.each(Object.entries(TOPICS))('%s', (_topic, behaviours) => {
    test.each(Object.entries(behaviours))('%s', (_sentence, behaviour) =>
      behaviour({ make, failureOf, advance: (ms) => time.advance(ms), isSync: !place.redis }),
    );
  });
});
