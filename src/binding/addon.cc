// The module that Node loads, once for each environment.
#include "binding/addon.h"

#include <array>

#include "binding/functions.h"

namespace rollgate::binding {
namespace {

constexpr std::array kFunctions{
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
