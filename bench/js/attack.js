// Question: does a refusal stay as cheap, and the memory as small, when one id is hammered a million times while blocked?
//
// Bias: one literal id in a tight loop is the best case for every cache; what is compared is each
// subject with itself, the last tenth of its attempts against the first.

const { main } = require('./harness');
const { linePlot } = require('./plot-lines');
const { failures, figureOf, number, range, ratio, rounds } = require('./report');
const { subjects } = require('./subjects');
const { freshIds, literalId, runChecks, sequential, settledRss } = require('./workload');

const ATTEMPTS = 1_000_000;
const STEP = 1000;
const MARKS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].map((thousands) => thousands * 1000);
const COMPARED = [
  'rollgate',
  'plainMap',
  'plainSlab',
  'expressRateLimit',
  'rateLimiterFlexible',
  'rollingRateLimiter01',
  'rollingRateLimiter04',
  'idsOnly',
];

function jobs({ quick }) {
  return COMPARED.map((subject) => ({
    key: subject,
    subject,
    limitMs: quick ? 500 : 8000,
    rounds: quick ? 1 : 3,
  }));
}

async function measure({ subject: name, limitMs }) {
  const subject = subjects[name].create({ interval: 60_000, maxInInterval: 5, maxKeys: 100_000 });
  const idAt = literalId();
  const one = sequential(1);
  // Warm-up on other ids, refusals included, so that the first tenth is not the compiler's.
  await runChecks(subject, freshIds(20_000), (k) => (k >> 3) % 20_000, 200_000, { limitMs: 1000 });
  await runChecks(subject, idAt, one, 10);

  const rssBefore = await settledRss();
  const steps = [];
  const start = performance.now();
  while (steps.length < ATTEMPTS / STEP && performance.now() - start < limitMs) {
    steps.push((await runChecks(subject, idAt, one, STEP)).wall);
  }
  const growth = (await settledRss()) - rssBefore;
  subject.check(idAt())?.catch?.(() => {}); // alive until here
  const tenth = Math.max(1, Math.floor(steps.length / 10));
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const firstTenth = mean(steps.slice(0, tenth));
  const lastTenth = mean(steps.slice(-tenth));
  return {
    attempts: steps.length * STEP,
    firstTenth,
    lastTenth,
    ...alongTheWay(steps),
    lastToFirst: lastTenth / firstTenth,
    growthKiB: growth / 1024,
  };
}

/** What a refusal cost around the thousandth, two thousandth, ... attempt, as far as it came. */
function alongTheWay(steps) {
  const reached = MARKS.filter((mark) => steps.length * STEP >= mark);
  const around = reached.map((mark) => {
    const last = mark / STEP; // the half of the steps before the mark, one at least
    const values = steps.slice(Math.min(last - 1, Math.floor(last / 2)), last);
    return [`at${mark}`, values.reduce((sum, value) => sum + value, 0) / values.length];
  });
  return Object.fromEntries(around);
}

function tables(results) {
  const base = results.rollgate.lastTenth;
  return [
    {
      title: 'One blocked id, max 5, interval 60 s',
      columns: [
        '',
        'attempts made',
        'first tenth, ns',
        'last tenth, ns',
        'min – max',
        'last / first',
        'last tenth to rollgate',
        'RSS growth, KiB',
        'min – max',
        'rounds',
      ],
      rows: COMPARED.map((subject) => {
        const { attempts, firstTenth, lastTenth, lastToFirst, growthKiB } = results[subject];
        return [
          subject === 'idsOnly' ? 'no limiter' : subjects[subject].label,
          figureOf(attempts),
          figureOf(firstTenth),
          figureOf(lastTenth),
          range(lastTenth),
          figureOf(lastToFirst),
          ratio(lastTenth, base),
          figureOf(growthKiB),
          range(growthKiB),
          rounds(results[subject]),
        ];
      }),
      notes: failures(COMPARED.map((subject) => [subjects[subject].label, results[subject]])),
    },
  ];
}

const COMPARED_NUMBERS = {
  firstTenth: 'a refusal in the first tenth of the attempts',
  lastTenth: 'a refusal in the last tenth of the attempts',
  growthKiB: 'growth of the RSS',
};

function comparisons(results) {
  const others = COMPARED.filter((subject) => subject !== 'rollgate' && subject !== 'idsOnly');
  return Object.entries(COMPARED_NUMBERS).flatMap(([number, what]) =>
    others.map((subject) => ({
      what,
      to: subjects[subject].label,
      ours: results.rollgate[number],
      theirs: results[subject][number],
    })),
  );
}

function plots(results) {
  const shown = COMPARED.filter((subject) => subject !== 'idsOnly');
  const series = shown.map((subject) => {
    const { error } = results[subject];
    const points = error ? [] : pointsOf(results[subject]);
    return { label: subjects[subject].label, isOurs: subject === 'rollgate', error, points };
  });
  const [{ points: own }] = series;
  const alt = `Cost of a refusal while one blocked id makes many attempts: rollgate needs ${number(own[0]?.figure)} ns near the beginning and ${number(own.at(-1)?.figure)} ns at the end; a rising line means that refusals get more expensive; a line that ends early was stopped at a time limit`;
  const plot = {
    title: 'Cost of a refusal by number of refusals before it, one blocked id',
    subtitle:
      'Least times. Whiskers go from the lowest to the highest round. A line that ends early was stopped at a time limit. Less is better.',
    description: alt,
    xTitle: 'attempts made so far (logarithmic scale)',
    yTitle: 'ns per refusal (logarithmic scale)',
    series,
  };
  return [{ name: 'bench-attack', alt, svg: linePlot(plot) }];
}

/** By attempts made, as far as every round came; only the first and the last tenth where nothing else was kept. */
function pointsOf(result) {
  const marked = MARKS.filter((mark) => Number.isFinite(result[`at${mark}`]?.max));
  if (marked.length > 0) return marked.map((mark) => ({ x: mark, ...result[`at${mark}`] }));
  const { attempts, firstTenth, lastTenth } = result;
  return [
    { x: attempts.figure * 0.05, ...firstTenth },
    { x: attempts.figure * 0.95, ...lastTenth },
  ];
}

module.exports = {
  name: 'attack',
  title: 'One id under attack',
  question:
    'One blocked id makes a million attempts. Do the cost of a refusal and the memory stay the same?',
  bias: [
    'A subject whose cost grows too much is stopped at a time limit. "Attempts made" is the number of attempts up to then, and the last tenth is the last tenth of these. With more time, the result would be worse.',
    'One literal id in a tight loop is the best case for every cache. If a limiter returns a promise, it is awaited.',
    'RSS is read after full garbage collections. It varies by some hundred KiB because of V8 itself, as the row without a limiter shows.',
  ],
  budgetMs: 90_000,
  jobs,
  measure,
  tables,
  comparisons,
  plots,
};

if (require.main === module) main(__filename, module.exports);
