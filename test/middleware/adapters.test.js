// What adapters have in common: their names in the messages about options, and refusals that do not count.
'use strict';

const { rateLimit } = require('../..');
const RollgateStore = require('../../lib/adapters/express-rate-limit-store');
const { rateLimitFetch } = require('../../lib/adapters/fetch');
const { RollgateThrottlerStorage } = require('../../lib/adapters/nest-throttler');
const { appWith, fetchText, get, inTurn, useFastify, withCode } = require('./apps');

const { newApp, own, ready, rollgate, start } = useFastify();

/** Each adapter's name in messages, and how it gets options. */
const ADAPTERS = [
  ['rateLimit', async (options) => rateLimit(options)],
  ['rateLimitFetch', async (options) => rateLimitFetch(options)],
  ['Fastify plugin', (options) => ready(options)],
  ['RollgateStore', async (options) => new RollgateStore(options)],
  ['RollgateThrottlerStorage', async (options) => new RollgateThrottlerStorage(options)],
];

test.each(ADAPTERS)('%s names itself in each error of an option', async (name, create) => {
  for (const [options, Kind, message] of [
    [{ maxKey: 5 }, TypeError, `unknown option "maxKey"; did you mean 'maxKeys'`],
    [{ maxKeys: 0 }, RangeError, "option 'maxKeys': expected"],
  ]) {
    const refused = create(options);
    await expect(refused).rejects.toThrow(withCode('ERR_ROLLGATE_OPTION'));
    await expect(refused).rejects.toThrow(Kind);
    await expect(refused).rejects.toThrow(new RegExp(`^${name}: ${message}`));
  }
});

// Kills: an adapter with a default of its own.
test('rateLimit, rateLimitFetch and the Fastify plugin do not count refusals by default', async () => {
  let now = 0;
  const options = { windowMs: 1000, limit: 1, clock: () => now };
  const app = appWith(rateLimit(options));
  const limit = rateLimitFetch(options);
  const url = await start(options);
  const request = new Request('http://host.test/');
  const answers = await inTurn([0, 900, 1000], async (ms) => {
    now = ms;
    const { allowed } = await limit(request, { ip: '192.0.2.1' });
    return [(await get(app)).status, allowed, (await fetchText(url)).status];
  });
  expect(answers).toEqual([
    [200, true, 200],
    [429, false, 429],
    [200, true, 200],
  ]);
});

test('a rule names its place after the adapter', () => {
  const create = () => rateLimitFetch({ rules: [{ path: '/a' }, { path: '/', limit: -1 }] });
  expect(create).toThrow(/^rateLimitFetch: in rules\[1\]: option 'limit': /);
});

test("a Fastify route's own limits name the plugin", async () => {
  const app = newApp();
  await app.register(rollgate, { limit: 1 });
  const addRoute = (limits) => () => app.get('/', own(limits), () => 'passed');
  expect(addRoute({ limit: '5' })).toThrow(/^Fastify plugin: option 'limit': /);
  expect(addRoute(5)).toThrow(/^Fastify plugin: option 'config.rateLimit': /);
});

test('init of RollgateStore names it, and RateLimiter, which is no adapter, the option alone', () => {
  const init = () => new RollgateStore().init({ windowMs: 0, limit: 5 });
  expect(init).toThrow(/^RollgateStore: option 'interval': /);
  expect(() => require('../..')({ interval: 0, maxInInterval: 1 })).toThrow(/^option 'interval'/);
});
