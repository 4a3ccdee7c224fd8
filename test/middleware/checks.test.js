// Checks on how a middleware is used: each mistake is said once, with a code and a link, and nothing else is.
'use strict';

const express = require('express');
const request = require('supertest');
const RateLimiter = require('../..');

const { rateLimit, ipKeyGenerator } = RateLimiter;

/** A logger, and the codes it was told of. */
function listen() {
  const warnings = [];
  const logger = {
    warn: (warning) => warnings.push(warning),
    error: (error) => {
      throw error;
    },
  };
  return { logger, warnings, codes: () => warnings.map(({ code }) => code) };
}

/** An Express app with the middleware; `trust` is its setting 'trust proxy'. */
function appOf(middleware, trust) {
  const app = express();
  if (trust !== undefined) app.set('trust proxy', trust);
  app.use(middleware);
  app.get('/', (_req, res) => res.end());
  return app;
}

const get = (app, headers = {}) => request(app).get('/').set(headers);

const FORWARDED_FOR = { 'X-Forwarded-For': '192.0.2.1' };
const FORWARDED = { Forwarded: 'for=192.0.2.1' };

test.each([
  ['trust proxy true', 'ROLLGATE_TRUST_PROXY', 'trustProxy', true, {}],
  ['X-Forwarded-For', 'ROLLGATE_X_FORWARDED_FOR', 'xForwardedForHeader', undefined, FORWARDED_FOR],
  ['Forwarded', 'ROLLGATE_FORWARDED', 'forwardedHeader', undefined, FORWARDED],
  [
    'an address with a port',
    'ROLLGATE_INVALID_IP',
    'ip',
    1,
    { 'X-Forwarded-For': '192.0.2.1:1234' },
  ],
])('%s is said once, and never by validate: false', async (_what, code, check, trust, headers) => {
  const play = async (validate) => {
    const { logger, codes } = listen();
    const app = appOf(rateLimit({ limit: 2, logger, validate }), trust);
    for (let i = 0; i < 3; i++) await get(app, headers);
    return codes();
  };
  expect(await play(undefined)).toEqual([code]);
  expect(await play(true)).toEqual([code]);
  expect(await play({ [check]: true, default: false })).toEqual([code]);
  expect(await play({ [check]: false })).toEqual([]);
  expect(await play(false)).toEqual([]);
});

test('a proxy that was put in front later is noticed', async () => {
  const { logger, codes } = listen();
  const app = appOf(rateLimit({ logger }));
  await get(app);
  expect(codes()).toEqual([]);
  await get(app, FORWARDED_FOR);
  expect(codes()).toEqual(['ROLLGATE_X_FORWARDED_FOR']);
});

test.each([
  ['a client without a proxy', undefined, {}],
  ['a proxy that is trusted', 1, FORWARDED_FOR],
  ['a proxy that is trusted by address', 'loopback', FORWARDED_FOR],
])('%s: nothing to say', async (_what, trust, headers) => {
  const { logger, codes } = listen();
  const app = appOf(rateLimit({ logger }), trust);
  for (let i = 0; i < 2; i++) await get(app, headers);
  expect(codes()).toEqual([]);
});

test('a keyGenerator of your own is not held to the rules for addresses', async () => {
  const { logger, codes } = listen();
  const app = appOf(rateLimit({ logger, keyGenerator: () => 'k' }), true);
  await get(app, { ...FORWARDED_FOR, ...FORWARDED });
  expect(codes()).toEqual([]);
});

describe('one request that is counted twice', () => {
  /** What is said when the middleware are all in one app. */
  async function saidOf(middleware, { logger, codes }) {
    const app = express();
    for (const each of middleware(logger)) app.use(each);
    app.get('/', (_req, res) => res.end());
    for (let i = 0; i < 2; i++) await get(app);
    return codes();
  }

  const one = () => RateLimiter({ interval: 1000, maxInInterval: 9 });
  const other = (logger) => rateLimit({ logger, windowMs: 5000 });

  test.each([
    [
      'by two middleware over one limiter',
      (logger) => {
        const limiter = one();
        return [rateLimit({ limiter, logger }), rateLimit({ limiter, validate: false })].reverse();
      },
    ],
    [
      'by one middleware used twice',
      (logger) => {
        const middleware = rateLimit({ logger });
        return [middleware, middleware];
      },
    ],
    [
      'by one middleware before and behind another',
      (logger) => {
        const middleware = rateLimit({ logger });
        return [middleware, other(logger), middleware];
      },
    ],
  ])('%s is said once', async (_what, middleware) => {
    expect(await saidOf(middleware, listen())).toEqual(['ROLLGATE_DOUBLE_COUNT']);
  });

  test.each([
    ['two limiters', (logger) => [other(logger), other(logger)]],
    [
      'one limiter and two keys',
      (logger) => {
        const limiter = one();
        return ['a', 'b'].map((key) => rateLimit({ limiter, logger, keyGenerator: () => key }));
      },
    ],
    [
      'checks that are off',
      () => {
        const limiter = one();
        return [1, 2].map(() => rateLimit({ limiter, validate: { singleCount: false } }));
      },
    ],
  ])('%s: nothing to say', async (_what, middleware) => {
    expect(await saidOf(middleware, listen())).toEqual([]);
  });

  test('what others keep under the same name does not disturb', async () => {
    const { logger, codes } = listen();
    for (const theirs of [5, 'text', null, {}, Object.create(null)]) {
      const req = { ip: '192.0.2.1', rateLimit: theirs };
      rateLimit({ logger })(req, { headersSent: true }, () => {});
      expect(req.rateLimit.limit).toBe(5);
    }
    expect(codes()).toEqual([]);
  });
});

describe('a middleware made while a request is handled', () => {
  async function saidOf(options) {
    const { logger, codes } = listen();
    const app = appOf((req, res, next) => rateLimit({ ...options, logger })(req, res, next));
    await get(app);
    return codes();
  }

  test('is said', async () => {
    expect(await saidOf({})).toEqual(['ROLLGATE_CREATED_IN_HANDLER']);
    expect(await saidOf({ validate: { creationStack: false } })).toEqual([]);
  });

  test('is in order over a limiter that lives on', async () => {
    expect(await saidOf({ limiter: RateLimiter({ interval: 1, maxInInterval: 1 }) })).toEqual([]);
  });
});

test.each([
  [(req) => req.ip, true],
  [(request) => `${request.ip} ${request.method}`, true],
  [(req) => ipKeyGenerator(req.ip), false],
  [(req) => req.ipAddress, false],
  [(req) => req.get('x-key'), false],
])('keyGenerator %s: said is %p', (keyGenerator, isSaid) => {
  const { logger, codes } = listen();
  rateLimit({ logger, keyGenerator });
  expect(codes()).toEqual(isSaid ? ['ROLLGATE_BARE_IP_KEY'] : []);
});

test('without a logger it is a warning of the process with a link', async () => {
  const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
  try {
    await get(appOf(rateLimit(), true));
    const [[text, { type, code }], ...more] = warn.mock.calls;
    expect(more).toEqual([]);
    expect([type, code]).toEqual(['RollgateWarning', 'ROLLGATE_TRUST_PROXY']);
    expect(text).toContain('docs/errors.md#rollgate_trust_proxy');
  } finally {
    warn.mockRestore();
  }
});
