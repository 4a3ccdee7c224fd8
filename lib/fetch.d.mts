// The types of rollgate/fetch for import.

export type {
  AllowedRequest,
  FetchByRules,
  FetchExisting,
  FetchFunctions,
  FetchLimits,
  FetchMax,
  FetchRule,
  RateLimitFetch,
  RateLimitFetchOptions,
  RateLimitFetchResult,
  RefusedRequest,
  RequestInfo,
} from './fetch.js';
export { rateLimitFetch } from './fetch.js';
