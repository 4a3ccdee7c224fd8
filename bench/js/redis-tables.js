// The tables of the benchmark on Redis: what was aimed at, the figures of each level, the bytes of a key.

const { redisSubjects } = require('./redis-subjects');
const { DASH, failures, figureOf, number, percent, range, ratio, rounds } = require('./report');

const CASES = {
  tenThousand: { title: '10,000 ids, max 5 in 60 s', levels: [1, 64, 512] },
  million: { title: '1,000,000 ids, mostly new keys, max 5 in 60 s', levels: [64, 512] },
};
const MAXES = [5, 100, 1000];
const AIMS = { 64: '≥ 3.5', 512: '≥ 4.5' }; // in flight

const labelOf = (subject) => redisSubjects[subject].label;

/** [subject, result] of each job whose key begins so. */
const entriesOf = (results, start) =>
  Object.entries(results)
    .filter(([key]) => key.startsWith(start))
    .map(([key, result]) => [key.slice(start.length), result]);

const notesOf = (entries) => failures(entries.map(([name, result]) => [labelOf(name), result]));

function tables(results) {
  return [
    aimsTable(results),
    ...Object.entries(CASES).flatMap(([name, { title, levels }]) =>
      levels.map((inFlight) => {
        return speedTable(`${title}; ${inFlight} in flight`, results, name, inFlight);
      }),
    ),
    bytesTable(results),
  ];
}

function speedTable(title, results, name, inFlight) {
  const entries = entriesOf(results, `${name}/`);
  const base = results[`${name}/rollgate`];
  const columns = [
    '',
    'checks/s',
    'min – max',
    'rollgate is',
    'p50 µs',
    'p99 µs',
    'Node CPU µs',
    'to rollgate',
    'server CPU µs',
    'to rollgate',
    'refused',
    'rounds',
  ];
  const rows = entries.map(([subject, result]) => {
    const of = (what) => result[`${what}${inFlight}`];
    const toBase = (what) => ratio(of(what), base[`${what}${inFlight}`]);
    return [
      labelOf(subject),
      figureOf(of('perSecond')),
      range(of('perSecond')),
      ratio(base[`perSecond${inFlight}`], of('perSecond')),
      figureOf(of('p50At')),
      figureOf(of('p99At')),
      figureOf(of('nodeCpu')),
      toBase('nodeCpu'),
      figureOf(of('serverCpu')),
      toBase('serverCpu'),
      percent(of('refusedPercent')),
      rounds(result),
    ];
  });
  return { title, columns, rows, notes: notesOf(entries) };
}

function bytesTable(results) {
  const columns = ['', 'max', 'bytes', 'to rollgate', 'refusals made'];
  columns.push('bytes after', 'to before', 'rounds');
  const entries = MAXES.flatMap((max) =>
    entriesOf(results, `bytes/${max}/`).map(([subject, result]) => ({ max, subject, result })),
  );
  const rows = entries.map(({ max, subject, result }) => [
    labelOf(subject),
    String(max),
    figureOf(result.bytes),
    ratio(result.bytes, results[`bytes/${max}/rollgate`].bytes),
    figureOf(result.refusals),
    figureOf(result.bytesAfter),
    ratio(result.bytesAfter, result.bytes),
    rounds(result),
  ]);
  const title = 'Bytes of one key, with max actions and after many refusals';
  return { title, columns, rows, notes: notesOf(entries.map((e) => [e.subject, e.result])) };
}

/** The peer that made most checks per second at this level. */
function fastestPeer(results, inFlight) {
  const peers = entriesOf(results, 'tenThousand/').filter(
    ([subject, result]) => redisSubjects[subject].isPeer && !result.error,
  );
  const speed = ([, result]) => result[`perSecond${inFlight}`].figure;
  return peers.reduce(
    (best, peer) => (best && speed(best) >= speed(peer) ? best : peer),
    undefined,
  );
}

function aimsTable(results) {
  const own = results['tenThousand/rollgate'];
  const rrl = 'rollingRateLimiterIoredis';
  const divided = (a, b) => (a && b ? a.figure / b.figure : NaN);
  const uncounted = results['tenThousand/rollgateUncounted'];
  const speed = (inFlight, [subject, result] = [], aim = AIMS[inFlight], of = own, how = '') => [
    `checks/s, ${inFlight} in flight, to ${subject ? labelOf(subject) : 'a peer'}${how}`,
    divided(of[`perSecond${inFlight}`], result?.[`perSecond${inFlight}`]),
    aim,
  ];
  const fastest = fastestPeer(results, 64);
  const rows = [
    speed(64, fastest),
    speed(512, fastestPeer(results, 512)),
    ...[64, 512].map((inFlight) => {
      const peer = fastestPeer(results, inFlight);
      return speed(inFlight, peer, AIMS[inFlight], uncounted, '; refusals not counted');
    }),
    ...[64, 512].map((inFlight) => {
      return speed(inFlight, [rrl, results[`tenThousand/${rrl}`]], '≥ 10');
    }),
    [
      `Node CPU per check, 64 in flight, to ${fastest ? labelOf(fastest[0]) : 'a peer'}`,
      divided(own.nodeCpu64, fastest?.[1].nodeCpu64),
      '≤ 0.20',
    ],
    [
      `p50, 1 in flight, to ${labelOf('scriptIoredis')}`,
      divided(own.p50At1, results['tenThousand/scriptIoredis'].p50At1),
      '≤ 0.85',
    ],
    ...[
      [5, '≤ 130'],
      [100, '≤ 1,200'],
    ].map(([max, aim]) => [
      `bytes of a key at max ${max}`,
      results[`bytes/${max}/rollgate`].bytes?.figure,
      aim,
    ]),
    ...MAXES.map((max) => {
      const { bytes, bytesAfter } = results[`bytes/${max}/rollgate`];
      return [
        `bytes of a key at max ${max}, after refusals to before`,
        divided(bytesAfter, bytes),
        '1',
      ];
    }),
  ];
  return {
    title: 'Aims',
    columns: ['rollgate', 'measured', 'aimed at', 'met'],
    rows: rows.map(([what, value, aim]) => {
      return [what, value === undefined ? DASH : number(value), aim, met(value, aim)];
    }),
  };
}

/** An aim is a number, with what must hold of a value before it: ≥, ≤, or equal. */
function met(value, aim) {
  if (!Number.isFinite(value)) return DASH;
  const [, how, bound] = /^([≥≤]?)\s*(.+)$/.exec(aim.replaceAll(',', ''));
  if (how === '≥') return value >= Number(bound) ? 'yes' : 'no';
  return value <= Number(bound) ? 'yes' : 'no';
}

module.exports = { CASES, MAXES, entriesOf, labelOf, tables };
