// The types of limiters over a key-value store.

import './index';

declare module './index' {
  /** An open Deno KV, from `Deno.openKv()` or `openKv()` of @deno/kv. */
  interface DenoKv {
    get(...args: never[]): Promise<{ readonly versionstamp: string | null }>;
    list(...args: never[]): AsyncIterable<{ readonly versionstamp: string }>;
    atomic(): { commit(): Promise<{ readonly ok: boolean }> };
  }

  /** An entry of your key-value store. */
  interface KvEntry {
    /** The bytes that were set. */
    value: Uint8Array;
    /** Changes with every set and never repeats for a key. Neither null nor undefined. */
    version: unknown;
  }

  /** Your key-value store. Functions may return promises or values. */
  interface PlainKv {
    /** The entry of a key; null or undefined if there is none, or it has expired. */
    get(key: string): KvEntry | null | undefined | PromiseLike<KvEntry | null | undefined>;
    /**
     * Sets the value, atomically, if the entry has this `version`, or if there is none and `version` is null; otherwise
     * returns false. The entry must expire after `ttlMs`, whole ms, and not earlier.
     */
    set(
      key: string,
      value: Uint8Array,
      version: unknown,
      ttlMs: number,
    ): boolean | PromiseLike<boolean>;
    /** Optional. Without it, `clear` sets a one-byte value that expires after a second. */
    delete?(key: string): unknown;
    /** Optional: the keys with this prefix. Without it, `clearAll` rejects with `ERR_ROLLGATE_UNSUPPORTED`. */
    list?(
      prefix: string,
    ):
      | Iterable<string>
      | AsyncIterable<string>
      | PromiseLike<Iterable<string> | AsyncIterable<string>>;
  }

  /** Options of a limiter over a key-value store. */
  interface KvStoreOptions
    extends Pick<RedisStoreOptions, 'onError'>,
      NotGiven<'redis' | 'client' | 'connection' | 'shared' | 'localRefusals' | 'lease'> {
    /** Your store. The limiter neither opens nor closes it. */
    kv: DenoKv | PlainKv;
    /** Prefix of every key: non-empty, without braces, at most 512 bytes. Limiters with the same one count together. */
    namespace: string;
    /** Timeout of a call in ms, an integer >= 1; then it fails with `ERR_ROLLGATE_KV_TIMEOUT`. Default 500. */
    commandTimeout?: number | undefined;
  }

  /** The options of a limiter over a key-value store. */
  type KvRateLimiterOptions = (OneLimitOptions | SeveralLimitsOptions) & KvStoreOptions;
}
