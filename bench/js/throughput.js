// Question: what does one check cost, by itself in a loop, from one hot id to a million ids that come in no order?
//
// Bias, also printed below the tables (see `bias`): the figures contain the making of the ids, the
// peers answer less exactly (a fixed window) or have no bound on memory, and a loop is kinder to
// every subject's branch predictor and caches than a server is.

const { main } = require('./harness');
const { linePlot } = require('./plot-lines');
const { DASH, failures, figureOf, number, percent, range, ratio, rounds } = require('./report');
const { subjects } = require('./subjects');
const {
  flatIds,
  freshIds,
  literalId,
  randomOrder,
  runChecks,
  sequential,
  shuffled,
} = require('./workload');

const INTERVAL_MS = 60_000;
const MILLION = 1_000_000;
const COMPARED = [
  'rollgate',
  'rollgateWasm',
  'plainMap',
  'plainSlab',
  'expressRateLimit',
  'rateLimiterFlexible',
  'rollingRateLimiter01',
  'rollingRateLimiter04',
];

// Checks: a warm-up, then `checks` per order; both stop at their time limit for the slow ones.
// With max 100 the checks of an id must stay below 100, or they would be refusals again.
const CASES = {
  literal: {
    title: 'One literal id, max 5: all but the first few are refused',
    ids: 1,
    make: literalId,
    max: 5,
    warmUp: 300_000,
    checks: 2_000_000,
    rounds: 5,
  },
  tenThousand: {
    title: '10,000 ids, freshly joined, max 5: most are refused',
    ids: 10_000,
    make: freshIds,
    max: 5,
    warmUp: 300_000,
    checks: 2_000_000,
    rounds: 5,
  },
  tenThousandFlat: {
    title:
      '10,000 ids, fresh and flat (copied from bytes, as Node creates headers and addresses), max 5',
    ids: 10_000,
    make: flatIds,
    max: 5,
    warmUp: 300_000,
    checks: 2_000_000,
    rounds: 5,
  },
  tenThousandAllowed: {
    title: '10,000 ids, freshly joined, max 100: most are allowed',
    ids: 10_000,
    make: freshIds,
    max: 100,
    warmUp: 100_000,
    checks: 350_000,
    rounds: 5,
  },
  million: {
    title: '1,000,000 ids, freshly joined, max 5',
    ids: MILLION,
    make: freshIds,
    max: 5,
    warmUp: 500_000,
    checks: 2_000_000,
    rounds: 3,
  },
  millionAllowed: {
    title: '1,000,000 ids, freshly joined, max 100: all are allowed',
    ids: MILLION,
    make: freshIds,
    max: 100,
    warmUp: 500_000,
    checks: 2_000_000,
    rounds: 3,
  },
  emptyWindow: {
    title:
      'rolling-rate-limiter at its best: one literal id, and a window so short (1 µs) that it is always empty',
    ids: 1,
    make: literalId,
    max: 100,
    interval: 0.001,
    warmUp: 300_000,
    checks: 2_000_000,
    rounds: 5,
    only: [
      'rollgate',
      'rollgatePromise',
      'plainMap',
      'plainSlab',
      'rollingRateLimiter01',
      'rollingRateLimiter04',
    ],
  },
};

function jobs({ quick }) {
  const cases = quick ? ['literal', 'tenThousand', 'emptyWindow'] : Object.keys(CASES);
  return cases.flatMap((name) =>
    [...(CASES[name].only ?? COMPARED), 'idsOnly'].map((subject) => ({
      key: `${name}/${subject}`,
      name,
      subject,
      limitMs: quick ? 100 : 1200,
      rounds: quick ? 1 : roundsOf(subject, CASES[name]),
    })),
  );
}

/** The slowest subjects, for which nobody needs the last percent, leave time for the others. */
function roundsOf(subject, { rounds: most }) {
  return subject.startsWith('rollingRateLimiter') ? Math.min(most, 3) : most;
}

async function measure({ name, subject: subjectName, limitMs }) {
  const { ids, make, max, interval = INTERVAL_MS, warmUp, checks } = CASES[name];
  const subject = subjects[subjectName].create({
    interval,
    maxInInterval: max,
    maxKeys: 2 * ids + 1000,
  });
  const idAt = make(ids);
  const inTurn = sequential(ids);
  const anyOrder = shuffled(randomOrder(ids));
  const limits = { limitMs, step: 1000 };

  await runChecks(subject, idAt, inTurn, ids); // every id is known before anything is measured
  await runChecks(subject, idAt, anyOrder, warmUp, limits);
  const random = await runChecks(subject, idAt, anyOrder, checks, limits);
  if (ids === 1) return numbers('random', random);
  await runChecks(subject, idAt, inTurn, warmUp / 3, limits);
  const ordered = await runChecks(subject, idAt, inTurn, checks, limits);
  return { ...numbers('random', random), ...numbers('ordered', ordered) };
}

function numbers(order, { wall, cpu, refused, checks }) {
  return {
    [`${order}Wall`]: wall,
    [`${order}Cpu`]: cpu,
    [`${order}RefusedPercent`]: (100 * refused) / checks,
  };
}

function tables(results) {
  const names = Object.keys(CASES).filter((name) => results[`${name}/rollgate`]);
  return names.flatMap((name) => {
    const orders = CASES[name].ids === 1 ? ['random'] : ['random', 'ordered'];
    return orders.map((order) => table(results, name, order));
  });
}

function table(results, name, order) {
  const wall = `${order}Wall`;
  const cpu = `${order}Cpu`;
  const resultOf = (subject) => results[`${name}/${subject}`];
  const base = resultOf('rollgate');
  const compared = [...(CASES[name].only ?? COMPARED), 'idsOnly'];
  const rows = compared.map((subject) => {
    const result = resultOf(subject);
    return [
      subjects[subject].label,
      figureOf(result[wall]),
      range(result[wall]),
      ratio(result[wall], base[wall]),
      figureOf(result[cpu]),
      ratio(result[cpu], base[cpu]),
      percent(result[`${order}RefusedPercent`]),
      rounds(result),
    ];
  });
  const best = (number) =>
    [resultOf('plainMap')[number], resultOf('plainSlab')[number]].reduce((a, b) =>
      a && b && b.figure < a.figure ? b : a,
    );
  rows.push([
    'the better plain JS',
    figureOf(best(wall)),
    range(best(wall)),
    ratio(best(wall), base[wall]),
    figureOf(best(cpu)),
    ratio(best(cpu), base[cpu]),
    DASH,
    DASH,
  ]);
  return {
    title: titleOf(name, order),
    columns: [
      '',
      'ns per check',
      'min – max',
      'to rollgate',
      'CPU ns',
      'to rollgate',
      'refused',
      'rounds',
    ],
    rows,
    notes: failures(compared.map((subject) => [subjects[subject].label, resultOf(subject)])),
  };
}

const ORDERS = { random: 'random order', ordered: 'one after the other' };

const titleOf = (name, order) =>
  CASES[name].ids === 1 ? CASES[name].title : `${CASES[name].title}; ${ORDERS[order]}`;

function comparisons(results) {
  return Object.entries(CASES).flatMap(([name, { ids, only = COMPARED }]) =>
    Object.keys(ORDERS).flatMap((order) => {
      const ours = results[`${name}/rollgate`];
      if (ours === undefined || (ids === 1 && order === 'ordered')) return [];
      return only
        .filter((subject) => !subject.startsWith('rollgate'))
        .flatMap((subject) =>
          ['Wall', 'Cpu'].map((kind) => ({
            what: `${kind === 'Cpu' ? 'CPU' : 'time'} of a check. ${titleOf(name, order)}`,
            to: subjects[subject].label,
            ours: ours[order + kind],
            theirs: results[`${name}/${subject}`][order + kind],
          })),
        );
    }),
  );
}

const PLOTTED = ['literal', 'tenThousand', 'million'];

function plots(results) {
  const names = PLOTTED.filter((name) => results[`${name}/rollgate`]);
  const series = COMPARED.map((subject) => ({
    label: subjects[subject].label,
    isOurs: subject === 'rollgate',
    error: names.map((name) => results[`${name}/${subject}`].error).find(Boolean),
    points: names.map((name) => {
      return { x: CASES[name].ids, ...results[`${name}/${subject}`].randomWall };
    }),
  }));
  const own = series[0].points.map(({ x, figure: ns }) => {
    return `${number(ns)} ns with ${x === 1 ? '1 id' : `${x.toLocaleString('en-US')} ids`}`;
  });
  const alt = `Cost of one check by number of ids, max 5, random order: rollgate needs ${own.join(', ')}, compared with ${series.length - 1} other limiters`;
  const plot = {
    title: 'Cost of one check by number of ids',
    subtitle:
      'Max 5 in 60 s, ids in random order. Least times. Whiskers go from the lowest to the highest round. Less is better.',
    description: alt,
    xTitle: 'number of ids (logarithmic scale)',
    yTitle: 'ns per check (logarithmic scale)',
    xTicks: names.map((name) => CASES[name].ids),
    series,
  };
  return [{ name: 'bench-throughput', alt, svg: linePlot(plot) }];
}

module.exports = {
  name: 'throughput',
  title: 'Cost of one check',
  question: 'What does one check cost in a loop, from one id to a million ids in random order?',
  bias: [
    'Every figure includes the loop and creating the id; "id building only" shows these alone. Ratios include them too, which understates the differences.',
    'A joined id ("a" + "b") becomes one piece of memory when it is first read. This costs every subject time, and most if it uses the string as the key of a Map. The case with flat ids shows how much.',
    'With few ids and max 5, nearly every check is a refusal, as in an attack. With max 100, most checks are allowed.',
    'The plain JS limiters and express-rate-limit never evict. rolling-rate-limiter and rate-limiter-flexible have a timer per id. rollgate has room for twice the number of ids, so it does not evict here either.',
    'express-rate-limit and rate-limiter-flexible count in fixed windows: they do less than a rolling window does.',
    'express-rate-limit, rate-limiter-flexible and rolling-rate-limiter 0.4 return a promise, which is awaited as in an application. rate-limiter-flexible rejects it to refuse.',
    'rolling-rate-limiter stores every attempt of the last interval, refused or not, so its cost grows with the time of the measurement. It was stopped at a time limit.',
    'The loop has no turns of the event loop, timers or sockets. So caches work better than in a server.',
  ],
  budgetMs: 435_000,
  jobs,
  measure,
  tables,
  comparisons,
  plots,
};

if (require.main === module) main(__filename, module.exports);
