// The script with leases against a model of the server that keeps every action: random traces, each reply compared.
'use strict';

const { callNumbers, groupHead, runWords } = require('../../lib/stores/redis/script');
const { OPERATIONS } = require('../../lib/stores/remote/operations');
const SCRIPTS = require('../../lib/stores/redis/scripts');
const {
  KEY,
  LOG,
  policyNumbers,
  policyOf,
  scriptsOnRedis,
  START_US,
} = require('../support/scripts-on-redis');
const { randomFrom } = require('../support/traces');

const SECOND = 1_000_000;
const GUARD = SECOND;
const LENGTH = 200_000;
const MOST_LEASES = 128;
const PARTS = 1024;

const policy = (...pairs) =>
  policyOf(LOG, {
    limits: pairs.map(([interval, maxInInterval]) => ({ interval, maxInInterval })),
  });

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

/** Of a full reply: why it is blocked, time left and moment, then each window, and what is told of leases. */
const numbersOf = ([blocked, timeLeft, , , , at, , ...rest]) => [blocked, timeLeft, at, ...rest];

/** What the server should know of one id. */
class Server {
  entries = [];
  leases = [];
  newest = -Infinity;
  seen = -Infinity;
  blockedUntil = -Infinity;

  constructor({ limits }) {
    this.limits = limits;
    this.longest = Math.max(...limits.map(({ interval }) => interval));
  }

  at(now) {
    return Math.max(now, this.newest, this.seen);
  }

  recorded({ interval }, at) {
    const counting = this.entries.filter(({ stamp }) => at - stamp < interval);
    return sum(counting.map(({ cost }) => cost));
  }

  /** The leases whose permits count. */
  counting({ interval }, at) {
    return this.leases.filter(({ ends }) => at < ends + GUARD + interval);
  }

  used(limit, at) {
    return this.recorded(limit, at) + sum(this.counting(limit, at).map(({ permits }) => permits));
  }

  /** How long until fewer than n may be used: an entry leaves, or the permits of a lease may come back. */
  until(limit, n, at) {
    if (this.used(limit, at) < n) return 0;
    const { interval } = limit;
    const counting = this.counting(limit, at);
    const permits = sum(counting.map((lease) => lease.permits));
    const ends = counting.map((lease) => lease.ends).filter((end) => end > at);
    const overs = counting.map((lease) => lease.ends + GUARD + interval);
    const leaves = this.entries
      .map(({ stamp }) => stamp + interval)
      .filter((moment) => moment > at && this.recorded(limit, moment) + permits < n);
    return Math.min(...(ends.length > 0 ? ends : overs), ...leaves) - at;
  }

  record(stamp, cost) {
    const same = this.entries.find((entry) => entry.stamp === stamp);
    if (same) same.cost += cost;
    else this.entries.push({ stamp, cost });
    this.newest = Math.max(this.newest, stamp);
  }

  /** Uses join the next later moment of the same part of the longest window. */
  recordUses(uses) {
    const part = Math.max(1, Math.ceil(this.longest / PARTS));
    const partOf = (stamp) => Math.floor(stamp / part);
    const moments = [...this.entries, ...uses].map(({ stamp }) => stamp);
    for (const { stamp, cost } of uses) {
      let own = stamp;
      while (!this.entries.some((entry) => entry.stamp === own)) {
        const next = Math.min(...moments.filter((moment) => moment > own));
        if (partOf(next) !== partOf(own)) break;
        own = next;
      }
      this.record(own, cost);
    }
  }

  /** What asks gives the numbers of numbersOf(). */
  attempt(now, cost) {
    const at = this.at(now);
    const isAllowed = this.#judge(at, cost);
    if (isAllowed) this.#drop(now, at);
    return this.#reply(at, now, cost, isAllowed);
  }

  /** Records an attempt if that is allowed, and returns whether it is. */
  #judge(at, cost) {
    const hasRoom = this.limits.every(
      (limit) => this.used(limit, at) + cost <= limit.maxInInterval,
    );
    const isAllowed = at >= this.blockedUntil && (cost === 0 || hasRoom);
    if (isAllowed && cost > 0) this.record(at, cost);
    return isAllowed;
  }

  block(now, us) {
    const at = this.at(now);
    const blockedUntil = us === 0 ? -Infinity : Math.max(this.blockedUntil, at + us);
    if (blockedUntil === this.blockedUntil) return;
    this.blockedUntil = blockedUntil;
    this.#drop(now, now);
  }

  #reply(at, now, cost, isAllowed) {
    const late = at - now;
    const windows = this.limits.flatMap((limit) => {
      const used = this.used(limit, at);
      const taken = Math.min(used, limit.maxInInterval);
      return [used, taken === 0 ? 0 : this.until(limit, taken, at) + late];
    });
    if (isAllowed) return [0, 0, at, ...windows];
    const isBlocked = at < this.blockedUntil;
    const asking = cost === 0 ? [] : this.limits;
    const times = asking.map((limit) => this.until(limit, limit.maxInInterval - cost + 1, at));
    if (isBlocked) times.push(this.blockedUntil - at);
    return [isBlocked ? 4 : 1, Math.max(...times) + late, at, ...windows];
  }

  lease(now, { holder, length, settled, wanted, most, cost, uses }) {
    const at = this.at(now);
    const isOwn = (number) => (lease) => lease.holder === holder && lease.number === number;
    const known = settled === 0 ? undefined : this.leases.find(isOwn(settled));
    this.leases = this.leases.filter((lease) => lease !== known);
    const latest = known ? known.ends + GUARD : at;
    const moments = uses.map(([age, used]) => ({ stamp: Math.min(at - age, latest), cost: used }));
    const counting = settled === 0 ? [] : moments.filter(({ stamp }) => at - stamp < this.longest);
    this.recordUses(counting.sort((one, other) => one.stamp - other.stamp));
    const isAllowed = this.#judge(at, cost);
    const mayGrant =
      wanted > 0 &&
      at >= this.blockedUntil &&
      this.leases.length < MOST_LEASES &&
      !this.leases.some(isOwn(wanted));
    const holders = 1 + this.leases.filter(({ ends }) => ends > at).length;
    const free = this.limits.map((limit) => limit.maxInInterval - this.used(limit, at));
    const granted = mayGrant ? Math.min(most, Math.floor(Math.min(...free) / (2 * holders))) : 0;
    const permits = granted < 2 ? 0 : granted;
    const others = [...this.leases];
    if (permits > 0) this.leases.push({ holder, number: wanted, permits, ends: at + length });
    if (known || counting.length > 0 || permits > 0 || (isAllowed && cost > 0)) {
      this.#drop(now, at);
      if (this.leases.length > 0) this.seen = at;
    }
    // For its holder, the new lease is not used.
    const all = this.leases;
    if (permits > 0) this.leases = others;
    const reply = this.#reply(at, now, cost, isAllowed);
    this.leases = all;
    return [...reply, permits, known ? 1 : 0];
  }

  /** What each write drops. Without leases, an earlier time is safe. */
  #drop(now, at) {
    this.leases = this.leases.filter(({ ends }) => ends + GUARD + this.longest > at);
    this.seen = this.leases.length > 0 ? Math.max(this.seen, at) : -Infinity;
    if (this.blockedUntil <= Math.max(now, this.newest)) this.blockedUntil = -Infinity;
  }

  refund(now, stamp, cost) {
    const entry = this.entries
      .toSorted((one, other) => one.stamp - other.stamp)
      .find((one) => one.stamp >= stamp);
    if (entry === undefined) return 0;
    entry.cost = Math.max(0, entry.cost - cost);
    if (entry.cost === 0) this.entries.splice(this.entries.indexOf(entry), 1);
    if (this.newest === entry.stamp && entry.cost === 0) {
      this.newest = Math.max(-Infinity, ...this.entries.map((one) => one.stamp));
    }
    this.#drop(now, stamp);
    return 1;
  }
}

describe('the script with leases', () => {
  const script = scriptsOnRedis();

  /** `amounts` are those of each key. */
  async function ask(own, operation, now, { cost = 1, amounts = [], keys = [KEY], ...more }) {
    const { at = 0, generation = 0, full = true } = more;
    const call = callNumbers(OPERATIONS[operation], full, now, cost, at, generation);
    const head = groupHead(call, policyNumbers(own));
    const group = { question: { head, isApart: true }, keys, amounts: keys.flatMap(() => amounts) };
    return script.redis.evalsha(SCRIPTS[LOG].sha1, ...runWords([group]));
  }

  const askAttempt = (own, now, cost) =>
    ask(own, 'IF_ALLOWED', now, cost > 1 ? { cost: -1, amounts: [cost] } : { cost });
  const askLease = (own, now, { holder, length, settled, wanted, most, cost, uses }) => {
    const amounts = [holder, 7, length, settled, wanted, most, cost, ...uses.flat()];
    return ask(own, 'LEASE', now, { cost: 0, amounts, at: amounts.length });
  };

  const POLICIES = [
    ['one window', policy([SECOND, 20])],
    ['two windows', policy([SECOND, 20], [5 * SECOND, 60])],
    ['a long log', policy([SECOND, 300])],
    ['costs beyond the entries of a log', policy([2 * SECOND, 5000], [60 * SECOND, 12_000])],
  ];

  test.each(POLICIES)('%s: each reply is that of the model', async (_name, own) => {
    const { between } = randomFrom(own.limits.length);
    const upTo = (n) => between(0, n - 1);
    const max = own.limits[0].maxInInterval;
    const randomCost = () => 1 + upTo(upTo(2) === 0 ? 1 : Math.ceil(max / 6));
    const keptFor =
      (LENGTH + GUARD + Math.max(...own.limits.map(({ interval }) => interval))) / 1000;
    for (let round = 0; round < 8; round++) {
      await script.redis.flushall();
      const model = new Server(own);
      const open = []; // what holders believe to have
      let now = START_US + upTo(SECOND);
      const numbers = [0, 0, 0]; // by holder: those of two may be equal
      for (let step = 0; step < 250; step++) {
        now += upTo(upTo(6) === 0 ? own.limits[0].interval : 60_000);
        if (upTo(40) === 0) now -= upTo(300_000);
        const what = upTo(10);
        if (what < 4) {
          const cost = randomCost();
          const reply = await askAttempt(own, now, cost);
          expect(numbersOf(reply)).toEqual(model.attempt(now, cost));
          if (reply[0] !== 0 || upTo(5) > 0) continue;
          const [, , , , , at, generation] = reply;
          const costs = cost > 1 ? { cost: -1, amounts: [cost, 0] } : { cost };
          const call = { ...costs, at, generation, full: false };
          expect(await ask(own, 'SETTLE', now, call)).toEqual([model.refund(now, at, cost)]);
          continue;
        }
        if (upTo(25) === 0) {
          const us = upTo(2) * 150_000;
          await ask(own, 'BLOCK', now, { cost: 0, at: us, full: false });
          model.block(now, us);
          continue;
        }
        const settled =
          upTo(3) > 0 && open.length > 0 ? open.splice(upTo(open.length), 1)[0] : undefined;
        const uses = [];
        let left = settled?.permits ?? 0;
        for (let used = 0; left > 0 && used < upTo(6); used++) {
          const cost = 1 + upTo(left);
          left -= cost;
          uses.push([upTo(Math.max(1, now - settled.at)), cost]);
        }
        uses.sort(([age], [other]) => other - age);
        const holder = settled?.holder ?? upTo(3);
        const call = {
          holder,
          length: LENGTH,
          settled: settled?.number ?? (upTo(20) === 0 ? 9999 : 0),
          wanted: upTo(3) === 0 ? 0 : ++numbers[holder],
          most: 1 + upTo(max),
          cost: upTo(2) * randomCost(),
          uses,
        };
        const reply = await askLease(own, now, call);
        expect(numbersOf(reply)).toEqual(model.lease(now, call));
        const permits = reply.at(-2);
        if (permits > 0) expect(await script.ttl()).toBeGreaterThan(keptFor);
        if (permits > 0) open.push({ ...call, number: call.wanted, permits, at: reply[5] });
      }
    }
  });

  test('leases that nobody can have granted are an error, and stay', async () => {
    const [own, grant] = [policy([SECOND, 20]), [1, 7, LENGTH, 0, 1, 5, 1]];
    await ask(own, 'LEASE', START_US, { cost: 0, amounts: grant, at: grant.length });
    const state = await script.redis.getBuffer(KEY);
    const changed = (change) => {
      const copy = Buffer.from(state);
      change(copy);
      return copy;
    };
    const [HEADER_BYTES, LEASE_BYTES] = [13, 26];
    const many = Buffer.alloc(HEADER_BYTES + 129 * LEASE_BYTES);
    many[0] = state[0];
    many.writeUInt32LE(129, 1);
    const damaged = [
      Buffer.concat([many, state.subarray(HEADER_BYTES + LEASE_BYTES)]),
      changed((bytes) => bytes.writeBigInt64LE(2n ** 62n, 5)), // its moment
      changed((bytes) => bytes.writeBigInt64LE(2n ** 62n, HEADER_BYTES + LEASE_BYTES - 8)), // an end
      state.subarray(0, HEADER_BYTES + LEASE_BYTES),
    ];
    for (const bytes of damaged) {
      await script.redis.set(KEY, bytes);
      expect(await askAttempt(own, START_US + 1, 1)).toEqual(Array(9).fill(-1));
      expect(await script.redis.getBuffer(KEY)).toEqual(bytes);
    }
  });

  describe('a key lives as long as its log says', () => {
    const keys = [KEY, `${KEY}2`, `${KEY}3`]; // one of a run gets its expiry checked in any case

    async function expectLives() {
      for (const key of keys) {
        const state = await script.redis.getBuffer(key);
        const end = Date.now() + (await script.redis.pttl(key)) + 100;
        expect(state[0]).toBe(0xa6);
        expect(state.readUInt32LE(13) * 1000).toBeLessThanOrEqual(end);
      }
    }

    test('after its last lease', async () => {
      const own = policy([SECOND, 20]);
      const askAll = (...amounts) =>
        ask(own, 'LEASE', START_US, { cost: 0, amounts, keys, at: amounts.length });
      await askAll(1, 7, LENGTH, 0, 1, 5, 1);
      await askAll(1, 7, LENGTH, 1, 0, 0, 0, 0, 2);
      await expectLives();
    });

    test('after a block, when a ring becomes entries', async () => {
      const own = policy([SECOND, 3000]);
      const [hour, all] = [3600 * SECOND, { keys, full: false }];
      for (let i = 0; i < 300; i++) await ask(own, 'ATTEMPT', START_US + i, all);
      for (const at of [hour, 0]) await ask(own, 'BLOCK', START_US, { ...all, cost: 0, at });
      await ask(own, 'ATTEMPT', START_US + 400, { ...all, cost: -1, amounts: [2] });
      await expectLives();
    });
  });
});
