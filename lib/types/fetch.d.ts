// The types of rollgate/fetch, with meaning, units, defaults and errors.

import RateLimiter = require('./index');

/**
 * Limits for every server that speaks Request and Response:
 *
 * ```ts
 * const limit = rateLimitFetch({ windowMs: 60_000, limit: 100 });
 * const { allowed, headers, response } = await limit(request, { ip });
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

/** The options of `rateLimit`; functions get the request and the `info` of the call. */
export type RateLimitFetchOptions<Info extends RequestInfo = RequestInfo> =
  RateLimitFetchResponseOptions<Info> & RateLimiter.RateLimitCounting<Request, Info>;

/** Options of `rateLimit` that are others here. Responses are not seen here: settle the result instead. */
type Other =
  | 'authenticate'
  | 'onAuthError'
  | 'handler'
  | 'skipFailedRequests'
  | 'skipSuccessfulRequests'
  | 'requestWasSuccessful'
  | 'requestPropertyName';

export interface RateLimitFetchResponseOptions<Info>
  extends Omit<RateLimiter.RateLimitResponseOptions<Request, Info>, Other> {
  /** The id of a request. Default: `info.ip`, for IPv6 its subnet. May be async. `clientKey()` is that default. */
  keyGenerator?: RateLimiter.RateLimitResponseOptions<Request, Info>['keyGenerator'];
  /** Identifies the caller, instead of `keyGenerator`. Errors go to `onAuthError`. */
  authenticate?: ((request: Request, info: Info) => OrPromise<RateLimiter.Caller>) | undefined;
  /** The response if `authenticate` fails. Default: the call rejects. */
  onAuthError?: ((error: unknown, request: Request, info: Info) => OrPromise<Response>) | undefined;
  /** The response of a refusal, instead of `message` and `statusCode`; `headers` are its rate limit headers. */
  handler?:
    | ((
        request: Request,
        info: Info,
        decision: RateLimiter.Decision,
        headers: Headers,
      ) => OrPromise<Response>)
    | undefined;
}

/**
 * Limits of what runs at once:
 *
 * ```ts
 * const limit = concurrencyLimitFetch({ max: 10 });
 * const { allowed, response, release } = await limit(request, { ip });
 * ```
 *
 * `release` must be called when the response has been sent, or the client has left.
 *
 * @throws TypeError or RangeError `ERR_ROLLGATE_OPTION`: an option is wrong
 */
export function concurrencyLimitFetch<Info extends RequestInfo = RequestInfo>(
  options: ConcurrencyLimitFetchOptions<Info>,
): ConcurrencyLimitFetch<Info>;

export interface ConcurrencyLimitFetchOptions<Info>
  extends Omit<
    RateLimiter.ConcurrencyLimitOptions<Request, Info>,
    'handler' | 'requestPropertyName'
  > {
  /** The response of a refusal, instead of `message` and `statusCode`; `headers` are its headers. */
  handler?:
    | ((
        request: Request,
        info: Info,
        refusal: RateLimiter.SlotRefusal,
        headers: Headers,
      ) => OrPromise<Response>)
    | undefined;
}

export interface ConcurrencyLimitFetch<Info extends RequestInfo = RequestInfo> {
  /** Rejects if one of your functions fails. A request whose signal aborts in line leaves it. */
  (request: Request, info?: Info): Promise<ConcurrencyLimitFetchResult>;
  readonly limiter: RateLimiter.ConcurrencyLimiter | RateLimiter.RemoteConcurrencyLimiter;
}

export type ConcurrencyLimitFetchResult =
  | {
      allowed: true;
      /** Null if the request was skipped, or passed uncounted. */
      slot: RateLimiter.Slot | RateLimiter.RemoteSlot | null;
      headers: Headers;
      response: undefined;
      /** As `release` of the slot, on Redis a promise; false without one. */
      release(): boolean | Promise<boolean>;
    }
  | {
      allowed: false;
      slot: RateLimiter.SlotRefusal;
      headers: Headers;
      /** The response to send, with the headers. */
      response: Response;
      release(): boolean;
    };

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
