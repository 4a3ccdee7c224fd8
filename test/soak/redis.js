// The soak test on Redis, with limiters in memory beside: a server that suffers, clients that bear it.
'use strict';

const { setTimeout: pause } = require('node:timers/promises');
const RateLimiter = require('../..');
const { REDIS_CLIENTS, openings } = require('../support/redis-clients');
const { startRedis, stopRedis } = require('../support/redis-server');
const { waitUntil } = require('../support/wait-until');
const { Outages } = require('./outages');
const { LIMIT, SHORT_LIMIT, pressOn, useUp } = require('./redis-counts');
const { isSanitized, main } = require('./soak');
const { followTraces } = require('./traces');

const COMMAND_TIMEOUT = 300;
/** Beyond the deadline: for a machine that is busy with this very test. */
const LENIENCE_MS = isSanitized ? 10_000 : 2000;
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
function comeAndGo(soak, open, call) {
  let made = 0;
  return async () => {
    made += 1;
    const limiter = open({ redis: { url: open.url, commandTimeout: COMMAND_TIMEOUT } });
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
    const open = (namespace, options) =>
      RateLimiter({
        redis: { ...redis, commandTimeout: COMMAND_TIMEOUT },
        namespace,
        ...LIMIT,
        ...options,
      });
    const own = open(name);
    const common = { soak, outages, call };
    const resends = name !== 'native';
    repeat(useUp({ ...common, limiters: [own], name, resends }), CALLERS);
    together.push(open('together'));
    repeat(pressOn({ ...common, limiter: open(`${name} short`, SHORT_LIMIT) }), CALLERS);
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
  repeat(
    useUp({ soak, outages, call, limiters: together, name: 'any', resends: true }),
    3 * CALLERS,
  );
  const dropped = (options) => RateLimiter({ ...LIMIT, ...options, namespace: 'dropped' });
  repeat(comeAndGo(soak, Object.assign(dropped, { url: server.url }), call));
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
