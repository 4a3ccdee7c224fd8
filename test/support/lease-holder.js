// A process that attempts at rates that change, and writes each use that was allowed. Arguments: URL, client, limiters
// as JSON ([{ id, perSecond, rates, options }]), seed. `rates` are shares of `perSecond`. Each record has 16 bytes:
//   place of the limiter (2), 0 (2), us from call to answer (4), moment of the call in us (8): the clock of the host
// The place STATS is for what the limiters counted so far instead: decisions without Redis (4), permits leased (8).
'use strict';

const fs = require('node:fs');
const { RateLimiter } = require('../..');
const { REDIS_CLIENTS } = require('./redis-clients');
const { randomFrom } = require('./traces');

const RECORD_BYTES = 16;
const STATS = 0xffff;
const STATS_EVERY_MS = 200;
const MOST_WAITING = 500; // attempts of one limiter that wait for Redis
const RATES = [0, 0.1, 0.5, 1, 1, 2, 4];

const now = () => Number(process.hrtime.bigint() / 1000n);
const isOwnError = (error) => String(error.code).startsWith('ERR_ROLLGATE_');

/** Records since the last write. They are written before anything else happens, so that a kill loses few. */
class Records {
  #bytes = Buffer.alloc(1 << 20);
  #length = 0;

  add(place, took, moment) {
    if (this.#length + RECORD_BYTES > this.#bytes.length) this.write();
    const at = this.#length;
    this.#bytes.writeUInt32LE(place, at);
    this.#bytes.writeUInt32LE(Math.min(took, 0xffffffff), at + 4);
    this.#bytes.writeDoubleLE(moment, at + 8);
    this.#length += RECORD_BYTES;
  }

  write() {
    for (let from = 0; from < this.#length; ) {
      try {
        from += fs.writeSync(1, this.#bytes, from, this.#length - from);
      } catch {
        process.exit(); // the reader is gone
      }
    }
    this.#length = 0;
  }
}

/** Attempts on one limiter and its one id. */
class Attempts {
  #records;
  #random;
  #waiting = 0;
  #due = 0;
  #perMs = 0;
  #turns = 0;
  #rates;

  constructor({ place, id, perSecond, rates = RATES, options, redis, records, random }) {
    this.place = place;
    this.id = id;
    this.#rates = rates.map((share) => (share * perSecond) / 1000);
    this.limiter = RateLimiter({ ...options, redis });
    this.#records = records;
    this.#random = random;
  }

  /** Those of the last `ms`; the rate changes now and then. */
  make(ms) {
    if (this.#turns-- === 0) {
      this.#perMs = this.#random.pick(this.#rates);
      this.#turns = this.#random.between(100, 1000);
    }
    this.#due += this.#perMs * ms;
    for (; this.#due >= 1; this.#due--) {
      if (this.#waiting >= MOST_WAITING) continue;
      this.#waiting += 1;
      this.#one().then(
        () => {
          this.#waiting -= 1;
        },
        (error) => {
          this.#waiting -= 1;
          if (!isOwnError(error)) throw error;
        },
      );
    }
  }

  /** What is taken back later is not recorded, so no more is recorded than counts. */
  async #one() {
    const way = this.#random.between(1, 100);
    const { limiter, id } = this;
    const begin = now();
    if (way <= 80) {
      if ((await limiter(id)) === 0) this.#record(begin, 1);
    } else if (way <= 90) {
      const decision = await limiter.attempt(id, { cost: 3 });
      if (decision.allowed) this.#record(begin, 3);
    } else if (way <= 94) {
      const decision = await limiter.attempt(id, { cost: 2 });
      if (!decision.allowed) return;
      this.#record(begin, 1);
      await limiter.settle(decision, 1);
    } else if (way <= 97) {
      const decision = await limiter.attempt(id);
      if (decision.allowed) await limiter.refund(decision);
    } else if (way <= 99) {
      await limiter.peek(id);
    } else {
      await limiter.usage(id);
    }
  }

  #record(begin, cost) {
    const took = now() - begin;
    for (let unit = 0; unit < cost; unit++) this.#records.add(this.place, took, begin);
  }
}

function main(url, client, limiters, seed) {
  const random = randomFrom(Number(seed));
  const records = new Records();
  const redis = { ...REDIS_CLIENTS[client].open(url), commandTimeout: 300 };
  const all = JSON.parse(limiters).map(
    (given, place) => new Attempts({ ...given, place, redis, records, random }),
  );
  let last = performance.now();
  let statsAt = last;
  setInterval(() => {
    const time = performance.now();
    // After a stop, not all of it at once.
    for (const attempts of all) attempts.make(Math.min(time - last, 100));
    last = time;
    if (time >= statsAt) {
      statsAt = time + STATS_EVERY_MS;
      const stats = all.map(({ limiter }) => limiter.stats());
      const sum = (name) => stats.reduce((total, each) => total + (each[name] ?? 0), 0);
      records.add(STATS, sum('local'), sum('leased'));
    }
    setImmediate(() => records.write());
  }, 1);
}

module.exports = { RECORD_BYTES, STATS };

if (require.main === module) main(...process.argv.slice(2));
