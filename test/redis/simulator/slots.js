// Slots in a simulation: what the processes do with them, and that never more than `max` are held of an id.
//
// A process holds a slot at each moment at which it runs and looks: from its first such moment to its last one, whatever
// happens to the process between the two.
'use strict';

const { Simulation } = require('./simulation');

const MS = 1000;

/** How many units of each id are held at once. Times are true ones, in us. */
class HeldUnits {
  looks = 0;
  most = 0;
  #slots;
  #memoryUs;

  constructor(ids, memoryUs) {
    this.#slots = new Map(ids.map((id) => [id, []]));
    this.#memoryUs = memoryUs;
  }

  begin(id, cost, now) {
    const held = { cost, first: now, last: now };
    this.#slots.set(id, [
      ...this.#slots.get(id).filter(({ last }) => last > now - this.#memoryUs),
      held,
    ]);
    this.#count(id, now, now);
    return held;
  }

  look(id, held, now) {
    const from = held.last;
    held.last = now;
    this.#count(id, from, now);
  }

  /** Counts at each moment from which one slot more was held. */
  #count(id, from, until) {
    this.looks += 1;
    const slots = this.#slots.get(id);
    const moments = slots
      .map(({ first }) => first)
      .filter((first) => first >= from && first <= until);
    for (const moment of [from, ...moments]) {
      const held = slots.filter(({ first, last }) => first <= moment && moment <= last);
      const units = held.reduce((sum, { cost }) => sum + cost, 0);
      this.most = Math.max(this.most, units);
    }
  }
}

class SlotsWorkload {
  processes;
  lifetimeUs;
  held;
  #simulation;
  #ids;
  #max;
  #ttl;
  #everyUs;
  #longestUs;

  constructor(simulation) {
    const { random } = simulation;
    this.#simulation = simulation;
    this.processes = random.between(2, 3);
    this.#ids = random.pick([['a'], ['a', 'b']]);
    this.#max = random.pick([1, 1, 3]);
    this.#ttl = random.pick([1000, 10_000, 30_000]);
    this.lifetimeUs = this.#ttl * MS;
    this.#everyUs = Math.floor(this.lifetimeUs * random.pick([0.02, 0.05]));
    this.#longestUs = this.lifetimeUs * random.pick([0.5, 5, 20]);
    this.held = new HeldUnits(this.#ids, 10 * this.lifetimeUs);
  }

  begin(process, client) {
    const ConcurrencyLimiter = process.load('lib/concurrency/index.js');
    const redis = {
      client,
      commandTimeout: this.#simulation.random.pick([Math.floor(this.#ttl / 3), 2 * this.#ttl]),
    };
    const { namespace } = this.#simulation.server;
    const limiter = ConcurrencyLimiter({ max: this.#max, ttl: this.#ttl, namespace, redis });
    const own = new Set();
    this.#doNext(process, limiter, own);
  }

  #doNext(process, limiter, own) {
    const { random } = this.#simulation;
    process.after(random.between(1, 2 * this.#everyUs), () => {
      if (own.size > 0 && random.chance(60)) this.#use(process, random.pick([...own]), own);
      else this.#acquire(process, limiter, own);
      this.#doNext(process, limiter, own);
    });
  }

  async #acquire(process, limiter, own) {
    const { random, schedule } = this.#simulation;
    const id = random.pick(this.#ids);
    const cost = random.between(1, Math.min(2, this.#max));
    const waits = random.chance(5);
    try {
      const asked = waits
        ? limiter.wait(id, { cost, deadline: random.between(1, 500) })
        : limiter.acquire(id, { cost });
      const slot = await asked;
      if (!slot.allowed) return;
      schedule.note(`${process.name} holds ${cost} of ${id}`);
      const held = this.held.begin(id, cost, schedule.now);
      this.#check(id);
      const holder = { id, slot, held, end: schedule.now + random.between(0, this.#longestUs) };
      own.add(holder);
    } catch (error) {
      if (!String(error.code).startsWith('ERR_ROLLGATE_')) throw error;
    }
  }

  #use(process, holder, own) {
    const { id, slot, held, end } = holder;
    const { schedule } = this.#simulation;
    if (slot.lost.aborted) {
      schedule.note(`${process.name} has lost ${slot.cost} of ${id}`);
      own.delete(holder);
      return;
    }
    this.held.look(id, held, schedule.now);
    this.#check(id);
    if (schedule.now < end) return;
    schedule.note(`${process.name} releases ${slot.cost} of ${id}`);
    own.delete(holder);
    slot.release();
  }

  #check(id) {
    if (this.held.most <= this.#max) return;
    this.#simulation.broken(`${this.held.most} of ${id} are held where ${this.#max} may be`);
  }
}

/** Promises { violation, uses } of a simulation of so many lifetimes of a slot. */
async function simulateSlots(options, lifetimes = 40) {
  const simulation = new Simulation(options, (own) => new SlotsWorkload(own));
  const { held } = await simulation.run(lifetimes);
  return { violation: simulation.violation, uses: held.looks };
}

module.exports = { simulateSlots };
