// What must compile against the types, and what must not.
import type { IncomingMessage, ServerResponse } from 'node:http';
import express from 'express';
import { expectAssignable, expectError, expectNotAssignable, expectType } from 'tsd';

import RateLimiter = require('../../lib/express-request');

import {
  type Decision,
  type ErrorCode,
  InMemoryRateLimiter,
  ipKeyGenerator,
  type LimitInfo,
  type RateLimiterError,
  type RateLimiterOptions,
  type RateLimitInfo,
  type RateLimitMiddleware,
  type RateLimitOptions,
  rateLimit,
  setAddonPath,
  type Stats,
  type WaitOptions,
  type WindowState,
  type WithRateLimit,
} from '../../lib';

const limiter = new RateLimiter({ interval: 1000, maxInInterval: 10 });

// The addon
expectType<string>(RateLimiter.addonPath());
expectType<void>(setAddonPath('/app/rollgate.node'));
expectType<void>(setAddonPath(new URL('file:///app/rollgate.node')));
expectError(setAddonPath());
expectError(setAddonPath(5));

// Construction
expectType<RateLimiter>(limiter);
expectType<RateLimiter>(RateLimiter({ interval: 0.5, maxInInterval: 1 }));
expectType<RateLimiter>(new RateLimiter.RateLimiter({ interval: 1, maxInInterval: 1 }));
expectType<typeof RateLimiter>(RateLimiter.RateLimiter);
expectAssignable<RateLimiter>(new InMemoryRateLimiter({ interval: 1, maxInInterval: 1 }));
expectType<InMemoryRateLimiter>(
  new RateLimiter.InMemoryRateLimiter({ interval: 1, maxInInterval: 1 }),
);
RateLimiter({
  interval: 1000,
  maxInInterval: 10,
  minDifference: 5,
  countBlocked: false,
  algorithm: 'sliding-window-log',
  clock: () => performance.now(),
  maxKeys: 1000,
});
RateLimiter({ limits: [{ interval: 1000, maxInInterval: 10 }] });
RateLimiter({
  limits: [
    { interval: 1000, maxInInterval: 10, minDifference: 1 },
    { interval: 60_000, maxInInterval: 100 },
  ],
  interval: 5,
  countBlocked: true,
});
RateLimiter({ interval: 1, maxInInterval: 1, minDifference: undefined, limits: undefined });
declare const severalLimits: readonly { interval: number; maxInInterval: number }[];
RateLimiter({ limits: severalLimits });
class Named extends RateLimiter {
  name2 = 'mine';
}
expectType<number>(new Named({ interval: 1, maxInInterval: 1 })('a'));
class NamedInMemory extends InMemoryRateLimiter {}
expectType<Promise<boolean>>(new NamedInMemory({ interval: 1, maxInInterval: 1 }).limit('a'));

expectError(RateLimiter());
expectError(RateLimiter({}));
expectError(RateLimiter({ maxInInterval: 10 }));
expectError(RateLimiter({ interval: 1000 }));
expectError(RateLimiter({ interval: '1000', maxInInterval: 10 }));
expectError(RateLimiter({ interval: 1000, maxInInterval: '10' }));
expectError(RateLimiter({ interval: 1000n, maxInInterval: 10 }));
expectError(RateLimiter({ interval: 1000, maxInInterval: 10, minDifference: '1' }));
expectError(RateLimiter({ interval: 1000, maxInInterval: 10, minDiference: 1 }));
expectError(RateLimiter({ interval: 1000, maxInInterval: 10, countBlocked: 'no' }));
expectError(RateLimiter({ interval: 1000, maxInInterval: 10, algorithm: 'leaky-bucket' }));
RateLimiter({ interval: 1000, maxInInterval: 10, algorithm: 'gcra', blockFor: 5000 });
RateLimiter({ limits: [{ interval: 1, maxInInterval: 1 }], blockFor: [1000, 60_000] as const });
expectError(RateLimiter({ interval: 1000, maxInInterval: 10, blockFor: '5s' }));
expectError(RateLimiter({ interval: 1000, maxInInterval: 10, clock: 5 }));
expectError(RateLimiter({ interval: 1000, maxInInterval: 10, clock: () => '5' }));
expectError(RateLimiter({ interval: 1000, maxInInterval: 10, clock: async () => 5 }));
expectError(RateLimiter({ interval: 1000, maxInInterval: 10, maxKeys: '5' }));
expectError(RateLimiter({ limits: [{ interval: 1000 }] }));
expectError(RateLimiter({ limits: [{ interval: 1, maxInInterval: 1, countBlocked: true }] }));
expectError(RateLimiter({ limits: { interval: 1000, maxInInterval: 10 } }));
expectError(RateLimiter(null));
expectError(InMemoryRateLimiter({ interval: 1000, maxInInterval: 10 }));
expectError(new InMemoryRateLimiter({ interval: 1000 }));

// Calling it
expectType<number>(limiter());
expectType<number>(limiter('id'));
expectType<number>(limiter(1));
expectType<number>(limiter(1n));
expectType<number>(limiter(null));
expectType<number>(limiter(undefined));
expectType<number>(limiter('id', undefined));
expectType<void>(
  limiter((error, timeLeft, actionsLeft) => {
    expectType<RateLimiterError | null>(error);
    expectType<number>(timeLeft);
    expectType<number>(actionsLeft);
  }),
);
expectType<void>(limiter('id', (error: Error | null, timeLeft: number) => [error, timeLeft]));
expectType<void>(limiter(undefined, (error: NodeJS.ErrnoException | null) => error?.code));
expectType<void>(limiter(null, () => {}));

expectError(limiter(true));
expectError(limiter({}));
expectError(limiter(['id']));
expectError(limiter(Symbol('id')));
expectError(limiter(new Date()));
expectError(limiter('id', 'callback'));
expectError(limiter('id', null));
expectError(limiter('id', {}));
expectError(limiter(() => {}, 'id'));
expectError(limiter('id', (error: string) => error));
expectError(limiter('id', () => {}, 1));

// A limiter is a function
expectType<number>(limiter.call(undefined, 'id'));
expectType<number>(limiter.apply(undefined, ['id']));
expectAssignable<(id: string) => number>(limiter);
expectAssignable<() => number>(limiter);
expectAssignable<(id: string) => number>(limiter.bind(null));

// Methods
expectType<Promise<boolean>>(limiter.limit('id'));
expectType<Promise<boolean>>(limiter.wouldLimit());
expectType<Promise<LimitInfo>>(limiter.limitWithInfo(1));
expectType<Promise<LimitInfo>>(limiter.wouldLimitWithInfo(1n));
expectType<Decision>(limiter.attempt());
expectType<Decision>(limiter.attempt('id', { cost: 2 }));
expectType<Decision>(limiter.peek('id', {}));
expectType<Promise<Decision>>(limiter.wait());
expectType<Promise<Decision>>(limiter.wait('id', {}));
expectType<Promise<Decision>>(
  limiter.wait(1n, { cost: 2, signal: AbortSignal.timeout(1), deadline: 5, maxQueue: 5 }),
);
expectType<Promise<Decision>>(limiter.wait(null, { signal: undefined, deadline: undefined }));
expectAssignable<WaitOptions>({ cost: 1 });
expectType<Decision[]>(limiter.attemptMany(['a', 1, 2n, null, undefined]));
declare const manyIds: readonly string[];
expectType<Decision[]>(limiter.attemptMany(manyIds));
expectType<boolean>(limiter.refund(limiter.attempt('id')));
expectType<Promise<void>>(limiter.clear('id'));
expectType<Promise<void>>(limiter.clear());
expectType<Promise<void>>(limiter.clearAll());
expectType<Stats>(limiter.stats());
expectType<Promise<void>>(limiter.close());

expectError(limiter.limit(true));
expectError(limiter.limit('id', () => {}));
expectError(limiter.wouldLimit({}));
expectError(limiter.limitWithInfo(['id']));
expectError(limiter.wait({}));
expectError(limiter.wait('id', 5));
expectError(limiter.wait('id', { deadline: '5' }));
expectError(limiter.wait('id', { deadline: new Date() }));
expectError(limiter.wait('id', { signal: new AbortController() }));
expectError(limiter.wait('id', { timeout: 5 }));
expectError(limiter.attempt('id', { deadline: 5 }));
expectError(limiter.attempt('id', 2));
expectError(limiter.attempt('id', { cost: '2' }));
expectError(limiter.attempt('id', { costs: 2 }));
expectError(limiter.peek(false));
expectError(limiter.attemptMany('id'));
expectError(limiter.attemptMany([true]));
expectError(limiter.attemptMany());
expectError(limiter.refund());
expectError(limiter.refund('id'));
expectError(limiter.refund({ allowed: true }));
expectError(limiter.refund(limiter.limitWithInfo('id')));
expectError(limiter.clear({}));
expectError(limiter.reset('id'));

// What they answer
const decision = limiter.attempt('id');
expectType<boolean>(decision.allowed);
expectType<number>(decision.timeLeft);
expectType<number>(decision.actionsLeft);
expectType<number>(decision.resetIn);
expectType<null | 'count' | 'minDifference' | 'block'>(decision.blockedBy);
expectType<readonly WindowState[]>(decision.limits);
expectType<{
  interval: number;
  maxInInterval: number;
  used: number;
  remaining: number;
  resetIn: number;
}>({ ...(decision.limits[0] as WindowState) });
expectError(decision.limits.push());
expectError(decision.timeLeft++);
expectError(decision.then);
expectType<{
  blocked: boolean;
  blockedDueToCount: boolean;
  blockedDueToMinDifference: boolean;
  millisecondsUntilAllowed: number;
  actionsRemaining: number;
}>({ ...({} as LimitInfo) });
expectType<{
  keys: number;
  allowed: number;
  blocked: number;
  evicted: number;
  errors: number;
  bytes: number;
}>({ ...limiter.stats() });

// Errors
declare const error: RateLimiterError;
expectAssignable<Error>(error);
expectType<ErrorCode>(error.code);
expectAssignable<ErrorCode>('ERR_ROLLGATE_CLOSED');
expectNotAssignable<ErrorCode>('ERR_ROLLGATE_OTHER');
expectNotAssignable<RateLimiterOptions>({ interval: '1', maxInInterval: 1 });

// The middleware
expectType<RateLimitMiddleware>(rateLimit());
expectType<RateLimitMiddleware>(RateLimiter.rateLimit({ windowMs: 60_000, limit: 100 }));
const middleware = rateLimit({
  interval: 1000,
  max: 5,
  minDifference: 1,
  countBlocked: false,
  clock: () => 0,
  maxKeys: 5,
  message: { error: 'slow down' },
  statusCode: 503,
  legacyHeaders: false,
  standardHeaders: true,
  requestPropertyName: 'limits',
  skip: async () => false,
  keyGenerator: async (req) => req.headers['x-api-key']?.toString(),
  handler(req, res, next, settings) {
    expectAssignable<IncomingMessage>(req);
    expectAssignable<ServerResponse>(res);
    expectType<number>(settings.statusCode);
    next();
    next(new Error());
  },
});
expectType<Promise<void>>(middleware.resetKey('key'));
expectType<Promise<{ totalHits: number; resetTime: Date } | undefined>>(middleware.getKey(1));
expectAssignable<(req: IncomingMessage, res: ServerResponse, next: () => void) => unknown>(
  middleware,
);
rateLimit({ limiter });
rateLimit({ limiter, message: (req) => `not now, ${req.ip}`, standardHeaders: 'draft-6' });
rateLimit({ limits: [{ interval: 1000, maxInInterval: 5 }] });
rateLimit({ windowMs: undefined, limit: 0, skip: undefined });
rateLimit({ standardHeaders: 'draft-7' });
rateLimit({ standardHeaders: 'draft-8', identifier: 'api' });
rateLimit({ standardHeaders: 'draft-10', identifier: async (req) => `for ${req.method}` });
rateLimit({ ipv6Subnet: 64 });
rateLimit({ ipv6Subnet: false });
rateLimit({ ipv6Subnet: async (req) => (req.headers.host === 'a' ? false : 48) });
rateLimit({ skipFailedRequests: true, requestWasSuccessful: (_req, res) => res.statusCode < 500 });
rateLimit({ skipSuccessfulRequests: true, requestWasSuccessful: async () => true });
rateLimit({ passOnStoreError: true, problemDetails: true });
rateLimit({ validate: false, logger: console });
rateLimit({ validate: { trustProxy: false, positiveHits: false, default: true } });
rateLimit({
  limiter: {
    attempt: (id: RateLimiter.Id) => limiter.attempt(id),
    refund: (decision: Decision) => limiter.refund(decision),
  },
  skipFailedRequests: true,
});
rateLimit({
  handler: (_req, _res, _next, settings) => {
    expectType<false | 'draft-6' | 'draft-7' | 'draft-8' | 'draft-10'>(settings.standardHeaders);
    expectType<boolean>(settings.validate.singleCount);
  },
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
    { path: '/' },
    { path: /x/, method: ['GET', 'PUT'], group: ['gold', 'default'], zone: 'z', limit: 0 },
    { path: '/a', method: 'POST', windowMs: 1000, max: 5, minDifference: 1, countBlocked: false },
    { path: '/b', limits: [{ interval: 1000, maxInInterval: 5 }], perPath: true, shadow: true },
    { path: '/c', limit: 1, algorithm: 'gcra', blockFor: [1000, 5000], blockEverywhere: true },
  ],
  clock: () => 0,
  maxKeys: 5,
  statusCode: 503,
});
rateLimit({
  rules: [{ path: '/' }],
  redis: 'redis://localhost',
  namespace: 'api',
  onError: 'allow',
});
rateLimit({ authenticate: () => ({ id: 5 }), limit: 5 });
rateLimit({ limit: (req) => (req.ip === '::1' ? 100 : 5) });
rateLimit({ max: async (_req, res) => res.statusCode });
rateLimit({ limit: (req: express.Request) => Number(req.query.limit) });
rateLimit({ rules: [{ path: '/', limit: async (req) => (req.ip === '::1' ? 100 : 5) }] });
expectType<boolean | undefined>(({} as RateLimitInfo).limited);

expectError(rateLimit({ windowMs: '60000' }));
expectError(rateLimit({ limit: '5' }));
expectError(rateLimit({ windwMs: 60_000 }));
expectError(rateLimit({ limiter: 'mine' }));
expectError(rateLimit({ limiter, windowMs: 1000 }));
expectError(rateLimit({ limiter, maxKeys: 1000 }));
expectError(rateLimit({ standardHeaders: 'draft-5' }));
expectError(rateLimit({ limit: () => '5' }));
expectError(rateLimit({ rules: [{ path: '/', max: () => '5' }] }));
expectError(rateLimit({ identifier: 5 }));
expectError(rateLimit({ rules: {} }));
expectError(rateLimit({ rules: [{ limit: 5 }] }));
expectError(rateLimit({ rules: [{ path: 5 }] }));
expectError(rateLimit({ rules: [{ path: '/', limit: '5' }] }));
expectError(rateLimit({ rules: [{ path: '/', method: 5 }] }));
expectError(rateLimit({ rules: [{ path: '/', redis: 'redis://localhost' }] }));
expectError(rateLimit({ rules: [{ path: '/', standardHeaders: true }] }));
expectError(rateLimit({ rules: [{ path: '/' }], limit: 5 }));
expectError(rateLimit({ rules: [{ path: '/' }], limiter }));
expectError(rateLimit({ authenticate: () => 'ada' }));
expectError(rateLimit({ authenticate: () => ({ group: 'gold' }) }));
expectError(rateLimit({ authenticate: () => ({ id: 1, group: 5 }) }));
expectError(rateLimit({ onAuthError: 401 }));
expectError(rateLimit({ identifier: () => 5 }));
expectError(rateLimit({ ipv6Subnet: '56' }));
expectError(rateLimit({ ipv6Subnet: true }));
expectError(rateLimit({ skipFailedRequests: 'yes' }));
expectError(rateLimit({ requestWasSuccessful: true }));
expectError(rateLimit({ passOnStoreError: 1 }));
expectError(rateLimit({ problemDetails: 'yes' }));
expectError(rateLimit({ validate: { trustPrxy: false } }));
expectError(rateLimit({ validate: { trustProxy: 'no' } }));
expectError(rateLimit({ logger: { warn() {} } }));
expectError(rateLimit({ logger: console.warn }));
expectError(rateLimit({ statusCode: '429' }));
expectError(rateLimit({ skip: true }));
expectError(rateLimit({ message: 5 }));
expectError(rateLimit({ keyGenerator: () => true }));
expectError(rateLimit({ keyGenerator: 'ip' }));
expectError(rateLimit({ requestPropertyName: 5 }));
expectError(middleware.resetKey({}));

expectType<string>(ipKeyGenerator('2001:db8::1'));
expectType<string>(ipKeyGenerator('2001:db8::1', 64));
expectType<string>(ipKeyGenerator('2001:db8::1', false));
expectError(ipKeyGenerator());
expectError(ipKeyGenerator('2001:db8::1', true));
expectError(ipKeyGenerator('2001:db8::1', '64'));

// With the types of Express, where a user has them
const app = express();
app.use(rateLimit({ limit: 5 }));
app.use('/api', middleware);
app.use(rateLimit({ keyGenerator: (req: express.Request) => String(req.query.key) }));
app.use(
  rateLimit({
    handler: (_req, res: express.Response, _next, { statusCode }) => res.sendStatus(statusCode),
  }),
);
// What people write with express-rate-limit
const skipping = rateLimit({
  skip: (req) => req.path === '/x',
  keyGenerator: (req) => req.user.id,
});
app.use(skipping);
app.post('/x', skipping, (_req, res) => res.sendStatus(204));
app.post(
  '/x',
  rateLimit({
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
expectError(rateLimit<express.Request>({ skip: (req) => req.path }));
app.get('/', rateLimit(), (req, res) => {
  const { rateLimit: info } = req as WithRateLimit<typeof req>;
  expectType<RateLimitInfo>(info);
  expectType<number>(info.remaining);
  expectType<Date>(info.resetTime);
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
expectError(rateLimit({ limiter, limit: 5 }));
