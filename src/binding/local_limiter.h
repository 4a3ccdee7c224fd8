// One limiter that answers at once: what its native functions share, its store above all.
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
#include "core/inlining.h"
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

/// Lets go of the store, if there is one or was to be; at the latest before the limiter is deleted,
/// see MakeFunctions.
void Dispose(napi_env env, LocalLimiter& limiter);

/// Lets V8 know how much hangs on its small objects, so that it looks for dropped limiters in time.
ROLLGATE_COLD void TellMemory(napi_env env, LocalLimiter& limiter);

/// A limiter without a store, with all that it borrows and with what follows from the policy;
/// `epoch_offset` is that of a store which is made now. Null where something could not be read, for
/// the thread is to end.
std::unique_ptr<LocalLimiter> ReadLocalLimiter(napi_env env, napi_value keep, const Policy& policy);

/// Has `failed` (see MakeLocalFunctions in local_functions.h) throw this error.
napi_value Fail(napi_env env, const Borrowed& failed, const SharedError& error);

/// How many limiters of this process exist natively, for tests.
napi_value LiveLimiters(napi_env env, napi_callback_info info);

}  // namespace rollgate::binding
