// Question: how much faster are checks with leases, how much less is the server asked, and what of it is lost?
//
// A command is what the server is asked about one id in one run of a script: settlement, attempts and grant of a lease
// together are one. Its key is in the run once. MONITOR shows all runs with their keys, and each key is counted; runs
// are counted by INFO commandstats (calls of EVALSHA) where MONITOR would slow down what is measured.
//
// Bias, also printed below the tables (see `bias`): all holders of one run are in one process, each with a connection
// of its own.

const { startRedis, stopRedis, callsOf } = require('../../test/support/redis-server');
const { main } = require('./harness');
const subjects = require('./leases-subjects');
const {
  Attempts,
  RunsOfServer,
  atRandomTimes,
  randomUnits,
  weightedDraws,
} = require('./leases-workload');
const { FLIGHTS, HOLDERS, LOADS, SPREADS, scenarioOf, tables } = require('./leases-tables');
const redis = require('./redis');

const INTERVAL_MS = 1000;
const MAX = 600;
const LIMITS = { interval: INTERVAL_MS, maxInInterval: MAX };
const OUT_OF_REACH = 1e9;
const ONE_ID = 'user-00000000042';

const WARM_UP_MS = 2 * INTERVAL_MS;
const MEASURED_MS = 8 * INTERVAL_MS;

/** Loops of checks, by checks in flight: of a limiter with leases, and of one without. */
const CHECKS = {
  with: { 1: 1_000_000, 64: 1_000_000, 512: 1_000_000 },
  without: { 1: 15_000, 64: 60_000, 512: 60_000 },
};
const SPEED_SUBJECTS = { with: subjects.rollgateLeases, without: subjects.rollgate };

const ZIPF_IDS = 1000;
const ZIPF_PER_SECOND = 4000;
const ZIPF_HOLDERS = 4;
const ZIPF = {
  with: { create: subjects.rollgateLeases },
  without: { create: subjects.rollgate },
  // Apart, because MONITOR takes time of the server.
  commands: { create: subjects.rollgateLeases, isCounted: true },
};

const OTHER_SUBJECTS = {
  leases: subjects.rollgateLeases,
  flexible: subjects.flexible,
  flexibleWithSync: subjects.flexibleWithSync,
  writeBehind: subjects.writeBehind,
};

function jobs({ quick }) {
  const pace = quick ? { rounds: 1, part: 0.25 } : { rounds: 3, part: 1 };
  const many = quick ? pace : { rounds: 9, part: 1 };
  const of = (kind, names, given) =>
    names.map((name) => ({ key: `${kind}/${name}`, kind, name, ...given }));
  return [
    ...of('speed', Object.keys(SPEED_SUBJECTS), many),
    ...of('zipf', ['with', 'without'], many),
    ...of('zipf', ['commands'], pace),
    ...of('held', HOLDERS, pace),
    ...of('others', Object.keys(OTHER_SUBJECTS), pace),
  ];
}

const MEASURES = {
  speed: measureSpeed,
  zipf: measureZipf,
  held: measureHeld,
  others: measureOthers,
};

/** A run has a server of its own, with nothing in it. */
async function measure({ kind, name, part }) {
  const server = await startRedis();
  try {
    return await MEASURES[kind](server, name, part);
  } finally {
    await stopRedis();
  }
}

const openHolders = (create, url, count) =>
  Array.from({ length: count }, () => create({ url, ...LIMITS }));

async function measureSpeed({ url }, name, part) {
  const options = { url, interval: INTERVAL_MS, maxInInterval: OUT_OF_REACH };
  const { limiter } = SPEED_SUBJECTS[name](options);
  const counts = CHECKS[name];
  await perSecond(limiter, 64, part * counts[64]);
  const found = {};
  for (const inFlight of FLIGHTS) {
    await perSecond(limiter, inFlight, (part * counts[inFlight]) / 10);
    found[`perSecond${inFlight}`] = await perSecond(limiter, inFlight, part * counts[inFlight]);
  }
  if (name === 'with') {
    const { local } = limiter.stats();
    found.localPercent = (100 * local) / limiter.stats().allowed;
  }
  return found;
}

/** No latency is taken of each check, which would take as long as a local decision. */
async function perSecond(limiter, inFlight, count) {
  let begun = 0;
  const loop = async () => {
    while (begun < count) {
      begun += 1;
      if ((await limiter(ONE_ID)) > 0) throw new Error('a check was refused');
    }
  };
  const start = performance.now();
  await Promise.all(Array.from({ length: inFlight }, loop));
  return (count * 1e3) / (performance.now() - start);
}

/** Every combination of load and spread has an id of its own; all of them run at the same time. */
async function measureHeld(server, holderCount, part) {
  const holders = openHolders(subjects.rollgateLeases, server.url, holderCount);
  const scenarios = SPREADS.flatMap((spread) =>
    LOADS.map((load) => ({ id: scenarioOf(spread, load), spread, load })),
  );
  const monitor = await RunsOfServer.of(server);
  const found = await attemptAll({ holders, scenarios, monitor, part });
  const numbers = {};
  for (const [id, { attempts, allowed, exact, most }] of found) {
    numbers[`commandsPerAttempt ${id}`] = monitor.ofIds.get(id) / attempts;
    numbers[`sharePercent ${id}`] = (100 * allowed) / exact;
    numbers[`overPercent ${id}`] = overOf(most);
  }
  return numbers;
}

async function measureOthers(server, name, part) {
  const holders = openHolders(OTHER_SUBJECTS[name], server.url, 4);
  const id = scenarioOf('even', 1.2);
  const scenarios = [{ id, spread: 'even', load: 1.2 }];
  const found = await attemptAll({ holders, scenarios, part });
  const { allowed, exact, most } = found.get(id);
  for (const holder of holders) await holder.close();
  return { sharePercent: (100 * allowed) / exact, overPercent: overOf(most) };
}

/** By how much the most in one interval is above the limit, in percent of it. */
const overOf = (most) => (100 * Math.max(0, most - MAX)) / MAX;

const WEIGHTS = { even: () => 1, skewed: (i) => 1 / (i + 1) ** 1.5 };

/** What the attempts of each scenario come to, by id, once rates and leases have settled. */
async function attemptAll({ holders, scenarios, monitor, part }) {
  const start = performance.now() + WARM_UP_MS;
  const end = start + Math.ceil((part * MEASURED_MS) / INTERVAL_MS) * INTERVAL_MS;
  setTimeout(() => monitor?.start(), WARM_UP_MS);
  const made = scenarios.map(async ({ id, spread, load }, i) => {
    const attempts = new Attempts();
    const unit = randomUnits(1000 + i);
    const draw = weightedDraws(
      holders.map((_, place) => WEIGHTS[spread](place)),
      unit,
    );
    await atRandomTimes({
      ...{ perSecond: load * MAX, end, unit },
      act: (now) => {
        const holder = holders[draw()];
        attempts.make(now, () => holder.attempt(id));
      },
    });
    return [id, attempts];
  });
  const all = await Promise.all(made);
  monitor?.stop();
  await new Promise((resolve) => setTimeout(resolve, 200)); // for the last answers
  return new Map(all.map(([id, attempts]) => [id, attempts.since(start, LIMITS)]));
}

async function measureZipf(server, name, part) {
  const { create, isCounted } = ZIPF[name];
  const holders = openHolders(create, server.url, ZIPF_HOLDERS);
  const unit = randomUnits(4711);
  const ids = Array.from({ length: ZIPF_IDS }, (_, i) => `user-${String(i).padStart(11, '0')}`);
  const drawId = weightedDraws(
    ids.map((_, i) => 1 / (i + 1)),
    unit,
  );
  const latencies = [];
  let attempts = 0;
  let isMeasured = false;
  const attempt = async (now) => {
    const holder = holders[Math.floor(unit() * ZIPF_HOLDERS)];
    const counts = isMeasured;
    if (counts) attempts += 1;
    await holder.attempt(ids[drawId()]);
    if (counts) latencies.push(performance.now() - now);
  };
  const run = (ms) =>
    atRandomTimes({ perSecond: ZIPF_PER_SECOND, end: performance.now() + ms, unit, act: attempt });

  await run(WARM_UP_MS);
  const monitor = isCounted ? await RunsOfServer.of(server) : undefined;
  const runsBefore = await callsOf(server, 'evalsha');
  monitor?.start();
  isMeasured = true;
  await run((part * MEASURED_MS) / 2);
  isMeasured = false;
  monitor?.stop();
  const runs = (await callsOf(server, 'evalsha')) - runsBefore;
  await new Promise((resolve) => setTimeout(resolve, 200)); // for the last answers
  if (monitor) return { commandsPerAttempt: monitor.commands / attempts };
  const sorted = Float64Array.from(latencies).sort();
  return {
    p50: sorted[Math.floor(sorted.length * 0.5)] * 1e3,
    p99: sorted[Math.floor(sorted.length * 0.99)] * 1e3,
    commandsRunPerAttempt: runs / attempts,
  };
}

/** It is compared with itself; what others let through is in a table. */
const comparisons = () => [];

module.exports = {
  name: 'leases',
  title: 'Leases',
  question:
    'How much faster are checks on Redis with leases, how often is the server asked, and how much of what an exact log allows is lost?',
  bias: [
    `A lease is ${subjects.LEASE_MS} ms. Limits are ${MAX} in ${INTERVAL_MS / 1000} s, or out of reach where checks per second are measured. Client and server run on one machine and use the loopback.`,
    'All holders of a run are in one process, each with a limiter and a connection of its own. For the server and for the protocol that is the same as processes; the figures of speed are of one limiter.',
    'Without leases, each check of one id is a command, and the checks of one turn share a run of the script.',
    'Attempts come at random moments (Poisson), each from a holder drawn at random: from all alike (even), or from the i-th by 1/i^1.5 (skewed). The load is the rate of all holders together, as a part of the limit. Attempts that are refused are not repeated. A timer starts them in steps of one millisecond.',
    'The exact log is computed by brute force from the times of the same attempts. It knows all of them at once and takes no time.',
    'A command is what the server is asked about one id in one run of a script: settlement, attempts and grant of a lease together are one. Commands are counted from MONITOR by their keys, in runs where no time is measured; runs of scripts are calls of EVALSHA by INFO commandstats. For one id both are the same number.',
    'The first two seconds of a run are not measured: rates have to be known before leases are taken. All six ids of a number of holders run at the same time.',
    `"Most in one interval" is the most actions that surely were in one interval of ${INTERVAL_MS / 1000} s: those whose call and answer both are. It is of the whole run, the worst of its rounds.`,
    `Of others: rate-limiter-flexible asks Redis for each attempt (fixed windows). "With sync" is the idea of its wiki's page "Consume with periodic sync to reduce number of requests": a limiter in memory decides, and every ${subjects.SYNC_EVERY}th action is told to Redis. The write-behind counter was written for this comparison: fixed windows, local counts that are added on Redis every ${subjects.SYNC_MS} ms, as gateways publish it.`,
  ],
  budgetMs: 400_000,
  skip: redis.skip,
  versions: redis.versions,
  jobs,
  measure,
  tables,
  comparisons,
};

if (require.main === module) main(__filename, module.exports);
