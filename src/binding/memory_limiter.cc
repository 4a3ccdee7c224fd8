// The way from a call in JavaScript to a decision and back. Measured: a raw Node-API callback with
// its state in the data pointer costs half of a wrapped method, so all functions here are raw.
#include "binding/memory_limiter.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
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
    now = limiter.monotonic_clock.Now();
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
    napi_value undefined;
    napi_get_undefined(env, &undefined);
    return limiter.call_back.Call(std::array{undefined, id});
  }
  Micros now;
  if (!ReadTime(env, limiter, now)) return nullptr;
  const Micros time_left = limiter.store->Check(identity, now);
  AfterAttempt(env, limiter);
  return ToJs(env, CeilToMillis(time_left));
}

/// Numbers of one decision: whether count (1) or minDifference (2) or both block it; time left,
/// actions left, reset in and wait; when it was recorded, in us, and the incarnation; then for each
/// window what is used and its reset in. Durations in ms.
constexpr std::size_t kDecisionHead = 7;

std::size_t DecisionLength(const MemoryLimiter& limiter) {
  return kDecisionHead + 2 * limiter.uses.size();
}

void WriteDecision(const Decision& decision, double* out) {
  const auto millis = [](Micros duration) { return static_cast<double>(CeilToMillis(duration)); };
  *out++ = (decision.verdict.blocked_by_count ? 1 : 0) +
           (decision.verdict.blocked_by_min_difference ? 2 : 0);
  *out++ = millis(decision.time_left);
  *out++ = static_cast<double>(decision.actions_left);
  *out++ = millis(decision.reset_in);
  *out++ = millis(decision.wait);
  *out++ = static_cast<double>(decision.verdict.at);
  *out++ = decision.incarnation;
  for (const WindowUse& use : decision.windows) {
    *out++ = static_cast<double>(use.used);
    *out++ = millis(use.reset_in);
  }
}

napi_value Decide(napi_env env, napi_callback_info info) {
  Call<MemoryLimiter, 3> call(env, info);
  MemoryLimiter& limiter = *call.state;
  const napi_value id = call.arguments[0];
  Identity identity;
  if (!ReadIdentity(env, id, limiter.secret, identity)) return limiter.refuse.Call({&id, 1});
  const auto cost = static_cast<std::uint64_t>(ReadDouble(env, call.arguments[1]));
  bool records = false;
  napi_get_value_bool(env, call.arguments[2], &records);
  Micros now;
  if (!ReadTime(env, limiter, now)) return nullptr;
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
    napi_open_handle_scope(env, &scope);
    napi_value id;
    napi_get_element(env, call.arguments[0], i, &id);
    Identity identity;
    const bool is_id = ReadIdentity(env, id, limiter.secret, identity);
    if (!is_id) limiter.refuse.Call({&id, 1});
    napi_close_handle_scope(env, scope);
    if (!is_id) return nullptr;
    identities.push_back(identity);
  }
  Micros now;
  if (!ReadTime(env, limiter, now)) return nullptr;
  void* out = nullptr;
  napi_get_typedarray_info(env, call.arguments[1], nullptr, nullptr, &out, nullptr, nullptr);
  Decision decision;
  decision.windows = limiter.uses;
  for (std::uint32_t i = 0; i < count; ++i) {
    limiter.store->Attempt(identities[i], now, 1, decision);
    WriteDecision(decision, static_cast<double*>(out) + i * DecisionLength(limiter));
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
  receipt.incarnation = static_cast<std::uint16_t>(ReadDouble(env, call.arguments[3]));
  return ToJs(env, is_id && limiter.store->Refund(identity, receipt));
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

/// `name` is what JavaScript shows the function as.
void AddFunction(Napi::Object functions, const char* property, std::string_view name,
                 napi_callback callback, MemoryLimiter* limiter) {
  const Napi::Env env = functions.Env();
  napi_value function;
  napi_create_function(env, name.data(), name.size(), callback, limiter, &function);
  napi_add_finalizer(env, function, limiter, Release, nullptr, nullptr);
  ++limiter->functions;
  functions.Set(property, function);
}

Policy ReadPolicy(const Napi::Object& options) {
  PolicyOptions policy;
  const auto windows = options.Get("windows").As<Napi::Float64Array>();
  for (std::size_t i = 0; i + 1 < windows.ElementLength(); i += 2) {
    policy.windows.push_back(
        {static_cast<Micros>(windows[i]), static_cast<std::uint64_t>(windows[i + 1])});
  }
  policy.min_difference =
      static_cast<Micros>(options.Get("minDifference").As<Napi::Number>().DoubleValue());
  policy.count_blocked = options.Get("countBlocked").As<Napi::Boolean>();
  return Policy(std::move(policy));
}

}  // namespace

Napi::Value CreateMemoryLimiter(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto options = info[0].As<Napi::Object>();
  const auto keep = info[1].As<Napi::Object>();

  auto limiter = std::make_unique<MemoryLimiter>();
  const auto borrow = [&](const char* name) {
    const Napi::Value value = keep.Get(name);
    return value.IsUndefined() ? Borrowed() : Borrowed(env, value);
  };
  limiter->refuse = borrow("refuse");
  limiter->closed = borrow("closed");
  limiter->exhausted = borrow("exhausted");
  limiter->call_back = borrow("callBack");
  limiter->evicted = borrow("evicted");
  limiter->clock = borrow("clock");
  limiter->report = keep.Get("report").As<Napi::Float64Array>().Data();
  limiter->secret = RandomSecret();

  const Policy policy = ReadPolicy(options);
  limiter->uses.resize(policy.windows().size());
  MemoryStoreOptions store;
  store.max_keys =
      static_cast<std::size_t>(options.Get("maxKeys").As<Napi::Number>().DoubleValue());
  store.secret = limiter->secret;
  store.clock_may_step_back = static_cast<bool>(limiter->clock);
  store.on_first_eviction = [state = limiter.get()] { state->has_evicted = true; };
  limiter->store = MemoryStore::Create(policy, store);

  auto functions = Napi::Object::New(env);
  MemoryLimiter* state = limiter.release();  // from here on the functions own it
  AddFunction(functions, "check", "limiter", Guarded<Check>, state);
  AddFunction(functions, "decide", "decide", Guarded<Decide>, state);
  AddFunction(functions, "decideMany", "decideMany", Guarded<DecideMany>, state);
  AddFunction(functions, "refund", "refund", Guarded<Refund>, state);
  AddFunction(functions, "clear", "clear", Guarded<Clear>, state);
  AddFunction(functions, "stats", "stats", Guarded<Stats>, state);
  AddFunction(functions, "close", "close", Guarded<Close>, state);
  return functions;
}

Napi::Value LiveLimiters(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(live_limiters));
}

}  // namespace rollgate::binding
