// The way from a call in JavaScript to a decision and back. Measured: a raw Node-API callback with
// its state in the data pointer costs half of a wrapped method, so all functions here are raw.
#include "binding/local_limiter.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "binding/decision_writer.h"
#include "binding/functions.h"
#include "binding/id_reader.h"
#include "binding/values.h"
#include "core/account_algorithms.h"

namespace rollgate::binding {
namespace {

std::atomic<std::int64_t> live_limiters{0};

/// Lets V8 know how much hangs on its small objects, so that it looks for dropped limiters in time.
void TellMemory(napi_env env, LocalLimiter& limiter) {
  const std::int64_t bytes = limiter.store ? limiter.bytes_to_tell(*limiter.store) : 0;
  if (bytes == limiter.bytes_told) return;
  std::int64_t total;
  napi_adjust_external_memory(env, bytes - limiter.bytes_told, &total);
  limiter.bytes_told = bytes;
}

void AttachNow(napi_env env, LocalLimiter& limiter) {
  if (!limiter.attach) return;
  limiter.attach(limiter);
  limiter.attach = nullptr;
  TellMemory(env, limiter);
}

/// Finds the store of a limiter that has none yet and is not closed. Before the first id is read,
/// as the store says what ids are reduced by.
inline void Attach(napi_env env, LocalLimiter& limiter) {
  if (!limiter.store) [[unlikely]] {
    AttachNow(env, limiter);
  }
}

/// What is due after a call that may have added ids.
inline void AfterAttempt(napi_env env, LocalLimiter& limiter) {
  if ((++limiter.calls & 0xfff) == 0) [[unlikely]] {
    TellMemory(env, limiter);
  }
  if (limiter.has_evicted) [[unlikely]] {
    limiter.has_evicted = false;
    if (!limiter.has_told_of_evictions || *limiter.observes_evictions != 0) limiter.evicted.Call();
    limiter.has_told_of_evictions = true;
  }
}

/// Reads the time and makes sure that the limiter is open; false with an exception pending
/// otherwise.
inline bool ReadTime(napi_env env, LocalLimiter& limiter, Micros& now) {
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
  Call<LocalLimiter, 2> call(env, info);
  LocalLimiter& limiter = *call.state;
  const napi_value id = call.arguments[0];
  if (call.count >= 2 && !IsType(env, call.arguments[1], napi_undefined)) {
    return limiter.call_back.Call(call.arguments);
  }
  Attach(env, limiter);
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
  const napi_value told = ToJs(env, CeilToMillis(time_left));
  if (*limiter.observes_decisions != 0) [[unlikely]] {
    limiter.decided.Call(std::array{id, told});
  }
  return told;
}

std::size_t DecisionLength(const LocalLimiter& limiter) {
  return binding::DecisionLength(limiter.uses.size());
}

napi_value Decide(napi_env env, napi_callback_info info) {
  Call<LocalLimiter, 4> call(env, info);
  LocalLimiter& limiter = *call.state;
  Attach(env, limiter);
  const napi_value id = call.arguments[0];
  Identity identity;
  if (!ReadIdentity(env, id, limiter.secret, identity)) return limiter.refuse.Call({&id, 1});
  // The id alone asks for an attempt of cost 1.
  const bool is_common = call.count == 1;
  const auto cost = is_common ? 1 : static_cast<std::uint64_t>(ReadDouble(env, call.arguments[1]));
  const bool records = is_common || ReadBool(env, call.arguments[2]);
  Micros now;
  if (!ReadTime(env, limiter, now)) return nullptr;
  if (call.count == 4) {
    limiter.store->SetMax(static_cast<std::uint64_t>(ReadDouble(env, call.arguments[3])), records);
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
  Call<LocalLimiter, 2> call(env, info);
  LocalLimiter& limiter = *call.state;
  Attach(env, limiter);
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
  Call<LocalLimiter, 4> call(env, info);
  LocalLimiter& limiter = *call.state;
  Attach(env, limiter);
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
  Call<LocalLimiter, 1> call(env, info);
  LocalLimiter& limiter = *call.state;
  Attach(env, limiter);
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
  Call<LocalLimiter, 0> call(env, info);
  LocalLimiter& limiter = *call.state;
  Attach(env, limiter);
  if (!limiter.store) return limiter.closed.Call();
  const StoreStats stats = limiter.store->stats();
  double* out = limiter.report;
  *out++ = static_cast<double>(stats.keys);
  *out++ = static_cast<double>(stats.allowed);
  *out++ = static_cast<double>(stats.blocked);
  *out++ = static_cast<double>(stats.evicted);
  *out++ = static_cast<double>(stats.bytes);
  return nullptr;
}

void LetGo(napi_env env, LocalLimiter& limiter) {
  limiter.attach = nullptr;
  limiter.store.reset();
  TellMemory(env, limiter);
}

napi_value Close(napi_env env, napi_callback_info info) {
  const Call<LocalLimiter, 0> call(env, info);
  LetGo(env, *call.state);
  return nullptr;
}

/// A callback that answers what the store throws with an exception in JavaScript.
template <napi_value (*kCallback)(napi_env, napi_callback_info)>
napi_value Answered(napi_env env, napi_callback_info info) {
  try {
    return kCallback(env, info);
  } catch (const SharedError& error) {
    return Fail(env, Call<LocalLimiter, 0>(env, info).state->failed, error);
  }
}

template <napi_value (*kCallback)(napi_env, napi_callback_info)>
constexpr napi_callback kGuarded = Guarded<LocalLimiter, Answered<kCallback>>;

constexpr std::array kFunctions{
    Function{"check", kGuarded<Check>, "limiter"},
    Function{"decide", kGuarded<Decide>},
    Function{"decideMany", kGuarded<DecideMany>},
    Function{"refund", kGuarded<Refund>},
    Function{"clear", kGuarded<Clear>},
    Function{"stats", kGuarded<Stats>},
    Function{"close", kGuarded<Close>},
};

/// Windows that begin at the epoch do so by the time of day as it is now; later changes of the
/// system's clock do not move them.
Micros EpochOffset(MonotonicClock& clock) {
  const auto time_of_day = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(time_of_day).count() - clock.Now();
}

}  // namespace

LocalLimiter::LocalLimiter() {
  ++live_limiters;
}

LocalLimiter::~LocalLimiter() {
  --live_limiters;
}

void Dispose(napi_env env, LocalLimiter& limiter) {
  LetGo(env, limiter);
}

std::unique_ptr<LocalLimiter> ReadLocalLimiter(napi_env env, napi_value keep,
                                               const Policy& policy) {
  const std::span<double> report = ReadDoubles(env, Get(env, keep, "report"));
  const std::uint8_t* decisions = ReadByte(env, Get(env, keep, "observesDecisions"));
  const std::uint8_t* evictions = ReadByte(env, Get(env, keep, "observesEvictions"));
  if (report.empty() || decisions == nullptr || evictions == nullptr) return nullptr;
  auto limiter = std::make_unique<LocalLimiter>();
  limiter->report = report.data();
  limiter->observes_decisions = decisions;
  limiter->observes_evictions = evictions;
  const auto borrow = [env, keep](const char* name) { return Borrow(env, keep, name); };
  limiter->refuse = borrow("refuse");
  limiter->closed = borrow("closed");
  limiter->exhausted = borrow("exhausted");
  limiter->failed = borrow("failed");
  limiter->call_back = borrow("callBack");
  limiter->evicted = borrow("evicted");
  limiter->decided = borrow("decided");
  limiter->clock = borrow("clock");
  const AlgorithmTraits traits = TraitsOf(policy);
  limiter->uses.resize(policy.windows().size());
  limiter->refunds_ask_time = traits.refunds_ask_time;
  if (!limiter->clock && traits.aligns_to_epoch) {
    limiter->epoch_offset = EpochOffset(limiter->monotonic_clock);
  }
  return limiter;
}

napi_value MakeLocalFunctions(napi_env env, std::unique_ptr<LocalLimiter> limiter) {
  return MakeFunctions(env, std::move(limiter), kFunctions);
}

napi_value Fail(napi_env env, const Borrowed& failed, const SharedError& error) {
  napi_value message = nullptr;
  if (napi_create_string_utf8(env, error.what(), NAPI_AUTO_LENGTH, &message) != napi_ok) {
    return nullptr;
  }
  return failed.Call(std::array{ToJs(env, static_cast<Micros>(error.kind())), message});
}

napi_value LiveLimiters(napi_env env, napi_callback_info) {
  return ToJs(env, static_cast<Micros>(live_limiters));
}

}  // namespace rollgate::binding
