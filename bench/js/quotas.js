// Question: what does a check take with a calendar window, with limits of its own, or with both?
//
// Bias, also printed below the table (see `bias`): the windows last as long as the benchmark, so that no boundary is
// looked for but the first.

const { main } = require('./harness');
const { failures, figureOf, range, ratio, rounds } = require('./report');
const { freshIds, randomOrder } = require('./workload');

const CHECKS = 200_000;
const IDS = 10_000;
const MAX = 1_000_000;
const HOUR = 3_600_000;

const interval = { interval: HOUR, maxInInterval: MAX };
const calendar = { calendar: 'month', timeZone: 'Europe/Berlin', maxInInterval: MAX };

const fixed = (limit) => ({ algorithm: 'fixed-window', limits: [limit] });
const withAlgorithm = (algorithm, maxInInterval = MAX) => ({
  algorithm,
  limits: [{ interval: HOUR, maxInInterval }],
});
const call = (limiter) => limiter;
const attempt = (limiter) => (id) => limiter.attempt(id);
const within = (limits) => (limiter) => (id) => limiter.attempt(id, { limits });

const CASES = {
  interval: {
    label: 'limiter(id), fixed window of an hour',
    options: fixed(interval),
    check: call,
  },
  calendar: {
    label: 'limiter(id), calendar month',
    options: fixed(calendar),
    check: call,
    base: 'interval',
  },
  attempt: {
    label: 'attempt(id), log of at most 5',
    options: withAlgorithm('sliding-window-log', 5),
    check: attempt,
  },
  limits: {
    label: 'attempt(id, { limits: 5 }), log of at most 5',
    options: withAlgorithm('sliding-window-log', 5),
    check: within(5),
    base: 'attempt',
  },
  attemptFixed: {
    label: 'attempt(id), fixed window',
    options: withAlgorithm('fixed-window'),
    check: attempt,
  },
  limitsFixed: {
    label: 'attempt(id, { limits: 1000 }), fixed window',
    options: withAlgorithm('fixed-window'),
    check: within(1000),
    base: 'attemptFixed',
  },
  attemptGcra: { label: 'attempt(id), gcra', options: withAlgorithm('gcra'), check: attempt },
  limitsGcra: {
    label: 'attempt(id, { limits: 1000 }), gcra',
    options: withAlgorithm('gcra'),
    check: within(1000),
    base: 'attemptGcra',
  },
};

function jobs({ quick }) {
  const pace = quick ? { rounds: 1, part: 0.1 } : { rounds: 9, part: 1 };
  return Object.keys(CASES).map((key) => ({ key, ...pace }));
}

function measure({ key, part }) {
  const { RateLimiter } = require('../../lib');
  const { options, check } = CASES[key];
  const limiter = RateLimiter({ countBlocked: false, ...options });
  const ask = check(limiter);
  const idAt = freshIds(IDS);
  const order = randomOrder(IDS);
  const run = (checks) => {
    const before = process.cpuUsage();
    for (let i = 0; i < checks; i++) ask(idAt(order[i]));
    const { user, system } = process.cpuUsage(before);
    return ((user + system) * 1000) / checks;
  };
  run(CHECKS / 2);
  return { ns: Math.min(...Array.from({ length: 5 }, () => run(part * CHECKS))) };
}

const keys = Object.keys(CASES);

function tables(results) {
  const baseOf = (key) => results[CASES[key].base ?? key].ns;
  return [
    {
      title: 'CPU time of a check, one after the other, 10,000 ids',
      columns: ['', 'ns', 'min – max', 'to the one without', 'rounds'],
      rows: keys.map((key) => [
        CASES[key].label,
        figureOf(results[key].ns),
        range(results[key].ns),
        ratio(results[key].ns, baseOf(key)),
        rounds(results[key]),
      ]),
      notes: failures(keys.map((key) => [CASES[key].label, results[key]])),
    },
  ];
}

/** It is compared with itself. */
const comparisons = () => [];

module.exports = {
  name: 'quotas',
  title: 'Quotas and plans',
  question: 'What does a check take with a calendar window, or with limits of its own?',
  bias: [
    'The windows last as long as the benchmark: a boundary is looked for once, not once in a window.',
    'Every call brings the same limits, in a new object.',
  ],
  budgetMs: 30_000,
  jobs,
  measure,
  tables,
  comparisons,
};

if (require.main === module) main(__filename, module.exports);
