// The way from a call in JavaScript to a decision and back. Measured: a raw Node-API callback with
// its state in the data pointer costs half of a wrapped method, so all functions here are raw.
#include "binding/memory_limiter.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "binding/borrowed.h"
#include "binding/id_reader.h"
#include "binding/monotonic_clock.h"
#include "binding/values.h"
#include "memory/memory_store.h"

namespace rollgate::binding {
namespace {

std::atomic<std::int64_t> live_limiters{0};

/// The state behind one limiter's functions; deleted with the last of them.
struct MemoryLimiter {
  MemoryLimiter() { ++live_limiters; }
  ~MemoryLimiter() { --live_limiters; }

  std::unique_ptr<MemoryStore> store;  // null once closed
  Secret secret;
  std::vector<WindowUse> uses;  // what decisions are written through
  Borrowed refuse;
  Borrowed closed;
  Borrowed exhausted;
  Borrowed call_back;
  Borrowed evicted;
  Borrowed clock;  // the user's, if any
  MonotonicClock monotonic_clock;
  Micros epoch_offset = 0;  // from the built-in clock's readings to times of day, where they matter
  bool refunds_ask_time = false;
  double* report = nullptr;  // keep.report's own memory
  bool has_evicted = false;  // and JavaScript has not been told yet
  std::uint32_t calls = 0;
  std::int64_t bytes_told = 0;  // how much V8 knows of
  int functions = 0;            // that point here
};

/// Lets V8 know how much memory hangs on its small objects, so that it looks for dropped limiters
/// in time. It collects all garbage whenever this has grown by 64 MB, a pause of milliseconds; so
/// one limiter does not tell of more than half of that.
void TellMemory(napi_env env, MemoryLimiter& limiter) {
  constexpr std::size_t kMostTold = std::size_t{32} << 20;
  const auto bytes = static_cast<std::int64_t>(
      limiter.store ? std::min(limiter.store->stats().bytes, kMostTold) : 0);
  if (bytes == limiter.bytes_told) return;
  std::int64_t total;
  napi_adjust_external_memory(env, bytes - limiter.bytes_told, &total);
  limiter.bytes_told = bytes;
}

/// What is due after a call that may have added ids.
inline void AfterAttempt(napi_env env, MemoryLimiter& limiter) {
  if ((++limiter.calls & 0xfff) == 0) [[unlikely]] {
    TellMemory(env, limiter);
  }
  if (limiter.has_evicted) [[unlikely]] {
    limiter.has_evicted = false;
    limiter.evicted.Call();
  }
}

/// Reads the time and makes sure that the limiter is open; false with an exception pending
/// otherwise.
inline bool ReadTime(napi_env env, MemoryLimiter& limiter, Micros& now) {
  if (!limiter.clock) [[likely]] {
    now = limiter.monotonic_clock.Now() + limiter.epoch_offset;
  } else {
    const napi_value result = limiter.clock.Call();
    double micros;
    if (result == nullptr || napi_get_value_double(env, result, &micros) != napi_ok) return false;
    constexpr auto kBound = static_cast<double>(kLongest);
    now = static_cast<Micros>(std::clamp(micros, -kBound, kBound));
  }
  // The user's clock may have closed the limiter: look at the store only now.
  if (limiter.store) [[likely]] {
    return true;
  }
  limiter.closed.Call();
  return false;
}

napi_value Check(napi_env env, napi_callback_info info) {
  Call<MemoryLimiter, 2> call(env, info);
  MemoryLimiter& limiter = *call.state;
  const napi_value id = call.arguments[0];
  if (call.count >= 2 && !IsType(env, call.arguments[1], napi_undefined)) {
    return limiter.call_back.Call(call.arguments);
  }
  Identity identity;
  if (!ReadIdentity(env, id, limiter.secret, identity)) [[unlikely]] {
    if (!IsType(env, id, napi_function)) return limiter.refuse.Call({&id, 1});
    napi_value undefined = nullptr;
    napi_get_undefined(env, &undefined);
    return limiter.call_back.Call(std::array{undefined, id});
  }
  Micros now;
  if (!ReadTime(env, limiter, now)) return nullptr;
  const Micros time_left = limiter.store->Check(identity, now);
  AfterAttempt(env, limiter);
  return ToJs(env, CeilToMillis(time_left));
}

/// Numbers of one decision: whether count (1), minDifference (2) or a block (4) blocks it; time
/// left, actions left, reset in and wait; when it was recorded, in us, and the token; then for each
/// window what is used and its reset in. Durations in ms.
constexpr std::size_t kDecisionHead = 7;

std::size_t DecisionLength(const MemoryLimiter& limiter) {
  return kDecisionHead + 2 * limiter.uses.size();
}

void WriteDecision(const Decision& decision, double* out) {
  const auto millis = [](Micros duration) { return static_cast<double>(CeilToMillis(duration)); };
  *out++ = (decision.verdict.blocked_by_count ? 1 : 0) +
           (decision.verdict.blocked_by_min_difference ? 2 : 0) +
           (decision.verdict.blocked_by_block ? 4 : 0);
  *out++ = millis(decision.time_left);
  *out++ = static_cast<double>(decision.actions_left);
  *out++ = millis(decision.reset_in);
  *out++ = millis(decision.wait);
  *out++ = static_cast<double>(decision.verdict.at);
  *out++ = static_cast<double>(decision.token);
  for (const WindowUse& use : decision.windows) {
    *out++ = static_cast<double>(use.used);
    *out++ = millis(use.reset_in);
  }
}

napi_value Decide(napi_env env, napi_callback_info info) {
  Call<MemoryLimiter, 4> call(env, info);
  MemoryLimiter& limiter = *call.state;
  const napi_value id = call.arguments[0];
  Identity identity;
  if (!ReadIdentity(env, id, limiter.secret, identity)) return limiter.refuse.Call({&id, 1});
  const auto cost = static_cast<std::uint64_t>(ReadDouble(env, call.arguments[1]));
  const bool records = ReadBool(env, call.arguments[2]);
  Micros now;
  if (!ReadTime(env, limiter, now)) return nullptr;
  if (call.count == 4) {
    limiter.store->SetMax(static_cast<std::uint64_t>(ReadDouble(env, call.arguments[3])));
  }
  Decision decision;
  decision.windows = limiter.uses;
  if (records) {
    limiter.store->Attempt(identity, now, cost, decision);
  } else {
    limiter.store->Peek(identity, now, cost, decision);
  }
  WriteDecision(decision, limiter.report);
  if (records) AfterAttempt(env, limiter);
  return nullptr;
}

napi_value DecideMany(napi_env env, napi_callback_info info) {
  Call<MemoryLimiter, 2> call(env, info);
  MemoryLimiter& limiter = *call.state;
  std::uint32_t count = 0;
  napi_get_array_length(env, call.arguments[0], &count);
  std::vector<Identity> identities;
  identities.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    napi_handle_scope scope;
    if (napi_open_handle_scope(env, &scope) != napi_ok) return nullptr;
    napi_value id = nullptr;
    napi_get_element(env, call.arguments[0], i, &id);
    Identity identity;
    const bool is_id = id != nullptr && ReadIdentity(env, id, limiter.secret, identity);
    if (id != nullptr && !is_id) limiter.refuse.Call({&id, 1});
    napi_close_handle_scope(env, scope);
    if (!is_id) return nullptr;
    identities.push_back(identity);
  }
  Micros now;
  if (!ReadTime(env, limiter, now)) return nullptr;
  const std::span<double> out = ReadDoubles(env, call.arguments[1]);
  if (out.size() < count * DecisionLength(limiter)) return nullptr;
  Decision decision;
  decision.windows = limiter.uses;
  for (std::uint32_t i = 0; i < count; ++i) {
    limiter.store->Attempt(identities[i], now, 1, decision);
    WriteDecision(decision, &out[i * DecisionLength(limiter)]);
  }
  AfterAttempt(env, limiter);
  return nullptr;
}

napi_value Refund(napi_env env, napi_callback_info info) {
  Call<MemoryLimiter, 4> call(env, info);
  MemoryLimiter& limiter = *call.state;
  if (!limiter.store) return limiter.closed.Call();
  Identity identity;
  const bool is_id = ReadIdentity(env, call.arguments[0], limiter.secret, identity);
  Receipt receipt;
  receipt.at = static_cast<Micros>(ReadDouble(env, call.arguments[1]));
  receipt.cost = static_cast<std::uint64_t>(ReadDouble(env, call.arguments[2]));
  receipt.token = static_cast<std::uint64_t>(ReadDouble(env, call.arguments[3]));
  Micros now = 0;
  if (limiter.refunds_ask_time && !ReadTime(env, limiter, now)) return nullptr;
  return ToJs(env, is_id && limiter.store->Refund(identity, receipt, now));
}

napi_value Clear(napi_env env, napi_callback_info info) {
  Call<MemoryLimiter, 1> call(env, info);
  MemoryLimiter& limiter = *call.state;
  if (!limiter.store) return limiter.closed.Call();
  if (call.count == 0) {
    limiter.store->ClearAll();
    TellMemory(env, limiter);
    return nullptr;
  }
  const napi_value id = call.arguments[0];
  Identity identity;
  if (!ReadIdentity(env, id, limiter.secret, identity)) return limiter.refuse.Call({&id, 1});
  return ToJs(env, limiter.store->Clear(identity));
}

napi_value Stats(napi_env env, napi_callback_info info) {
  Call<MemoryLimiter, 0> call(env, info);
  MemoryLimiter& limiter = *call.state;
  if (!limiter.store) return limiter.closed.Call();
  const MemoryStoreStats stats = limiter.store->stats();
  double* out = limiter.report;
  *out++ = static_cast<double>(stats.keys);
  *out++ = static_cast<double>(stats.allowed);
  *out++ = static_cast<double>(stats.blocked);
  *out++ = static_cast<double>(stats.evicted);
  *out++ = static_cast<double>(stats.bytes);
  return nullptr;
}

napi_value Close(napi_env env, napi_callback_info info) {
  Call<MemoryLimiter, 0> call(env, info);
  call.state->store.reset();
  TellMemory(env, *call.state);
  return nullptr;
}

/// Runs when one of the functions is collected, or at the end of the environment.
void Release(napi_env env, void* data, void*) {
  auto* limiter = static_cast<MemoryLimiter*>(data);
  if (--limiter->functions > 0) return;
  limiter->store.reset();
  TellMemory(env, *limiter);
  delete limiter;
}

/// A callback that answers exhausted memory with an exception in JavaScript.
template <napi_value (*kCallback)(napi_env, napi_callback_info)>
napi_value Guarded(napi_env env, napi_callback_info info) {
  try {
    return kCallback(env, info);
  } catch (const std::bad_alloc&) {
    return Call<MemoryLimiter, 0>(env, info).state->exhausted.Call();
  }
}

/// Adds a native function to an object; `name` is what JavaScript shows it as. False if it failed.
bool AddFunction(napi_env env, napi_value functions, const char* property, std::string_view name,
                 napi_callback callback, MemoryLimiter* limiter) {
  napi_value function = nullptr;
  if (napi_create_function(env, name.data(), name.size(), callback, limiter, &function) !=
          napi_ok ||
      napi_add_finalizer(env, function, limiter, Release, nullptr, nullptr) != napi_ok) {
    return false;
  }
  ++limiter->functions;
  return napi_set_named_property(env, functions, property, function) == napi_ok;
}

/// The functions of a limiter, which own it from then on; null if that failed.
napi_value AddFunctions(napi_env env, std::unique_ptr<MemoryLimiter> owned) {
  napi_value functions = nullptr;
  if (napi_create_object(env, &functions) != napi_ok) return nullptr;
  MemoryLimiter* const limiter = owned.get();
  const auto add = [&](const char* property, napi_callback callback) {
    const char* const name = callback == Guarded<Check> ? "limiter" : property;
    const bool added = AddFunction(env, functions, property, name, callback, limiter);
    if (limiter->functions > 0) static_cast<void>(owned.release());
    return added;
  };
  const bool all = add("check", Guarded<Check>) && add("decide", Guarded<Decide>) &&
                   add("decideMany", Guarded<DecideMany>) && add("refund", Guarded<Refund>) &&
                   add("clear", Guarded<Clear>) && add("stats", Guarded<Stats>) &&
                   add("close", Guarded<Close>);
  return all ? functions : nullptr;
}

PolicyOptions ReadPolicy(napi_env env, napi_value options) {
  PolicyOptions policy;
  const std::span<double> windows = ReadDoubles(env, Get(env, options, "windows"));
  for (std::size_t i = 0; i + 1 < windows.size(); i += 2) {
    policy.windows.push_back(
        {static_cast<Micros>(windows[i]), static_cast<std::uint64_t>(windows[i + 1])});
  }
  policy.min_difference = static_cast<Micros>(ReadDouble(env, Get(env, options, "minDifference")));
  policy.count_blocked = ReadBool(env, Get(env, options, "countBlocked"));
  policy.algorithm = static_cast<Algorithm>(ReadDouble(env, Get(env, options, "algorithm")));
  policy.sets_max = ReadBool(env, Get(env, options, "setsMax"));
  for (const double length : ReadDoubles(env, Get(env, options, "blocks"))) {
    policy.blocks.push_back(static_cast<Micros>(length));
  }
  return policy;
}

/// Windows that begin at the epoch do so by the time of day as it is now; later changes of the
/// system's clock do not move them.
Micros EpochOffset(Algorithm algorithm, MonotonicClock& clock) {
  if (algorithm != Algorithm::kFixedWindow && algorithm != Algorithm::kSlidingWindowCounter)
    return 0;
  const auto time_of_day = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(time_of_day).count() - clock.Now();
}

napi_value Create(napi_env env, napi_callback_info info) {
  const Call<void, 2> call(env, info);
  const auto [options, keep] = call.arguments;
  auto limiter = std::make_unique<MemoryLimiter>();
  const auto borrow = [env, keep = keep](const char* name) {
    const napi_value value = Get(env, keep, name);
    return IsType(env, value, napi_function) ? Borrowed(env, value) : Borrowed();
  };
  limiter->refuse = borrow("refuse");
  limiter->closed = borrow("closed");
  limiter->exhausted = borrow("exhausted");
  limiter->call_back = borrow("callBack");
  limiter->evicted = borrow("evicted");
  limiter->clock = borrow("clock");
  const std::span<double> report = ReadDoubles(env, Get(env, keep, "report"));
  PolicyOptions policy = ReadPolicy(env, options);
  MemoryStoreOptions store;
  store.max_keys = static_cast<std::size_t>(ReadDouble(env, Get(env, options, "maxKeys")));
  // lib has checked all this: what is missing could not be read, for the thread is to end.
  if (report.empty() || policy.windows.empty() || store.max_keys == 0) return nullptr;

  limiter->report = report.data();
  limiter->uses.resize(policy.windows.size());
  limiter->secret = RandomSecret();
  store.secret = limiter->secret;
  store.clock_may_step_back = static_cast<bool>(limiter->clock);
  store.on_first_eviction = [state = limiter.get()] { state->has_evicted = true; };
  limiter->refunds_ask_time = policy.algorithm == Algorithm::kGcra;
  if (!limiter->clock) {
    limiter->epoch_offset = EpochOffset(policy.algorithm, limiter->monotonic_clock);
  }
  limiter->store = MemoryStore::Create(Policy(std::move(policy)), store);
  return AddFunctions(env, std::move(limiter));
}

}  // namespace

napi_value CreateMemoryLimiter(napi_env env, napi_callback_info info) {
  try {
    return Create(env, info);
  } catch (const std::exception& error) {
    napi_throw_error(env, "ERR_ROLLGATE_MEMORY", error.what());
    return nullptr;
  }
}

napi_value LiveLimiters(napi_env env, napi_callback_info) {
  return ToJs(env, static_cast<Micros>(live_limiters));
}

}  // namespace rollgate::binding
