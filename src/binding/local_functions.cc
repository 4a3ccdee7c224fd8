// What a limiter does now and then.
#include "binding/local_functions.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rollgate::binding {
namespace {

std::size_t DecisionLength(const LocalLimiter& limiter) {
  return binding::DecisionLength(limiter.uses.size());
}

}  // namespace

void AttachNow(napi_env env, LocalLimiter& limiter) {
  if (!limiter.attach) return;
  limiter.attach(limiter);
  limiter.attach = nullptr;
  TellMemory(env, limiter);
}

bool AskClock(napi_env env, LocalLimiter& limiter, Micros& now) {
  const napi_value result = limiter.clock.Call();
  double micros;
  if (result == nullptr || napi_get_value_double(env, result, &micros) != napi_ok) return false;
  constexpr auto kBound = static_cast<double>(kLongest);
  now = static_cast<Micros>(std::clamp(micros, -kBound, kBound));
  return true;
}

void TellOfEvictions(LocalLimiter& limiter) {
  limiter.has_evicted = false;
  if (!limiter.has_told_of_evictions || *limiter.observes_evictions != 0) limiter.evicted.Call();
  limiter.has_told_of_evictions = true;
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

napi_value Close(napi_env env, napi_callback_info info) {
  const Call<LocalLimiter, 0> call(env, info);
  Dispose(env, *call.state);
  return nullptr;
}

}  // namespace rollgate::binding
