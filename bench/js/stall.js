// Question: how long can one single call take while a million ids arrive for the first time?
//
// Bias: a call that is interrupted by the operating system looks slow whatever it does. The row
// without a limiter shows how much of that there was, the least of the maxima is what is left when
// luck was good, and the involuntary context switches tell how busy the machine was.

const { main } = require('./harness');
const { failures, figureOf, range, rounds } = require('./report');
const { subjects } = require('./subjects');
const { freshIds } = require('./workload');

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
  'idsOnly',
];

function jobs({ quick }) {
  if (quick) return COMPARED.map((subject) => job(subject, 100_000, 1));
  return [
    ...COMPARED.map((subject) => job(subject, MILLION, 4)),
    ...['rollgate', 'idsOnly'].map((subject) => job(subject, 10 * MILLION, 4)),
  ];
}

const job = (subject, ids, rounds) => ({ key: `${ids}/${subject}`, subject, ids, rounds });

async function measure({ subject: name, ids }) {
  const idAt = freshIds(ids);
  const { check, calling } = subjects[name].create({
    interval: 60_000,
    maxInInterval: 5,
    maxKeys: 2 * ids,
  });
  const durations = new Float64Array(ids);
  globalThis.gc(); // or the collection that so large an array brings about would be one of the calls
  const switchesBefore = process.resourceUsage().involuntaryContextSwitches;
  // A first action is never refused, so that nothing rejects here.
  if (calling === 'sync') {
    for (let i = 0; i < ids; i++) {
      const id = idAt(i);
      const start = performance.now();
      check(id);
      durations[i] = performance.now() - start;
    }
  } else {
    for (let i = 0; i < ids; i++) {
      const id = idAt(i);
      const start = performance.now();
      await check(id);
      durations[i] = performance.now() - start;
    }
  }
  const switches = process.resourceUsage().involuntaryContextSwitches - switchesBefore;
  durations.sort();
  return {
    longestMs: durations[ids - 1],
    highestMs: durations[Math.ceil(ids * 0.99999) - 1],
    medianNs: durations[ids >> 1] * 1e6,
    switches,
  };
}

function tables(results) {
  const sizes = [...new Set(Object.keys(results).map((key) => key.split('/')[0]))];
  return sizes.map((ids) => {
    const entries = Object.keys(results)
      .filter((key) => key.startsWith(`${ids}/`))
      .map((key) => [key.split('/')[1], results[key]]);
    return {
      title: `Longest call while ${Number(ids).toLocaleString('en-US')} ids are inserted, in ms`,
      columns: [
        '',
        'lowest maximum',
        'lowest – highest',
        'p99.999',
        'median call, ns',
        'switches',
        'rounds',
      ],
      rows: entries.map(([subject, { longestMs, highestMs, medianNs, switches, runs }]) => [
        subject === 'idsOnly' ? 'no limiter' : subjects[subject].label,
        figureOf(longestMs),
        range(longestMs),
        figureOf(highestMs),
        figureOf(medianNs),
        figureOf(switches),
        rounds({ runs }),
      ]),
      notes: failures(entries.map(([subject, result]) => [subjects[subject].label, result])),
    };
  });
}

const COMPARED_NUMBERS = {
  longestMs: 'the longest call',
  highestMs: 'p99.999',
  medianNs: 'the median call',
};

function comparisons(results) {
  const others = Object.entries(results).filter(([key]) => !/rollgate|idsOnly/.test(key));
  return others.flatMap(([key, theirs]) => {
    const [ids, subject] = key.split('/');
    return Object.entries(COMPARED_NUMBERS).map(([number, words]) => ({
      what: `${words} while ${Number(ids).toLocaleString('en-US')} ids are inserted`,
      to: subjects[subject].label,
      ours: results[`${ids}/rollgate`][number],
      theirs: theirs[number],
    }));
  });
}

module.exports = {
  name: 'stall',
  title: 'The longest call',
  question: 'How long can a single call take while new ids arrive?',
  bias: [
    'Each call is measured with two readings of `performance.now()`. This adds about 50 ns to the median and does not affect the maxima.',
    'A process that the operating system interrupts looks slow in any case: see the row without a limiter, and "switches", the involuntary context switches of a run (median of the rounds). The lowest maximum of all rounds is the figure, because it is closest to the cost of the subject itself.',
    'A garbage collection counts for the call in which it happens. Most of the garbage here is ids. A limiter that allocates has more collections in its calls. A limiter that keeps many objects makes each collection longer.',
    'If a call returns a promise, it is measured until the promise is settled.',
  ],
  budgetMs: 130_000,
  jobs,
  measure,
  tables,
  comparisons,
};

if (require.main === module) main(__filename, module.exports);
