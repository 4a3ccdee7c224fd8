// A Redis server that is killed, frozen, robbed of its clients and scripts, and comes back each time.
'use strict';

const { setTimeout: pause } = require('node:timers/promises');
const { randomFrom } = require('../support/traces');
const { waitUntil } = require('../support/wait-until');

class Outages {
  #server;
  #random;
  #soak;
  /** Counts the stages of the server's lives: up, down, starting, up with nothing in it, ... */
  stage = 0;

  constructor(soak, server) {
    this.#soak = soak;
    this.#server = server;
    this.#random = randomFrom(soak.seed);
  }

  get isUp() {
    return this.stage % 3 === 0;
  }

  /** Not even about to start. */
  get isDown() {
    return this.stage % 3 === 1;
  }

  #events = {
    kill: async () => {
      this.stage += 1; // in the same turn as the kill
      await this.#server.stop();
      await pause(this.#random.between(0, 700));
      this.stage += 1;
      await this.#server.restart();
      this.stage += 1;
    },
    freeze: async () => {
      await this.#server.freeze();
      await pause(this.#random.between(50, 1000));
      this.#server.thaw();
    },
    'hang up': () => this.#server.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'),
    'flush scripts': () => this.#server.command('SCRIPT', 'FLUSH'),
  };

  /** Until the soak is over; `answers()` rejects as long as some limiter does not answer from Redis. */
  async keepComing(answers) {
    const names = Object.keys(this.#events);
    for (let i = 0; !this.#soak.isOver; i++) {
      const name = names[i % names.length];
      await this.#events[name]();
      this.#soak.count(`times "${name}"`);
      try {
        await waitUntil('service resumes', answers);
      } catch (error) {
        this.#soak.violate(`after "${name}": ${error.message}: ${error.cause?.stack}`);
      }
      await pause(this.#random.between(100, 800));
    }
  }
}

module.exports = { Outages };
