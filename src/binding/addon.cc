// The module that Node loads, once for each environment.
#include "binding/addon.h"

#include <array>

#include "binding/functions.h"
#include "binding/host_clocks.h"

namespace rollgate::binding {
namespace {

napi_value BootMs(napi_env env, napi_callback_info) {
  napi_value result = nullptr;
  napi_create_double(env, static_cast<double>(HostClocks::Nanos()) / 1e6, &result);
  return result;
}

constexpr std::array kFunctions{
    Function{"bootMs", BootMs},
    Function{"createMemoryLimiter", Guarded<CreateMemoryLimiter, ThrowInJs>},
    Function{"createPortableLimiter", Guarded<CreatePortableLimiter, ThrowInJs>},
    Function{"createHeldCounts", Guarded<CreateHeldCounts, ThrowInJs>},
    Function{"liveLimiters", Guarded<LiveLimiters, ThrowInJs>},
#ifdef ROLLGATE_HAS_REDIS
    Function{"createRedisClient", Guarded<CreateRedisClient, ThrowInJs>},
#endif
#ifdef ROLLGATE_HAS_SHARED
    Function{"createSharedLimiter", Guarded<CreateSharedLimiter, ThrowInJs>},
    Function{"createSharedSlots", Guarded<CreateSharedSlots, ThrowInJs>},
    Function{"unlinkShared", Guarded<UnlinkShared, ThrowInJs>},
#endif
};

Napi::Object Init(Napi::Env env, Napi::Object) {
  return MakeFunctions(env, nullptr, kFunctions);
}

}  // namespace

NODE_API_MODULE(NODE_GYP_MODULE_NAME, Init)

}  // namespace rollgate::binding
