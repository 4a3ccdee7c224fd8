// Requests whose count is taken back because of their result: once, also if the client leaves.
'use strict';

const { EventEmitter } = require('node:events');
const RateLimiter = require('../..');
const apps = require('./apps');

const { FAILING, appWith, get, inTurn, newLogger, settled } = apps;
const { useHandMovedClock, warningsDuring } = apps;
const { rateLimit } = RateLimiter;
const time = useHandMovedClock();
const [[, throws]] = FAILING(new Error('boom'));
const SKIP_FAILED = { skipFailedRequests: true, clock: time.clock };

const newLimiter = () => RateLimiter({ interval: 1000, maxInInterval: 5, clock: time.clock });
const usedIn = async (middleware) => (await middleware.getKey('127.0.0.1'))?.totalHits ?? 0;
/** What the limiter has counted, without the peek itself. */
const countedBy = (limiter) => limiter.peek('127.0.0.1').limits[0].used - 1;

/** A response that ends when a test says so. */
function newResponse(state) {
  const start = { headersSent: false, writableEnded: false, statusCode: 200, setHeader() {} };
  return Object.assign(new EventEmitter(), start, state);
}

function begin(middleware, res = newResponse()) {
  const done = middleware({ ip: '127.0.0.1' }, res, () => {});
  return { res, done };
}

function finish({ res }) {
  res.writableEnded = true;
  res.emit('finish');
}

test.each([
  ['skipFailedRequests', undefined, [404, 404, 404]],
  ['skipSuccessfulRequests', true, [404, 429, 429]],
  ['skipSuccessfulRequests', undefined, [404, 429, 404]],
])('with %s and countBlocked %p, failures 600 ms apart get %p', async (name, ...row) => {
  const [countBlocked, expected] = row;
  const options = { windowMs: 1000, limit: 1, [name]: true, countBlocked, clock: time.clock };
  const app = appWith(rateLimit(options));
  const statuses = await inTurn([0, 600, 600], async (ms) => {
    time.advance(ms);
    return (await get(app, '/missing')).status;
  });
  expect(statuses).toEqual(expected);
});

test('a request takes back its own attempt, not the newest one', async () => {
  const middleware = rateLimit({ windowMs: 1000, limit: 2, ...SKIP_FAILED });
  const { res } = begin(middleware);
  time.advance(400);
  begin(middleware);
  res.statusCode = 500;
  finish({ res });
  await settled();
  const { totalHits, resetTime } = await middleware.getKey('127.0.0.1');
  expect([totalHits, resetTime.getTime() - Date.now()]).toEqual([1, 1000]);
});

test('a request whose response fails is taken back, and only once', async () => {
  const limiter = newLimiter();
  const refund = jest.fn((decision) => limiter.refund(decision));
  const attempt = (id) => limiter.attempt(id);
  const skips = { skipFailedRequests: true, skipSuccessfulRequests: true };
  const middleware = rateLimit({ limiter: { attempt, refund }, ...skips });
  begin(middleware);
  const { res } = begin(middleware);
  res.emit('error', new Error('broken pipe'));
  finish({ res });
  res.emit('close');
  await settled();
  expect([refund.mock.calls.length, countedBy(limiter)]).toEqual([1, 1]);
});

test('any number of limiters have one listener each at a response, and each takes back its own', async () => {
  const res = newResponse({ statusCode: 500 });
  const middlewares = Array.from({ length: 11 }, () => rateLimit(SKIP_FAILED));
  for (const middleware of middlewares) begin(middleware, res);
  const events = ['finish', 'close', 'error'];
  expect(events.map((event) => res.listenerCount(event))).toEqual([1, 1, 1]);
  finish({ res });
  await settled();
  expect(await Promise.all(middlewares.map(usedIn))).toEqual(Array(11).fill(0));
});

describe('requestWasSuccessful', () => {
  test.each([
    ['is skipped', { skip: () => true }],
    ['has no key', { keyGenerator: throws }],
    ['passed without a decision', { limiter: { attempt: throws, refund: throws } }],
  ])('is not asked of a request that %s', async (_what, options) => {
    const requestWasSuccessful = jest.fn(() => true);
    const common = { passOnStoreError: true, skipFailedRequests: true, logger: newLogger() };
    finish(begin(rateLimit({ ...options, ...common, requestWasSuccessful })));
    await settled();
    expect(requestWasSuccessful).not.toHaveBeenCalled();
  });

  test('is asked with the decision, also if the answer came before it', async () => {
    const limiter = newLimiter();
    const requestWasSuccessful = jest.fn((req) => req.rateLimit.used > 1);
    const keyGenerator = async () => '127.0.0.1';
    const options = { limiter, keyGenerator, skipFailedRequests: true, requestWasSuccessful };
    const begun = begin(rateLimit(options));
    finish(begun);
    await begun.done;
    await settled();
    expect(requestWasSuccessful).toHaveBeenCalledTimes(1);
    expect(countedBy(limiter)).toBe(0);
  });

  test.each(FAILING(new Error('boom')))('that %s is reported', async (_what, fails) => {
    const logger = newLogger();
    const middleware = rateLimit({ ...SKIP_FAILED, requestWasSuccessful: fails, logger });
    finish(begin(middleware));
    await settled();
    expect(await usedIn(middleware)).toBe(1);
    const link = expect.stringContaining('docs/errors.md#rollgate_outcome_unknown');
    expect(logger.error.mock.calls).toEqual([[new Error('boom'), link]]);
  });
});

// biome-ignore lint/suspicious/noThenProperty: what a user's function may return
const thenable = { then: (resolve) => void setImmediate(() => resolve(true)) };

test.each([
  ...FAILING(new Error('boom')).map(([what, fails]) => [what, ['ROLLGATE_REFUND_FAILED'], fails]),
  ['returns any object with then()', [], () => thenable],
])('a refund that %s warns with %j', async (_what, expected, refund) => {
  const limiter = newLimiter();
  const attempt = (id) => limiter.attempt(id);
  const called = jest.fn(refund);
  const codes = await warningsDuring(() => {
    const options = { limiter: { attempt, refund: called }, skipFailedRequests: true };
    const middleware = rateLimit(options);
    for (let i = 0; i < 2; i++) begin(middleware).res.emit('close');
  });
  expect([codes, called.mock.calls.length]).toEqual([expected, 2]);
});
