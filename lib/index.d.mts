// The types of rollgate for import: a default export and the same names.

import RateLimiter from './index.js';

export default RateLimiter;
export type {
  AttemptOptions,
  Callback,
  CommonOptions,
  Decision,
  ErrorCode,
  Id,
  Limit,
  LimitedRequest,
  LimitInfo,
  Message,
  Next,
  OneLimitOptions,
  RateLimitBackend,
  RateLimitExisting,
  RateLimiterError,
  RateLimiterOptions,
  RateLimitHandler,
  RateLimitInfo,
  RateLimitLimits,
  RateLimitMiddleware,
  RateLimitOptions,
  RateLimitResponseOptions,
  RateLimitSettings,
  SeveralLimitsOptions,
  Stats,
  WindowState,
  WithRateLimit,
} from './index.js';
export { InMemoryRateLimiter, ipKeyGenerator, RateLimiter, rateLimit } from './index.js';
