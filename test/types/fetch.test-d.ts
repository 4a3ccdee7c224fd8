import { expectAssignable, expectError, expectType } from 'tsd';

import RateLimiter = require('../../lib/types/index');

import { type RateLimitFetchOptions, rateLimitFetch } from '../../lib/types/fetch';

const limit = rateLimitFetch({ windowMs: 60_000, limit: 100, standardHeaders: 'draft-8' });

async function handle(request: Request): Promise<Response> {
  const result = await limit(request, { ip: '192.0.2.1' });
  expectType<RateLimiter.Decision | null>(result.decision);
  expectType<Headers>(result.headers);
  expectType<boolean | Promise<boolean>>(result.settle(5));
  if (!result.allowed) return result.response;
  expectType<undefined>(result.response);
  return new Response('hello', { headers: result.headers });
}
expectType<Promise<Response>>(handle(new Request('http://host.test/')));
expectType<Promise<void>>(limit.resetKey('key'));
limit(new Request('http://host.test/'));

interface Context {
  ip?: string;
  user: string;
}
const own = rateLimitFetch<Context>({
  keyGenerator: (request, { user }) => `${user} ${request.headers.get('x')}`,
  limit: async (_request, { user }) => (user === 'ada' ? 100 : 10),
  cost: (request) => ({ requests: 1, bytes: Number(request.headers.get('content-length')) }),
  handler: (_request, _info, { timeLeft }) => new Response(null, { status: timeLeft }),
});
own(new Request('http://host.test/'), { user: 'ada' });
expectError(own(new Request('http://host.test/'), { ip: '' }));

const limiter = RateLimiter({ interval: 1000, maxInInterval: 5 });
rateLimitFetch({ limiter, cost: 2 });
rateLimitFetch({
  authenticate: (request) => ({ id: request.headers.get('x-id') }),
  onAuthError: () => new Response(null, { status: 401 }),
  rules: [{ path: '/', limit: (request) => request.url.length }],
});
expectAssignable<RateLimitFetchOptions>({ trustProxy: 1, ipv6Subnet: 48, problemDetails: true });
expectError(rateLimitFetch({ limiter, limit: 5 }));
expectError(rateLimitFetch({ skipFailedRequests: true }));
expectError(rateLimitFetch({ requestPropertyName: 'x' }));
expectError(rateLimitFetch({ handler: () => 'no response' }));
