// Leases in a simulation: what the processes ask for, and that never more than the limits is used in any interval of the
// reference clock.
//
// What the server allows is used when it judges, what a lease allows when the process decides.
'use strict';

const { Filler } = require('./filler');
const { allowedIn } = require('./judged');
const { Simulation } = require('./simulation');
const { Uses } = require('./uses');

const MS = 1000;
const MOST_REMEMBERED = 20;
/** Few replies are later than that. */
const MEMORY_US = 30_000_000;

/** The attempts of a process that the reply has allowed which it is reading. */
class JudgedAttempts {
  #schedule;
  #attempts = [];
  #readIn;

  constructor(schedule) {
    this.#schedule = schedule;
  }

  read({ words, reply, reference }) {
    this.#attempts = allowedIn(words, reply).map((attempt) => ({ ...attempt, reference }));
    this.#readIn = this.#schedule.count;
  }

  /** When the server allowed such an attempt; undefined if it did not. */
  take(id, cost) {
    if (this.#schedule.count !== this.#readIn) return undefined;
    const place = this.#attempts.findIndex((attempt) => attempt.id === id && attempt.cost === cost);
    return place === -1 ? undefined : this.#attempts.splice(place, 1)[0].reference;
  }
}

class LeasesWorkload {
  processes;
  lifetimeUs;
  uses = 0;
  #simulation;
  #options;
  #usesOf;
  #ids;
  #everyUs;
  #burstiness;
  #windows;
  #filler;
  #judgedBy = new Map();

  constructor(simulation) {
    const { random } = simulation;
    this.#simulation = simulation;
    this.processes = random.between(2, 3);
    const interval = random.pick([1000, 10_000, 60_000]);
    const maxInInterval = random.pick([20, 50]);
    const lease = Math.max(50, Math.floor(interval * random.pick([0.5, 1])));
    const further = { interval: 3 * interval, maxInInterval: 2 * maxInInterval };
    const limits = [{ interval, maxInInterval }, ...(random.chance(30) ? [further] : [])];
    this.#ids = random.pick([['a'], ['a', 'b']]);
    this.#options = {
      limits,
      lease,
      countBlocked: false,
      onError: random.pick(['throw', 'throw', 'block']),
      maxKeys: random.pick([1, 100, 100, 100]),
    };
    this.lifetimeUs = lease * MS;
    const windows = limits.map((limit) => ({
      interval: limit.interval * MS,
      max: limit.maxInInterval,
    }));
    this.#usesOf = new Map(this.#ids.map((id) => [id, new Uses(windows)]));
    const load = random.pick([0.6, 1.5]);
    const perUs = (load * maxInInterval * this.#ids.length) / (interval * MS * this.processes);
    this.#everyUs = Math.ceil(1 / perUs);
    this.#burstiness = random.pick([5, 30]);
    this.#windows = windows;
  }

  begin(process, client) {
    this.#doNext(this.#createLimiter(process, client, this.#options), 0, 0);
  }

  #createLimiter(process, client, options) {
    const RateLimiter = process.load('lib/limiter/index.js');
    const { random, schedule, server } = this.#simulation;
    this.#judgedBy.set(process, new JudgedAttempts(schedule));
    const commandTimeout = Math.ceil(this.#options.lease * random.pick([0.3, 2]));
    const redis = { client, commandTimeout };
    const create = () => new RateLimiter({ ...options, namespace: server.namespace, redis });
    return { process, create, limiter: create(), taken: [] };
  }

  /** Its limiter has no leases. */
  #createFiller() {
    const { process, client } = this.#simulation.createProcess('filler');
    const { lease, ...options } = this.#options;
    const own = this.#createLimiter(process, client, options);
    const take = (id, cost) => this.#attempt(own, id, cost);
    return new Filler(this.#simulation, {
      take,
      windows: this.#windows,
      lifetimeUs: this.lifetimeUs,
    });
  }

  onReply(reply) {
    this.#judgedBy.get(reply.process).read(reply);
  }

  /** Attempts one after the other, or none for a while and then many: at once, or as a lease of them would last. */
  #doNext(own, left, everyUs) {
    const { random } = this.#simulation;
    const begins = left === 0 && random.chance(this.#burstiness);
    const usualPause = random.between(1, 2 * this.#everyUs);
    const pause = begins ? random.between(0, 1.2 * this.lifetimeUs) : usualPause;
    own.process.after(left > 0 ? everyUs : pause, () => {
      this.#act(own);
      if (!begins) {
        this.#doNext(own, Math.max(0, left - 1), everyUs);
        return;
      }
      const count = random.between(1, this.#options.limits[0].maxInInterval);
      this.#doNext(own, count, random.pick([0, Math.floor(this.lifetimeUs / 30)]));
    });
  }

  #act(own) {
    const { random } = this.#simulation;
    const id = random.pick(this.#ids);
    const dice = random.between(1, 1000);
    if (dice <= 60) this.#settle(own);
    else if (dice <= 100) quietly(own.limiter.peek(id));
    else if (dice <= 110) quietly(own.limiter.usage(id));
    else if (dice <= 113) quietly(own.limiter.block(id, random.between(1, this.#options.lease)));
    else if (dice <= 115) this.#startAgain(own);
    else if (dice <= 300) this.#call(own, id);
    else this.#attempt(own, id, random.chance(80) ? 1 : random.between(2, 3));
  }

  async #attempt(own, id, cost) {
    const { random } = this.#simulation;
    const { limiter } = own;
    const asked = random.chance(95)
      ? limiter.attempt(id, { cost })
      : limiter.wait(id, { cost, deadline: this.#options.lease });
    const decision = await quietly(asked);
    if (!decision?.allowed) return;
    const use = this.#note(own.process, id, cost);
    own.taken = [{ limiter, decision, use }, ...own.taken.slice(0, MOST_REMEMBERED)];
  }

  async #call(own, id) {
    if ((await quietly(own.limiter(id))) === 0) this.#note(own.process, id, 1);
  }

  #note(process, id, cost) {
    const { serverClock, schedule } = this.#simulation;
    const judgedAt = this.#judgedBy.get(process).take(id, cost);
    this.uses += 1;
    if (judgedAt === undefined) {
      this.#filler ??= this.#createFiller();
      this.#filler.used(id, process);
    }
    schedule.note(
      `${process.name} uses ${cost} of ${id}${judgedAt === undefined ? ', leased' : ''}`,
    );
    const uses = this.#usesOf.get(id);
    const use = uses.add(judgedAt ?? serverClock.reference, cost);
    const excess = uses.excessAround(use);
    if (excess !== undefined) this.#simulation.broken(`${JSON.stringify(excess)} of ${id}`);
    uses.forgetBefore(serverClock.reference - MEMORY_US);
    return use;
  }

  /** The process says that less was used, or more. What is more than was asked for is not limited. */
  #settle(own) {
    const { random, schedule } = this.#simulation;
    if (own.taken.length === 0) return;
    const [{ limiter, decision, use }] = own.taken.splice(
      random.between(0, own.taken.length - 1),
      1,
    );
    if (limiter !== own.limiter) return;
    const actual = random.chance(60) ? 0 : random.between(0, use.cost + 1);
    schedule.note(`${own.process.name} settles ${use.cost} as ${actual}`);
    use.cost = Math.min(use.cost, actual);
    quietly(limiter.settle(decision, actual));
  }

  #startAgain(own) {
    this.#simulation.schedule.note(`${own.process.name} closes its limiter and makes another one`);
    quietly(own.limiter.close());
    own.limiter = own.create();
  }
}

/** Undefined for what fails as it may. */
async function quietly(promise) {
  try {
    return await promise;
  } catch (error) {
    if (!String(error.code).startsWith('ERR_ROLLGATE_')) throw error;
    return undefined;
  }
}

/** Promises { violation, uses } of a simulation of so many lifetimes of a lease. */
async function simulateLeases(options, lifetimes = 60) {
  const simulation = new Simulation(options, (own) => new LeasesWorkload(own));
  const { uses } = await simulation.run(lifetimes);
  return { violation: simulation.violation, uses };
}

module.exports = { simulateLeases };
