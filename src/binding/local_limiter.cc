// What a limiter borrows from JavaScript, and what V8 is told of it.
#include "binding/local_limiter.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>

#include "binding/values.h"
#include "core/algorithms.h"

namespace rollgate::binding {
namespace {

std::atomic<std::int64_t> live_limiters{0};

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
  limiter.attach = nullptr;
  limiter.store.reset();
  TellMemory(env, limiter);
}

void TellMemory(napi_env env, LocalLimiter& limiter) {
  const std::int64_t bytes = limiter.store ? limiter.bytes_to_tell(*limiter.store) : 0;
  if (bytes == limiter.bytes_told) return;
  std::int64_t total;
  napi_adjust_external_memory(env, bytes - limiter.bytes_told, &total);
  limiter.bytes_told = bytes;
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
