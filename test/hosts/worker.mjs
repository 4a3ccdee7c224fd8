// An application for workerd. Its limiters in memory are made where there is no time, no timer and no random number.
import * as rollgate from 'rollgate';
import { rateLimitFetch } from 'rollgate/fetch';
import { createKv, run, unsupported } from './program.mjs';

const { RateLimiter } = rollgate;
const TWO = { interval: 1000 * 3_600_000, maxInInterval: 2, countBlocked: false };
const QUICK = { interval: 20, maxInInterval: 1, countBlocked: false };

const inMemory = RateLimiter(TWO);
const { get, set } = createKv();

/** As after a request to a store: what follows belongs to the request that made it. */
const later = (answer) => new Promise((resolve) => setTimeout(() => resolve(answer()), 1));
const kv = {
  get: (key) => later(() => get(key)),
  set: (...entry) => later(() => set(...entry)),
};
const createOverKv = (namespace) => RateLimiter({ ...TWO, kv, namespace });

const limit = rateLimitFetch({
  windowMs: TWO.interval,
  limit: 2,
  trustProxy: 1,
  standardHeaders: 'draft-8',
});

const isAllowed = async (timeLeft) => (await timeLeft) === 0;

/** An edge is a proxy, so the address comes in a header. */
async function isAllowedToFetch({ url }) {
  const headers = { 'x-forwarded-for': '192.0.2.1' };
  const { allowed, response } = await limit(new Request(url, { headers }), { ip: '127.0.0.1' });
  if (!allowed && response.status !== 429) throw new Error(`a refusal of ${response.status}`);
  return allowed;
}

const answers = {
  '/program': () => run(rollgate),
  '/unsupported': () => unsupported(rollgate),
  '/fetch': isAllowedToFetch,
  '/memory': () => isAllowed(inMemory('all')),
  /** Of this request, because timers and what a store answers belong to one. */
  '/kv': () => isAllowed(createOverKv('requests')('all')),
};

/** An object with limiters that several requests share. */
export class Room {
  #limiter = RateLimiter(TWO);
  #quick = RateLimiter(QUICK);
  #overKv = createOverKv('rooms');

  #answers = {
    '/room': () => isAllowed(this.#limiter('all')),
    '/room/wait': async () => (await this.#quick.wait('all')).allowed,
    '/room/kv': () => isAllowed(this.#overKv('all')),
  };

  async fetch({ url }) {
    return Response.json(await this.#answers[new URL(url).pathname]());
  }
}

export default {
  async fetch(request, { ROOMS }) {
    const { pathname } = new URL(request.url);
    if (pathname.startsWith('/room')) return ROOMS.get(ROOMS.idFromName('one')).fetch(request);
    return Response.json(await answers[pathname](request));
  },
};
