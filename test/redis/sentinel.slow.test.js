// The native client through Sentinels: it finds the master, follows failovers, and says what they answered.
'use strict';

const { errorOf, outcomeOf, waitUntil } = require('../support/outcome');
const { nativeLimiter, scriptRuns } = require('../support/redis-clients');
const { callingEach, startLoad } = require('../support/redis-cluster');
const { startSentinels } = require('../support/redis-sentinel');
const { gonePeer, scriptedPeer } = require('../support/tcp-peers');
const { patient } = require('../support/tiers');

const HOUR = 3_600_000;
const MAX = 20;
const IDS = Array.from({ length: 8 }, (_, i) => `id ${i}`);
const FRESH = Array.from({ length: 8 }, (_, i) => `fresh ${i}`);
const UNREACHABLE = 'ERR_ROLLGATE_REDIS_UNREACHABLE';
const CODE = /^ERR_ROLLGATE_REDIS_(TIMEOUT|UNREACHABLE|REPLY)$/;
const SHORT = patient(500);

let group;

beforeEach(async () => {
  group = await startSentinels();
});
afterEach(() => group.stop());

const limiterAt = (redis, options) =>
  nativeLimiter(
    { sentinels: group.addresses, name: group.name, ...redis },
    { interval: HOUR, maxInInterval: MAX, countBlocked: false, ...options },
  );

/** Resolves once a call succeeds that a replica would refuse. */
const succeedsAgain = (limiter) =>
  waitUntil('calls succeed again', async () => (await limiter('probe')) === 0, {
    withinMs: patient(5000),
  });

test.each([
  ['two planned failovers', async () => [await group.failOver(), await group.failOver()][1]],
  ['a master that dies', () => group.killMaster()],
])('follows %s, and what was used up stays so', async (_, failOver) => {
  const limiter = limiterAt({ commandTimeout: SHORT });
  await Promise.all(IDS.map((id) => limiter.attempt(id, { cost: MAX })));
  await group.replicated();
  const ofFull = startLoad(callingEach(limiter, IDS));
  const ofFresh = startLoad(callingEach(limiter, FRESH));
  await waitUntil('calls are allowed', () => ofFresh.allowed.size === FRESH.length);
  const master = await failOver();
  await succeedsAgain(limiter);
  const runs = await scriptRuns(master);
  await waitUntil('the new master is asked', async () => (await scriptRuns(master)) > runs);
  const { allowed } = await ofFull.stop();
  expect([...allowed]).toEqual([]);
  await ofFresh.stop();
  for (const { code } of [...ofFull.failures, ...ofFresh.failures]) expect(code).toMatch(CODE);
});

test('says the name that no Sentinel knows', async () => {
  const error = await errorOf(limiterAt({ name: 'nobody', commandTimeout: patient(2000) })('a'));
  expect(error.code).toBe(UNREACHABLE);
  expect(error.message).toContain('nobody');
  expect(error.message).toMatch(/sentinel/i);
});

test('one Sentinel that is down is passed over', async () => {
  await group.sentinels[0].stop();
  expect(await limiterAt()('a')).toBe(0);
});

test('without any Sentinel, connections stay, and new ones are made once one is back', async () => {
  const early = limiterAt();
  await early('a');
  await Promise.all(group.sentinels.map((sentinel) => sentinel.stop()));
  expect(await early('a')).toBe(0);
  const late = limiterAt({ commandTimeout: SHORT, connectionName: 'late' });
  for (let times = 0; times < 3; times++) {
    expect(await outcomeOf(late('a'))).toMatch(/_(TIMEOUT|UNREACHABLE)$/);
  }
  await group.sentinels[2].restart();
  await succeedsAgain(late);
});

test.each([
  ['a replica', async () => (await replica()).port],
  ['a server that is gone', async () => (await gonePeer()).port],
])('a Sentinel that takes %s for the master is not believed', async (_, findStale) => {
  const stale = String(await findStale());
  const address = `*2\r\n$9\r\n127.0.0.1\r\n$${stale.length}\r\n${stale}\r\n`;
  const liar = await scriptedPeer((words) => {
    if (!/^sentinel$/i.test(words[0])) return '+OK\r\n';
    return /^get-master-addr-by-name$/i.test(words[1]) ? address : '*0\r\n';
  });
  const sentinels = [{ host: '127.0.0.1', port: liar.port }, ...group.addresses];
  const limiter = limiterAt({ sentinels, commandTimeout: SHORT });
  await succeedsAgain(limiter);
  expect(await limiter('b')).toBe(0);
  expect(liar.connections).toBeGreaterThan(0);
});

async function replica() {
  const master = await group.master();
  return group.servers.find((server) => server !== master);
}
