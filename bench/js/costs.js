// Question: what does an attempt take that costs more than one action, or something of its own in each window?
//
// Bias, also printed below the table (see `bias`): the memory part has one busy id; client and server of Redis are on
// one machine.

const { performance } = require('node:perf_hooks');
const { startRedis, stopRedis } = require('../../test/support/redis-server');
const { main } = require('./harness');
const redis = require('./redis');
const { failures, figureOf, number, range, ratio, rounds } = require('./report');
const { drawsFrom, randomIds, runInFlight } = require('./redis-workload');

const INTERVAL_MS = 60_000;
const COST = 4000;
const ATTEMPTS = 400_000;
const IDS = 1000;
const REDIS_ATTEMPTS = 60_000;
const MOST_COST = 10_000;
const BUDGET = 1_000_000;

const window = (maxInInterval, name) => ({ interval: INTERVAL_MS, maxInInterval, name });
const named = (...limits) => ({ limits, countBlocked: false });
const single = (maxInInterval) => ({ ...window(maxInInterval), countBlocked: false });

// Few are refused: the limits are higher than what is attempted, by as much as costs differ.
const IN_MEMORY = {
  ones: { label: 'cost 1', options: single(1000), cost: undefined },
  large: { label: `cost ${number(COST)} of 2,000,000`, options: single(2_000_000), cost: COST },
  small: { label: 'cost 2 of 2,000,000', options: single(2_000_000), cost: 2 },
  tokens: {
    label: '{ tokens } alone',
    options: named(window(2e9, 'tokens')),
    cost: { tokens: COST },
  },
  both: {
    label: '{ requests, tokens }',
    options: named(window(1e6, 'requests'), window(2e9, 'tokens')),
    cost: { requests: 1, tokens: COST },
  },
};

const costs = drawsFrom(Array.from({ length: 4096 }, (_, i) => 1 + ((i * 7919) % MOST_COST)));

const ON_REDIS = {
  rollgate: {
    label: 'rollgate, log',
    create: (url) => rollgateOnRedis(url, {}),
  },
  fixedWindow: {
    label: 'rollgate, fixed window',
    create: (url) => rollgateOnRedis(url, { algorithm: 'fixed-window' }),
  },
  flexible: {
    label: 'rate-limiter-flexible with ioredis, fixed window',
    create(url) {
      const { RateLimiterRedis } = require('rate-limiter-flexible');
      const storeClient = new (require('ioredis'))(url);
      const limits = { points: BUDGET, duration: INTERVAL_MS / 1000 };
      const limiter = new RateLimiterRedis({ storeClient, keyPrefix: 'f', ...limits });
      let turn = 0;
      return { calling: 'rejects', check: (id) => limiter.consume(id, costs(turn++)) };
    },
  },
};

function rollgateOnRedis(url, options) {
  const { RateLimiter } = require('../../lib');
  const limiter = RateLimiter({ ...single(BUDGET), redis: url, namespace: 'b', ...options });
  let turn = 0;
  return {
    calling: 'await',
    check: (id) => limiter.attempt(id, { cost: costs(turn++) }),
    isRefused: ({ allowed }) => !allowed,
  };
}

const labelOf = (key) => (IN_MEMORY[key] ?? ON_REDIS[key]).label;

function jobs({ quick }) {
  const pace = quick ? { rounds: 1, part: 0.1 } : { rounds: 9, part: 1 };
  return [...Object.keys(IN_MEMORY), ...Object.keys(ON_REDIS)].map((key) => ({ key, ...pace }));
}

async function measure({ key, part }) {
  return key in IN_MEMORY ? measureInMemory(IN_MEMORY[key], part) : measureOnRedis(key, part);
}

function measureInMemory({ options, cost }, part) {
  const { RateLimiter } = require('../../lib');
  const limiter = RateLimiter(options);
  const given = cost === undefined ? undefined : { cost };
  const attempt =
    given === undefined ? (id) => limiter.attempt(id) : (id) => limiter.attempt(id, given);
  const run = (count) => {
    const start = performance.now();
    for (let i = 0; i < count; i++) attempt('busy');
    return ((performance.now() - start) * 1e6) / count;
  };
  run(50_000);
  const empty = RateLimiter(options).stats().bytes;
  return { ns: run(part * ATTEMPTS), bytes: limiter.stats().bytes - empty };
}

async function measureOnRedis(key, part) {
  const server = await startRedis();
  try {
    const subject = ON_REDIS[key].create(server.url);
    const idAt = drawsFrom(randomIds(IDS));
    const run = (count) =>
      runInFlight(subject, server, { idAt, inFlight: 64, count, limitMs: Infinity });
    await run((part * REDIS_ATTEMPTS) / 4);
    const { perSecond } = await run(part * REDIS_ATTEMPTS);
    return { perSecond };
  } finally {
    await stopRedis();
  }
}

function tables(results) {
  const inMemory = Object.keys(IN_MEMORY);
  const onRedis = Object.keys(ON_REDIS);
  const notesOf = (keys) => failures(keys.map((key) => [labelOf(key), results[key]]));
  return [
    {
      title: 'In memory: attempts of one busy id',
      columns: ['', 'ns', 'min – max', 'to cost 1', 'bytes of the id', 'rounds'],
      rows: inMemory.map((key) => [
        labelOf(key),
        figureOf(results[key].ns),
        range(results[key].ns),
        ratio(results[key].ns, results.ones.ns),
        figureOf(results[key].bytes),
        rounds(results[key]),
      ]),
      notes: notesOf(inMemory),
    },
    {
      title: `On Redis: costs of 1 to ${number(MOST_COST)} of ${number(BUDGET)} a minute, ${number(IDS)} ids, 64 in flight`,
      columns: ['', 'attempts/s', 'min – max', 'rollgate is', 'rounds'],
      rows: onRedis.map((key) => [
        labelOf(key),
        figureOf(results[key].perSecond),
        range(results[key].perSecond),
        ratio(results.rollgate.perSecond, results[key].perSecond),
        rounds(results[key]),
      ]),
      notes: notesOf(onRedis),
    },
  ];
}

function comparisons(results) {
  return ['rollgate', 'fixedWindow'].map((key) => ({
    what: `attempts/s with costs, 64 in flight; ${labelOf(key)}`,
    to: labelOf('flexible'),
    ours: results[key].perSecond,
    theirs: results.flexible.perSecond,
    isMoreBetter: true,
  }));
}

module.exports = {
  name: 'costs',
  title: 'Costs',
  question:
    'What does an attempt take that costs more than one action, or something of its own in each window?',
  bias: [
    'In memory, one id is attempted in a loop, so everything is in the caches.',
    'On Redis, client and server run on one machine and use the loopback; refusals are not counted.',
    'rate-limiter-flexible counts in fixed windows, which takes one number per id; a log keeps each attempt.',
  ],
  budgetMs: 90_000,
  skip: redis.skip,
  versions: redis.versions,
  jobs,
  measure,
  tables,
  comparisons,
};

if (require.main === module) main(__filename, module.exports);
