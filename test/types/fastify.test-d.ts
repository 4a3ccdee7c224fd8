// What must compile against the types of rollgate/fastify, and what must not.
import createFastify, {
  type FastifyReply,
  type FastifyRequest,
  type RouteShorthandOptions,
} from 'fastify';
import { expectAssignable, expectError, expectNotAssignable, expectType } from 'tsd';

import plugin = require('../../lib/fastify');

import { type Next, type PlainKv, RateLimiter, type RateLimitInfo } from '../../lib';
import { type RollgateFastifyOptions, type RollgateFastifyRule, rollgate } from '../../lib/fastify';

const fastify = createFastify();
const limiter = new RateLimiter({ interval: 1000, maxInInterval: 2 });

fastify.register(plugin);
fastify.register(rollgate, { windowMs: 1000, limit: 2, standardHeaders: 'draft-8' });
fastify.register(plugin, { limiter, skipFailedRequests: true });
fastify.register(plugin, { redis: 'redis://localhost', namespace: 'api', onError: 'memory' });
fastify.register(plugin, {
  limits: [{ interval: 1000, maxInInterval: 2 }],
  logger: fastify.log,
  keyGenerator: async (request, reply) => {
    expectType<FastifyRequest>(request);
    expectType<FastifyReply>(reply);
    return request.ip;
  },
  skip: (request) => request.routeOptions.url === '/health',
  message: (request) => ({ error: request.id }),
  handler: (_request, reply, next, settings) =>
    settings.statusCode === 429 ? reply.code(503).send() : next(),
  requestWasSuccessful: (_request, reply) => reply.statusCode < 500,
});
fastify.register(plugin, {
  limit: async (request, reply) => {
    expectType<FastifyRequest>(request);
    expectType<FastifyReply>(reply);
    return request.headers.authorization === undefined ? 5 : 50;
  },
  max: (request) => request.url.length,
  maxInInterval: 3,
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
    { path: '/health' },
    { path: /^\/x/, method: ['GET', 'PUT'], group: 'gold', limit: 5, zone: 'z', shadow: true },
    {
      path: '/api',
      perPath: true,
      blockFor: 5,
      blockEverywhere: true,
      limit: (request, reply) => {
        expectType<FastifyRequest>(request);
        expectType<FastifyReply>(reply);
        return 5;
      },
    },
  ],
});
declare const kv: PlainKv;
const rule: RollgateFastifyRule = { path: '/', max: (request) => request.url.length };
expectAssignable<RollgateFastifyOptions>({ rules: [rule] });
expectAssignable<RollgateFastifyOptions>({ rules: [rule], kv, namespace: 'n', commandTimeout: 9 });
expectError(fastify.register(plugin, { limit: () => '2' }));
expectError(fastify.register(plugin, { limit: (request) => request.nothing }));
expectError(fastify.register(plugin, { authenticate: () => 'ada' }));
expectError(fastify.register(plugin, { rules: [{ limit: 2 }] }));
expectError(fastify.register(plugin, { rules: [{ path: '/', limitt: 2 }] }));
expectError(fastify.register(plugin, { rules: [{ path: '/', max: () => '2' }] }));
expectError(fastify.register(plugin, { rules: [rule], limit: 2 }));
expectError(fastify.register(plugin, { rules: [rule], limiter }));
expectError(fastify.register(plugin, { limitt: 2 }));
expectError(fastify.register(plugin, { limit: '2' }));
expectError(fastify.register(plugin, { limiter, limit: 2 }));
expectError(fastify.register(plugin, { keyGenerator: (request) => request.nothing }));

fastify.get('/', (request) => {
  expectType<RateLimitInfo | null>(request.rateLimit);
  return request.rateLimit?.remaining;
});
fastify.get('/free', { config: { rateLimit: false } }, () => 'free');
fastify.get('/dear', { config: { rateLimit: { limit: 1, message: () => 'no' } } }, () => 'dear');
// Without the types of a route's options Fastify infers them from what is given, whatever it is.
expectAssignable<RouteShorthandOptions>({ config: { rateLimit: { max: 1 } } });
expectAssignable<RouteShorthandOptions>({ config: { rateLimit: { rules: [rule] } } });
expectAssignable<RouteShorthandOptions>({ config: { rateLimit: { limit: async () => 1 } } });
expectNotAssignable<RouteShorthandOptions>({ config: { rateLimit: 3 } });
expectNotAssignable<RouteShorthandOptions>({ config: { rateLimit: { limit: '1' } } });
