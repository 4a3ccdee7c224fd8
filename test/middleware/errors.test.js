// Errors and misuse: one next(err), no open door, one warning for a mistake.
'use strict';

const { EventEmitter } = require('node:events');
const RateLimiter = require('../..');
const apps = require('./apps');

const { FAILING, appWith, callDirectly, get, newLogger, statusesOf, warningsDuring, withCode } =
  apps;
const { rateLimit } = RateLimiter;
const BOOM = Object.assign(new Error('boom'), { code: 'BOOM' });
const [[, throws], [, rejects]] = FAILING(BOOM);

const window = { interval: 10, maxInInterval: 1, used: 1, remaining: 0, resetIn: 10 };
const REFUSAL = { allowed: false, timeLeft: 10, actionsLeft: 0, resetIn: 10, blockedBy: 'count' };
const refusal = Object.freeze({ ...REFUSAL, limits: [window] });
const refusing = { limiter: { attempt: () => refusal } };
const refusingLater = { limiter: { attempt: async () => refusal } };

describe('an error reaches next(err) once', () => {
  const ofEach = (name, options) =>
    [throws, rejects].map((fails) => [name, { ...options, [name]: fails }]);
  const badThenable = Object.defineProperty({}, 'then', { get: throws });
  const CASES = [
    ...ofEach('skip'),
    ...ofEach('keyGenerator'),
    ...ofEach('keyGenerator', { skip: async () => false }),
    ...ofEach('limit'),
    ...ofEach('cost'),
    ...ofEach('identifier', { standardHeaders: 'draft-8' }),
    ...ofEach('handler', refusing),
    ...ofEach('handler', refusingLater),
    ...ofEach('message', refusing),
    ['what handler returns', { ...refusing, handler: () => badThenable }],
    ['the limiter', { limiter: { attempt: throws } }],
    ['the limiter, later', { limiter: { attempt: rejects } }],
  ];

  test.each(CASES)('in %s', async (_where, options) => {
    const { calls, returned } = callDirectly(rateLimit(options));
    await returned;
    expect(calls).toEqual([[BOOM]]);
  });

  test.each([undefined, '', 'route', 'router'])(
    'and %j, which next() would read as "go on", becomes one',
    (thrown) => {
      const [, keyGenerator] = FAILING(thrown)[0];
      const { calls } = callDirectly(rateLimit({ keyGenerator }));
      expect(calls).toEqual([[withCode('ERR_ROLLGATE_THROWN')]]);
    },
  );

  test('but one that next() throws does not', () => {
    const next = jest.fn(throws);
    const res = { headersSent: false, setHeader() {} };
    expect(() => rateLimit()({ ip: '192.0.2.1' }, res, next)).toThrow('boom');
    expect(next.mock.calls).toEqual([[]]);
  });

  test.each([
    [false, [BOOM]],
    [true, []],
  ])('if a header cannot be set, unless headers are sent: %p', (headersSent, expected) => {
    const next = jest.fn();
    rateLimit()({ ip: '192.0.2.1' }, { headersSent, setHeader: throws }, next);
    expect(next.mock.calls).toEqual([expected]);
  });

  test('while getKey and resetKey reject', async () => {
    const limiter = { attempt: throws, peek: throws, clear: throws };
    const middleware = rateLimit({ limiter });
    await expect(middleware.getKey('k')).rejects.toBe(BOOM);
    await expect(middleware.resetKey('k')).rejects.toBe(BOOM);
  });
});

describe('passOnStoreError', () => {
  test.each([throws, rejects])('lets requests pass, without headers', async (attempt) => {
    const logger = newLogger();
    const middleware = rateLimit({ limiter: { attempt }, passOnStoreError: true, logger });
    const asked = [callDirectly(middleware), callDirectly(middleware)];
    for (const { calls, headers, returned } of asked) {
      await returned;
      expect([calls, headers]).toEqual([[[]], {}]);
    }
    const link = expect.stringContaining('docs/errors.md#rollgate_passed_on_store_error');
    expect(logger.error.mock.calls).toEqual(Array(2).fill([BOOM, link]));
  });

  test('leaves the errors of other functions, and keys that are no ids', () => {
    for (const [keyGenerator, code] of [
      [throws, 'BOOM'],
      [() => ({}), 'ERR_ROLLGATE_ID'],
    ]) {
      const { calls } = callDirectly(rateLimit({ keyGenerator, passOnStoreError: true }));
      expect(calls).toEqual([[withCode(code)]]);
    }
  });
});

describe.each(FAILING(new Error('the log is closed')))('a logger that %s', (_what, fails) => {
  const logger = { warn: fails, error: fails };

  test('is replaced by warnings of the process, and the request passes', async () => {
    const codes = await warningsDuring(() => {
      const { calls } = callDirectly(rateLimit({ logger }), { ip: 'no address' });
      expect(calls).toEqual([[]]);
    });
    expect(codes).toEqual(['ROLLGATE_INVALID_IP']);
  });

  test('does no harm after the response', async () => {
    const options = { skipFailedRequests: true, requestWasSuccessful: fails, logger };
    const middleware = rateLimit({ ...options, keyGenerator: () => 'key' });
    const codes = await warningsDuring(() => {
      for (let i = 0; i < 2; i++) {
        const res = Object.assign(new EventEmitter(), { headersSent: true, writableEnded: true });
        middleware({}, res, () => {});
        res.emit('finish');
      }
    });
    expect(codes).toEqual(['ROLLGATE_OUTCOME_UNKNOWN']);
  });
});

describe('a request that is counted twice', () => {
  const newLimiter = () => RateLimiter({ interval: 1000, maxInInterval: 9 });
  const other = (logger) => rateLimit({ logger, windowMs: 5000 });
  const over = (limiter, options) => rateLimit({ limiter, ...options });

  const CASES = {
    'by two middleware over one limiter': (logger, limiter) => [
      over(limiter, { validate: false }),
      over(limiter, { logger }),
    ],
    'by one middleware used twice': (logger) => Array(2).fill(rateLimit({ logger })),
    'by one around another': (logger) => {
      const around = rateLimit({ logger });
      return [around, other(logger), around];
    },
    'by rules of one zone': (logger) => {
      return Array(2).fill(rateLimit({ rules: [{ path: '/', limit: 9 }], logger }));
    },
    'not in two limiters': (logger) => [other(logger), other(logger)],
    'not under two keys': (logger, limiter) =>
      ['a', 'b'].map((key) => over(limiter, { logger, keyGenerator: () => key })),
    'not without the check': (logger, limiter) =>
      [1, 2].map(() => over(limiter, { logger, validate: { singleCount: false } })),
  };
  test.each(Object.entries(CASES))('is one warning: %s', async (what, create) => {
    const logger = newLogger();
    const app = appWith(...create(logger, newLimiter()));
    await statusesOf(app, '/', '/');
    const expected = what.startsWith('not') ? [] : [[withCode('ROLLGATE_DOUBLE_COUNT')]];
    expect(logger.warn.mock.calls).toEqual(expected);
  });

  // Kills: a second count that is taken back.
  test('has both counts', async () => {
    const middleware = rateLimit({ logger: newLogger() });
    await get(appWith(middleware, middleware));
    expect((await middleware.getKey('127.0.0.1')).totalHits).toBe(2);
  });

  test('is not mistaken for a property of another package', () => {
    const logger = newLogger();
    for (const theirs of [5, 'text', null, {}, Object.create(null)]) {
      const req = { ip: '192.0.2.1', rateLimit: theirs };
      callDirectly(rateLimit({ logger }), req);
      expect(req.rateLimit.limit).toBe(5);
    }
    expect(logger.warn).not.toHaveBeenCalled();
  });
});

test('a middleware made for each request is one warning, unless its limiter lives on', async () => {
  const limiter = RateLimiter({ interval: 1, maxInInterval: 1 });
  const off = { validate: { creationStack: false } };
  for (const [options, expected] of [
    [{}, ['ROLLGATE_CREATED_IN_HANDLER']],
    [off, []],
    [{ limiter }, []],
  ]) {
    const logger = newLogger();
    await get(appWith((req, res, next) => rateLimit({ ...options, logger })(req, res, next)));
    expect(logger.warn.mock.calls).toEqual(expected.map((code) => [withCode(code)]));
  }
});
