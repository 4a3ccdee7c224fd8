// Random operations on slots, compared with the oracle.
'use strict';

const { ConcurrencyLimiter, unlinkShared } = require('../../lib');
const { redisAt } = require('../support/redis-clients');
const { startRedis } = require('../support/redis-server');
const { hasShared, newName } = require('../support/shared-regions');
const { all, patient } = require('../support/tiers');
const { randomFrom } = require('../support/traces');
const { SlotOracle } = require('./oracle');

const OPERATIONS = all ? 200_000 : 40_000;
/** In a container there is little shared memory. */
const MOST_SHARED = 1000;
const FEW = ['', 'a', 'user-7', 'é', 'x'.repeat(40), '\ud800', 5, 6n];
/** More than the table keeps when nobody holds them. */
const MANY = Array.from({ length: 200 }, (_, i) => `id ${i}`);

/** One trace; `limits` are those of the oracle, and `place` says where the slots are. */
async function compare(seed, place, { max, maxAge, maxKeys, ids = FEW }, operations) {
  const random = randomFrom(seed);
  const oracle = new SlotOracle({ max, maxAge, maxKeys });
  const limiter = ConcurrencyLimiter({
    max,
    maxKeys: place.shared ? (maxKeys ?? MOST_SHARED) : maxKeys,
    maxAge: maxAge === undefined ? undefined : maxAge / 1000,
    clock: () => oracle.now / 1000,
    ...place,
  });
  /** [slot, holder of the oracle, whether it was released], also of slots that are gone. */
  const taken = [];
  const expectSame = (what, given, expected) => {
    if (JSON.stringify(given) === JSON.stringify(expected)) return;
    throw new Error(`seed ${seed}: ${what}: ${JSON.stringify([given, expected])}`);
  };

  const steps = {
    async acquire() {
      const id = random.pick(ids);
      const cost = random.chance(70) ? 1 : random.between(1, oracle.max);
      const own = random.chance(20) ? random.between(0, 2 * max) : undefined;
      const before = oracle.used(String(id));
      const isFull = before === 0 && oracle.keys >= oracle.maxKeys;
      const holder = oracle.acquire(String(id), cost, own);
      const most = own ?? oracle.max;
      const slot = await limiter.acquire(
        id,
        random.chance(50) ? { cost, max: own } : { cost, max: most },
      );
      const used = holder === null ? before : before + cost;
      // A refusal by its own cost is no refusal for room.
      const isForRoom = holder === null && isFull && cost <= most;
      const remaining = isForRoom ? 0 : Math.max(0, most - used);
      const { allowed } = slot;
      const shown = { allowed, max: slot.max, used: slot.used, remaining: slot.remaining };
      expectSame('acquire', shown, { allowed: holder !== null, max: most, used, remaining });
      if (holder !== null) taken.push([slot, holder, false]);
    },
    async release() {
      if (taken.length === 0) return;
      const place = random.between(0, taken.length - 1);
      const [slot, holder] = taken[place];
      expectSame('release', await slot.release(), oracle.release(holder));
      taken[place][2] = true;
      if (random.chance(80)) taken.splice(place, 1);
    },
    async usage() {
      const id = random.pick(ids);
      expectSame('usage', (await limiter.usage(id)).used, oracle.used(String(id)));
    },
    pass() {
      oracle.now += random.between(0, 2000);
    },
    stats() {
      const { keys, held, oldest } = limiter.stats();
      const expected = oracle.held.reduce((sum, { cost }) => sum + cost, 0);
      // In a region, ids that nobody holds keep their place until another one needs it.
      const knownKeys = place.redis ? null : place.shared ? keys : oracle.keys;
      const shown = [keys, held, Math.round(oldest * 1000)];
      expectSame('stats', shown, [knownKeys, expected, oracle.oldest]);
    },
    lost() {
      if (taken.length === 0) return;
      const [slot, holder, isReleased] = random.pick(taken);
      // Of one that was lost before its release, it depends on when the signal was read.
      if (!isReleased) expectSame('lost', slot.lost.aborted, !oracle.holds(holder));
    },
    setMax() {
      oracle.max = random.between(1, 2 * max);
      limiter.setMax(oracle.max);
    },
    async clear() {
      const id = random.pick(ids);
      await limiter.clear(id);
      oracle.clear(String(id));
    },
    async clearAll() {
      await limiter.clearAll();
      oracle.clearAll();
    },
  };
  const often = ['acquire', 'acquire', 'acquire', 'release', 'release', 'usage', 'pass', 'lost'];
  const rare = ['setMax', 'clear', 'clearAll', 'stats'];
  for (let k = 0; k < operations; k++) {
    await steps[random.pick(random.chance(95) ? often : rare)]();
  }
  for (const [slot, holder] of taken)
    expectSame('end', await slot.release(), oracle.release(holder));
  expectSame('nothing is held', limiter.stats().held, 0);
  await limiter.close();
  if (place.shared) unlinkShared(place.shared);
}

const PLACES = {
  memory: () => ({}),
  ...(hasShared && { shared: () => ({ shared: newName() }) }),
};

const LIMITS = {
  'one slot': { max: 1 },
  'several slots': { max: 4 },
  'many ids': { max: 2, ids: MANY },
  'slots that end': { max: 3, maxAge: 5000 },
  'few ids': { max: 2, maxKeys: 3 },
  'few ids, whose slots end': { max: 5, maxKeys: 2, maxAge: 3000 },
};

describe.each(Object.entries(PLACES))('%s', (_place, place) => {
  test.each(Object.entries(LIMITS))('%s', async (_name, limits) => {
    const traces = 20;
    for (let seed = 1; seed <= traces; seed++) {
      await compare(seed, place(), limits, OPERATIONS / traces / 6);
    }
  });
});

describe('on Redis', () => {
  let server;
  beforeAll(async () => {
    server = await startRedis();
  });

  test.each([
    ['several slots', { max: 4, ids: FEW.filter((id) => id !== '\ud800') }],
    ['slots that end', { max: 3, maxAge: 5000, ids: ['a', 'b'] }],
    ['many ids', { max: 2, ids: MANY }],
  ])('%s', async (_, limits) => {
    const connection = redisAt(server.url);
    const option = typeof connection === 'string' ? { url: connection } : { client: connection };
    const redis = { ...option, commandTimeout: patient(15_000) };
    const operations = all ? 5000 : 1000;
    for (let seed = 1; seed <= 3; seed++) await compare(seed, { redis }, limits, operations);
  });
});
