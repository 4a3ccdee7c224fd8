// What the addon exports to lib, which has checked all options.
//
// `keep` is an object with callbacks and buffers. The native side references it weakly; lib keeps
// it alive as long as any function that was created with it.
#pragma once

#include <napi.h>

namespace rollgate::binding {

/// createMemoryLimiter(options, keep) -> the functions of MakeLocalFunctions, for a store in
/// memory.
///
/// options: those of ReadPolicy, and maxKeys.
Napi::Value CreateMemoryLimiter(const Napi::CallbackInfo& info);

/// createSharedLimiter(options, keep) -> the functions of MakeLocalFunctions, for a store in shared
/// memory. The first call of any function but close() attaches to the region; after a failure, the
/// next call tries again.
///
/// options: those of ReadPolicy, name, directory and maxKeys.
Napi::Value CreateSharedLimiter(const Napi::CallbackInfo& info);

/// unlinkShared(directory, name, failed) -> whether there was such a region; `failed` is as in
/// MakeLocalFunctions
Napi::Value UnlinkShared(const Napi::CallbackInfo& info);

/// liveLimiters() -> how many native limiters this process has, for tests
Napi::Value LiveLimiters(const Napi::CallbackInfo& info);

/// createPortableLimiter(options, keep) -> { decide, refund, lifetime, largestState }: decisions on
/// states that JavaScript stores as bytes
///
/// options: those of ReadPolicy.
///
/// keep:
///   report      Float64Array that decide writes to
///   exhausted   () => throws: there is no memory left
///
/// A state is a Uint8Array, or undefined for an id without actions. The next state is an
/// ArrayBuffer, undefined if nothing changes, or null if the bytes are not a state.
///
/// decide(state, cost, records, now, generation, max?) -> next state; writes report[0..]: see
///   WriteDecision. `now` in us. `generation`, a random integer below 2^32, is used if a generation
///   of the id begins. With setsMax, `max` is the window's from now on. At cost 0, nothing is
///   recorded, and the report shows the current usage
/// refund(state, at, cost, token, now) -> next state
/// lifetime(state, now) -> us: how long a state that is written now can affect decisions
/// largestState() -> bytes of the largest possible state
Napi::Value CreatePortableLimiter(const Napi::CallbackInfo& info);

/// createRedisClient(options, keep) -> { attempt, refund, command, nodes, stats, close }: the
/// client of one limiter
///
/// options: { endpoints: [{ host, port, path }], isCluster, username, password, db, name,
/// connectTimeout, commandTimeout, maxQueue, retryMin, retryMax, keyPrefix, script, policy,
/// windows, tls }. `policy` has the last arguments of the script, as strings. `tls` is for builds
/// with TLS: undefined or { ca: [], cert, key, passphrase, verifies, serverName }, with PEM
/// strings. Throws an Error if one is invalid.
///
/// keep: { numbers, settle, fail, reply, changed }. It stays alive while calls are pending.
/// changed(isUp) reports that a connection was made or lost; in a cluster the first or the last
/// one. settle(count) reads records from the Float64Array `numbers`: the number of a call, how many
/// integers follow, and the script's integers. fail(kind, message, count) reads the numbers of
/// `count` calls there. reply(call, value) is for commands.
///
/// attempt(id, cost, records, full, now, policy?), refund(id, at, cost, generation, now) and
/// command(words, node, key) return the number of the call, or -1 if too many are pending. `now` is
/// in us or undefined; `policy` replaces that of the options. nodes() lists the nodes of a cluster.
/// stats() returns { isUp, pending, connections }. close() fails pending calls. Ids are well-formed
/// strings.
Napi::Value CreateRedisClient(const Napi::CallbackInfo& info);

}  // namespace rollgate::binding
