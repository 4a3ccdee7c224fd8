// The name of each adapter in the messages about its options.
'use strict';

const createFastify = require('fastify');
const { rateLimit } = require('../..');
const RollgateStore = require('../../lib/adapters/express-rate-limit-store');
const rollgate = require('../../lib/adapters/fastify');
const { rateLimitFetch } = require('../../lib/adapters/fetch');
const { RollgateThrottlerStorage } = require('../../lib/adapters/nest-throttler');
const { withCode } = require('./apps');

const open = [];
afterEach(() => Promise.all(open.splice(0).map((app) => app.close())));

function newFastify() {
  const app = createFastify();
  open.push(app);
  return app;
}

/** Each adapter's name in messages, and how it gets options. */
const ADAPTERS = [
  ['rateLimit', async (options) => rateLimit(options)],
  ['rateLimitFetch', async (options) => rateLimitFetch(options)],
  ['Fastify plugin', async (options) => newFastify().register(rollgate, options)],
  ['RollgateStore', async (options) => new RollgateStore(options)],
  ['RollgateThrottlerStorage', async (options) => new RollgateThrottlerStorage(options)],
];

test.each(ADAPTERS)('%s names itself and an unknown option', async (name, create) => {
  const refused = create({ maxKey: 5 });
  await expect(refused).rejects.toThrow(withCode('ERR_ROLLGATE_OPTION'));
  await expect(refused).rejects.toThrow(TypeError);
  await expect(refused).rejects.toThrow(
    new RegExp(`^${name}: unknown option "maxKey"; did you mean 'maxKeys'`),
  );
});

test.each(ADAPTERS)('%s names itself and an option out of range', async (name, create) => {
  const refused = create({ maxKeys: 0 });
  await expect(refused).rejects.toThrow(withCode('ERR_ROLLGATE_OPTION'));
  await expect(refused).rejects.toThrow(RangeError);
  await expect(refused).rejects.toThrow(new RegExp(`^${name}: option 'maxKeys': expected`));
});

test('a rule names its place after the adapter', () => {
  const create = () => rateLimitFetch({ rules: [{ path: '/a' }, { path: '/', limit: -1 }] });
  expect(create).toThrow(/^rateLimitFetch: in rules\[1\]: option 'limit': /);
});

test("a Fastify route's own limits name the plugin", async () => {
  const app = newFastify();
  await app.register(rollgate, { limit: 1 });
  const addRoute = (rateLimit) => () => app.get('/', { config: { rateLimit } }, () => 'passed');
  expect(addRoute({ limit: '5' })).toThrow(/^Fastify plugin: option 'limit': /);
  expect(addRoute(5)).toThrow(/^Fastify plugin: option 'config.rateLimit': /);
});

test('init of RollgateStore names it', () => {
  const init = () => new RollgateStore().init({ windowMs: 0, limit: 5 });
  expect(init).toThrow(/^RollgateStore: option 'interval': /);
});

test('RateLimiter, which is no adapter, names the option alone', () => {
  expect(() => rateLimit({ limit: -1 })).toThrow(/^rateLimit: /);
  expect(() => require('../..')({ interval: 0, maxInInterval: 1 })).toThrow(/^option 'interval'/);
});
