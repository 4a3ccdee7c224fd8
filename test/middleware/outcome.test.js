// Requests that are taken back once it is known how they ended: each at most once, also when the client leaves.
'use strict';

const { EventEmitter, once } = require('node:events');
const http = require('node:http');
const express = require('express');
const RateLimiter = require('../..');
const { useHandMovedClock, appWith, get } = require('./apps');

const { rateLimit } = RateLimiter;
const time = useHandMovedClock();

const used = async (middleware, key = '127.0.0.1') =>
  (await middleware.getKey(key))?.totalHits ?? 0;

/** A response that ends as a test says. */
function responseByHand() {
  const res = new EventEmitter();
  return Object.assign(res, {
    headersSent: false,
    writableEnded: false,
    statusCode: 200,
    setHeader() {},
  });
}

function begin(middleware) {
  const res = responseByHand();
  const done = middleware({ ip: '127.0.0.1' }, res, () => {});
  return { res, done };
}

const settled = () => new Promise(setImmediate);

test('a refused request is not counted in the first place with skipFailedRequests', async () => {
  const middleware = rateLimit({
    windowMs: 1000,
    limit: 1,
    skipFailedRequests: true,
    clock: time.clock,
  });
  const app = appWith(middleware);
  expect((await get(app)).status).toBe(200);
  time.advance(999);
  expect((await get(app)).headers['retry-after']).toBe('1');
  time.advance(1);
  expect((await get(app)).status).toBe(200);
});

test('with skipSuccessfulRequests refused requests count, unless told otherwise', async () => {
  const play = async (countBlocked) => {
    const options = { windowMs: 1000, limit: 1, skipSuccessfulRequests: true, countBlocked };
    const app = appWith(rateLimit({ ...options, clock: time.clock }));
    const statuses = [];
    for (const waitMs of [0, 600, 600]) {
      time.advance(waitMs);
      statuses.push((await get(app, '/missing')).status);
    }
    return statuses;
  };
  expect(await play(undefined)).toEqual([404, 429, 429]);
  expect(await play(false)).toEqual([404, 429, 404]);
});

test("what is taken back is the request's own attempt, not the newest", async () => {
  const middleware = rateLimit({
    windowMs: 1000,
    limit: 2,
    skipFailedRequests: true,
    clock: time.clock,
  });
  const { res: first } = begin(middleware);
  time.advance(400);
  begin(middleware);
  first.statusCode = 500;
  first.emit('finish');
  await settled();
  const { totalHits, resetTime } = await middleware.getKey('127.0.0.1');
  expect([totalHits, resetTime.getTime() - Date.now()]).toEqual([1, 1000]);
});

describe('skipFailedRequests', () => {
  test.each([
    [
      'a failed answer',
      (res) => Object.assign(res, { statusCode: 500, writableEnded: true }).emit('finish'),
      0,
    ],
    ['a good answer', (res) => Object.assign(res, { writableEnded: true }).emit('finish'), 1],
    ['a client that leaves early', (res) => res.emit('close'), 0],
    [
      'a close after the end',
      (res) => Object.assign(res, { writableEnded: true }).emit('close'),
      1,
    ],
    ['an error of the response', (res) => res.emit('error', new Error('broken pipe')), 0],
  ])('%s leaves the right count', async (_what, end, count) => {
    const middleware = rateLimit({ skipFailedRequests: true, clock: time.clock });
    const { res } = begin(middleware);
    end(res);
    await settled();
    expect(await used(middleware)).toBe(count);
  });

  test('takes back once, whatever happens to the response', async () => {
    const middleware = rateLimit({ skipFailedRequests: true, clock: time.clock });
    begin(middleware);
    const { res } = begin(middleware);
    res.statusCode = 500;
    res.emit('error', new Error('broken pipe'));
    res.emit('finish');
    res.emit('close');
    await settled();
    expect(await used(middleware)).toBe(1);
  });

  test('takes back after the window or a reset nothing of anybody', async () => {
    const middleware = rateLimit({ windowMs: 1000, skipFailedRequests: true, clock: time.clock });
    const { res } = begin(middleware);
    await middleware.resetKey('127.0.0.1');
    begin(middleware);
    res.emit('close');
    await settled();
    expect(await used(middleware)).toBe(1);
  });

  test('skipped requests have nothing to take back', async () => {
    const middleware = rateLimit({ skip: () => true, skipFailedRequests: true, clock: time.clock });
    const { res } = begin(middleware);
    res.emit('close');
    await settled();
    expect(await used(middleware)).toBe(0);
  });

  test('a client that left before the middleware was reached is taken back as well', async () => {
    const middleware = rateLimit({ skipFailedRequests: true, clock: time.clock });
    const res = Object.assign(responseByHand(), { destroyed: true });
    middleware({ ip: '127.0.0.1' }, res, () => {});
    await settled();
    expect(await used(middleware)).toBe(0);
  });

  test('a client that leaves while the store is asked is taken back as well', async () => {
    const limiter = RateLimiter({ interval: 1000, maxInInterval: 5, clock: time.clock });
    let answer;
    const slow = {
      attempt: (id) => new Promise((resolve) => (answer = () => resolve(limiter.attempt(id)))),
      refund: async (decision) => limiter.refund(decision),
    };
    const { res, done } = begin(rateLimit({ limiter: slow, skipFailedRequests: true }));
    res.emit('close');
    answer();
    await done;
    await settled();
    expect(limiter.peek('127.0.0.1').limits[0].used).toBe(1); // the peek itself
  });
});

describe('requestWasSuccessful is asked', () => {
  const fails = () => {
    throw new Error('boom');
  };

  test.each([
    ['skipped', { skip: () => true }],
    ['without a key', { keyGenerator: fails }],
    ['passed without a decision', { limiter: { attempt: fails, refund: fails } }],
  ])('of no request %s', async (_what, options) => {
    const requestWasSuccessful = jest.fn(() => true);
    const logger = { warn() {}, error() {} };
    const middleware = rateLimit({
      ...options,
      passOnStoreError: true,
      skipFailedRequests: true,
      requestWasSuccessful,
      logger,
    });
    begin(middleware).res.emit('finish');
    await settled();
    expect(requestWasSuccessful).not.toHaveBeenCalled();
  });

  test('of a request that was answered before the decision, with the decision at hand', async () => {
    const limiter = RateLimiter({ interval: 1000, maxInInterval: 5, clock: time.clock });
    const requestWasSuccessful = jest.fn((req) => req.rateLimit.used > 1);
    const middleware = rateLimit({
      limiter,
      keyGenerator: async () => 'key',
      skipFailedRequests: true,
      requestWasSuccessful,
    });
    const { res, done } = begin(middleware);
    res.emit('finish');
    await done;
    await settled();
    expect(requestWasSuccessful).toHaveBeenCalledTimes(1);
    expect(limiter.peek('key').limits[0].used).toBe(1); // the peek itself
  });
});

test('a real client that hangs up before the answer is not counted', async () => {
  const middleware = rateLimit({ skipFailedRequests: true, clock: time.clock });
  const app = express();
  let closed;
  app.use((_req, res, next) => {
    closed = once(res, 'close');
    next();
  });
  app.use(middleware);
  const arrived = new Promise((resolve) => app.get('/', resolve));
  const server = app.listen(0, '127.0.0.1');
  try {
    await once(server, 'listening');
    const client = http.get({ port: server.address().port, host: '127.0.0.1' });
    client.on('error', () => {});
    await arrived;
    expect(await used(middleware)).toBe(1);
    client.destroy();
    await closed;
    await settled();
    expect(await used(middleware)).toBe(0);
  } finally {
    server.close();
  }
});

describe('what goes wrong on the way is told, and the request stays counted', () => {
  const failing = () => {
    throw new Error('boom');
  };

  test.each([
    ['throws', failing],
    ['rejects', async () => failing()],
  ])('requestWasSuccessful that %s', async (_what, requestWasSuccessful) => {
    const logger = { warn: jest.fn(), error: jest.fn() };
    const middleware = rateLimit({ skipFailedRequests: true, requestWasSuccessful, logger });
    const { res } = begin(middleware);
    res.emit('finish');
    await settled();
    expect(await used(middleware)).toBe(1);
    expect(logger.error.mock.calls).toEqual([
      [
        expect.objectContaining({ message: 'boom' }),
        expect.stringContaining('docs/errors.md#rollgate_outcome_unknown'),
      ],
    ]);
  });

  test.each([
    ['throws', failing],
    ['rejects', async () => failing()],
  ])('a refund that %s: a warning of the process, once', async (_what, refund) => {
    const limiter = RateLimiter({ interval: 1000, maxInInterval: 5 });
    const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
    try {
      const middleware = rateLimit({
        limiter: { attempt: (id) => limiter.attempt(id), refund },
        skipFailedRequests: true,
      });
      for (let i = 0; i < 2; i++) begin(middleware).res.emit('close');
      await settled();
      expect(warn.mock.calls).toEqual([
        [expect.any(String), expect.objectContaining({ code: 'ROLLGATE_REFUND_FAILED' })],
      ]);
    } finally {
      warn.mockRestore();
    }
  });
});
