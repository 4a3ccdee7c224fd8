// Question: what does a check in shared memory cost, alone and with two processes at it?
//
// Bias, also printed below the tables (see `bias`): the peer's messages are counted with many under
// way, and two processes have a processor each.

const cluster = require('node:cluster');
const { once } = require('node:events');
const path = require('node:path');
const { main } = require('./harness');
const { barPlot } = require('./plot-bars');
const { failures, figureOf, number, range, ratio, rounds, times } = require('./report');
const {
  freshIds,
  heldIds,
  literalId,
  randomOrder,
  runChecks,
  sequential,
  shuffled,
} = require('./workload');

const INTERVAL_MS = 60_000;
const PROCESSES = 2;

/** One process: the same checks in memory of its own and in shared memory. */
const ALONE = {
  one: { title: 'One process, one literal id, max 5', ids: 1, make: literalId, max: 5 },
  tenThousand: {
    title: 'One process, 10,000 ids, freshly joined, max 5',
    ids: 10_000,
    make: freshIds,
    max: 5,
  },
  tenThousandHeld: {
    title: 'One process, 10,000 ids, made before, max 5',
    ids: 10_000,
    make: heldIds,
    max: 5,
  },
  tenThousandLong: {
    title: 'One process, 10,000 ids, freshly joined, max 100: most are allowed',
    ids: 10_000,
    make: freshIds,
    max: 100,
    checks: 350_000,
  },
  million: {
    title: 'One process, 1,000,000 ids, freshly joined, max 5',
    ids: 1_000_000,
    make: freshIds,
    max: 5,
    rounds: 3,
  },
};
const STORES = { memory: 'rollgate, own memory', shared: 'rollgate, shared memory' };

/** Two processes at once. */
const TOGETHER = {
  one: { title: 'Two processes on the same id, max 5', ids: 1 },
  tenThousand: { title: 'Two processes on 10,000 ids, freshly joined, max 5', ids: 10_000 },
  tenThousandHeld: {
    title: 'Two processes on 10,000 ids, made before, max 5',
    ids: 10_000,
    areHeld: true,
  },
};
const SUBJECTS = {
  shared: { label: 'rollgate, shared memory', inFlight: 1 },
  clusterStore: {
    label: '@express-rate-limit/cluster-memory-store, 64 in flight',
    inFlight: 64,
  },
};

function jobs({ quick }) {
  const pace = quick ? { limitMs: 100, warmUpMs: 50 } : { limitMs: 1200, warmUpMs: 700 };
  const rounds = quick ? 1 : 7;
  return [
    ...Object.keys(ALONE).flatMap((name) =>
      Object.keys(STORES).map((store) => ({
        key: `alone/${name}/${store}`,
        kind: 'alone',
        name,
        store,
        ...pace,
        rounds: Math.min(rounds, ALONE[name].rounds ?? rounds),
      })),
    ),
    ...Object.keys(TOGETHER).flatMap((name) =>
      Object.keys(SUBJECTS).map((subject) => {
        return {
          key: `together/${name}/${subject}`,
          kind: 'together',
          name,
          subject,
          ...pace,
          rounds,
        };
      }),
    ),
  ];
}

function measure(job) {
  return job.kind === 'alone' ? measureAlone(job) : measureTogether(job);
}

async function measureAlone({ name, store, limitMs }) {
  const { RateLimiter } = require('../../lib');
  const { ids, make, max, checks = 2_000_000 } = ALONE[name];
  const maxKeys = ids + Math.ceil(ids / 10);
  const limits = { interval: INTERVAL_MS, maxInInterval: max };
  const region = { name: `bench-${process.pid}`, maxKeys };
  const check = RateLimiter({
    ...limits,
    ...(store === 'memory' ? { maxKeys } : { shared: region }),
  });
  try {
    const subject = { calling: 'sync', check };
    const idAt = make(ids);
    const anyOrder = shuffled(randomOrder(ids));
    await runChecks(subject, idAt, sequential(ids), ids);
    await runChecks(subject, idAt, anyOrder, checks / 4);
    const { wall, cpu } = await runChecks(subject, idAt, anyOrder, checks, { limitMs });
    return { wall, cpu, bytes: check.stats().bytes / ids };
  } finally {
    await check.close();
    if (store === 'shared') RateLimiter.unlinkShared(region.name);
  }
}

/** The checks of all processes in the same span of time. */
async function measureTogether({ name, subject, warmUpMs, limitMs }) {
  const { RateLimiter } = require('../../lib');
  const { ids, areHeld } = TOGETHER[name];
  const region = `bench-${process.pid}`;
  if (subject === 'clusterStore') {
    const { ClusterMemoryStorePrimary } = require('@express-rate-limit/cluster-memory-store');
    new ClusterMemoryStorePrimary().init();
  }
  cluster.setupPrimary({ exec: path.join(__dirname, 'shared-worker.js'), args: [] });
  const workers = Array.from({ length: PROCESSES }, () => cluster.fork());
  const limits = {
    name: region,
    maxKeys: ids + Math.ceil(ids / 10),
    interval: INTERVAL_MS,
    maxInInterval: 5,
  };
  const { inFlight } = SUBJECTS[subject];
  const told = (worker, message) => {
    const answer = answerOf(worker);
    worker.send({ bench: message });
    return answer;
  };
  try {
    const prepare = { subject, ids, areHeld, inFlight, warmUpMs, limits };
    await Promise.all(workers.map((worker) => told(worker, { prepare })));
    const found = await Promise.all(workers.map((worker) => told(worker, { go: limitMs })));
    return {
      wall: found.reduce((sum, { wall }) => sum + wall, 0) / PROCESSES,
      perSecond: found.reduce((sum, { wall }) => sum + 1e9 / wall, 0),
    };
  } finally {
    for (const worker of workers) worker.process.kill('SIGKILL');
    RateLimiter.unlinkShared(region);
  }
}

/** The peer's messages take the same way. */
async function answerOf(worker) {
  for (;;) {
    const [message] = await once(worker, 'message');
    if (message.bench !== undefined) return message.bench;
  }
}

function tables(results) {
  const alone = Object.entries(ALONE).map(([name, { title }]) => {
    const of = (store) => results[`alone/${name}/${store}`];
    const rows = Object.entries(STORES).map(([store, label]) => {
      const { wall, bytes, runs } = of(store);
      const to = ratio(wall, of('memory').wall);
      return [label, figureOf(wall), range(wall), to, figureOf(bytes), rounds({ runs })];
    });
    return {
      title,
      columns: ['', 'ns per check', 'min – max', 'to own memory', 'bytes per id', 'rounds'],
      rows,
      notes: failures(Object.entries(STORES).map(([store, label]) => [label, of(store)])),
    };
  });
  const together = Object.entries(TOGETHER).map(([name, { title }]) => {
    const of = (subject) => results[`together/${name}/${subject}`];
    const base = of('shared').perSecond;
    const rows = Object.entries(SUBJECTS).map(([subject, { label }]) => {
      const { wall, perSecond } = of(subject);
      return [
        label,
        figureOf(wall),
        range(wall),
        perSecond ? number(perSecond.figure) : figureOf(perSecond),
        base && perSecond ? times(base.figure / perSecond.figure) : figureOf(undefined),
        rounds(of(subject)),
      ];
    });
    return {
      title,
      columns: [
        '',
        'ns per check and process',
        'min – max',
        'checks/s of both',
        'rollgate to it',
        'rounds',
      ],
      rows,
      notes: failures(Object.entries(SUBJECTS).map(([key, { label }]) => [label, of(key)])),
    };
  });
  return [...alone, ...together];
}

/** To what asks another process, and to memory that is not shared. */
function comparisons(results) {
  const together = Object.entries(TOGETHER).map(([name, { title }]) => ({
    what: title,
    to: SUBJECTS.clusterStore.label,
    ours: results[`together/${name}/shared`].perSecond,
    theirs: results[`together/${name}/clusterStore`].perSecond,
    isMoreBetter: true,
  }));
  const alone = Object.entries(ALONE).flatMap(([name, { title }]) =>
    ['wall', 'bytes'].map((number) => ({
      what: `${number === 'wall' ? 'time of a check' : 'bytes per id'} in shared memory. ${title}`,
      to: STORES.memory,
      ours: results[`alone/${name}/shared`][number],
      theirs: results[`alone/${name}/memory`][number],
    })),
  );
  return [...together, ...alone];
}

const BARS = [
  { label: 'rollgate, own memory, one process', of: 'alone', subject: 'memory', kind: 'own' },
  { label: 'rollgate, shared, one process', of: 'alone', subject: 'shared', kind: 'ours' },
  { label: 'rollgate, shared, two processes', of: 'together', subject: 'shared', kind: 'ours' },
  {
    label: 'cluster-memory-store, two processes',
    of: 'together',
    subject: 'clusterStore',
    kind: 'peer',
  },
];

function plots(results) {
  const titles = { one: 'All on one id', tenThousand: 'On 10,000 ids, freshly joined' };
  const panels = Object.entries(titles).map(([name, title]) => ({
    title,
    unit: 'checks per second, of all processes together',
    values: BARS.map(({ of, subject }) => perSecondOf(results[`${of}/${name}/${subject}`])),
  }));
  const words = ({ title, values }) => {
    const figures = BARS.map(({ label }, i) => `${label} ${number(values[i].figure)}`);
    return `${title}: ${figures.join(', ')}`;
  };
  const alt = `Checks per second on one host. ${panels.map(words).join('. ')}`;
  const plot = {
    title: 'Processes on one host',
    subtitle:
      'Compared with a store that asks the primary process. Highest rates. Whiskers go from the lowest to the highest round. More is better.',
    description: alt,
    rows: BARS,
    labelWidth: 256,
    isOneScale: true,
    bands: [panels],
  };
  return [{ name: 'bench-processes', alt, svg: barPlot(plot) }];
}

/** One process does as many as fit into a second. */
function perSecondOf({ error, wall, perSecond }) {
  if (error || perSecond) return perSecond ?? { error };
  return { figure: 1e9 / wall.figure, min: 1e9 / wall.max, max: 1e9 / wall.min };
}

function versions() {
  const name = '@express-rate-limit/cluster-memory-store';
  return { [name]: require(`../../node_modules/${name}/package.json`).version };
}

module.exports = {
  name: 'shared',
  title: 'A check in shared memory',
  question:
    'What does a check in shared memory cost, in one process and in two at once, compared with a limiter in the process’s own memory and with a store that asks the primary process?',
  bias: [
    'Each of the two processes has its own processor. If there are more processes than processors, they take turns, which costs time, but no process waits for a lock.',
    'On one id, every check of both processes changes the same words, which move between the processors each time. This is the worst case.',
    'The peer sends each check to the primary process and gets a message back. It has 64 checks in flight, which is its best case; a single check takes as long as two messages. It counts in fixed windows.',
    'Bytes per id are the size of the whole region divided by the number of ids. The region has room for a tenth more ids, for a third more than that, and for 1,024 limiters (131 kB). The table in the process’s own memory has only grown to the size that it needs.',
    'If ids are freshly joined, figures include creating the id; "Cost of one check" shows how long that takes. Ids that are "made before" are an array of flat strings, so that only the check is measured.',
  ],
  budgetMs: 200_000,
  versions,
  jobs,
  measure,
  tables,
  comparisons,
  plots,
};

if (require.main === module) main(__filename, module.exports);
