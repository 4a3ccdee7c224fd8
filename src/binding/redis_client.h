// The native Redis client as JavaScript holds it.
#pragma once

#include <node_api.h>

namespace rollgate::binding {

/// createRedisClient(options, keep): the functions of one client over Redis, for one limiter.
///
/// options: { endpoints: [{ host, port, path }], isCluster, username, password, db, name,
/// connectTimeout, commandTimeout, maxQueue, retryMin, retryMax, keyPrefix, policy, windows, tls };
/// `policy` are the last arguments of the script, as strings; `tls`, which only a build with TLS
/// reads, is undefined or { ca: [], cert, key, passphrase, verifies, serverName }, all PEM texts; a
/// text that makes no sense is thrown as an Error.
///
/// keep: what is called back, which lives as long as calls are pending, and as its owner holds it:
/// { numbers, settle, fail, reply, changed }. changed(isUp) tells of a connection that is there
/// now, or not any more; in a cluster of the first and the last. settle(count) finds records in the
/// Float64Array `numbers`, each a call, how many numbers follow, and these: the script's integers.
/// fail(kind, message, count) finds `count` calls there. reply(call, value) is for commands.
///
/// functions: attempt(id, cost, records, full, now, policy?) with `now` in us or undefined and
/// `policy` in place of that of the options, refund(id, at, generation, cost, now) and
/// command(words, node, key) return the number of the call, or -1 when too many are under way.
/// nodes() lists the nodes of a cluster. stats() gives { isUp, pending, connections }. close()
/// fails what is pending. Ids are well-formed strings; all else was checked.
napi_value CreateRedisClient(napi_env env, napi_callback_info info);

/// Whether connections can have TLS.
inline constexpr bool kRedisHasTls =
#ifdef ROLLGATE_HAS_TLS
    true;
#else
    false;
#endif

}  // namespace rollgate::binding
