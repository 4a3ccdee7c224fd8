// Question: what do many limiters on one connection, TLS and local refusals change about a check on Redis?
//
// Bias, also printed below the table (see `bias`): client and server are on one machine.

const { pemOf, startRedisWithTls, stopRedis } = require('../../test/support/redis-server');
const { main } = require('./harness');
const redis = require('./redis');
const { redisSubjects } = require('./redis-subjects');
const { failures, figureOf, number, range, ratio, rounds } = require('./report');
const { drawsFrom, randomIds, runInFlight } = require('./redis-workload');

const INTERVAL_MS = 60_000;
const MAX = 5;
const IDS = 10_000;
const LIMITERS = 20;
const CHECKS = { 1: 3000, 64: 40_000 }; // by checks in flight
const WARM_UP_MS = 1500;
const LIMIT_MS = 500; // of each level
const REFUSALS = 500_000;
const NAMESPACE = 'b';
const PEERS = ['rateLimitRedisIoredis', 'rateLimiterFlexibleIoredis'];

const isRefused = (timeLeft) => timeLeft > 0;
const limits = { interval: INTERVAL_MS, maxInInterval: MAX };
const tls = () => ({ ca: pemOf('ca.pem') });

function rollgate(options) {
  const { RateLimiter } = require('../../lib');
  return RateLimiter({ ...limits, namespace: NAMESPACE, ...options });
}

/** As rules have them: limiters on one connection. `limitsOf(i)` is what one has of its own. */
const inTurn =
  (limitsOf) =>
  ({ url }) => {
    const each = Array.from({ length: LIMITERS }, (_, i) =>
      rollgate({ redis: url, namespace: `${NAMESPACE}${i}`, ...limitsOf(i) }),
    );
    let turn = 0;
    return (id) => each[turn++ % LIMITERS](id);
  };

const ofRollgate = (create) => (urls) => ({ calling: 'await', check: create(urls), isRefused });
const ofPeer =
  (name) =>
  ({ url }) =>
    redisSubjects[name].create({ url, ...limits });

const SUBJECTS = {
  rollgate: { label: 'rollgate', create: ofRollgate(({ url }) => rollgate({ redis: url })) },
  inTurn: {
    label: `rollgate, ${LIMITERS} limiters in turn`,
    create: ofRollgate(inTurn((i) => ({ interval: INTERVAL_MS + i }))),
  },
  inTurnAlike: {
    label: `rollgate, ${LIMITERS} limiters in turn that differ in their namespace only`,
    create: ofRollgate(inTurn(() => ({}))),
  },
  tls: {
    label: 'rollgate with TLS',
    create: ofRollgate(({ tlsUrl }) => rollgate({ redis: { url: tlsUrl, tls: tls() } })),
  },
  ...Object.fromEntries(
    PEERS.map((name) => [name, { label: redisSubjects[name].label, create: ofPeer(name) }]),
  ),
  script: {
    label: redisSubjects.scriptIoredis.label,
    create: ofPeer('scriptIoredis'),
    levels: [1],
  },
  scriptTls: {
    label: `${redisSubjects.scriptIoredis.label}, with TLS`,
    create: ({ tlsUrl }) =>
      redisSubjects.scriptIoredis.create({ url: [tlsUrl, { tls: tls() }], ...limits }),
    levels: [1],
  },
};

/** One refused id, as an attacker hammers it. */
const HAMMERED = {
  asking: { label: 'rollgate', localRefusals: false, most: REFUSALS / 10 },
  local: { label: 'rollgate with localRefusals', localRefusals: true, most: REFUSALS },
};

const labelOf = (key) => (SUBJECTS[key] ?? HAMMERED[key]).label;

function jobs({ quick }) {
  const pace = quick ? { rounds: 1, part: 0.1 } : { rounds: 9, part: 1 };
  return [...Object.keys(SUBJECTS), ...Object.keys(HAMMERED)].map((key) => ({ key, ...pace }));
}

/** A run has a server of its own, with nothing in it. */
async function measure({ key, part }) {
  const { server, url: tlsUrl } = await startRedisWithTls();
  try {
    if (key in HAMMERED) return await measureRefusals(HAMMERED[key], server, part);
    const { create, levels = [64, 1] } = SUBJECTS[key];
    const subject = await create({ url: server.url, tlsUrl });
    return await measureSpeed(subject, server, levels, part);
  } finally {
    await stopRedis();
  }
}

async function measureSpeed(subject, server, levels, part) {
  const idAt = drawsFrom(randomIds(IDS));
  const run = async (inFlight, limitMs) => {
    await server.command('FLUSHALL');
    const count = part * CHECKS[inFlight];
    return runInFlight(subject, server, { idAt, inFlight, count, limitMs: part * limitMs });
  };
  await run(64, WARM_UP_MS);
  const found = {};
  for (const inFlight of levels) {
    const { perSecond, p50, nodeCpu } = await run(inFlight, LIMIT_MS);
    found[`perSecond${inFlight}`] = perSecond;
    found[`p50At${inFlight}`] = p50;
    found[`nodeCpu${inFlight}`] = nodeCpu;
  }
  return found;
}

async function measureRefusals({ localRefusals, most }, server, part) {
  const check = rollgate({
    ...{ redis: server.url, countBlocked: false, localRefusals },
    interval: 10 * INTERVAL_MS,
  });
  for (let i = 0; i <= MAX; i++) await check('hammered');
  const run = { idAt: () => 'hammered', inFlight: 64, count: part * most, limitMs: Infinity };
  await runInFlight({ calling: 'await', check, isRefused }, server, run); // warm-up
  await server.command('CONFIG', 'RESETSTAT');
  const { perSecond } = await timeOf(check, run);
  const stats = await server.command('INFO', 'commandstats');
  const commands = Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(stats)?.[1] ?? 0);
  return { perSecond64: perSecond, commands };
}

/** As runInFlight, but without a latency for each check, which would take as long as a local refusal. */
async function timeOf(check, { idAt, inFlight, count }) {
  let begun = 0;
  const start = performance.now();
  const loop = async () => {
    while (begun < count) if (!isRefused(await check(idAt(begun++)))) throw new Error('allowed');
  };
  await Promise.all(Array.from({ length: inFlight }, loop));
  return { perSecond: (count * 1e3) / (performance.now() - start) };
}

function tables(results) {
  return [aimsTable(results), speedTable(results), refusalsTable(results)];
}

function fastestPeer(results) {
  const speedOf = (name) => results[name].perSecond64?.figure ?? 0;
  return PEERS.reduce((best, name) => (speedOf(name) > speedOf(best) ? name : best));
}

function aimsTable(results) {
  const peer = fastestPeer(results);
  const divided = (one, other, figure) =>
    results[one][figure]?.figure / results[other][figure]?.figure;
  const aims = [
    ['checks/s, 64 in flight', peer, 'rollgate', 3.5],
    [`the same with ${LIMITERS} limiters in turn`, peer, 'inTurn', 3.5],
    ['the same if they differ in their namespace only', peer, 'inTurnAlike', 3.5],
    ['checks/s with TLS, 64 in flight', 'rollgate', 'tls', 0.8],
  ].map(([what, base, name, goal]) => {
    const value = divided(name, base, 'perSecond64');
    return [`${what}, to ${labelOf(base)}`, value, `≥ ${goal}`, value >= goal];
  });
  for (const [name, base] of [
    ['rollgate', 'script'],
    ['tls', 'scriptTls'],
  ]) {
    const value = divided(name, base, 'p50At1');
    const what = `p50 of ${labelOf(name)}, 1 in flight, to ${labelOf(base)}`;
    aims.push([what, value, '≤ 0.85', value <= 0.85]);
  }
  const perSecond = results.local.perSecond64?.figure;
  const isReached = perSecond >= 4e6;
  aims.push(['checks/s of one refused id with localRefusals', perSecond, '≥ 4,000,000', isReached]);
  return {
    title: 'What is aimed at',
    columns: ['', 'measured', 'goal', 'reached'],
    rows: aims.map(([what, value, goal, isMet]) => [
      what,
      number(value),
      goal,
      isMet ? 'yes' : 'no',
    ]),
  };
}

const notesOf = (results, keys) => failures(keys.map((key) => [labelOf(key), results[key]]));

function speedTable(results) {
  const keys = Object.keys(SUBJECTS);
  return {
    title: `One connection; ${number(IDS)} ids, max ${MAX} in 60 s`,
    columns: [
      ...['', 'p50 µs, 1 in flight', 'min – max', 'checks/s, 64 in flight', 'min – max'],
      ...['rollgate is', 'Node CPU µs', 'rounds'],
    ],
    rows: keys.map((key) => [
      labelOf(key),
      figureOf(results[key].p50At1),
      range(results[key].p50At1),
      figureOf(results[key].perSecond64),
      range(results[key].perSecond64),
      ratio(results.rollgate.perSecond64, results[key].perSecond64),
      figureOf(results[key].nodeCpu64),
      rounds(results[key]),
    ]),
    notes: notesOf(results, keys),
  };
}

function refusalsTable(results) {
  const keys = Object.keys(HAMMERED);
  return {
    title: 'One refused id, refusals not counted, 64 in flight',
    columns: ['', 'checks/s', 'min – max', 'commands sent', 'rounds'],
    rows: keys.map((key) => [
      labelOf(key),
      figureOf(results[key].perSecond64),
      range(results[key].perSecond64),
      figureOf(results[key].commands),
      rounds(results[key]),
    ]),
    notes: notesOf(results, keys),
  };
}

/** Against the fastest peers, and against ioredis with the same script. */
function comparisons(results) {
  const one = (what, key, to, figure) => ({
    what: `${what}; one connection`,
    to: labelOf(to),
    ours: results[key][figure],
    theirs: results[to][figure],
    isMoreBetter: figure === 'perSecond64',
  });
  return [
    ...PEERS.flatMap((peer) => [
      one('checks/s, 64 in flight', 'rollgate', peer, 'perSecond64'),
      one(`${LIMITERS} limiters in turn`, 'inTurn', peer, 'perSecond64'),
      one(`${LIMITERS} limiters of one policy in turn`, 'inTurnAlike', peer, 'perSecond64'),
    ]),
    one('p50, 1 in flight', 'rollgate', 'script', 'p50At1'),
    one('p50, 1 in flight, with TLS', 'tls', 'scriptTls', 'p50At1'),
  ];
}

module.exports = {
  name: 'redis-connections',
  title: 'Connections to Redis',
  question:
    'What do many limiters on one connection, TLS and local refusals change about a check on Redis?',
  bias: [
    'Client and server run on one machine and use the loopback.',
    'Each run has a process and a server of its own, and a warm-up of up to 40,000 checks with 64 in flight.',
    `The ${LIMITERS} limiters have equal connection options, so they share a connection. Their intervals differ, so a batch has a group for each. Those that differ in their namespace only share one group.`,
    'ioredis has one TLS connection as well. The server has one thread for TLS and commands.',
  ],
  budgetMs: 170_000,
  skip: redis.skip,
  versions: redis.versions,
  jobs,
  measure,
  tables,
  comparisons,
};

if (require.main === module) main(__filename, module.exports);
