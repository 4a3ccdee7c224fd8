// Creates a limiter that attaches to its region with the first call, so that a constructor does no
// I/O.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "binding/addon.h"
#include "binding/local_limiter.h"
#include "binding/values.h"
#include "shared/region_store.h"
#include "shared/shared_error.h"
#include "shared/shared_store.h"

namespace rollgate::binding {
namespace {

/// A region is not memory of this process. But a limiter takes one of the region's few entries, so
/// unused limiters must be collected in time.
std::int64_t BytesToTell(const Store&) {
  return std::int64_t{128} << 10;
}

}  // namespace

Napi::Value CreateSharedLimiter(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto options = info[0].As<Napi::Object>();
  auto limiter = std::make_unique<LocalLimiter>(info[1].As<Napi::Object>(),
                                                ReadPolicy(env, options.Get("policy")));
  const Policy policy = Policy(limiter->policy).ThatVaries();
  limiter->bytes_to_tell = BytesToTell;
  SharedStoreOptions store;
  store.name = ReadText(env, options.Get("name"));
  store.directory = ReadText(env, options.Get("directory"));
  store.max_keys = static_cast<std::size_t>(ReadDouble(env, options.Get("maxKeys")));
  if (!limiter->clock.IsEmpty()) {
    store.clock = SharedClock::kOwn;
  } else if (HostClocks::StopsInSleep()) {
    store.clock = SharedClock::kStopsInSleep;
  }
  store.on_eviction = [state = limiter.get()] { state->has_evicted = true; };
  store.room = static_cast<std::uint64_t>(ReadDouble(env, options.Get("room")));
  const shared::LogForm form = shared::LogFormFor(policy, store.room);
  return shared::WithSharedStore<Napi::Value>(policy, form, [&]<class S>() {
    limiter->attach = [options = store](LocalLimiter& attached) {
      auto found = SharedStore::Attach(Policy(attached.policy), options);
      attached.secret = found->secret();
      attached.Align(found->alignment());
      attached.Use<S>(std::move(found));
    };
    limiter->set_limits = [store](LocalLimiter& limited, const PolicyOptions& limits, Micros) {
      limited.expected = nullptr;
      std::unique_ptr<SharedStore> attached(static_cast<SharedStore*>(limited.store.release()));
      try {
        limited.Use<S>(SharedStore::WithLimits(attached, Policy(limits), store));
      } catch (...) {
        // The limits do not fit, or there is no memory.
        if (attached) limited.Use<S>(std::move(attached));
        throw;
      }
    };
    return MakeLocalFunctions<S>(std::move(limiter));
  });
}

Napi::Value UnlinkShared(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  try {
    return Napi::Boolean::New(
        env, rollgate::UnlinkShared(ReadText(env, info[0]), ReadText(env, info[1])));
  } catch (const SharedError& error) {
    const napi_value kind = Napi::Number::New(env, static_cast<double>(error.kind()));
    return info[2].As<Napi::Function>().Call({kind, Napi::String::New(env, error.what())});
  }
}

}  // namespace rollgate::binding
