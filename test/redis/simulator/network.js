// Between a simulated process and the server: a client as users bring, whose messages are late, lost, repeated and
// reordered on their way, and so are the replies.
'use strict';

const { settlesAttempt } = require('./judged');

const LATENCY_US = [100, 1500];

class Network {
  #simulation;
  #messages = 0;

  constructor(simulation) {
    this.#simulation = simulation;
  }

  /** As a client of node-redis. */
  clientOf(process) {
    return {
      isOpen: true,
      isReady: true,
      options: {},
      sendCommand: (words) =>
        new Promise((resolve, reject) => this.#send(process, words, { resolve, reject })),
    };
  }

  #latency() {
    const { random, mood } = this.#simulation;
    return random.chance(mood.late)
      ? random.between(0, mood.latestUs)
      : random.between(...LATENCY_US);
  }

  #isLost(process) {
    const { random, mood, schedule } = this.#simulation;
    return schedule.now < process.cutUntil || random.chance(mood.lost);
  }

  #send(process, words, caller) {
    const { random, mood, schedule } = this.#simulation;
    this.#messages += 1;
    process.sentAt = schedule.now;
    const what = `message ${this.#messages} of ${process.name}`;
    schedule.note(`${what}: ${words[0]} ${words[3] ?? ''}`);
    const isRepeated = random.chance(mood.repeated) && !settlesAttempt(words);
    const copies = isRepeated ? 2 : 1;
    for (let copy = 0; copy < copies; copy++) {
      if (this.#isLost(process)) this.#lose(process, `${what} is lost`, caller);
      else schedule.after(this.#latency(), () => this.#arrive(process, words, what, caller));
    }
  }

  async #arrive(process, words, what, { resolve, reject }) {
    const { schedule, server, serverClock, onReply } = this.#simulation;
    schedule.note(`${what} arrives`);
    const delivery = { process, words, reference: serverClock.reference };
    let settle;
    try {
      const reply = await server.run(words, serverClock.now);
      settle = () => {
        onReply({ ...delivery, reply });
        resolve(reply);
      };
    } catch (error) {
      settle = () => reject(error);
    }
    if (this.#isLost(process)) {
      this.#lose(process, `the reply to ${what} is lost`, { reject });
      return;
    }
    process.after(process.slowUs + this.#latency(), () => {
      schedule.note(`the reply to ${what} arrives`);
      settle();
    });
  }

  /** The client may learn of it, because its connection is lost, or never. */
  #lose(process, what, { reject }) {
    const { random, schedule } = this.#simulation;
    schedule.note(what);
    if (random.chance(50)) process.after(this.#latency(), () => reject(new Error('Socket closed')));
  }
}

module.exports = { Network };
