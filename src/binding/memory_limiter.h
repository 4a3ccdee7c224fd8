// One limiter in memory as JavaScript holds it: native functions around one store.
#pragma once

#include <node_api.h>

namespace rollgate::binding {

/// createMemoryLimiter(options, keep) -> { check, decide, decideMany, refund, clear, stats, close }
///
/// `options`, checked by lib: windows (Float64Array of interval in us and max, one pair each),
/// minDifference (us), countBlocked, algorithm (a number: see Algorithm), blocks (Float64Array of
/// lengths in us), setsMax, maxKeys.
///
/// `keep` is an object that lib holds as long as any of the functions; the native side only borrows
/// what it finds there, so nothing is kept alive by a reference that the garbage collector does
/// not see:
///   report      Float64Array that decide and stats write to
///   refuse      (id) => throws: the value is no id
///   closed      () => throws: the limiter is closed
///   exhausted   () => throws: there is no memory left; nothing was recorded
///   callBack    (id, callback) => undefined: attempts, then calls back
///   evicted     () => undefined: told once, when the first id is dropped for want of room
///   clock       undefined, or () => us: throws when the user's clock fails
///
/// check(id?, callback?) -> time left in ms, 0 when allowed
/// decide(id, cost, records, max?) writes report[0..]: see WriteDecision. A cost of 0 records
/// nothing
///   and tells what is used. A max is given where setsMax is true: that of the window from now on
/// decideMany(ids, numbers) attempts them all at cost 1 and writes a decision for each into the
///   Float64Array, one behind the other; nothing happens if one id is wrong
/// refund(id, at, cost, token) -> boolean
/// clear(id) -> boolean; clear() forgets all ids
/// stats() writes report[0..4]: keys, allowed, blocked, evicted, bytes
/// close() gives back the memory; every call afterwards ends in closed()
napi_value CreateMemoryLimiter(napi_env env, napi_callback_info info);

/// How many limiters of this process exist natively, for tests.
napi_value LiveLimiters(napi_env env, napi_callback_info info);

}  // namespace rollgate::binding
