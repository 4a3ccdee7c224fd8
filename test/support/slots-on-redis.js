// Limiters of slots for a test file: on a server of its own, in a namespace for each test, closed after it.
'use strict';

const { ConcurrencyLimiter } = require('../..');
const { clocks } = require('../../lib/stores/redis/clocks');
const { gatedClient } = require('./gated-client');
const { waitUntil } = require('./outcome');
const { clientAt } = require('./redis-clients');
const { redisForTests } = require('./redis-server');
const { patient } = require('./tiers');

/** What is not given back stays for longer than a test. */
const TTL = 60_000;
/** For what takes its time. */
const SHORT = patient(1000);
const PATIENT = { commandTimeout: patient(15_000) };

/** `later(stop)` is for what else is stopped after a test. */
function slotsOnRedis() {
  const limiters = [];
  const stops = [];
  const server = redisForTests();
  let namespace;
  let made = 0;

  beforeEach(() => {
    namespace = `slots-${++made}`;
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    await Promise.all(limiters.splice(0).map((limiter) => limiter.close()));
    for (const stop of stops.splice(0)) await stop();
  });

  const later = (stop) => stops.push(stop);
  const place = () => ({ namespace, redis: { client: clientAt(server.url), ...PATIENT } });
  function closeLater(limiter) {
    limiters.push(limiter);
    return limiter;
  }
  const make = (options) =>
    closeLater(ConcurrencyLimiter({ max: 1, ttl: TTL, ...place(), ...options }));

  /** A limiter over a client whose commands can be held up. */
  async function makeGated(options, { commandTimeout } = PATIENT) {
    const gated = await gatedClient(server.url);
    later(gated.close);
    return [make({ redis: { client: gated.client, commandTimeout }, ...options }), gated];
  }

  const usedBy = async (limiter, id = 'a') => (await limiter.usage(id)).used;
  return {
    closeLater,
    isFree: (limiter, id) => waitUntil('it is free', async () => (await usedBy(limiter, id)) === 0),
    keyOf: (id) => `${namespace}{${id}}:slots`,
    later,
    make,
    makeGated,
    place,
    usedBy,
    get server() {
      return server;
    },
  };
}

/** Clocks of this host jump ahead, until the test ends. */
function sleepFor(ms, clock = 'wall') {
  const [owner, name] = clock === 'wall' ? [Date, 'now'] : [clocks, 'boot'];
  const read = owner[name].bind(owner);
  jest.spyOn(owner, name).mockImplementation(() => read() + ms);
}

module.exports = { PATIENT, SHORT, TTL, sleepFor, slotsOnRedis };
