// The types of the middleware `rateLimit`. Fastify and fetch use them with other requests and responses.

import type { IncomingMessage, ServerResponse } from 'node:http';

import './index';

declare module './index' {
  /** Node's request, with Express's `ip`. For your framework's types: `rateLimit<Request, Response>`. */
  interface LimitedRequest extends IncomingMessage {
    ip?: string | undefined;
    // biome-ignore lint/suspicious/noExplicitAny: req.path and the like, without the types of a framework
    [member: string]: any;
  }

  /** Node's response: see LimitedRequest. */
  interface LimitedResponse extends ServerResponse {
    // biome-ignore lint/suspicious/noExplicitAny: res.locals and the like
    [member: string]: any;
  }

  /** The message of the diagnostics channel `rollgate:shadow`, for each decision of a `shadow` rule. */
  interface ShadowMessage extends ShadowDecision {
    id: Id;
  }

  /** The value of `req.rateLimit`, with the names of express-rate-limit. */
  interface RateLimitInfo {
    /** The limit of the window with the least left. */
    limit: number;
    /** Requests counted in that window, including this one. */
    used: number;
    /** Requests left in that window. */
    remaining: number;
    /** When more is available; undefined under a limit of Infinity, which counts nothing. */
    resetTime: Date | undefined;
    /** The result of `keyGenerator`, or the id of `authenticate`. */
    key: Id;
    /**
     * As `settle` of the limiter that counted the request; false if it was refused. `ERR_ROLLGATE_UNSUPPORTED` if your
     * own limiter has no `settle`.
     */
    settle(actual: Cost): boolean | Promise<boolean>;
    /** What `shadow` rules would have decided; undefined if none was reached. */
    shadow?: ShadowDecision[];
    /** @deprecated the name of `used` in express-rate-limit 6; not enumerable */
    readonly current?: number;
  }

  /** What a `shadow` rule would have decided: the numbers of its window with the least left. */
  interface ShadowDecision {
    /** The index of the rule in `rules`. */
    rule: number;
    allowed: boolean;
    limit: number;
    /** Requests that the rule has counted, including this one. */
    used: number;
    remaining: number;
  }

  /**
   * Merged into Express's Request; undefined if no middleware counted the request. For another `requestPropertyName`:
   * `declare global { namespace Express { interface Request { quota?: RateLimiter.RateLimitInfo } } }`.
   */
  interface PerhapsRateLimit {
    rateLimit?: RateLimitInfo | undefined;
  }

  /** A request that went through `rateLimit`: `(req as WithRateLimit<Request>).rateLimit`. */
  type WithRateLimit<Request = LimitedRequest> = Request & { rateLimit: RateLimitInfo };

  /**
   * The limiter interface that `rateLimit` needs. `peek` is for getKey and for the option `cost`, with which `attempt`
   * throws `ERR_ROLLGATE_COST` if it can never pass; `clear` for resetKey; `refund` for skipFailedRequests and
   * skipSuccessfulRequests.
   */
  interface RateLimitBackend {
    attempt(id: Id, options?: AttemptOptions): Decision | Promise<Decision>;
    settle?(decision: Decision, actual: Cost): boolean | Promise<boolean>;
    refund?(decision: Decision): unknown;
    peek?(id: Id): Decision | Promise<Decision>;
    clear?(id: Id): unknown;
  }

  /** The body of a refusal; an object is sent as JSON. */
  type Message = string | object;

  /** The draft of the RateLimit headers. Source: draft-ietf-httpapi-ratelimit-headers. */
  type HeaderDraft = 'draft-6' | 'draft-7' | 'draft-8' | 'draft-10';

  /** A check for wrong use, with its name in express-rate-limit; docs/middleware.md lists them. */
  type RateLimitCheck =
    | 'creationStack'
    | 'forwardedHeader'
    | 'ip'
    | 'ipv6Subnet'
    | 'keyGeneratorIpFallback'
    | 'singleCount'
    | 'trustProxy'
    | 'undefinedKey'
    | 'unsharedStore'
    | 'xForwardedForHeader';

  /** Checks of express-rate-limit that are not needed here. */
  type NeedlessRateLimitCheck =
    | 'draftPolliHeaders'
    | 'headersDraftVersion'
    | 'headersResetTime'
    | 'ipv6SubnetOrKeyGenerator'
    | 'knownOptions'
    | 'limit'
    | 'onLimitReached'
    | 'positiveHits'
    | 'validationsConfig'
    | 'windowMs';

  /** Turns checks on or off. `default` applies to the others, and is true by default. */
  type RateLimitChecks = {
    [check in RateLimitCheck | NeedlessRateLimitCheck | 'default']?: boolean | undefined;
  };

  /** The logger of a middleware, such as `console` or a pino logger. */
  interface RateLimitLogger {
    /** Receives an Error with a `code` of docs/errors.md, once for each middleware. */
    warn(warning: Error): unknown;
    /** Receives every error that is not passed to `next`, and a message about the request. */
    error(error: unknown, message: string): unknown;
  }

  /**
   * Gives the id that a request has without `keyGenerator`; undefined for a client on a Unix socket. Throws
   * `ROLLGATE_CLIENT_GONE` for a client that has left: pass it on, so that the request is refused.
   */
  type ClientKey = () => Id | Promise<Id>;

  /** How a middleware answers. Names and defaults are those of express-rate-limit. */
  interface RateLimitResponseOptions<Request = LimitedRequest, Response = LimitedResponse> {
    /** The id of a request. May be async. Default: `clientKey()`, the client's address, for IPv6 its subnet. */
    keyGenerator?:
      | ((req: Request, res: Response, clientKey: ClientKey) => Id | Promise<Id>)
      | undefined;
    /** Identifies the caller, instead of `keyGenerator`. May be async. No id: TypeError `ERR_ROLLGATE_AUTHENTICATE`. */
    authenticate?: ((req: Request) => Caller | Promise<Caller>) | undefined;
    /** Answers if `authenticate` fails, or lets pass uncounted with `next()`. May be async. Default: `next(error)`. */
    onAuthError?:
      | ((error: unknown, req: Request, res: Response, next: Next) => unknown)
      | undefined;
    /**
     * Prefix length of IPv6 subnets that count as one client, an integer from 1 to 128, outside of 32 to 64 with a
     * warning; false: the whole address. Default 56. Not with a `keyGenerator` without the parameter `clientKey`.
     */
    ipv6Subnet?:
      | number
      | false
      | ((req: Request, res: Response) => number | false | Promise<number | false>)
      | undefined;
    /**
     * The proxies whose X-Forwarded-For is believed, as Express' setting 'trust proxy': how many; addresses and
     * subnets; a function of an address and its distance (0 is the nearest); true: all; false: none. Default: the
     * server's setting. Not with a `keyGenerator` without the parameter `clientKey`.
     */
    trustProxy?:
      | boolean
      | number
      | string
      | readonly string[]
      | ((address: string, hop: number) => boolean)
      | undefined;
    /** If it returns true, the request passes uncounted. May be async. */
    skip?: ((req: Request, res: Response) => boolean | Promise<boolean>) | undefined;
    /** Answers a refused request, instead of `message` and `statusCode`. May be async. */
    handler?: RateLimitHandler<Request, Response> | undefined;
    /** Body of a refusal. Default 'Too many requests, please try again later.' */
    message?: Message | ((req: Request, res: Response) => unknown) | undefined;
    /** Status of a refusal, an integer from 200 to 999. Default 429. */
    statusCode?: number | undefined;
    /**
     * Whether a refusal is application/problem+json (RFC 9457), with the `violated-policies`. A string `message` is its
     * `detail`; the members of an object are added. Not with `handler`. Default false.
     */
    problemDetails?: boolean | undefined;
    /** Whether to send X-RateLimit-Limit, -Remaining and -Reset. Default true. */
    legacyHeaders?: boolean | undefined;
    /** The same as `legacyHeaders`, which overrides it. */
    headers?: boolean | undefined;
    /** Which RateLimit headers to send; true means 'draft-6'. Default false. */
    standardHeaders?: boolean | HeaderDraft | undefined;
    /**
     * Name of the policy in drafts 8 and 10 and in problem details: printable ASCII. Default like '100-in-15min', which
     * is appended if there are several windows.
     */
    identifier?: string | ((req: Request, res: Response) => string | Promise<string>) | undefined;
    /** The request's property for the RateLimitInfo; non-empty, not '__proto__'. Default 'rateLimit'. */
    requestPropertyName?: string | undefined;
    /** Whether to refund successful requests, whose response has ended. Default false. */
    skipSuccessfulRequests?: boolean | undefined;
    /** Whether to refund failed requests, also if the client disconnected; refused ones never count. Default false. */
    skipFailedRequests?: boolean | undefined;
    /** Whether a request had success, asked after the response. Default: its status is below 400. May be async. */
    requestWasSuccessful?:
      | ((req: Request, res: Response) => boolean | Promise<boolean>)
      | undefined;
    /** Whether requests pass, uncounted, if no decision can be made. An invalid key stays an error. Default false. */
    passOnStoreError?: boolean | undefined;
    /** Whether to check for wrong use; each finding is reported once. Default true. */
    validate?: boolean | RateLimitChecks | undefined;
    /** Receives warnings and errors, instead of `process.emitWarning`. */
    logger?: RateLimitLogger | undefined;
  }

  /**
   * Maximum requests in a window, an integer >= 0 (0 refuses all) or Infinity (all pass, uncounted, without headers); or
   * a function that is called for each request. With `limits` it returns CallLimits: an object by name, in which
   * Infinity leaves a window uncounted. A key has one count, whatever the limit.
   */
  type RequestLimit<Request = LimitedRequest, Response = LimitedResponse> =
    | number
    | ((req: Request, res: Response) => CallLimits | Promise<CallLimits>);

  /**
   * What a request costs: an integer >= 1, or costs by name of a limit. If the function returns anything else, `next`
   * gets `ERR_ROLLGATE_COST`. A cost above a limit refuses the request without Retry-After, and records nothing.
   */
  type RequestCost<Request = LimitedRequest, Response = LimitedResponse> =
    | Cost
    | ((req: Request, res: Response) => Cost | Promise<Cost>);

  /** Where a middleware counts: in memory, or in one of these stores. */
  interface AnyStoreOptions extends RedisStoreOptions, SharedStoreOptions {
    /** Counts on Redis; set a `namespace` as well; with `rules`, it is the prefix of each zone's namespace. */
    redis?: RedisOption | undefined;
    /** The same as `redis`. */
    client?: RedisOption | undefined;
    /** The same as `redis`, for what `createRedisConnection` returns. */
    connection?: RedisConnection | undefined;
    /** Counts in a key-value store; requires a `namespace`. */
    kv?: DenoKv | PlainKv | undefined;
    /** Timeout of a key-value store in ms. Default 500. */
    commandTimeout?: number | undefined;
  }

  /** The limits of a middleware, or of one of its rules. Default: 5 requests in 60,000 ms. */
  interface RequestLimits<Request = LimitedRequest, Response = LimitedResponse>
    extends Omit<OptionalLimit, 'maxInInterval'> {
    /** Overrides `interval`, which is the same. */
    windowMs?: number | undefined;
    /** Overrides `max` and `maxInInterval`. */
    limit?: RequestLimit<Request, Response> | undefined;
    /** The same as `limit`. */
    max?: RequestLimit<Request, Response> | undefined;
    /** The same as `limit`. */
    maxInInterval?: RequestLimit<Request, Response> | undefined;
    /** Several windows, instead of the limits above; if `limit` is a function, it may replace their maxima. */
    limits?: readonly WindowLimit[] | undefined;
    /** Default 1. */
    cost?: RequestCost<Request, Response> | undefined;
  }

  /** The limits of a middleware that creates its limiter. */
  interface RateLimitLimits<Request = LimitedRequest, Response = LimitedResponse>
    extends RequestLimits<Request, Response>,
      CommonOptions,
      AnyStoreOptions {
    limiter?: undefined;
    rules?: undefined;
    store?: undefined;
  }

  /** The options of a middleware with an existing limiter, which has limits. */
  interface RateLimitExisting<Request = LimitedRequest, Response = LimitedResponse>
    extends NotGiven<Exclude<keyof RateLimitLimits, 'limiter' | 'cost'>> {
    limiter: RateLimiter | RemoteRateLimiter | RateLimitBackend;
    /** Default 1. */
    cost?: RequestCost<Request, Response> | undefined;
  }

  /** A store for express-rate-limit 6 or newer. */
  interface RateLimitStore {
    /** Called once, when the middleware is created, with its settings. */
    init?(settings: never): void | Promise<void>;
    /** Counts a request; `totalHits` includes it. */
    increment(key: string): RateLimitHits | Promise<RateLimitHits>;
    /** Takes back a request: see `skipFailedRequests` and `skipSuccessfulRequests`. */
    decrement(key: string): void | Promise<void>;
    /** Forgets the count of a key. */
    resetKey(key: string): void | Promise<void>;
    /** For `getKey` of the middleware. */
    get?(key: string): RateLimitHits | undefined | Promise<RateLimitHits | undefined>;
  }

  /** What a store counts for a key. */
  interface RateLimitHits {
    totalHits: number;
    /** When the window ends. */
    resetTime: Date | undefined;
  }

  type WindowOption = 'windowMs' | 'interval' | 'limit' | 'max' | 'maxInInterval';

  /** The options of a middleware that counts in a store for express-rate-limit. */
  interface RateLimitByStore<Request = LimitedRequest, Response = LimitedResponse>
    extends Pick<RateLimitLimits<Request, Response>, WindowOption>,
      NotGiven<Exclude<keyof RateLimitLimits, WindowOption | 'store'>> {
    /** Serves this middleware only. */
    store: RateLimitStore;
  }

  /** The result of `authenticate`. */
  interface Caller {
    /** The id to count; `null` is the id that all calls without an id share. */
    id: string | number | bigint | null;
    /** The group for rules. Default 'default'. */
    group?: string | undefined;
  }

  /** Which requests a rule matches, and their limits; without limits it allows everything. */
  interface RateLimitRule<Request = LimitedRequest, Response = LimitedResponse>
    extends RequestLimits<Request, Response>,
      Pick<CommonOptions, RuleOption> {
    /**
     * A prefix of whole segments, ignoring case and encoding: '/api' matches '/API/x', not '/apix'; patterns (':id',
     * '*', '(', '{') are errors. Or a RegExp, tested on the path as received, without the query.
     */
    path: string | RegExp;
    /** Default: every method. 'GET' includes HEAD. */
    method?: string | readonly string[] | undefined;
    /** Default: every group. A caller without a group is in 'default'. */
    group?: string | readonly string[] | undefined;
    /** Rules of one zone share a count, shadow rules another; limits and RuleOptions must be equal. */
    zone?: string | undefined;
    /** Whether each URL has its own count. Default false. */
    perPath?: boolean | undefined;
    /** Whether a block (`blockFor`) applies to every rule with limits. Default false. */
    blockEverywhere?: boolean | undefined;
    /** Whether the rule is only tried out: see docs/rules.md#shadow. Default false. */
    shadow?: boolean | undefined;
  }

  /** The limiter options that each rule has for itself. */
  type RuleOption = 'countBlocked' | 'algorithm' | 'blockFor';

  /** The options of a middleware with rules. The store options apply to all rules. */
  interface RateLimitByRules<Request = LimitedRequest, Response = LimitedResponse>
    extends Omit<CommonOptions, RuleOption>,
      AnyStoreOptions,
      NotGiven<RuleOption | 'windowMs' | 'limit' | 'max' | 'limits' | 'cost' | keyof Limit> {
    /** At least one. The first matching rule decides; a request that matches none passes. */
    rules: readonly RateLimitRule<Request, Response>[];
    limiter?: undefined;
    store?: undefined;
  }

  /** The options of `rateLimit`. `undefined` means not given. */
  type RateLimitOptions<
    Request = LimitedRequest,
    Response = LimitedResponse,
  > = RateLimitResponseOptions<Request, Response> & RateLimitCounting<Request, Response>;

  /** Where and by which limits requests are counted. */
  type RateLimitCounting<Request = LimitedRequest, Response = LimitedResponse> =
    | RateLimitLimits<Request, Response>
    | RateLimitExisting<Request, Response>
    | RateLimitByStore<Request, Response>
    | RateLimitByRules<Request, Response>;

  /** The settings for a `handler`: the options for responses, with defaults. */
  interface RateLimitSettings {
    readonly message: Message | ((...args: never[]) => unknown);
    readonly statusCode: number;
    readonly problemDetails: boolean;
    readonly legacyHeaders: boolean;
    readonly standardHeaders: false | HeaderDraft;
    readonly identifier?: string | ((...args: never[]) => unknown) | undefined;
    readonly requestPropertyName: string;
    readonly skipSuccessfulRequests: boolean;
    readonly skipFailedRequests: boolean;
    readonly passOnStoreError: boolean;
    /** The checks that are on. */
    readonly validate: Readonly<Record<RateLimitCheck, boolean>>;
    /** ms; undefined with `limits`, with `rules` and with an existing limiter. */
    readonly windowMs?: number;
    /** Undefined with `limits`, with `rules` and with an existing limiter. */
    readonly limit?: number | ((...args: never[]) => unknown);
    readonly cost?: Cost | ((...args: never[]) => unknown) | undefined;
    readonly store?: RateLimitStore;
  }

  /** Answers a refused request, or passes it on with `next()`. */
  type RateLimitHandler<Request = LimitedRequest, Response = LimitedResponse> = (
    req: Request,
    res: Response,
    next: Next,
    settings: RateLimitSettings,
  ) => unknown;

  /** Continues with the next middleware, or with the error handlers. */
  type Next = (error?: unknown) => void;

  /** A middleware for Express 4 and 5, Connect, Polka and NestJS. */
  interface RateLimitMiddleware<Request = LimitedRequest, Response = LimitedResponse> {
    /** Errors reach `next(error)`. The call is synchronous if all steps are. */
    (req: Request, res: Response, next: Next): void | Promise<void>;
    /** Forgets the count of a key; with `rules` in all zones, except counts with `perPath`. */
    resetKey(key: Id): Promise<void>;
    /** The count of a key, undefined if there is none; with `rules` in the zone with the least left. Counts nothing. */
    getKey(key: Id): Promise<{ totalHits: number; resetTime: Date } | undefined>;
  }
}
