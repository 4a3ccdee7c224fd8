// What docs/for-agents.md says about the middleware: keys, headers, what counts, and what happens after an error.
'use strict';

const createFastify = require('fastify');
const RateLimiter = require('../../..');
const { rateLimitFetch } = require('../../../lib/adapters/fetch');
const plugin = require('../../../lib/adapters/fastify');
const { appWith, get, inTurn } = require('../../middleware/apps');

const { rateLimit } = RateLimiter;

const from = (address) => ({ 'x-forwarded-for': address });
const statusOf = async (app, headers) => (await get(app, '/', headers)).status;
const statusesOf = (app, ...headers) => inTurn(headers, (each) => statusOf(app, each));

/** A middleware, by default of one request in a minute and without checks, which would warn. */
const limitOf = (options) => rateLimit({ windowMs: 60_000, limit: 1, validate: false, ...options });

/** An app behind one proxy. */
function behindProxy(...middleware) {
  const app = appWith(...middleware);
  app.set('trust proxy', 1);
  return app;
}

const failing = {
  limiter: {
    attempt: async () => {
      throw Object.assign(new Error('the store is down'), { code: 'ERR_DOWN' });
    },
    peek() {},
    clear() {},
  },
};

exports.sections = {
  'Web servers': {
    '`rateLimit()` without options allows 5 requests a minute.': async () => {
      const response = await get(appWith(rateLimit()), '/');
      expect(response.headers).toMatchObject({
        'x-ratelimit-limit': '5',
        'x-ratelimit-remaining': '4',
      });
      const [, policy] = (await get(appWith(rateLimit({ standardHeaders: true })), '/')).headers[
        'ratelimit-policy'
      ].split(';');
      expect(policy).toBe('w=60');
    },
    '`rateLimit`, `rateLimitFetch` and the Fastify plugin do not count refused requests (`countBlocked` is `false` by default).':
      async () => {
        let now = 0;
        const options = { windowMs: 1000, limit: 1, clock: () => now };
        const app = appWith(rateLimit(options));
        const fetchLimit = rateLimitFetch(options);
        const fastify = createFastify();
        await fastify.register(plugin, options);
        fastify.get('/', () => 'passed');
        const url = await fastify.listen({ port: 0, host: '127.0.0.1' });
        const request = new Request('http://localhost/');
        const ask = async () => [
          await statusOf(app),
          (await fetchLimit(request, { ip: '192.0.2.1' })).allowed,
          (await fetch(url)).status,
        ];
        expect(await ask()).toEqual([200, true, 200]);
        now = 900;
        expect(await ask()).toEqual([429, false, 429]);
        now = 1000;
        expect(await ask()).toEqual([200, true, 200]);
        await fastify.close();
      },
    'The default key is the address of the connection, and `X-Forwarded-For` is not believed: behind a proxy, all clients share one count until the proxy is trusted (`app.set("trust proxy", 1)`, or `trustProxy: 1` of `rateLimit`).':
      async () => {
        const clients = [from('192.0.2.1'), from('192.0.2.2')];
        expect(await statusesOf(appWith(limitOf()), ...clients)).toEqual([200, 429]);
        expect(await statusesOf(behindProxy(limitOf()), ...clients)).toEqual([200, 200]);
        const trusting = appWith(limitOf({ trustProxy: 1 }));
        expect(await statusesOf(trusting, ...clients)).toEqual([200, 200]);
      },
    'With `trust proxy` or `trustProxy` set to `true`, a client chooses its address, and is never limited.':
      async () => {
        const app = appWith(limitOf({ trustProxy: true }));
        const forged = ['192.0.2.1', '192.0.2.2'].map((address) => from(`${address}, 203.0.113.9`));
        expect(await statusesOf(app, ...forged)).toEqual([200, 200]);
        const byExpress = appWith(limitOf());
        byExpress.set('trust proxy', true);
        expect(await statusesOf(byExpress, ...forged)).toEqual([200, 200]);
        const one = appWith(limitOf({ trustProxy: 1 }));
        expect(await statusesOf(one, ...forged)).toEqual([200, 429]);
      },
    'IPv6 addresses of one /56 are one client; `ipv6Subnet: false` counts each address.':
      async () => {
        const clients = [from('2001:db8:0:1::1'), from('2001:db8:0:2::1')];
        expect(await statusesOf(behindProxy(limitOf()), ...clients)).toEqual([200, 429]);
        const each = behindProxy(limitOf({ ipv6Subnet: false }));
        expect(await statusesOf(each, ...clients)).toEqual([200, 200]);
      },
    'A `keyGenerator` that returns `req.ip` loses the /56. Call its third argument, `clientKey()`, for the default key.':
      async () => {
        const clients = [from('2001:db8::1'), from('2001:db8::2')];
        const byIp = behindProxy(limitOf({ keyGenerator: (req) => req.ip }));
        expect(await statusesOf(byIp, ...clients)).toEqual([200, 200]);
        const byKey = limitOf({ keyGenerator: (_req, _res, clientKey) => clientKey() });
        expect(await statusesOf(behindProxy(byKey), ...clients)).toEqual([200, 429]);
      },
    'All keys of a limiter are in one space, so a user whose id is an address shares the count of that address: give ids of users a prefix.':
      async () => {
        const keyGenerator = (req, _res, clientKey) => req.get('x-user') ?? clientKey();
        const app = behindProxy(limitOf({ keyGenerator }));
        expect(await statusesOf(app, { 'x-user': '192.0.2.1' }, from('192.0.2.1'))).toEqual([
          200, 429,
        ]);
      },
    'Each call of `rateLimit` counts for itself. One middleware that is mounted twice counts a request twice.':
      async () => {
        const two = { limit: 2 };
        expect(await statusesOf(appWith(limitOf(two), limitOf(two)), {}, {})).toEqual([200, 200]);
        const once = limitOf(two);
        expect(await statusesOf(appWith(once, once), {}, {})).toEqual([200, 429]);
      },
    'By default, `X-RateLimit-*` headers are sent and the standard ones are not. `Retry-After` and the headers are in seconds, `timeLeft` is in milliseconds.':
      async () => {
        const app = appWith(limitOf());
        expect((await get(app)).headers).not.toHaveProperty('ratelimit');
        const { headers } = await get(app);
        expect(headers['x-ratelimit-limit']).toBe('1');
        expect(headers['retry-after']).toMatch(/^(59|60)$/);
        expect(Number(headers['x-ratelimit-reset'])).toBeLessThanOrEqual(Date.now() / 1000 + 61);
      },
    'A request whose `cost` is above the limit is refused without `Retry-After`, because it can never pass. `attempt` throws for such a cost.':
      async () => {
        const { status, headers } = await get(appWith(limitOf({ cost: () => 2 })));
        expect([status, headers['retry-after']]).toEqual([429, undefined]);
        const limiter = RateLimiter({ interval: 60_000, maxInInterval: 1 });
        expect(() => limiter.attempt('ada', { cost: 2 })).toThrow(RangeError);
      },
    'If the store or one of your functions fails, the error goes to `next`: the request neither passes nor gets 429. `passOnStoreError: true` lets it pass if the store failed, but not if the key is no id.':
      async () => {
        expect(await statusOf(appWith(rateLimit(failing)))).toBe(500);
        const keyGenerator = () => {
          throw new Error('no key');
        };
        expect(await statusOf(appWith(limitOf({ keyGenerator })))).toBe(500);
        const logger = { warn() {}, error() {} };
        const passing = { passOnStoreError: true, logger };
        expect(await statusOf(appWith(rateLimit({ ...failing, ...passing })))).toBe(200);
        const wrongKey = limitOf({ ...passing, keyGenerator: () => ({}) });
        expect(await statusOf(appWith(wrongKey))).toBe(500);
      },
    'With `skipSuccessfulRequests`, a request counts until its response is finished, and is taken back then if it succeeded: so simultaneous requests cannot exceed the limit.':
      async () => {
        let during;
        const app = appWith(limitOf({ skipSuccessfulRequests: true }), async (_req, _res, next) => {
          during = await statusOf(app); // refused, so it does not come here
          next();
        });
        expect([await statusOf(app), during, await statusOf(app)]).toEqual([200, 429, 200]);
      },
  },
};
