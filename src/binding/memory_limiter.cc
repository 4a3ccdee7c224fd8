// Creates a limiter with a store in memory.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "binding/addon.h"
#include "binding/local_limiter.h"
#include "binding/values.h"
#include "memory/memory_store.h"
#include "memory/table_store.h"

namespace rollgate::binding {
namespace {

/// V8 collects all garbage, a pause of milliseconds, whenever the reported memory has grown by
/// 64 MB. So a limiter reports at most half of that.
std::int64_t BytesToTell(const Store& store) {
  constexpr std::size_t kMostTold = std::size_t{32} << 20;
  return static_cast<std::int64_t>(std::min(store.stats().bytes, kMostTold));
}

}  // namespace

Napi::Value CreateMemoryLimiter(const Napi::CallbackInfo& info) {
  const auto options = info[0].As<Napi::Object>();
  auto limiter = std::make_unique<LocalLimiter>(info[1].As<Napi::Object>(),
                                                ReadPolicy(info.Env(), options.Get("policy")));
  const Policy policy(limiter->policy);
  limiter->secret = RandomSecret();
  limiter->bytes_to_tell = BytesToTell;
  limiter->grows_to_record = LimitToRecordUnder(policy);
  MemoryStoreOptions store;
  store.max_keys = static_cast<std::size_t>(ReadDouble(info.Env(), options.Get("maxKeys")));
  store.secret = limiter->secret;
  store.clock_may_step_back = !limiter->clock.IsEmpty();
  store.on_eviction = [state = limiter.get()] { state->has_evicted = true; };
  return memory::WithMemoryStore<Napi::Value>(policy, [&]<class S>() {
    limiter->Use<S>(std::make_unique<S>(policy, store));
    limiter->set_limits = [store](LocalLimiter& limited, const PolicyOptions& limits, Micros now) {
      const auto& old = static_cast<const MemoryStore&>(*limited.store);
      limited.Use<S>(WithLimits(old, limits, store, now));
    };
    return MakeLocalFunctions<S>(std::move(limiter));
  });
}

}  // namespace rollgate::binding
