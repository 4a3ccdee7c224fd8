// Makes a limiter with a store of its own.
#include "binding/memory_limiter.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "binding/functions.h"
#include "binding/id_reader.h"
#include "binding/local_functions.h"
#include "binding/local_limiter.h"
#include "binding/policy_reader.h"
#include "binding/values.h"
#include "memory/memory_store.h"
#include "memory/store_types.h"

namespace rollgate::binding {
namespace {

/// V8 collects all garbage whenever what it knows of has grown by 64 MB, a pause of milliseconds;
/// so one limiter does not tell of more than half of that.
std::int64_t BytesToTell(const Store& store) {
  constexpr std::size_t kMostTold = std::size_t{32} << 20;
  return static_cast<std::int64_t>(std::min(store.stats().bytes, kMostTold));
}

napi_value Create(napi_env env, napi_callback_info info) {
  const Call<void, 2> call(env, info);
  const auto [options, keep] = call.arguments;
  PolicyOptions policy_options = ReadPolicy(env, options);
  MemoryStoreOptions store;
  store.max_keys = static_cast<std::size_t>(ReadDouble(env, Get(env, options, "maxKeys")));
  // lib has checked all this: what is missing could not be read, for the thread is to end.
  if (policy_options.windows.empty() || store.max_keys == 0) return nullptr;
  const Policy policy(std::move(policy_options));
  std::unique_ptr<LocalLimiter> limiter = ReadLocalLimiter(env, keep, policy);
  if (!limiter) return nullptr;

  limiter->secret = RandomSecret();
  limiter->bytes_to_tell = BytesToTell;
  store.secret = limiter->secret;
  store.clock_may_step_back = static_cast<bool>(limiter->clock);
  store.on_eviction = [state = limiter.get()] { state->has_evicted = true; };
  return memory::WithMemoryStore<napi_value>(policy, [&]<class S>() -> napi_value {
    limiter->store = std::make_unique<S>(policy, store);
    return MakeLocalFunctions<S>(env, std::move(limiter));
  });
}

}  // namespace

napi_value CreateMemoryLimiter(napi_env env, napi_callback_info info) {
  return Creating<Create>(env, info);
}

}  // namespace rollgate::binding
