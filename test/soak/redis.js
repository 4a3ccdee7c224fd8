// The soak test on Redis: a server with outages, and clients that must keep their promises meanwhile.
'use strict';

const { setTimeout: pause } = require('node:timers/promises');
const RateLimiter = require('../..');
const { REDIS_CLIENTS, openings } = require('../support/redis-clients');
const { startRedis, stopRedis } = require('../support/redis-server');
const { randomFrom } = require('../support/traces');
const { waitUntil } = require('../support/outcome');
const { followTraces, main, patient } = require('./soak');

/** Kills, freezes and restarts the server, and drops its clients and scripts. */
class Outages {
  #server;
  #random;
  #soak;
  /** Counts the stages of the server: up, down, starting, up and empty, ... */
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

const HOUR = 3_600_000;
const LIMIT = { interval: HOUR, maxInInterval: 20, countBlocked: false };
const REFUSALS = 4;

/**
 * Calls `limiters`, of LIMIT and one namespace, in turn until an id is used up, then with the next.
 * The limit passes exactly, except for calls whose answer was lost. A client that `resends` may have counted
 * these twice, so there is no lower bound.
 */
function useUp({ soak, outages, call, limiters, name, resends }) {
  let current; // one id, in one life of the server
  let made = 0;
  let calls = 0;
  const renew = () => {
    const { stage } = outages;
    made += 1;
    const id = `${name} ${stage} ${made}`;
    current = { id, stage, allowed: 0, refused: 0, lost: 0, pending: 0 };
  };

  function judge(one) {
    const { maxInInterval } = LIMIT;
    const { id, allowed, lost, stage } = one;
    const text = `${allowed} of ${maxInInterval} passed for '${id}', ${lost} were lost`;
    if (allowed > maxInInterval) soak.violate(text);
    if (resends || outages.stage !== stage || one.refused === 0 || one.pending > 0) return;
    if (allowed + lost < maxInInterval) soak.violate(text);
  }

  return async () => {
    if (current?.stage !== outages.stage || current.refused >= REFUSALS) renew();
    const one = current;
    const { stage } = one;
    const limiter = limiters[calls++ % limiters.length];
    one.pending += 1;
    const outcome = await call(() => limiter(one.id));
    one.pending -= 1;
    if (typeof outcome !== 'number' || stage !== outages.stage) one.lost += 1;
    else if (outcome > 0) one.refused += 1;
    else if (outages.isUp) one.allowed += 1;
    judge(one);
  };
}

const COMMAND_TIMEOUT = 300;
/** Beyond the deadline: for a machine that is busy with this very test. */
const LENIENCE_MS = patient(5000);
const LOST = /^ERR_ROLLGATE_REDIS_(TIMEOUT|UNREACHABLE)$/;
const CLIENTS = ['native', 'ioredis', 'node-redis 6'];
const CALLERS = 4;
const SOFTENED = ['allow', 'block', 'memory'];

/** Makes a call: its value, or the code of its failure, which must be one of a lost server. */
function caller(soak, pending) {
  return async (make) => {
    const start = performance.now();
    pending.calls += 1;
    let outcome;
    try {
      outcome = await make();
    } catch (error) {
      outcome = error.code ?? error.stack;
      if (!LOST.test(outcome)) soak.violate(`a call failed with ${error.stack}`);
    }
    pending.calls -= 1;
    const took = performance.now() - start;
    if (took > COMMAND_TIMEOUT + LENIENCE_MS) soak.violate(`a call took ${Math.round(took)} ms`);
    soak.count(typeof outcome === 'string' ? 'failures borne' : 'calls');
    return outcome;
  };
}

/** Calls of a limiter with this onError never fail, and while the server is down its policy decides. */
function soften({ soak, outages, limiter, onError }) {
  let allowedWhileDown = { stage: -1, count: 0 };
  return async () => {
    const { stage, isDown } = outages;
    let decision;
    try {
      decision = await limiter.attempt(`softened ${stage}`);
    } catch (error) {
      soak.violate(`onError: '${onError}' let through ${error.stack}`);
      return;
    }
    soak.count('softened calls');
    if (!isDown || stage !== outages.stage) return;
    if (onError === 'allow' && !decision.allowed) soak.violate("onError: 'allow' refused");
    if (onError === 'block' && decision.allowed) soak.violate("onError: 'block' allowed");
    if (allowedWhileDown.stage !== stage) allowedWhileDown = { stage, count: 0 };
    if (decision.allowed) allowedWhileDown.count += 1;
    if (onError === 'memory' && allowedWhileDown.count > LIMIT.maxInInterval) {
      soak.violate(`onError: 'memory' allowed ${allowedWhileDown.count}`);
    }
  };
}

/** Limiters with a connection of their own, some of them just dropped. */
function comeAndGo(soak, url, call) {
  const redis = { url, commandTimeout: COMMAND_TIMEOUT };
  let made = 0;
  return async () => {
    made += 1;
    const limiter = RateLimiter({ ...LIMIT, redis, namespace: 'dropped' });
    await Promise.all([1, 2, 3].map((id) => call(() => limiter(id))));
    if (made % 2 === 0) await limiter.close();
    soak.count('connections');
    await pause(30);
  };
}

function load({ soak, server, outages, pending, using }) {
  const call = caller(soak, pending);
  const loads = [];
  const together = [];
  const questions = [];
  const repeat = (slice, times = 1) => {
    for (let i = 0; i < times; i++) loads.push(soak.repeat(slice));
  };
  for (const name of CLIENTS) {
    const redis = using(REDIS_CLIENTS[name].open(server.url));
    redis.commandTimeout = COMMAND_TIMEOUT;
    const open = (namespace, options) => RateLimiter({ ...LIMIT, redis, namespace, ...options });
    const own = open(name);
    const common = { soak, outages, call };
    const resends = name !== 'native';
    repeat(useUp({ ...common, limiters: [own], name, resends }), CALLERS);
    together.push(open('together'));
    questions.push(() => own.peek('is it back?'));
    for (const onError of SOFTENED) {
      const limiter = open(`${name} ${onError}`, { onError });
      repeat(soften({ soak, outages, limiter, onError }));
      questions.push(async () => {
        const { fallbacks } = limiter.stats();
        await limiter.peek('is it back?');
        if (limiter.stats().fallbacks > fallbacks) throw new Error(`${name}: ${onError} decides`);
      });
    }
  }
  const ofAll = { limiters: together, name: 'any', resends: true };
  repeat(useUp({ soak, outages, call, ...ofAll }), 3 * CALLERS);
  repeat(comeAndGo(soak, server.url, call));
  loads.push(followTraces(soak));
  loads.push(outages.keepComing(() => Promise.all(questions.map((ask) => ask()))));
  return Promise.all(loads);
}

main('memory and Redis', async (soak) => {
  const server = await startRedis();
  const { using, closeAll } = openings();
  const pending = { calls: 0 };
  const outages = new Outages(soak, server);
  await load({ soak, server, outages, pending, using });
  if (pending.calls > 0) soak.violate(`${pending.calls} calls never settled`);
  await closeAll();
  // What was dropped hangs up when it is freed.
  await waitUntil('all have hung up', async () => {
    global.gc();
    const list = await server.command('CLIENT', 'LIST', 'TYPE', 'normal');
    return list.trim().split('\n').length === 1; // who asks
  }).catch((error) => soak.violate(error.message));
  await stopRedis([server]);
});
