// What the benchmark on Redis shows beside its tables: the plot, and the figures that are held against one another.

const { redisSubjects } = require('./redis-subjects');
const { barPlot } = require('./plot-bars');
const { CASES, MAXES, entriesOf, labelOf } = require('./redis-tables');
const { number } = require('./report');

const NUMBERS = {
  perSecond: { words: 'checks/s', isMoreBetter: true },
  p50At: { words: 'p50' },
  p99At: { words: 'p99' },
  nodeCpu: { words: 'CPU of Node' },
  serverCpu: { words: 'CPU of the server' },
};

/** Not to rollgate itself, used in another way. */
const othersOf = (results, start) =>
  entriesOf(results, start).filter(([subject]) => !subject.startsWith('rollgate'));

function comparisons(results) {
  const speed = Object.entries(CASES).flatMap(([name, { title, levels }]) =>
    levels.flatMap((inFlight) =>
      Object.entries(NUMBERS).flatMap(([key, { words, isMoreBetter }]) =>
        othersOf(results, `${name}/`).map(([subject, theirs]) => ({
          what: `${words}, ${inFlight} in flight. ${title}`,
          to: labelOf(subject),
          ours: results[`${name}/rollgate`][`${key}${inFlight}`],
          theirs: theirs[`${key}${inFlight}`],
          isMoreBetter,
        })),
      ),
    ),
  );
  const bytes = MAXES.flatMap((max) =>
    othersOf(results, `bytes/${max}/`).flatMap(([subject, theirs]) =>
      ['bytes', 'bytesAfter'].map((key) => ({
        what: `bytes of a key at max ${max}${key === 'bytes' ? '' : ', after many refusals'}`,
        to: labelOf(subject),
        ours: results[`bytes/${max}/rollgate`][key],
        theirs: theirs[key],
      })),
    ),
  );
  return [...speed, ...bytes];
}

const BANDS = [
  { key: 'perSecond', title: 'Checks/s', unit: 'checks per second; more is better' },
  { key: 'nodeCpu', title: 'Node CPU', unit: 'µs of CPU per check; less is better' },
  { key: 'serverCpu', title: 'Server CPU', unit: 'µs of CPU per check; less is better' },
];

function plots(results) {
  const { title, levels } = CASES.tenThousand;
  const entries = entriesOf(results, 'tenThousand/');
  const own = results['tenThousand/rollgate'];
  const words = levels.map((inFlight) => {
    const of = (key) => number(own[`${key}${inFlight}`]?.figure);
    return `${of('perSecond')} checks/s with ${inFlight} in flight at ${of('nodeCpu')} µs of CPU in Node and ${of('serverCpu')} µs in the server`;
  });
  const alt = `A check on Redis by checks in flight, compared with peers. rollgate: ${words.join('; ')}`;
  const plot = {
    title: 'A check on Redis, by checks in flight',
    subtitle: `${title}. rollgate over another client or with other options is light blue. Least times and highest rates. Whiskers go from the lowest to the highest round.`,
    description: alt,
    rows: entries.map(([subject]) => ({ label: labelOf(subject), kind: kindOf(subject) })),
    labelWidth: 252,
    bands: BANDS.map((band) =>
      levels.map((inFlight) => ({
        title: `${band.title}, ${inFlight} in flight`,
        unit: band.unit,
        values: entries.map(([, result]) => {
          return result.error ? result : result[`${band.key}${inFlight}`];
        }),
      })),
    ),
  };
  return [{ name: 'bench-redis', alt, svg: barPlot(plot) }];
}

function kindOf(subject) {
  if (subject === 'rollgate') return 'ours';
  return redisSubjects[subject].label.startsWith('rollgate') ? 'own' : 'peer';
}

module.exports = { comparisons, plots };
