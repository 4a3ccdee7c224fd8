// Question: what does it cost to acquire a slot and to release it?
//
// Bias, also printed below the table (see `bias`): the peer is less than a limiter of concurrency.

const { main } = require('./harness');
const { failures, figureOf, range, ratio, rounds } = require('./report');
const { freshIds, literalId, randomOrder } = require('./workload');

const PAIRS = 100_000;
const MAX = 5;
const IDS = 10_000;

const CASES = {
  one: { label: 'one literal id', ids: 1, make: literalId, held: 0 },
  many: { label: '10,000 ids, freshly joined', ids: IDS, make: freshIds, held: 0 },
  oneHeld: { label: 'one literal id, held by others', ids: 1, make: literalId, held: 1 },
  manyHeld: {
    label: '10,000 ids, freshly joined, held by others',
    ids: IDS,
    make: freshIds,
    held: 1,
  },
};

/** The least that gives a slot which is released once, and forgets an id that nobody holds. */
class PlainCounter {
  held = new Map();

  constructor({ max }) {
    this.max = max;
  }

  acquire(id, options) {
    const { cost = 1, max = this.max } = options ?? {};
    const used = (this.held.get(id) ?? 0) + cost;
    if (used > max) return { allowed: false };
    this.held.set(id, used);
    return new PlainSlot(this, id, { cost, max, used });
  }
}

class PlainSlot {
  allowed = true;
  #isHeld = true;
  #counter;
  #id;

  constructor(counter, id, { cost, max, used }) {
    this.#counter = counter;
    this.#id = id;
    this.cost = cost;
    this.max = max;
    this.used = used;
    this.remaining = max - used;
  }

  release() {
    if (!this.#isHeld) return false;
    this.#isHeld = false;
    const { held } = this.#counter;
    const used = held.get(this.#id) - this.cost;
    if (used === 0) held.delete(this.#id);
    else held.set(this.#id, used);
    return true;
  }
}

const SUBJECTS = {
  rollgate: {
    label: 'rollgate',
    create: (options) => require('../../lib').ConcurrencyLimiter(options),
  },
  shared: {
    label: 'rollgate, in shared memory',
    create: (options) => {
      const { ConcurrencyLimiter, unlinkShared } = require('../../lib');
      const shared = `bench-slots-${process.pid}`;
      process.once('exit', () => unlinkShared(shared));
      return ConcurrencyLimiter({ ...options, shared, maxKeys: 2 * IDS });
    },
  },
  plain: {
    label: 'a Map in plain JavaScript',
    create: (options) => new PlainCounter(options),
  },
};

const keyOf = (name, subject) => `${name} ${subject}`;

function jobs({ quick }) {
  const pace = quick ? { rounds: 1, part: 0.1 } : { rounds: 12, part: 1 };
  return Object.keys(CASES).flatMap((name) =>
    Object.keys(SUBJECTS).map((subject) => ({
      key: keyOf(name, subject),
      name,
      subject,
      ...pace,
    })),
  );
}

async function measure({ name, subject, part }) {
  const { ids, make, held } = CASES[name];
  const limiter = SUBJECTS[subject].create({ max: MAX });
  const idAt = make(ids);
  const others = [];
  for (let i = 0; i < held * ids; i++) others.push(limiter.acquire(idAt(i)));
  const order = randomOrder(ids);
  const run = (pairs) => {
    const before = process.cpuUsage();
    let refused = 0;
    for (let i = 0; i < pairs; i++) {
      const slot = limiter.acquire(idAt(order[i]));
      if (!slot.allowed) refused++;
      else slot.release();
    }
    const { user, system } = process.cpuUsage(before);
    if (refused > 0) throw new Error(`${refused} were refused`);
    return ((user + system) * 1000) / pairs;
  };
  run(100_000);
  const ns = Math.min(...Array.from({ length: 5 }, () => run(part * PAIRS)));
  if (others.some((slot) => !slot.release())) throw new Error('a slot was lost');
  return { ns };
}

function tables(results) {
  const keys = Object.keys(CASES).flatMap((name) =>
    Object.keys(SUBJECTS).map((subject) => keyOf(name, subject)),
  );
  const labelOf = (key) => {
    const { name, subject } = results[key].job;
    return `${CASES[name].label}: ${SUBJECTS[subject].label}`;
  };
  return [
    {
      title: 'CPU time of acquire and release, one after the other',
      columns: ['', 'ns', 'min – max', "rollgate's time", 'rounds'],
      rows: keys.map((key) => [
        labelOf(key),
        figureOf(results[key].ns),
        range(results[key].ns),
        ratio(results[keyOf(results[key].job.name, 'rollgate')].ns, results[key].ns),
        rounds(results[key]),
      ]),
      notes: failures(keys.map((key) => [labelOf(key), results[key]])),
    },
  ];
}

function comparisons(results) {
  return Object.entries(CASES).map(([name, { label }]) => ({
    what: `acquire and release, ${label}`,
    to: SUBJECTS.plain.label,
    ours: results[keyOf(name, 'rollgate')].ns,
    theirs: results[keyOf(name, 'plain')].ns,
  }));
}

module.exports = {
  name: 'slots',
  title: 'Slots',
  question: 'What does it cost to acquire a slot and to release it?',
  bias: [
    'A Map in plain JavaScript gives a slot which is released once, and forgets an id that nobody holds. It has no maxAge, no signal, no line, no net for forgotten slots, and no bound on ids.',
    'In shared memory, each acquisition and each release is seen by other processes at once, and records of ids stay in the region.',
    'A slot is released before the next one is acquired. So without others the Map has one entry at most, and with others nothing is inserted and deleted. A call of native code that reads an id takes longer than that.',
  ],
  budgetMs: 45_000,
  jobs,
  measure,
  tables,
  comparisons,
};

if (require.main === module) main(__filename, module.exports);
