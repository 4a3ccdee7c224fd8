// A master that is cut off from the others of its cluster: the native client finds the replica that took over.
'use strict';

const { keySlot } = require('../../lib/stores/redis/cluster');
const { ClusterNetwork } = require('../support/cluster-network');
const { outcomeOf, waitUntil } = require('../support/outcome');
const { nativeLimiter } = require('../support/redis-clients');
const { callingEach, startCluster, startLoad } = require('../support/redis-cluster');
const { patient } = require('../support/tiers');

const HOUR = 3_600_000;
const MAX = 20;
const IDS = Array.from({ length: 30 }, (_, i) => `id ${i}`);
/** Without a node, the others go on. */
const ARGS = ['--cluster-require-full-coverage', 'no'];
const CODE = /^ERR_ROLLGATE_REDIS_(TIMEOUT|UNREACHABLE|REPLY)$/;
const SHORT = patient(500);

let network;
let cluster;
/** The master that is cut off, its ids, and all others. */
let isolated;
let lost;
let kept;

beforeAll(async () => {
  network = new ClusterNetwork();
  cluster = await startCluster({ replicas: 1, args: ARGS, network });
}, patient(60_000));

beforeEach(() => cluster.settled());

afterEach(() => network.heal());

const limiterAt = (seeds, options) =>
  nativeLimiter(
    { cluster: seeds, commandTimeout: SHORT },
    { interval: HOUR, maxInInterval: MAX, countBlocked: false, ...options },
  );

const succeedsAgain = (limiter, ids) =>
  waitUntil('calls succeed again', () => limiter.attemptMany(ids), { withinMs: patient(10_000) });

/** Chooses the master that is to be cut off, by its place in the order of addresses. */
async function choose(place) {
  const owners = await Promise.all(IDS.map((id) => cluster.ownerOf(keySlot(`{${id}}`))));
  const masters = [...new Set(owners)].sort((a, b) =>
    network.urlOf(a) < network.urlOf(b) ? -1 : 1,
  );
  expect(masters).toHaveLength(3);
  isolated = masters[place];
  lost = IDS.filter((_, i) => owners[i] === isolated);
  kept = IDS.filter((_, i) => owners[i] !== isolated);
}

/** All ids of the limiter are used up, and the replicas know it. */
async function useUp(limiter) {
  await Promise.all(IDS.map((id) => limiter.attempt(id, { cost: MAX })));
  await cluster.replicated(isolated);
}

/** Resolves once the majority has a new master for the slots of the isolated one. */
const majorityHasElected = () =>
  waitUntil('the replica has taken over', async () => {
    const roles = await Promise.all(cluster.nodes.map((node) => node.command('ROLE')));
    return roles.filter(([role]) => role === 'master').length === 4;
  });

/** Whichever node a client prefers to ask for the map. */
const EACH_PLACE = [0, 1, 2];

test.each(EACH_PLACE)(
  'clients of all nodes are served by the majority, without master %i',
  async (place) => {
    await choose(place);
    const limiter = limiterAt(cluster.urls);
    await useUp(limiter);
    const ofKept = startLoad(callingEach(limiter, kept));
    const ofLost = startLoad(callingEach(limiter, lost));
    network.partition([isolated]);
    await majorityHasElected();
    await succeedsAgain(limiter, lost);
    await Promise.all([ofKept.stop(), ofLost.stop()]);
    expect(ofKept.failures).toEqual([]);
    expect(ofKept.made).toBeGreaterThan(0);
    expect([...ofKept.allowed, ...ofLost.allowed]).toEqual([]);
    for (const { code } of ofLost.failures) expect(code).toMatch(CODE);
  },
);

test.each(EACH_PLACE)(
  'a client that knows only master %i does not stay with its old map',
  async (place) => {
    await choose(place);
    await useUp(limiterAt(cluster.urls, { namespace: `old map ${place}` }));
    network.partition([isolated]);
    await majorityHasElected();
    const limiter = limiterAt([network.urlOf(isolated)], { namespace: `old map ${place}` });
    await succeedsAgain(limiter, kept);
    await succeedsAgain(limiter, lost);
    const decisions = await limiter.attemptMany(IDS);
    expect(decisions.filter(({ allowed }) => allowed)).toEqual([]);
  },
);

test('a client on the side of the minority fails in time, and is served when the partition ends', async () => {
  await choose(0);
  const limiter = limiterAt(cluster.urls);
  await useUp(limiter);
  network.partition([isolated], { clientIsWith: [isolated] });
  const load = startLoad(callingEach(limiter, IDS));
  await majorityHasElected();
  const outcomes = await Promise.all(kept.map((id) => outcomeOf(limiter(id))));
  for (const outcome of outcomes) expect(outcome).toMatch(CODE);
  network.heal();
  await succeedsAgain(limiter, IDS);
  const { allowed, failures } = await load.stop();
  expect([...allowed]).toEqual([]);
  for (const { code } of failures) expect(code).toMatch(CODE);
});
