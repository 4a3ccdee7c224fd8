// A limit of Infinity: requests pass uncounted and without headers, wherever limits are given.
'use strict';

const { MemoryStore } = require('express-rate-limit');
const RateLimiter = require('../..');
const { rateLimitFetch } = require('../../lib/adapters/fetch');
const { appWith, callDirectly, getTimes, newLogger, setUp } = require('./apps');

const { rateLimit } = RateLimiter;
const ALL = Number.POSITIVE_INFINITY;
const clock = () => 0;
const UNCOUNTED = { limit: ALL, remaining: ALL, used: 0, resetTime: undefined };
/** Of callers with the header `x-exempt` there is no limit, of others one request. */
const limit = ({ headers }) => (headers?.['x-exempt'] === undefined ? 1 : ALL);
const exempt = () => ({ ip: '192.0.2.1', headers: { 'x-exempt': '1' } });
const usual = () => ({ ip: '192.0.2.1', headers: {} });

describe.each([
  ['a number', () => rateLimit({ limit: ALL, clock, standardHeaders: 'draft-8' })],
  ['a function', () => rateLimit({ limit, clock, standardHeaders: 'draft-8' })],
  ['a function, beside cost', () => rateLimit({ limit, clock, cost: 7 })],
  ['a number, beside cost', () => rateLimit({ limit: ALL, clock, cost: () => 7 })],
  ['a number, over a store', () => rateLimit({ limit: ALL, store: new MemoryStore() })],
  ['a function, over a store', () => rateLimit({ limit, store: new MemoryStore() })],
  ['of a rule', () => rateLimit({ rules: [{ path: '/', limit: ALL }], clock })],
  ['of a rule, a function', () => rateLimit({ rules: [{ path: '/', limit, cost: 7 }], clock })],
])('as %s', (_what, make) => {
  test('requests pass with next(), no headers and nothing counted', async () => {
    const middleware = make();
    for (let i = 0; i < 9; i++) {
      const asked = { ...exempt(), url: '/', method: 'GET' };
      const { req, headers, calls, returned } = callDirectly(middleware, asked);
      await returned;
      expect([calls, headers]).toEqual([[[]], {}]);
      expect(req.rateLimit).toMatchObject(UNCOUNTED);
      expect(req.rateLimit.settle(3)).toBe(false);
    }
    expect(await middleware.getKey('192.0.2.1')).toBeUndefined();
  });
});

test('those that a function exempts are not refused by what others have counted', () => {
  const middleware = rateLimit({ limit, clock });
  const passes = (req) => callDirectly(middleware, req).calls.length === 1;
  expect([usual(), usual(), exempt(), usual()].map(passes)).toEqual([true, false, true, false]);
});

test('nothing is there to settle, to refund or to be counted twice', async () => {
  const logger = newLogger();
  const skips = { skipSuccessfulRequests: true, skipFailedRequests: true };
  for (const options of [{ limit: ALL }, { limit: () => ALL }]) {
    const middleware = rateLimit({ ...options, ...skips, clock, logger });
    const settled = [];
    const settle = (req, _res, next) => {
      settled.push(req.rateLimit.settle(3));
      next();
    };
    const app = appWith(middleware, middleware, settle);
    expect((await getTimes(app, 2)).map(({ status }) => status)).toEqual([200, 200]);
    expect(settled).toEqual([false, false]);
    const rules = [{ path: '/', shadow: true, ...options }];
    await getTimes(appWith(rateLimit({ rules, ...skips, clock, logger })), 1);
  }
  for (const log of [logger.warn, logger.error]) expect(log).not.toHaveBeenCalled();
});

test('no block on every rule refuses those who are exempt, and a shadow rule reports them', async () => {
  const { ask } = setUp([
    { path: '/', limit: ALL, shadow: true },
    { path: '/', limit, blockFor: 1000, blockEverywhere: true },
  ]);
  const statusOf = async (headers = {}) => (await ask('/').set(headers)).status;
  expect([await statusOf(), await statusOf(), await statusOf()]).toEqual([200, 429, 429]);
  const { status, body } = await ask('/').set('x-exempt', '1');
  const report = { rule: 0, allowed: true, used: 0 };
  expect([status, body]).toMatchObject([200, { used: 0, shadow: [report] }]);
});

test('a Request gets no headers', async () => {
  for (const options of [{ limit: ALL }, { limit: async () => ALL }]) {
    const limitFetch = rateLimitFetch({ ...options, clock });
    const { allowed, headers, decision, settle } = await limitFetch(new Request('http://h/'), {
      ip: '192.0.2.1',
    });
    expect([allowed, [...headers], decision.actionsLeft, settle(2)]).toEqual([
      true,
      [],
      ALL,
      false,
    ]);
  }
});
