// Question: how much server CPU does each algorithm's script cost, compared with the simplest script that counts?
//
// Bias, also printed below the tables (see `bias`): the simplest script does less, and one turn of the
// event loop starts many checks.

const { ALGORITHMS } = require('../../lib/options/algorithms');
const { startRedis, stopRedis } = require('../../test/support/redis-server');
const { main } = require('./harness');
const redis = require('./redis');
const { failures, figureOf, number, range, ratio, rounds } = require('./report');
const { drawsFrom, randomIds, runInFlight } = require('./redis-workload');

const NAMESPACE = 'b';
const INTERVAL_MS = 60_000; // little leaves the window while it is measured
const MAX = 5;
const IDS = 10_000;
const CHECKS = 25_000; // of each round
const ROUNDS_OF_JOB = 3;
const IN_FLIGHT = [1, 64];
const MOST_OF_ONE_IN_FLIGHT = 6000;

/** Counts in a fixed window that begins with the first action. */
const PLAINEST = `local n = redis.call('INCR', KEYS[1])
if n == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return n`;

const keyOf = (id) => `${NAMESPACE}{${id}}`;
const windows = [{ interval: INTERVAL_MS, maxInInterval: MAX }];

function scriptArguments(algorithm, how = {}) {
  const {
    callNumbers,
    groupHead,
    policyNumbers,
    runWords,
  } = require('../../lib/stores/redis/script');
  const { OPERATIONS } = require('../../lib/stores/remote/operations');
  const countBlocked = algorithm !== 'gcra';
  const policy = { windows, minDifference: 0, countBlocked, blockFor: [], ...how };
  const head = groupHead(callNumbers(OPERATIONS.ATTEMPT, false), policyNumbers(policy));
  return runWords([{ question: { head, isApart: false }, keys: ['key'], amounts: [] }]).slice(2);
}

/** A script, called with one key at a time. */
async function script(client, source, args) {
  const sha1 = await client.script('LOAD', source);
  return {
    calling: 'await',
    check: (id) => client.evalsha(sha1, '1', keyOf(id), ...args),
    isRefused: () => false,
  };
}

const ownScript = (algorithm, how) => (client) => {
  const SCRIPTS = require('../../lib/stores/redis/scripts');
  return script(client, SCRIPTS[algorithm].source, scriptArguments(algorithm, how));
};

/** The native client makes one command of the checks of a turn. */
const batched =
  (algorithm) =>
  (_client, { url }) => {
    const { RateLimiter } = require('../../lib');
    const limits = { interval: INTERVAL_MS, maxInInterval: MAX };
    const check = RateLimiter({ ...limits, algorithm, redis: url, namespace: NAMESPACE });
    return { calling: 'await', check, isRefused: () => false };
  };

const PLAIN = 'simplest script';
const SUBJECTS = {
  [PLAIN]: (client) => script(client, PLAINEST, [String(INTERVAL_MS)]),
  ...Object.fromEntries(ALGORITHMS.map((name) => [name, ownScript(name)])),
  'sliding-window-log, blockFor': ownScript('sliding-window-log', { blockFor: [1000] }),
  'gcra, blockFor': ownScript('gcra', { blockFor: [1000] }),
};
const BATCHED = Object.fromEntries(ALGORITHMS.map((name) => [`${name}, native`, batched(name)]));

/** All subjects in one process and on one server, in turn, so that a slow moment meets all. */
function jobs({ quick }) {
  return [{ key: 'all', rounds: quick ? 1 : 4, checks: quick ? 4000 : CHECKS }];
}

const middle = (values) => values.sort((a, b) => a - b)[values.length >> 1];

async function measure({ checks }) {
  const Redis = require('ioredis');
  const server = await startRedis();
  const client = new Redis(server.url);
  try {
    const subjects = {};
    for (const [name, create] of Object.entries({ ...SUBJECTS, ...BATCHED })) {
      subjects[name] = await create(client, server);
    }
    const idAt = drawsFrom(randomIds(IDS));
    const found = {};
    const note = (name, value) => {
      found[name] ??= [];
      found[name].push(value);
    };
    for (let round = 0; round < ROUNDS_OF_JOB; round++) {
      for (const inFlight of IN_FLIGHT) {
        for (const [name, subject] of Object.entries(subjects)) {
          if (inFlight === 1 && name in BATCHED) continue;
          const count = inFlight === 1 ? Math.min(checks, MOST_OF_ONE_IN_FLIGHT) : checks;
          await server.command('FLUSHALL');
          await server.command('CONFIG', 'RESETSTAT');
          const run = { idAt, inFlight, count, limitMs: Infinity };
          const { serverCpu } = await runInFlight(subject, server, run);
          note(`cpu${inFlight}/${name}`, serverCpu);
          note(`script${inFlight}/${name}`, await microsInScripts(server, count));
          if (inFlight > 1 && !(name in BATCHED))
            note(`bytes/${name}`, await bytesOf(server, idAt));
        }
      }
    }
    return Object.fromEntries(Object.entries(found).map(([name, all]) => [name, middle(all)]));
  } finally {
    client.disconnect();
    await stopRedis();
  }
}

/** What the server says it has spent in scripts, for each check. */
async function microsInScripts(server, checks) {
  const info = await server.command('INFO', 'commandstats');
  return Number(/cmdstat_evalsha:.*?usec=(\d+)/.exec(info)[1]) / checks;
}

async function bytesOf(server, idAt) {
  return server.command('MEMORY', 'USAGE', keyOf(idAt(0)), 'SAMPLES', '0');
}

function tables({ all }) {
  if (all.error)
    return [{ title: 'Failed', columns: [''], rows: [], notes: failures([['', all]]) }];
  const rowOf = (name, base) => [
    name,
    ...[1, 64].flatMap((inFlight) => {
      const cpu = all[`cpu${inFlight}/${name}`];
      return [figureOf(cpu), range(cpu), ratio(cpu, all[`cpu${inFlight}/${base}`])];
    }),
    figureOf(all[`script64/${name}`]),
    ratio(all[`script64/${name}`], all[`script64/${base}`]),
    figureOf(all[`bytes/${name}`]),
    rounds(all),
  ];
  const columns = ['', 'CPU µs, 1 in flight', 'min – max', 'to the simplest'];
  columns.push('CPU µs, 64 in flight', 'min – max', 'to the simplest');
  columns.push('µs in the script', 'to the simplest', 'bytes of a key', 'rounds');
  return [
    {
      title: `CPU of the server for a check; ${number(IDS)} ids, max ${MAX} in 60 s`,
      columns,
      rows: [...Object.keys(SUBJECTS), ...Object.keys(BATCHED)].map((name) => rowOf(name, PLAIN)),
      notes: [
        'The goal is at most 2.5 times the CPU of the simplest script, with one key per call.',
      ],
    },
  ];
}

const COMPARED_NUMBERS = {
  cpu1: 'CPU of the server, 1 in flight',
  cpu64: 'CPU of the server, 64 in flight',
  bytes: 'bytes of a key',
};

/** Against the simplest script, which does less than any of them. */
function comparisons({ all }) {
  return Object.entries(COMPARED_NUMBERS).flatMap(
    ([number, what]) =>
      [...Object.keys(SUBJECTS), ...Object.keys(BATCHED)]
        .filter((name) => name !== PLAIN)
        .map((name) => ({
          what: `${what}, to that of the ${PLAIN}`,
          to: name,
          ours: all[`${number}/${name}`],
          theirs: all[`${number}/${PLAIN}`],
        }))
        .filter(({ ours }) => ours !== undefined), // not all are asked for everything
  );
}

module.exports = {
  name: 'redis-algorithms',
  title: 'The algorithms on Redis',
  question:
    "How much server CPU does a check by each algorithm's script cost, compared with the simplest script that counts? How many bytes does the server store per id?",
  bias: [
    'The simplest script counts in a fixed window with INCR, and sets an expiry with the first action only. It reads no clock, returns no wait, and ignores the cost.',
    'All scripts are called through one ioredis connection, with one key per call and the shortest reply. "native" is the native client, which combines the checks of one turn of the event loop into one command.',
    'The CPU is that of all threads of the server, from INFO. It includes reading commands and writing replies, which cost less per command if many come at once. "In the script" is the time from the call of a script to its end, as the server measures it by its wall clock.',
    'Each id has 2.5 checks on average, in random order. About 37 % of the checks are the first one of their id, and few are refused. Refusals count, except with gcra.',
    'Bytes are from MEMORY USAGE, with an id of 16 characters and a namespace of one character.',
  ],
  budgetMs: 75_000,
  skip: redis.skip,
  versions: redis.versions,
  jobs,
  measure,
  tables,
  comparisons,
};

if (require.main === module) main(__filename, module.exports);
