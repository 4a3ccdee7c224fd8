// The types of limiters on Redis.

import './index';
import type { ConnectionOptions } from 'node:tls';

declare const isMade: unique symbol;

declare module './index' {
  /** A client or cluster of ioredis, 4 or newer. */
  interface IORedisClient {
    readonly status: string;
    createBuiltinCommand(...args: never[]): unknown;
    sendCommand(...args: never[]): unknown;
  }

  /** A client, pool or cluster of redis (node-redis), 3 or newer. */
  type NodeRedisClient =
    | { readonly isOpen: boolean; sendCommand(...args: never[]): unknown }
    | { readonly connected: boolean; send_command(...args: never[]): unknown };

  /**
   * Your Redis client. The limiter neither connects nor closes it. The checks of all its limiters in one turn of the
   * event loop share commands.
   */
  type RedisClient = IORedisClient | NodeRedisClient;

  /** Options of calls to Redis, with any client. */
  interface RedisCallOptions {
    /** Timeout of a call in ms, an integer >= 1; then it fails with `ERR_ROLLGATE_REDIS_TIMEOUT`. Default 500. */
    commandTimeout?: number | undefined;
    /**
     * Maximum number of unanswered calls, an integer >= 1, including timed-out calls that the server or your client
     * still holds. Further calls fail with `ERR_ROLLGATE_REDIS_QUEUE_FULL`. Default 10,000.
     */
    maxQueue?: number | undefined;
  }

  /** Your client, and options of calls. */
  interface RedisClientOptions extends RedisCallOptions {
    client: RedisClient;
  }

  /** Options of node:tls for the native client. Certificates and keys are PEM. */
  interface RedisTlsOptions
    extends Pick<
      ConnectionOptions,
      | 'ALPNProtocols'
      | 'checkServerIdentity'
      | 'crl'
      | 'ecdhCurve'
      | 'maxVersion'
      | 'minDHSize'
      | 'pfx'
      | 'secureContext'
      | 'secureOptions'
      | 'sigalgs'
    > {
    /** Authorities to trust, instead of those that Node trusts. */
    ca?: string | Uint8Array | readonly (string | Uint8Array)[] | undefined;
    /** The client's certificate, with its chain. */
    cert?: string | Uint8Array | undefined;
    /** The private key of `cert`. Neither is given without the other. */
    key?: string | Uint8Array | undefined;
    /** Of an encrypted `key`. */
    passphrase?: string | undefined;
    /** The name or address that the server's certificate must have. Default: the host. */
    servername?: string | undefined;
    /** Whether to reject a server without a valid certificate. Default true. */
    rejectUnauthorized?: boolean | undefined;
    /** Default 'TLSv1.2'. */
    minVersion?: 'TLSv1.2' | 'TLSv1.3' | undefined;
    /** Names as in OpenSSL, separated by colons; those of TLS 1.3 begin with TLS_. Default: OpenSSL's. */
    ciphers?: string | undefined;
  }

  /** A connection of the native client. It opens with the first call, and again after it was lost. */
  interface RedisConnectionOptions extends RedisCallOptions {
    client?: undefined;
    /** redis://, rediss:// or unix://, instead of host, port and path. Other options override its parts. */
    url?: string | undefined;
    /** Default '127.0.0.1'. */
    host?: string | undefined;
    /** Default 6379. */
    port?: number | undefined;
    /** Path of a Unix socket, instead of host and port. */
    path?: string | undefined;
    username?: string | undefined;
    /** Never part of an error message. */
    password?: string | undefined;
    /** Instead of username and password: asked before each connection, within `connectTimeout`. */
    credentials?: (() => RedisCredentials | Promise<RedisCredentials>) | undefined;
    /** Number of the database. Default 0. */
    db?: number | undefined;
    /** Whether to use TLS, or its options. Default false, with rediss:// true. */
    tls?: boolean | RedisTlsOptions | undefined;
    /** Timeout for connecting, in ms, including the lookup of the host, TLS and the login. Default 2000. */
    connectTimeout?: number | undefined;
    /** Delay before reconnecting, in ms: random, at most `min` at first, growing to `max`. Default 50 and 2000. */
    retry?: { min?: number | undefined; max?: number | undefined } | undefined;
    /** The name in CLIENT LIST. */
    connectionName?: string | undefined;
    /** URLs of some nodes of a Redis Cluster, instead of url, host, port and path. */
    cluster?: readonly string[] | undefined;
    /** Sentinels that know the master `name`, instead of url, host, port and path. Their default port is 26379. */
    sentinels?: readonly (string | { host?: string; port?: number })[] | undefined;
    /** The name of the master. */
    name?: string | undefined;
    sentinelUsername?: string | undefined;
    sentinelPassword?: string | undefined;
    /**
     * Addresses of a cluster's nodes or a master by the 'host:port' that the servers announce: for NAT and containers.
     * An address without an entry fails with `ERR_ROLLGATE_REDIS_UNREACHABLE`.
     */
    addressMap?:
      | Readonly<Record<string, RedisAddress>>
      | ((announced: string) => RedisAddress | undefined)
      | undefined;
  }

  interface RedisAddress {
    host: string;
    port: number;
  }

  interface RedisCredentials {
    username?: string | undefined;
    password: string;
  }

  /** Made by `createRedisConnection`; opened by the first call of a limiter, closed with the last limiter. */
  interface RedisConnection {
    /** Only in types: no other object is a RedisConnection. */
    readonly [isMade]: true;
    /** Maximum number of unanswered calls to each server. */
    readonly maxQueue: number;
    readonly isCluster: boolean;
  }

  /** How to connect to Redis. */
  type RedisOption =
    | string
    | RedisConnectionOptions
    | RedisConnection
    | RedisClientOptions
    | RedisClient;

  /** Options of a limiter on Redis. They have no effect in memory. */
  interface RedisStoreOptions {
    /**
     * Prefix of every key, `namespace{id}`: non-empty, without braces. Limiters with the same namespace count together,
     * each by its own limits. Default: 'rate-limiter-' and 8 random characters.
     */
    namespace?: string | undefined;
    /**
     * While the store does not answer, 'throw' (default) fails the call, 'allow' decides as if the id were new, 'block'
     * blocks for a second, and 'memory' asks a limiter in this process.
     */
    onError?: 'throw' | 'allow' | 'block' | 'memory' | undefined;
    /**
     * Whether this process remembers at most `maxKeys` refusals, and repeats them without asking Redis until it would
     * decide otherwise; a refund or `clear` elsewhere shows after `timeLeft` at the latest. Requires
     * `countBlocked: false` or `blockFor`. Default false.
     */
    localRefusals?: boolean | undefined;
    /**
     * For how long, in ms, this process may decide on permits of an id that it takes from Redis ahead: an integer from
     * 50 to 60,000, at most the shortest interval (otherwise RangeError `ERR_ROLLGATE_OPTION`, here and in `setLimits`).
     * No limit is exceeded. Permits that are out and unused are refused to other processes for at most this time; those
     * of a process that ended without `close()` for `lease` plus a second plus the interval. An id that would use fewer
     * than two permits in this time is decided on Redis.
     *
     * Requires `algorithm: 'sliding-window-log'` and `countBlocked: false`. Not with `minDifference`, `blockFor`,
     * calendar windows or `onError: 'memory'`. A call with a cost by name fails with `ERR_ROLLGATE_COST`, one with
     * `limits` of its own with `ERR_ROLLGATE_OPTION`. Default: none are taken. See docs/leases.md.
     */
    lease?: number | undefined;
  }

  /** `redis`, `client` as in rolling-rate-limiter, or a `connection`. */
  type WithRedis<Redis> = NotGiven<'kv' | 'shared' | 'commandTimeout'> &
    (
      | { redis: Redis; client?: undefined; connection?: undefined }
      | { client: Redis; redis?: undefined; connection?: undefined }
      | { connection: RedisConnection; redis?: undefined; client?: undefined }
    );

  /** The options of a limiter on Redis. */
  type RedisRateLimiterOptions<Redis = RedisOption> = (OneLimitOptions | SeveralLimitsOptions) &
    RedisStoreOptions &
    WithRedis<Redis>;

  /** The options of a limiter on Redis, or in memory if `redis` is undefined. */
  type PerhapsRedisRateLimiterOptions = (OneLimitOptions | SeveralLimitsOptions) &
    RedisStoreOptions &
    NotGiven<'kv' | 'shared' | 'commandTimeout'> & {
      redis?: RedisOption | undefined;
      client?: RedisOption | undefined;
      connection?: RedisConnection | undefined;
    };

  /** A limiter on Redis. */
  interface AsyncRateLimiter extends RemoteRateLimiter {
    /** The kind of client: the native one, or yours. */
    readonly detectedClientType: RedisClientType;
  }

  type RedisClientType = 'hiredis' | 'ioredis' | 'node-redis';

  /** The messages of the diagnostics channel `rollgate:redis`. */
  type RedisMessage =
    | {
        type: 'call';
        limiter: AsyncRateLimiter;
        command: 'attempt' | 'peek' | 'refund' | 'settle' | 'block' | 'clear' | 'lease';
        /** The number of ids. */
        ids: number;
        /** From the call to its answer, including time in queues. */
        durationMs: number;
        /** null, or why it failed; `onError` may still decide. */
        error: RateLimiterError | null;
      }
    | {
        type: 'connection';
        limiter: AsyncRateLimiter;
        /** Whether there is a connection; in a cluster, to any node. */
        isUp: boolean;
      };

  /** The classes of rolling-rate-limiter 0.4. */
  interface RedisRateLimiter extends AsyncRateLimiter {}
  interface NodeRedisRateLimiter extends RedisRateLimiter {}
  interface IORedisRateLimiter extends RedisRateLimiter {}

  /** Only with `new`. `Redis` is what `redis` or `client` may be. */
  interface RedisRateLimiterConstructor<Limiter = RedisRateLimiter, Redis = RedisOption> {
    new (options: RedisRateLimiterOptions<Redis>): Limiter;
    readonly prototype: Limiter;
    /** null if the client is of an unknown kind. */
    determineRedisClientType(client: unknown): 'ioredis' | 'node-redis' | null;
  }

  /** Takes clients of redis (node-redis) only. */
  interface NodeRedisRateLimiterConstructor
    extends RedisRateLimiterConstructor<
      NodeRedisRateLimiter,
      NodeRedisClient | RedisClientOptions
    > {}

  /** Takes clients of ioredis only. */
  interface IORedisRateLimiterConstructor
    extends RedisRateLimiterConstructor<IORedisRateLimiter, IORedisClient | RedisClientOptions> {}
}
