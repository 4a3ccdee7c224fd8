// Question: how much resident memory does one id take, once a million ids have made five actions each?
//
// Bias: the figure is all growth of the process's RSS after full collections, so that garbage, spare
// room in tables, V8's semi-spaces and the allocator's leftovers count against their owner. The
// young generation is brought to its working size before the first reading, for every subject.

const { main } = require('./harness');
const { failures, median, range, ratio } = require('./report');
const { subjects } = require('./subjects');
const { freshIds, runChecks, sequential, settledRss } = require('./workload');

const INTERVAL_MS = 300_000; // nothing may expire while the slowest subject is still being filled
const ACTIONS = 5;
const MILLION = 1_000_000;
const COMPARED = [
  'rollgate',
  'plainMap',
  'plainSlab',
  'expressRateLimit',
  'rateLimiterFlexible',
  'rollingRateLimiter01',
  'rollingRateLimiter04',
];
const SLOW = ['rateLimiterFlexible', 'rollingRateLimiter01', 'rollingRateLimiter04'];
const DEPENDS_ON_MAX = ['rollgate', 'plainMap', 'plainSlab'];
const LARGE = 10 * MILLION;

function jobs({ quick }) {
  if (quick) return COMPARED.map((subject) => job(subject, 100_000, 5, 1));
  return [
    ...COMPARED.map((subject) => job(subject, MILLION, 5, SLOW.includes(subject) ? 1 : 3)),
    ...DEPENDS_ON_MAX.map((subject) => job(subject, MILLION, 10, 3)),
    ...[5, 10].map((max) => job('rollgate', LARGE, max, 2)),
  ];
}

const job = (subject, ids, max, rounds) => ({
  key: `${ids}/${max}/${subject}`,
  subject,
  ids,
  max,
  rounds,
});

async function measure({ subject: name, ids, max }) {
  const idAt = freshIds(ids);
  const everyId = sequential(ids);
  const nothing = subjects.idsOnly.create();
  await runChecks(nothing, idAt, everyId, 2 * MILLION);
  const before = await settledRss();

  const subject = subjects[name].create({
    interval: INTERVAL_MS,
    maxInInterval: max,
    maxKeys: 2 * ids,
  });
  await runChecks(subject, idAt, everyId, ACTIONS * ids);
  const after = await settledRss();
  subject.check(idAt(0)); // the limiter is alive until here
  return { bytesPerId: (after - before) / ids };
}

function tables(results) {
  const groups = new Map();
  for (const key of Object.keys(results)) {
    const [ids, max, subject] = key.split('/');
    const group = `${Number(ids).toLocaleString('en-US')} ids, ${ACTIONS} actions each, max ${max}`;
    groups.set(group, [...(groups.get(group) ?? []), [subject, results[key]]]);
  }
  return [...groups].map(([title, entries]) => {
    const base = entries.find(([subject]) => subject === 'rollgate')[1].bytesPerId;
    return {
      title,
      columns: ['', 'bytes per id', 'min – max', 'to rollgate', 'rounds'],
      rows: entries.map(([subject, { bytesPerId, runs }]) => [
        subjects[subject].label,
        median(bytesPerId),
        range(bytesPerId),
        ratio(bytesPerId, base),
        String(runs ?? 0),
      ]),
      notes: failures(entries.map(([subject, result]) => [subjects[subject].label, result])),
    };
  });
}

module.exports = {
  name: 'memory',
  title: 'Memory per id',
  question:
    'How much resident memory does one id take, once a million ids have made five actions each?',
  bias: [
    'The figure is all growth of the RSS of the process after full collections, divided by the ids: spare room in tables, V8’s heap and the allocator’s leftovers count against their owner. With few ids these fixed parts weigh more.',
    'express-rate-limit and rate-limiter-flexible keep one count per id and no time stamps, rolling-rate-limiter exactly as many as there were actions; the plain JS limiters keep doubles, and room for max of them (for 8 at first, with Map and rings).',
    'What the other peers keep does not depend on max, so they are not repeated with max 10.',
    'Ids are 16 characters, made anew for each check and not kept by the benchmark. A limiter that keeps the string itself pays for it.',
  ],
  budgetMs: 200_000,
  jobs,
  measure,
  tables,
};

if (require.main === module) main(__filename, module.exports);
