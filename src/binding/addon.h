// What the addon exports to lib, which has checked all options.
//
// `keep` is an object of lib's that these functions borrow from; lib holds it as long as any
// function that was made with it.
#pragma once

#include <napi.h>

namespace rollgate::binding {

/// createMemoryLimiter(options, keep) -> the functions of MakeLocalFunctions, of a limiter whose
/// ids are in this process's memory
///
/// options: what ReadPolicy reads, and maxKeys.
Napi::Value CreateMemoryLimiter(const Napi::CallbackInfo& info);

/// createSharedLimiter(options, keep) -> the functions of MakeLocalFunctions, of a limiter whose
/// ids are in memory that threads and processes share. The first function to be called, close()
/// left aside, attaches to the region; where that fails, the next one tries again.
///
/// options: what ReadPolicy reads, name, directory and maxKeys.
Napi::Value CreateSharedLimiter(const Napi::CallbackInfo& info);

/// unlinkShared(directory, name, failed) -> whether there was such a region; `failed` as of
/// MakeLocalFunctions
Napi::Value UnlinkShared(const Napi::CallbackInfo& info);

/// liveLimiters() -> how many limiters of this process exist natively, for tests
Napi::Value LiveLimiters(const Napi::CallbackInfo& info);

/// createPortableLimiter(options, keep) -> { decide, refund, lifetime, largestState }: the core's
/// decisions on states that JavaScript keeps elsewhere, as bytes
///
/// options: what ReadPolicy reads.
///
/// keep:
///   report      Float64Array that decide writes to
///   exhausted   () => throws: there is no memory left
///
/// A state is a Uint8Array that was given before, or undefined for an id that has done nothing. The
/// next state is given as an ArrayBuffer; undefined if nothing changes, null if what came is no
/// state.
///
/// decide(state, cost, records, now, generation, max?) -> next state; writes report[0..]: see
///   WriteDecision. `now` in us; `generation`, a random integer below 2^32, is for a generation of
///   the id that may begin; a max is given where setsMax is true, that of the window from now on. A
///   cost of 0 records nothing and tells what is used
/// refund(state, at, cost, token, now) -> next state
/// lifetime(state, now) -> us: how long a state that is written now can matter
/// largestState() -> bytes of the largest state that can come to be
Napi::Value CreatePortableLimiter(const Napi::CallbackInfo& info);

/// createRedisClient(options, keep) -> { attempt, refund, command, nodes, stats, close }: one
/// client over Redis, for one limiter
///
/// options: { endpoints: [{ host, port, path }], isCluster, username, password, db, name,
/// connectTimeout, commandTimeout, maxQueue, retryMin, retryMax, keyPrefix, script, policy,
/// windows, tls }; `policy` are the last arguments of the script, as strings; `tls`, which only a
/// build with TLS reads, is undefined or { ca: [], cert, key, passphrase, verifies, serverName },
/// all PEM texts; a text that makes no sense is thrown as an Error.
///
/// keep: what is called back, which lives as long as calls are pending, and as its owner holds it:
/// { numbers, settle, fail, reply, changed }. changed(isUp) tells of a connection that is there
/// now, or not any more; in a cluster of the first and the last. settle(count) finds records in the
/// Float64Array `numbers`, each a call, how many numbers follow, and these: the script's integers.
/// fail(kind, message, count) finds `count` calls there. reply(call, value) is for commands.
///
/// attempt(id, cost, records, full, now, policy?) with `now` in us or undefined and `policy` in
/// place of that of the options, refund(id, at, generation, cost, now) and command(words, node,
/// key) return the number of the call, or -1 when too many are under way. nodes() lists the nodes
/// of a cluster. stats() gives { isUp, pending, connections }. close() fails what is pending. Ids
/// are well-formed strings.
Napi::Value CreateRedisClient(const Napi::CallbackInfo& info);

}  // namespace rollgate::binding
