// Question: what does a flood of new ids cost, in time and memory, once the limiter holds as many ids as it may?
//
// Bias: only rollgate has a bound, so the others are there to show what having none means. A flood
// evicts ids that still count, which is the price of the bound: those ids start anew.

const { main } = require('./harness');
const { failures, figureOf, range, ratio, rounds } = require('./report');
const { subjects } = require('./subjects');
const { freshIds, runChecks, sequential, settledRss } = require('./workload');

const SUBJECTS = {
  bounded: {
    subject: 'rollgate',
    label: (bound) => `rollgate, maxKeys ${bound.toLocaleString('en-US')}`,
    isBounded: true,
  },
  roomy: { subject: 'rollgate', label: () => 'rollgate, room for all' },
  plainSlab: { subject: 'plainSlab', label: () => 'plain JS, Map and slab (no bound)' },
  expressRateLimit: { subject: 'expressRateLimit', label: () => 'express-rate-limit (no bound)' },
};

function jobs({ quick }) {
  const [bound, flood] = quick ? [10_000, 100_000] : [100_000, 1_000_000];
  return Object.keys(SUBJECTS).map((key) => ({ key, bound, flood, rounds: quick ? 1 : 5 }));
}

async function measure({ key, bound, flood }) {
  const { subject: name, isBounded } = SUBJECTS[key];
  const idAt = freshIds(bound + flood);
  await runChecks(subjects.idsOnly.create(), idAt, sequential(bound + flood), 2_000_000);
  const before = await settledRss();
  const maxKeys = isBounded ? bound : 2 * (bound + flood);
  const subject = subjects[name].create({ interval: 60_000, maxInInterval: 5, maxKeys });

  const fill = await runChecks(subject, idAt, sequential(bound), bound);
  const filledRss = await settledRss();
  const flooded = await runChecks(subject, idAt, (k) => bound + k, flood);
  const floodedRss = await settledRss();
  subject.check(idAt(0)); // alive until here
  return {
    fillWall: fill.wall,
    floodWall: flooded.wall,
    floodCpu: flooded.cpu,
    filledMiB: (filledRss - before) / 2 ** 20,
    floodedMiB: (floodedRss - before) / 2 ** 20,
  };
}

function tables(results) {
  const base = results.bounded;
  const { bound, flood } = base.job;
  return [
    {
      title: `${bound.toLocaleString('en-US')} ids, then a flood of ${flood.toLocaleString('en-US')} new ones`,
      columns: [
        '',
        'first ids, ns',
        'flood, ns',
        'min – max',
        'to rollgate',
        'flood, CPU ns',
        'RSS before, MiB',
        'RSS after, MiB',
        'rounds',
      ],
      rows: Object.keys(SUBJECTS).map((key) => {
        const result = results[key];
        return [
          SUBJECTS[key].label(bound),
          figureOf(result.fillWall),
          figureOf(result.floodWall),
          range(result.floodWall),
          ratio(result.floodWall, base.floodWall),
          figureOf(result.floodCpu),
          figureOf(result.filledMiB),
          figureOf(result.floodedMiB),
          rounds(result),
        ];
      }),
      notes: failures(
        Object.keys(SUBJECTS).map((key) => [SUBJECTS[key].label(bound), results[key]]),
      ),
    },
  ];
}

const COMPARED_NUMBERS = {
  fillWall: 'the first ids',
  floodWall: 'the flood, time',
  floodCpu: 'the flood, CPU',
  floodedMiB: 'memory after the flood',
};

function comparisons(results) {
  const { bounded, ...others } = results;
  return Object.entries(COMPARED_NUMBERS).flatMap(([number, what]) =>
    Object.entries(others).map(([key, theirs]) => ({
      what,
      to: SUBJECTS[key].label(bounded.job.bound),
      ours: bounded[number],
      theirs: theirs[number],
    })),
  );
}

module.exports = {
  name: 'floods',
  title: 'A flood of new ids',
  question:
    'How much time and memory does a flood of new ids cost, once the limiter holds its maximum number of ids?',
  bias: [
    'Only rollgate has a maximum number of ids. The others keep as many ids as a client invents.',
    'An eviction forgets an id that has not expired. With a maximum as small as here, each id of the flood causes one. In an application, set the maximum above the number of ids that you expect.',
    'Figures include creating the ids, as in all benchmarks. RSS is the growth since before the limiter was created.',
  ],
  budgetMs: 50_000,
  jobs,
  measure,
  tables,
  comparisons,
};

if (require.main === module) main(__filename, module.exports);
