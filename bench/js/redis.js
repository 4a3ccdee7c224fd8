// Question: what does a check on Redis cost, alone and with many in flight, and what does the server keep of an id?
//
// Bias, also printed below the tables (see `bias`): the server is on the same machine and has no other
// work, the peers on fixed windows do less, and one turn of the event loop starts many checks.

const { execFileSync } = require('node:child_process');
const { startRedis, stopRedis } = require('../../test/support/redis-server');
const { main } = require('./harness');
const { redisSubjects } = require('./redis-subjects');
const { comparisons, plots } = require('./redis-plots');
const { tables } = require('./redis-tables');
const {
  assertLimits,
  drawsFrom,
  randomIds,
  refusedAbove,
  runInFlight,
} = require('./redis-workload');

const INTERVAL_MS = 60_000; // nothing leaves the window while it is measured
const MAX = 5;
const MAXES = [5, 100, 1000];
const COMPARED = Object.keys(redisSubjects);
const FASTEST = ['rollgate', 'rateLimiterFlexibleIoredis', 'rateLimitRedisIoredis'];
const KEEPING = ['rollgate', 'rollingRateLimiterIoredis', ...FASTEST.slice(1)];

const WARM_UP_CHECKS = 40_000; // a client written in JavaScript gets faster for as long as that
const LEVEL_WARM_UP_MS = 50;

const CASES = {
  tenThousand: { ids: 10_000, checks: 100_000, inFlight: [1, 64, 512], compared: COMPARED },
  million: { ids: 1_000_000, checks: 300_000, inFlight: [64, 512], compared: FASTEST },
};

function jobs({ quick }) {
  const pace = quick ? { warmUpMs: 400, limitMs: 250 } : { warmUpMs: 2000, limitMs: 1200 };
  const rounds = quick ? 1 : 5;
  const moreRounds = quick ? 1 : 9; // of rollgate and the fastest peers
  const refusals = quick ? { count: 10_000, limitMs: 250 } : { count: 100_000, limitMs: 4000 };
  return [
    ...Object.entries(CASES).flatMap(([name, { compared }]) =>
      compared.map((subject) => {
        const isFast = name === 'tenThousand' && FASTEST.includes(subject);
        const key = `${name}/${subject}`;
        return { key, name, subject, ...pace, rounds: isFast ? moreRounds : rounds };
      }),
    ),
    ...MAXES.flatMap((max) =>
      KEEPING.map((subject) => {
        return { key: `bytes/${max}/${subject}`, subject, max, refusals, rounds: 1 };
      }),
    ),
  ];
}

/** A run has a server of its own, with nothing in it. */
async function measure(job) {
  const server = await startRedis();
  try {
    const maxInInterval = job.max ?? MAX;
    const options = { url: server.url, interval: INTERVAL_MS, maxInInterval };
    const subject = await redisSubjects[job.subject].create(options);
    await assertLimits(subject, server, maxInInterval);
    return await (job.max === undefined ? measureSpeed : measureBytes)(subject, server, job);
  } finally {
    await stopRedis();
  }
}

async function measureSpeed(subject, server, { name, warmUpMs, limitMs }) {
  const { ids, checks, inFlight: levels } = CASES[name];
  const idAt = drawsFrom(randomIds(ids));
  const expectRefused = refusedAbove(MAX, idAt);
  const run = async (inFlight, count, limit) => {
    await server.command('FLUSHALL');
    const limits = { inFlight, count, limitMs: limit, expectRefused };
    return runInFlight(subject, server, { idAt, ...limits });
  };
  await run(64, WARM_UP_CHECKS, warmUpMs);
  const numbers = {};
  for (const inFlight of levels) {
    await run(inFlight, checks, LEVEL_WARM_UP_MS);
    global.gc();
    const found = await run(inFlight, checks, limitMs);
    numbers[`perSecond${inFlight}`] = found.perSecond;
    numbers[`p50At${inFlight}`] = found.p50;
    numbers[`p99At${inFlight}`] = found.p99;
    numbers[`nodeCpu${inFlight}`] = found.nodeCpu;
    numbers[`serverCpu${inFlight}`] = found.serverCpu;
    numbers[`refusedPercent${inFlight}`] = (100 * found.refused) / found.checks;
  }
  return numbers;
}

async function measureBytes(subject, server, { max, refusals }) {
  const [id] = randomIds(1);
  const idAt = () => id;
  const bytes = () => server.command('MEMORY', 'USAGE', subject.keyOf(id), 'SAMPLES', '0');
  const fill = { idAt, inFlight: 1, count: max, limitMs: Infinity, expectRefused: () => 0 };
  await runInFlight(subject, server, fill);
  const full = await bytes();
  const allRefused = { idAt, inFlight: 64, ...refusals, expectRefused: (checks) => checks };
  const { checks } = await runInFlight(subject, server, allRefused);
  return { bytes: full, refusals: checks, bytesAfter: await bytes() };
}

function skip() {
  try {
    execFileSync('redis-server', ['--version']);
    return undefined;
  } catch {
    return 'no redis-server on PATH';
  }
}

function versions() {
  const packages = ['rolling-rate-limiter', 'rate-limiter-flexible', 'rate-limit-redis'];
  const server = execFileSync('redis-server', ['--version'], { encoding: 'utf8' });
  return {
    'Redis server': /v=(\S+)/.exec(server)?.[1] ?? 'unknown',
    ...Object.fromEntries(
      [...packages, 'ioredis', 'redis'].map((name) => [
        name,
        require(`../../node_modules/${name}/package.json`).version,
      ]),
    ),
  };
}

module.exports = {
  name: 'redis',
  title: 'A check on Redis',
  question:
    'How much time and CPU (of both processes) does a check on Redis cost, alone and with many in flight? How many bytes does the server store per id?',
  bias: [
    'Client and server run on one machine and use the loopback. A real network adds its round trip to every latency, so latencies differ relatively less. Only the CPU figures stay the same.',
    '"In flight" is the number of loops that await checks. Replies arrive together, so the loops start their next checks together, in one turn of the event loop. The native client combines these into one command. Checks that come one at a time, as with 1 in flight, gain nothing from that.',
    'A latency is the time from the start of a call until its loop continues. It includes waiting for the other checks in flight, so with 64 and 512 in flight it follows from the checks per second.',
    'Each subject has one connection and the default options of its client. ioredis and node-redis also send the commands of one turn together, but as separate commands.',
    'rate-limiter-flexible and rate-limit-redis count in fixed windows: they store one number, where a rolling window needs a log. rolling-rate-limiter counts refused attempts as actions, like rollgate by default, but stores all of them. "Refusals not counted" means that `countBlocked` is false, so that a refused attempt changes nothing. With peers that count in fixed windows, a refused attempt has no effect on later windows either.',
    'All subjects get the same ids in the same order: 10 checks on average for each of 10,000 ids, or fewer if the time limit ends them; see "refused". With 1,000,000 ids, nearly every check is the first one of its id, which creates a key. The number of refusals of each subject is verified.',
    'rollgate and the fastest peers have nine rounds over 10,000 ids, because their ratio is a goal of the project. In the last four of these rounds, no other subject runs.',
    'Each run has a new server, which writes nothing to disk and is emptied before each level. The first 40,000 checks of a run are not measured: while the engine compiles it, a client in JavaScript gets about three times faster. The CPU of the server is that of all its threads, from INFO.',
    'Bytes are from MEMORY USAGE with all samples: the key, its entry, its value and the allocator’s rounding, without the time to live, which every key of every subject has. rolling-rate-limiter does not reach 100,000 refusals, because each one reads all earlier ones; it was stopped at a time limit.',
  ],
  budgetMs: 435_000,
  skip,
  versions,
  jobs,
  measure,
  tables,
  comparisons,
  plots,
};

if (require.main === module) main(__filename, module.exports);
