// Question: how much resident memory does one id take, once a million ids have made five actions each?
//
// Bias: the figure is all growth of the process's RSS after full collections, so that garbage, spare
// room in tables, V8's semi-spaces and the allocator's leftovers count against their owner. The
// young generation is brought to its working size before the first reading, for every subject.

const { main } = require('./harness');
const { barPlot } = require('./plot-bars');
const { failures, figureOf, number, range, ratio, rounds } = require('./report');
const { subjects } = require('./subjects');
const { freshIds, runChecks, sequential, settledRss } = require('./workload');

const INTERVAL_MS = 300_000; // nothing may expire while the slowest subject is still being filled
const ACTIONS = 5;
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
const DEPENDS_ON_MAX = ['rollgate', 'plainMap', 'plainSlab'];
const LARGE = 10 * MILLION;
const ROUNDS = 3;

function jobs({ quick }) {
  if (quick) return COMPARED.map((subject) => job(subject, 100_000, 5, 1));
  return [
    ...COMPARED.map((subject) => job(subject, MILLION, 5, ROUNDS)),
    ...DEPENDS_ON_MAX.map((subject) => job(subject, MILLION, 10, ROUNDS)),
    ...[5, 10].map((max) => job('rollgate', LARGE, max, ROUNDS)),
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

/** [title, [[subject, result], ...]] for each number of ids and each limit. */
function groupsOf(results) {
  const groups = new Map();
  for (const key of Object.keys(results)) {
    const [ids, max, subject] = key.split('/');
    const group = `${Number(ids).toLocaleString('en-US')} ids, ${ACTIONS} actions each, max ${max}`;
    groups.set(group, [...(groups.get(group) ?? []), [subject, results[key]]]);
  }
  return [...groups];
}

function tables(results) {
  return groupsOf(results).map(([title, entries]) => {
    const base = entries.find(([subject]) => subject === 'rollgate')[1].bytesPerId;
    return {
      title,
      columns: ['', 'bytes per id', 'min – max', 'to rollgate', 'rounds'],
      rows: entries.map(([subject, { bytesPerId, runs }]) => [
        subjects[subject].label,
        figureOf(bytesPerId),
        range(bytesPerId),
        ratio(bytesPerId, base),
        rounds({ runs }),
      ]),
      notes: failures(entries.map(([subject, result]) => [subjects[subject].label, result])),
    };
  });
}

function comparisons(results) {
  return groupsOf(results).flatMap(([title, [[, ours], ...others]]) =>
    others.map(([subject, theirs]) => ({
      what: title,
      to: subjects[subject].label,
      ours: ours.bytesPerId,
      theirs: theirs.bytesPerId,
    })),
  );
}

function plots(results) {
  const groups = groupsOf(results);
  const [first] = groups;
  const shown = groups.filter(([, entries]) => entries.length > 1);
  const own = shown.map(([title, [[, { bytesPerId }]]]) => {
    return `${number(bytesPerId?.figure)} bytes with ${title}`;
  });
  const alt = `Memory per id: rollgate needs ${own.join(', ')}; the table has the figures of the others`;
  const plot = {
    title: 'Memory per id',
    subtitle:
      'Growth of the RSS per id, after full garbage collections. Medians. Whiskers go from the lowest to the highest round. Less is better.',
    description: alt,
    rows: first[1].map(([subject]) => {
      return { label: subjects[subject].label, kind: subject === 'rollgate' ? 'ours' : 'peer' };
    }),
    isOneScale: true,
    bands: [
      shown.map(([title, entries]) => {
        const resultOf = new Map(entries);
        const bytesOf = ([subject]) => {
          const result = resultOf.get(subject);
          return result?.error ? result : result?.bytesPerId;
        };
        return { title, unit: 'bytes per id', values: first[1].map(bytesOf) };
      }),
    ],
  };
  return [{ name: 'bench-memory', alt, svg: barPlot(plot) }];
}

module.exports = {
  name: 'memory',
  title: 'Memory per id',
  question:
    'How much resident memory does one id need, after each of a million ids has made five actions?',
  bias: [
    'The figure is the growth of the RSS of the process after full garbage collections, divided by the number of ids. It includes free room in tables, V8’s heap, and memory that the allocator has not returned. With few ids, these fixed parts are a larger share.',
    'express-rate-limit and rate-limiter-flexible store one count per id and no time stamps. rolling-rate-limiter stores one time stamp per action. The plain JS limiters store doubles, with room for max of them ("Map and rings" starts with 8).',
    'The state of the other peers does not depend on max, so they do not run with max 10.',
    'Ids have 16 characters. The benchmark creates them for each check and does not keep them. A limiter that keeps the string needs memory for it.',
  ],
  budgetMs: 430_000,
  jobs,
  measure,
  tables,
  comparisons,
  plots,
};

if (require.main === module) main(__filename, module.exports);
