// What must compile against the types of the middleware, the Fastify plugin, the store and the metrics, and what must not.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ThrottlerModule, type ThrottlerStorage } from '@nestjs/throttler';
import express from 'express';
import { rateLimit as expressRateLimit, MemoryStore, type Store } from 'express-rate-limit';
import createFastify, {
  type FastifyReply,
  type FastifyRequest,
  type RouteShorthandOptions,
} from 'fastify';
import { Registry } from 'prom-client';
import { expectAssignable, expectError, expectNotAssignable, expectType } from 'tsd';

import RateLimiter = require('../../lib/types/express-request');
import plugin = require('../../lib/types/fastify');
import RollgateStore = require('../../lib/types/store');

import {
  type RollgateFastifyOptions,
  type RollgateFastifyRule,
  rollgate,
} from '../../lib/types/fastify';
import {
  type Decision,
  ipKeyGenerator,
  type Next,
  type PlainKv,
  type RateLimitInfo,
  type RateLimitMiddleware,
  type RateLimitOptions,
  RedisRateLimiter,
  rateLimit,
  type ShadowDecision,
  type ShadowMessage,
  type WithRateLimit,
} from '../../lib/types/index';
import {
  type BlockedCount,
  type Metrics,
  registerMetrics,
  type TopBlocked,
  topBlocked,
} from '../../lib/types/metrics';
import { RollgateThrottlerStorage } from '../../lib/types/nest';
import { RollgateStore as named, type RollgateStoreHits } from '../../lib/types/store';

const GOOD = { interval: 1000, maxInInterval: 10 };
const limiter = new RateLimiter(GOOD);
const onRedis = RateLimiter({ redis: 'redis://localhost', ...GOOD });
declare const kv: PlainKv;
declare const maybe: string | undefined;

// The middleware
expectType<RateLimitMiddleware>(rateLimit());
const middleware = rateLimit({
  standardHeaders: true,
  skip: async () => false,
  keyGenerator: async (req) => req.headers['x-api-key']?.toString(),
  handler(req, res, next, settings) {
    expectAssignable<IncomingMessage>(req);
    expectAssignable<ServerResponse>(res);
    expectType<false | 'draft-6' | 'draft-7' | 'draft-8' | 'draft-10'>(settings.standardHeaders);
    next();
    next(new Error());
  },
});
expectAssignable<(req: IncomingMessage, res: ServerResponse, next: () => void) => unknown>(
  middleware,
);
rateLimit({ limiter, message: (req) => `not now, ${req.ip}`, standardHeaders: 'draft-6' });
rateLimit({ standardHeaders: 'draft-10', identifier: async (req) => `for ${req.method}` });
rateLimit({ ipv6Subnet: async (req) => (req.headers.host === 'a' ? false : 48) });
rateLimit({
  limiter: {
    attempt: (id: RateLimiter.Id) => limiter.attempt(id),
    refund: (decision: Decision) => limiter.refund(decision),
  },
  skipFailedRequests: true,
});
expectAssignable<RateLimitOptions>({ message: async () => 'later' });
rateLimit({
  authenticate: async (req) => ({ id: req.headers.host ?? null, group: 'gold' }),
  onAuthError: (error, _req, res, next) => {
    expectType<unknown>(error);
    res.end();
    next();
  },
  rules: [
    { path: /x/, method: ['GET', 'PUT'], group: ['gold', 'default'], max: 5, countBlocked: false },
    { path: '/b', limits: [{ interval: 1000, maxInInterval: 5 }], perPath: true, shadow: true },
    { path: '/c', limit: 1, algorithm: 'gcra', blockFor: [1000, 5000], blockEverywhere: true },
  ],
});
rateLimit({ redis: 'redis://localhost', rules: [{ path: '/', limit: 6000 }], lease: 100 });
rateLimit({ max: async (_req, res) => res.statusCode });
rateLimit({ limiter, cost: async (req) => Number(req.headers['content-length']) });
rateLimit<express.Request, express.Response>({
  limiter,
  cost: (req) => req.path.length,
});
const limits = [{ windowMs: 1000, limit: 5, name: 'tokens' }];
rateLimit({ limits, cost: async (req) => ({ tokens: req.path.length }) });
rateLimit({ limiter: { attempt: () => limiter.attempt('id'), settle: () => true } });
expectType<boolean | Promise<boolean>>(({} as RateLimitInfo).settle({ tokens: 5 }));
rateLimit({ limits, limit: async () => ({ tokens: Number.POSITIVE_INFINITY }) });
rateLimit({ rules: [{ path: '/', limits: [{ calendar: 'day', limit: 5 }], limit: () => 0 }] });
expectError(rateLimit({ limits, limit: { tokens: 5 } }));
expectError(rateLimit({ limits, limit: () => ({ tokens: '5' }) }));
expectError(rateLimit({ cost: () => '2' }));
expectError(rateLimit({ rules: [{ path: '/' }], cost: 2 }));
rateLimit({ limit: (req: express.Request) => Number(req.query.limit) });
expectAssignable<ShadowDecision>({} as ShadowMessage);

// Stores of express-rate-limit
const theirs = new MemoryStore();
expectType<RateLimitMiddleware>(rateLimit({ store: theirs, windowMs: 60_000, limit: () => 5 }));
expectError(rateLimit({ store: { incr() {}, decrement() {}, resetKey() {} } }));
expectError(rateLimit({ store: theirs, redis: 'redis://localhost' }));
expectError(rateLimit({ store: theirs, cost: 2 }));
expectError(rateLimit({ store: theirs, limiter }));
expectError(rateLimit({ store: theirs, rules: [{ path: '/' }] }));

rateLimit({
  keyGenerator: (req, _res, clientKey) => req.headers['x-user']?.toString() ?? clientKey(),
});

expectError(rateLimit({ windwMs: 60_000 }));
expectError(rateLimit({ validate: { trustPrxy: false } }));
expectError(rateLimit({ standardHeaders: 'draft-5' }));
expectError(rateLimit({ limiter, windowMs: 1000 }));
expectError(rateLimit({ limit: () => '5' }));
expectError(rateLimit({ rules: [{ limit: 5 }] }));
expectError(rateLimit({ rules: [{ path: '/', standardHeaders: true }] }));
expectError(rateLimit({ rules: [{ path: '/' }], limiter }));
expectError(rateLimit({ authenticate: () => ({ group: 'gold' }) }));

expectType<string>(ipKeyGenerator('2001:db8::1', false));

// With the types of Express, where a user has them
const app = express();
// What people write with express-rate-limit
app.post(
  '/x',
  rateLimit({
    skip: (req) => req.path === '/x',
    keyGenerator: (req) => req.user.id,
    requestWasSuccessful: (_req, res) => res.locals.ok,
    limit: (req) => (req.query.plan === 'gold' ? 100 : 5),
    handler: (req, res, _next, options) => {
      res.status(options.statusCode).json({ path: req.path });
    },
  }),
  (_req, res) => res.sendStatus(204),
);
const strict = rateLimit<express.Request, express.Response>({
  skip: (req) => req.path === '/x',
  requestWasSuccessful: (_req, res) => res.locals.ok,
});
app.use(strict);
expectError(rateLimit<express.Request, express.Response>({ skip: (req) => req.pth === '/x' }));
app.get('/', rateLimit(), (req, res) => {
  const { rateLimit: info } = req as WithRateLimit<typeof req>;
  expectType<RateLimitInfo>(info);
  res.end();
});
const byDefault = express().get('/', (req) => {
  expectType<RateLimitInfo | undefined>(req.rateLimit);
  // @ts-expect-error: undefined where no middleware counted the request
  req.rateLimit.remaining;
  expectError(req.quota);
});
app.use(byDefault);

// undefined is the same as leaving an option out
const nothing = { windowMs: undefined, limit: undefined, interval: undefined, redis: undefined };
rateLimit({ limiter, limits: undefined, ...nothing });
rateLimit({ rules: [{ path: '/', method: undefined, windowMs: undefined }], limit: undefined });
expectError(rateLimit({ rules: [{ path: '/' }], limit: 5 }));

// On every store
rateLimit({ redis: maybe, namespace: 'n', onError: 'allow', limit: 5 });
rateLimit({ shared: 'api', windowMs: 1000, limit: 5 });
rateLimit({ kv, namespace: 'n', commandTimeout: 5, windowMs: 1000, limit: 5 });
for (const each of [limiter, onRedis, RateLimiter({ kv, namespace: 'n', ...GOOD })]) {
  rateLimit({ limiter: each });
}
rateLimit({ connection: RateLimiter.createRedisConnection('redis://h'), namespace: 'n' });
expectError(rateLimit({ rules: [{ path: '/', limit: 5, shared: 'api' }] }));

// Fastify
const fastify = createFastify();
fastify.register(rollgate, {
  limits: [{ interval: 1000, maxInInterval: 2 }],
  logger: fastify.log,
  keyGenerator: async (request, reply) => {
    expectType<FastifyRequest>(request);
    expectType<FastifyReply>(reply);
    return request.ip;
  },
  handler: (_request, reply, next, settings) =>
    settings.statusCode === 429 ? reply.code(503).send() : next(),
});
fastify.register(plugin, {
  limit: async (request, reply) => {
    expectType<FastifyRequest>(request);
    expectType<FastifyReply>(reply);
    return request.headers.authorization === undefined ? 5 : 50;
  },
});
fastify.register(plugin, {
  authenticate: async (request) => {
    expectType<FastifyRequest>(request);
    return { id: request.headers.authorization ?? null, group: 'gold' };
  },
  onAuthError: (error, request, reply, next) => {
    expectType<unknown>(error);
    expectType<FastifyRequest>(request);
    expectType<FastifyReply>(reply);
    expectType<Next>(next);
    return reply.code(401).send();
  },
  namespace: 'api',
  redis: 'redis://localhost',
  rules: [
    { path: /^\/x/, method: ['GET', 'PUT'], group: 'gold', limit: 5, zone: 'z', shadow: true },
    {
      path: '/api',
      limit: (request, reply) => {
        expectType<FastifyRequest>(request);
        expectType<FastifyReply>(reply);
        return 5;
      },
    },
  ],
});
const rule: RollgateFastifyRule = { path: '/', max: (request) => request.url.length };
expectAssignable<RollgateFastifyOptions>({ rules: [rule], kv, namespace: 'n', commandTimeout: 9 });
expectError(fastify.register(plugin, { limit: (request) => request.nothing }));
expectError(fastify.register(plugin, { rules: [{ path: '/', limitt: 2 }] }));
expectError(fastify.register(plugin, { limitt: 2 }));

fastify.get('/', (request) => {
  expectType<RateLimitInfo | null>(request.rateLimit);
  return request.rateLimit?.remaining;
});
fastify.get('/free', { config: { rateLimit: false } }, () => 'free');
fastify.get('/dear', { config: { rateLimit: { limit: 1, message: () => 'no' } } }, () => 'dear');
// Without the types of a route's options Fastify infers them from what is given, whatever it is.
expectAssignable<RouteShorthandOptions>({ config: { rateLimit: { rules: [rule] } } });
expectAssignable<RouteShorthandOptions>({ config: { rateLimit: { limit: async () => 1 } } });
expectNotAssignable<RouteShorthandOptions>({ config: { rateLimit: { limit: '1' } } });

// The store for express-rate-limit
const store = new RollgateStore();
expectAssignable<Store>(store);
expectType<typeof RollgateStore>(named);
expectType<Promise<RollgateStoreHits>>(store.increment('a'));
expectType<Promise<RollgateStoreHits | undefined>>(store.get('a'));
expectType<boolean>(store.localKeys);
expressRateLimit({ windowMs: 1000, limit: 2, store });
expressRateLimit({ limit: async () => 2, store: new named({ maxInInterval: 5 }) });

new RollgateStore({ limiter });
new RollgateStore({ limiter: new RedisRateLimiter({ redis: 'redis://localhost', ...GOOD }) });
new RollgateStore({ kv, namespace: 'api', commandTimeout: 100, onError: 'memory' });
expectError(new RollgateStore({ limiter, countBlocked: false }));
expectError(new RollgateStore({ interval: 1000 }));
expectError(RollgateStore());
new RollgateStore({ limiter, maxInInterval: undefined, redis: undefined });

// The storage for @nestjs/throttler
const storage = new RollgateThrottlerStorage();
expectAssignable<ThrottlerStorage>(storage);
ThrottlerModule.forRoot({ throttlers: [{ ttl: 1000, limit: 2 }], storage });
new RollgateThrottlerStorage({ redis: 'redis://localhost', namespace: 'api', onError: 'allow' });
expectError(new RollgateThrottlerStorage({ limit: 5 }));
expectError(new RollgateThrottlerStorage({ blockFor: 5 }));
expectError(new RollgateThrottlerStorage({ redis: 'redis://localhost', lease: 100 }));

// Metrics
expectType<Metrics>(registerMetrics());
expectType<Metrics>(registerMetrics({ limiters: { api: limiter, login: onRedis } }));
registerMetrics({ register: new Registry(), prefix: 'app_', buckets: [0.1, 1] });

expectError(registerMetrics({ limiters: [limiter] }));

const byName = topBlocked({ limiters: { api: limiter, login: onRedis }, capacity: 10 });
expectType<BlockedCount<'api' | 'login'>[]>(byName.top(10));
expectType<'api' | 'login'>(byName.top()[0].limiter);
const all = topBlocked();
expectType<RateLimiter | RateLimiter.RemoteRateLimiter>(all.top()[0].limiter);
const limiters: Record<string, RateLimiter> = { api: limiter };
const either: TopBlocked = limiters.api ? topBlocked({ limiters }) : all;
const [entry] = either.top();
expectType<string>(entry.id);
expectType<number>(entry.blocked + entry.overcount + either.total);

const fields = { limiter, id: 'a', cost: 1, allowed: true, timeLeft: 0 };
expectAssignable<RateLimiter.DecisionMessage>(fields);
declare const redisMessage: RateLimiter.RedisMessage;
if (redisMessage.type === 'call') expectType<number>(redisMessage.durationMs);
else expectType<boolean>(redisMessage.isUp);
