// topBlocked: refusals are counted by id, exactly as far as it says, in bounded memory.
'use strict';

const diagnostics = require('node:diagnostics_channel');
const { topBlocked } = require('../../lib/adapters/metrics');
const { SpaceSaving } = require('../../lib/adapters/metrics/top-blocked');
const { askProgram } = require('../support/run-program');
const { catchError, setUp } = require('../support/set-up');
const { randomFrom } = require('../support/traces');

const opened = [];

afterEach(() => {
  for (const one of opened.splice(0)) one.close();
});

function open(options) {
  const one = topBlocked(options);
  opened.push(one);
  return one;
}

/** One that refuses everything but the first attempt of each id. */
const strict = () => setUp({ maxInInterval: 1, interval: 1e9 }).limiter;

function refuse(limiter, id, times) {
  if (limiter.peek(id).allowed) limiter(id);
  for (let i = 0; i < times; i++) limiter(id);
}

test('refusals are counted by limiter and id, most first, from zero after a reset', () => {
  const api = strict();
  const [blocked, all] = [open({ limiters: { api } }), open()];
  refuse(api, 'ada', 2);
  refuse(api, 'bob', 5);
  const other = strict();
  refuse(other, 'ada', 9);
  api('eve');
  api.peek('eve');
  expect(blocked.top()).toEqual([
    { limiter: 'api', id: 'bob', blocked: 5, overcount: 0 },
    { limiter: 'api', id: 'ada', blocked: 2, overcount: 0 },
  ]);
  expect(blocked.top(1).map(({ id }) => id)).toEqual(['bob']);
  expect([blocked.total, all.total, all.top(1)[0].limiter]).toEqual([7, 16, other]);
  blocked.reset();
  expect([blocked.top(), blocked.total]).toEqual([[], 0]);
  refuse(api, 'ada', 1);
  expect(blocked.top()).toEqual([{ limiter: 'api', id: 'ada', blocked: 1, overcount: 0 }]);
});

test('ids with the same string are one id', () => {
  const limiter = strict();
  const blocked = open({ limiters: { limiter } });
  const ids = [1, '1', 1n, undefined, '', '\ud800'];
  for (const id of ids) refuse(limiter, id, 2);
  expect(blocked.top()).toMatchObject([
    { id: '1', blocked: 6 },
    { id: '', blocked: 4 },
    { id: '\ud800', blocked: 2 },
  ]);
});

test('of long ids the beginning and a hash are kept, and each is an id of its own', () => {
  const limiter = strict();
  const blocked = open({ limiters: { limiter } });
  const long = 'x'.repeat(100_000);
  refuse(limiter, `${long}a`, 3);
  refuse(limiter, `${long}b`, 2);
  const [first, second] = blocked.top();
  expect([first.blocked, second.blocked]).toEqual([3, 2]);
  expect(first.id).toMatch(/^x{200}\.\.\.[\w-]{43}$/);
  expect(second.id).not.toBe(first.id);
  // Nobody makes up the short form of another's id.
  refuse(limiter, first.id, 9);
  expect(blocked.top().map((entry) => entry.blocked)).toEqual([9, 3, 2]);
});

/** Ids as they come in life: the k-th about as often as 1 / k. */
function zipf(random, ids) {
  const limit = Math.log(ids + 1);
  return () => Math.floor(Math.exp((random.between(0, 1e9 - 1) / 1e9) * limit));
}

test.each([1, 2, 10, 64, 500])(
  'with capacity %i, counts are at most as wrong as they say, and the frequent are there',
  (capacity) => {
    const random = randomFrom(capacity);
    const limiters = { a: strict(), b: strict() };
    const blocked = open({ limiters, capacity });
    const exact = new Map();
    const pick = zipf(random, 2000);
    const seen = (steps) => {
      for (let i = 0; i < steps; i++) {
        const name = random.pick(['a', 'b']);
        const id = `id ${pick()}`;
        const isRefused = limiters[name](id) > 0;
        const key = `${name} ${id}`;
        if (isRefused) exact.set(key, (exact.get(key) ?? 0) + 1);
      }
    };
    for (let round = 0; round < 8; round++) {
      seen(round === 0 ? 20 : 1000);
      const entries = blocked.top(1e9);
      const total = [...exact.values()].reduce((sum, n) => sum + n, 0);
      expect(blocked.total).toBe(total);
      expect(entries.length).toBe(Math.min(exact.size, capacity));
      const kept = new Map(entries.map((entry) => [`${entry.limiter} ${entry.id}`, entry]));
      expect(kept.size).toBe(entries.length);
      for (const [key, { blocked: count, overcount }] of kept) {
        const n = exact.get(key);
        expect(n).toBeLessThanOrEqual(count);
        expect(n).toBeGreaterThanOrEqual(count - overcount);
        expect(overcount).toBeLessThanOrEqual(total / capacity);
      }
      for (const [key, n] of exact) if (n > total / capacity) expect(kept.has(key)).toBe(true);
      const counts = entries.map((entry) => entry.blocked);
      expect(counts).toEqual([...counts].sort((x, y) => y - x));
      if (exact.size >= capacity) expect(counts.reduce((sum, n) => sum + n, 0)).toBe(total);
    }
  },
);

// A search for the smallest counter would take 2e10 steps here, and run into Jest's time limit.
test('a new id takes over a counter without a search', () => {
  const counts = new SpaceSaving(200_000);
  for (let i = 0; i < 300_000; i++) counts.add(i);
  const takenOver = [...counts.counters()].filter(({ overcount }) => overcount === 1);
  expect(takenOver.length).toBe(100_000);
});

test('a closed one listens no more, and limiters are unobserved again', () => {
  const limiter = strict();
  const [one, other] = [open(), open()];
  expect(diagnostics.channel('rollgate:decision').hasSubscribers).toBe(true);
  refuse(limiter, 'a', 1);
  one.close();
  one.close();
  expect(diagnostics.channel('rollgate:decision').hasSubscribers).toBe(true);
  refuse(limiter, 'a', 1);
  expect([one.top(), one.total]).toEqual([[], 0]);
  expect(other.total).toBe(2);
  other.close();
  expect(diagnostics.channel('rollgate:decision').hasSubscribers).toBe(false);
});

test('closed by an earlier subscriber, it does not count that decision', () => {
  let blocked;
  const close = ({ allowed }) => allowed || blocked.close();
  diagnostics.subscribe('rollgate:decision', close);
  blocked = open();
  refuse(strict(), 'a', 1);
  diagnostics.unsubscribe('rollgate:decision', close);
  expect([blocked.total, blocked.top()]).toEqual([0, []]);
});

test('a limiter without a name is freed when it is dropped', async () => {
  const told = await askProgram(
    `
  const RateLimiter = require('rollgate');
  const { topBlocked } = require('rollgate/metrics');
  const blocked = topBlocked();
  let limiter = RateLimiter({ interval: 60_000, maxInInterval: 1 });
  const ref = new WeakRef(limiter);
  limiter('a');
  limiter('a');
  const before = blocked.top().length;
  limiter = undefined;
  const look = (turns) => {
    gc();
    if (ref.deref() !== undefined && turns > 0) return setTimeout(look, 1, turns - 1);
    console.log(JSON.stringify({ before, isFreed: ref.deref() === undefined, after: blocked.top() }));
  };
  setTimeout(look, 1, 1000);
`,
    { flags: ['--expose-gc'] },
  );
  expect(told).toEqual({ before: 1, isFreed: true, after: [] });
});

test('top takes a number of entries', () => {
  const blocked = open();
  expect(catchError(() => blocked.top(0))).toBeInstanceOf(RangeError);
  expect(catchError(() => blocked.top('5'))).toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
});
