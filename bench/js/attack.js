// Question: does a refusal stay as cheap, and the memory as small, when one id is hammered a million times while blocked?
//
// Bias: one literal id in a tight loop is the best case for every cache; what is compared is each
// subject with itself, the last tenth of its attempts against the first.

const { main } = require('./harness');
const { failures, median, range, ratio } = require('./report');
const { subjects } = require('./subjects');
const { freshIds, literalId, runChecks, sequential, settledRss } = require('./workload');

const ATTEMPTS = 1_000_000;
const STEP = 1000;
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
    lastToFirst: lastTenth / firstTenth,
    growthKiB: growth / 1024,
  };
}

function tables(results) {
  const base = results.rollgate.lastTenth;
  return [
    {
      title: 'One id hammered while blocked, max 5, interval 60 s',
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
      ],
      rows: COMPARED.map((subject) => {
        const { attempts, firstTenth, lastTenth, lastToFirst, growthKiB } = results[subject];
        return [
          subject === 'idsOnly' ? 'no limiter' : subjects[subject].label,
          median(attempts),
          median(firstTenth),
          median(lastTenth),
          range(lastTenth),
          median(lastToFirst),
          ratio(lastTenth, base),
          median(growthKiB),
          range(growthKiB),
        ];
      }),
      notes: failures(COMPARED.map((subject) => [subjects[subject].label, results[subject]])),
    },
  ];
}

module.exports = {
  name: 'attack',
  title: 'One id under attack',
  question:
    'Does a refusal stay as cheap, and the memory as small, when one id is hammered a million times while blocked?',
  bias: [
    'A subject whose cost explodes was stopped at a time limit: "attempts made" says how far it came, and its last tenth is that of the attempts it made. With more time it would be worse.',
    'One literal id in a tight loop is kind to every cache. The promises of those that have them are awaited.',
    'RSS is read after full collections; V8 itself comes and goes by some hundred KiB, as the row without a limiter shows.',
  ],
  budgetMs: 80_000,
  jobs,
  measure,
  tables,
};

if (require.main === module) main(__filename, module.exports);
