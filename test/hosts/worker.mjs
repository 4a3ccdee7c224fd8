// An application for workerd. Its limiters in memory are made where there is no time, no timer and no random number.
import * as rollgate from 'rollgate';
import { createKv, run, unsupported } from './program.mjs';

const { RateLimiter } = rollgate;
const TWO = { interval: 1000 * 3_600_000, maxInInterval: 2, countBlocked: false };
const QUICK = { interval: 20, maxInInterval: 1, countBlocked: false };

const inMemory = RateLimiter(TWO);
const { get, set } = createKv();
const kv = { get: async (key) => get(key), set: async (...entry) => set(...entry) };

const isAllowed = async (timeLeft) => (await timeLeft) === 0;

const answers = {
  '/program': () => run(rollgate),
  '/unsupported': () => unsupported(rollgate),
  '/memory': () => isAllowed(inMemory('all')),
  /** Of this request, because timers and what a store answers belong to one. */
  '/kv': () => isAllowed(RateLimiter({ ...TWO, kv, namespace: 'api' })('all')),
};

/** An object with limiters that several requests share. */
export class Room {
  #limiter = RateLimiter(TWO);
  #quick = RateLimiter(QUICK);

  async fetch({ url }) {
    const isWait = new URL(url).pathname === '/room/wait';
    const isAnswer = isWait ? (await this.#quick.wait('all')).allowed : isAllowed(this.#limiter());
    return Response.json(await isAnswer);
  }
}

export default {
  async fetch(request, { ROOMS }) {
    const { pathname } = new URL(request.url);
    if (pathname.startsWith('/room')) return ROOMS.get(ROOMS.idFromName('one')).fetch(request);
    return Response.json(await answers[pathname]());
  },
};
