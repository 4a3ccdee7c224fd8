// The types of rollgate/fetch, with meaning, units, defaults and errors.

import RateLimiter = require('./index');

/**
 * Limits for every server that speaks Request and Response:
 *
 * ```ts
 * const limit = rateLimitFetch({ windowMs: 60_000, limit: 100 });
 *
 * async function handle(request: Request, ip: string): Promise<Response> {
 *   const { allowed, headers, response } = await limit(request, { ip });
 *   if (!allowed) return response;
 *   return new Response('hello', { headers });
 * }
 * ```
 *
 * @throws TypeError or RangeError `ERR_ROLLGATE_OPTION`: an option is wrong
 */
export function rateLimitFetch<Info extends RequestInfo = RequestInfo>(
  options?: RateLimitFetchOptions<Info>,
): RateLimitFetch<Info>;

/** What the server knows of a request besides the request. Your functions get it as it was given. */
export interface RequestInfo {
  /** The address of the connection: the client's, or that of the nearest proxy (option `trustProxy`). */
  ip?: string | undefined;
}

type OrPromise<Value> = Value | Promise<Value>;
type Ask<Info, Answer> = (request: Request, info: Info) => Answer;

/** The options of `rateLimit`; functions get the request and the `info` of the call. */
export type RateLimitFetchOptions<Info extends RequestInfo = RequestInfo> = Omit<
  RateLimiter.RateLimitResponseOptions,
  keyof FetchFunctions<Info> | OfResponses
> &
  FetchFunctions<Info> &
  (FetchLimits<Info> | FetchExisting<Info> | FetchByStore<Info> | FetchByRules<Info>);

/** Options about responses, which are not seen here: settle the result instead. */
type OfResponses =
  | 'skipFailedRequests'
  | 'skipSuccessfulRequests'
  | 'requestWasSuccessful'
  | 'requestPropertyName';

export interface FetchFunctions<Info> {
  /** The id of a request. Default: `info.ip`, for IPv6 its subnet. */
  keyGenerator?:
    | ((
        request: Request,
        info: Info,
        clientKey: RateLimiter.ClientKey,
      ) => OrPromise<RateLimiter.Id>)
    | undefined;
  ipv6Subnet?: number | false | Ask<Info, OrPromise<number | false>> | undefined;
  /** Identifies the caller, instead of `keyGenerator`. Errors go to `onAuthError`. */
  authenticate?: Ask<Info, OrPromise<RateLimiter.Caller>> | undefined;
  /** The response if `authenticate` fails. Default: the call rejects. */
  onAuthError?: ((error: unknown, request: Request, info: Info) => OrPromise<Response>) | undefined;
  /** If it returns true, the request passes uncounted. */
  skip?: Ask<Info, OrPromise<boolean>> | undefined;
  /** The response of a refusal, instead of `message` and `statusCode`; `headers` are the rate limit headers for it. */
  handler?:
    | ((
        request: Request,
        info: Info,
        decision: RateLimiter.Decision,
        headers: Headers,
      ) => OrPromise<Response>)
    | undefined;
  message?: RateLimiter.Message | Ask<Info, unknown> | undefined;
  identifier?: string | Ask<Info, OrPromise<string>> | undefined;
}

type FetchLimit<Info> = number | Ask<Info, OrPromise<number>>;

export interface FetchMax<Info> {
  /** Maximum requests in a window. Overrides `max` and `maxInInterval`. */
  limit?: FetchLimit<Info> | undefined;
  /** The same as `limit`. */
  max?: FetchLimit<Info> | undefined;
  /** The same as `limit`. */
  maxInInterval?: FetchLimit<Info> | undefined;
  /** What a request costs: see `RateLimiter.RequestCost`. Default 1. */
  cost?: RateLimiter.Cost | Ask<Info, OrPromise<RateLimiter.Cost>> | undefined;
}

/** Limits for all requests. */
export interface FetchLimits<Info>
  extends Omit<RateLimiter.RateLimitLimits, keyof FetchMax<Info>>,
    FetchMax<Info> {}

/** An existing limiter. */
export interface FetchExisting<Info>
  extends Omit<RateLimiter.RateLimitExisting, 'cost'>,
    Pick<FetchMax<Info>, 'cost'> {}

/** A store for express-rate-limit. */
export interface FetchByStore<Info>
  extends Omit<RateLimiter.RateLimitByStore, keyof FetchMax<Info>>,
    Omit<FetchMax<Info>, 'cost'> {
  cost?: undefined;
}

/** One of the `rules`. */
export interface FetchRule<Info>
  extends Omit<RateLimiter.RateLimitRule, keyof FetchMax<Info>>,
    FetchMax<Info> {}

/** Limits by rules, instead of limits for all requests. */
export interface FetchByRules<Info> extends Omit<RateLimiter.RateLimitByRules, 'rules'> {
  /** At least one. The first matching rule decides; a request without one passes. */
  rules: readonly FetchRule<Info>[];
}

export interface RateLimitFetch<Info extends RequestInfo = RequestInfo> {
  /** Rejects if no decision can be made, or one of your functions fails. */
  (request: Request, info?: Info): Promise<RateLimitFetchResult>;
  /** Forgets what is counted for a key. */
  resetKey(key: RateLimiter.Id): Promise<void>;
  /** What is counted for a key; undefined if nothing is. */
  getKey: RateLimiter.RateLimitMiddleware['getKey'];
}

export type RateLimitFetchResult = AllowedRequest | RefusedRequest;

interface FetchResult {
  /** Null if nothing was asked: the request was skipped, matched no rule, or passed a failing store. */
  decision: RateLimiter.Decision | null;
  /** The rate limit headers, for the response. */
  headers: Headers;
  /** What the shadow rules say; undefined without them. */
  shadow: RateLimiter.RateLimitInfo['shadow'];
  /** Replaces what the request cost by what it came to; 0 takes it back. As `settle` of the limiter. */
  settle: RateLimiter.RateLimitInfo['settle'];
}

export interface AllowedRequest extends FetchResult {
  allowed: true;
  response: undefined;
}

export interface RefusedRequest extends FetchResult {
  allowed: false;
  /** The response to send, with the headers. */
  response: Response;
}
