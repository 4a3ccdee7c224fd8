// Question: what does `require` cost an application that starts, before its first check?
//
// Bias, also printed below the table (see `bias`): everything is in the system's cache already.

const { main } = require('./harness');
const { failures, figureOf, range, ratio, rounds } = require('./report');

const OURS = 'rollgate';
const SUBJECTS = {
  [OURS]: { label: 'rollgate', path: '../..' },
  expressRateLimit: { label: 'express-rate-limit', path: 'express-rate-limit' },
  rateLimiterFlexible: { label: 'rate-limiter-flexible', path: 'rate-limiter-flexible' },
  rollingRateLimiter01: { label: 'rolling-rate-limiter 0.1', path: 'rolling-rate-limiter-0.1' },
  rollingRateLimiter04: { label: 'rolling-rate-limiter 0.4', path: 'rolling-rate-limiter' },
};

function jobs({ quick }) {
  return Object.keys(SUBJECTS).map((key) => ({ key, rounds: quick ? 1 : 15 }));
}

/** In a process of its own, which has loaded nothing but this benchmark. */
function measure({ key }) {
  const loaded = Object.keys(require.cache).length;
  const cpuStart = process.cpuUsage();
  const start = performance.now();
  require(SUBJECTS[key].path);
  const ms = performance.now() - start;
  const { user, system } = process.cpuUsage(cpuStart);
  return { ms, cpuMs: (user + system) / 1e3, files: Object.keys(require.cache).length - loaded };
}

function tables(results) {
  return [
    {
      title: 'The first require, in a process of its own',
      columns: ['', 'ms', 'min – max', 'to rollgate', 'CPU ms', 'to rollgate', 'files', 'rounds'],
      rows: Object.entries(results).map(([key, result]) => [
        SUBJECTS[key].label,
        figureOf(result.ms),
        range(result.ms),
        ratio(result.ms, results[OURS].ms),
        figureOf(result.cpuMs),
        ratio(result.cpuMs, results[OURS].cpuMs),
        figureOf(result.files),
        rounds(result),
      ]),
      notes: failures(
        Object.entries(results).map(([key, result]) => [SUBJECTS[key].label, result]),
      ),
    },
  ];
}

function comparisons(results) {
  const others = Object.entries(results).filter(([key]) => key !== OURS);
  return Object.entries({ ms: 'the first require', cpuMs: 'its CPU time' }).flatMap(
    ([number, what]) =>
      others.map(([key, theirs]) => ({
        what,
        to: SUBJECTS[key].label,
        ours: results[OURS][number],
        theirs: theirs[number],
      })),
  );
}

module.exports = {
  name: 'load',
  title: 'Loading',
  question: 'How much does `require` add to the start of an application, before its first check?',
  bias: [
    'The files are in the system’s file cache. The first start after a boot takes longer, for all packages.',
    'None of the packages loads a Redis client. What a limiter loads on first use is not included.',
    '"Files" is the number of modules in the CommonJS cache, including the addon.',
  ],
  budgetMs: 20_000,
  jobs,
  measure,
  tables,
  comparisons,
};

if (require.main === module) main(__filename, module.exports);
