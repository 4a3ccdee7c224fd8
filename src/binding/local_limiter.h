// One limiter that answers at once, as JavaScript holds it: native functions around one store.
#pragma once

#include <node_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "binding/borrowed.h"
#include "binding/monotonic_clock.h"
#include "core/decision.h"
#include "core/identity.h"
#include "core/policy.h"
#include "core/store.h"
#include "core/time.h"
#include "shared/shared_error.h"

namespace rollgate::binding {

/// The state behind one limiter's functions; deleted with the last of them.
struct LocalLimiter {
  LocalLimiter();
  ~LocalLimiter();

  std::unique_ptr<Store> store;  // null once closed, and until `attach` was called
  /// Where the first call finds the store: sets it, and what goes with it. Throws what that throws,
  /// and is called again then.
  std::function<void(LocalLimiter&)> attach;
  Secret secret;
  Micros epoch_offset = 0;  // from the built-in clock's readings to times of day, where they matter
  std::int64_t (*bytes_to_tell)(const Store&) = nullptr;  // what V8 is to know of

  std::vector<WindowUse> uses;  // what decisions are written through
  Borrowed refuse;
  Borrowed closed;
  Borrowed exhausted;
  Borrowed failed;
  Borrowed call_back;
  Borrowed evicted;
  Borrowed decided;
  Borrowed clock;  // the user's, if any
  MonotonicClock monotonic_clock;
  bool refunds_ask_time = false;
  double* report = nullptr;                          // keep.report's own memory
  const std::uint8_t* observes_decisions = nullptr;  // keep's own memory, too: not 0 while it does
  const std::uint8_t* observes_evictions = nullptr;
  bool has_evicted = false;  // and JavaScript has not been told yet
  bool has_told_of_evictions = false;
  std::uint32_t calls = 0;
  std::int64_t bytes_told = 0;  // how much V8 knows of
  int functions = 0;            // that point here
};

/// What is due before the limiter is deleted: see MakeFunctions.
void Dispose(napi_env env, LocalLimiter& limiter);

/// A limiter without a store, with all that it borrows and with what follows from the policy;
/// `epoch_offset` is that of a store which is made now. Null where something could not be read, for
/// the thread is to end.
std::unique_ptr<LocalLimiter> ReadLocalLimiter(napi_env env, napi_value keep, const Policy& policy);

/// The functions of a limiter -> { check, decide, decideMany, refund, clear, stats, close }
///
/// `keep`, which it has read, is an object that lib holds as long as any of the functions; the
/// native side only borrows what it finds there, so nothing is kept alive by a reference that the
/// garbage collector does not see:
///   report      Float64Array that decide and stats write to
///   refuse      (id) => throws: the value is no id
///   closed      () => throws: the limiter is closed
///   exhausted   () => throws: there is no memory left; nothing was recorded
///   failed      (kind, message) => throws: a SharedError of that kind; for shared ones only
///   callBack    (id, callback) => undefined: attempts, then calls back
///   evicted     () => undefined: an id was dropped for want of room; told once, and for each call
///               that does so while evictions are observed
///   decided     (id, timeLeft) => undefined: what check gives, told while decisions are observed
///   observesDecisions, observesEvictions  Uint8Array of one byte: not 0 while somebody does
///   clock       undefined, or () => us: throws when the user's clock fails
///
/// check(id?, callback?) -> time left in ms, 0 when allowed
/// decide(id, cost, records, max?) writes report[0..]: see WriteDecision. A cost of 0 records
///   nothing and tells what is used. A max is given where setsMax is true: that of the window from
///   now on
/// decideMany(ids, numbers) attempts them all at cost 1 and writes a decision for each into the
///   Float64Array, one behind the other; nothing happens if one id is wrong
/// refund(id, at, cost, token) -> boolean
/// clear(id) -> boolean; clear() forgets all ids
/// stats() writes report[0..4]: keys, allowed, blocked, evicted, bytes
/// close() lets go of the store; every call afterwards ends in closed()
napi_value MakeLocalFunctions(napi_env env, std::unique_ptr<LocalLimiter> limiter);

/// Has `failed`, as of MakeLocalFunctions, throw this error.
napi_value Fail(napi_env env, const Borrowed& failed, const SharedError& error);

/// How many limiters of this process exist natively, for tests.
napi_value LiveLimiters(napi_env env, napi_callback_info info);

}  // namespace rollgate::binding
