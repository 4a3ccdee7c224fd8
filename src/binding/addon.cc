// What the addon exports.
#include <node_api.h>

#include "binding/local_limiter.h"
#include "binding/memory_limiter.h"
#include "binding/portable_limiter.h"
#ifdef ROLLGATE_HAS_REDIS
#include "binding/redis_client.h"
#endif
#ifdef ROLLGATE_HAS_SHARED
#include "binding/shared_limiter.h"
#endif

namespace {

bool Export(napi_env env, napi_value exports, const char* name, napi_callback callback) {
  napi_value function = nullptr;
  return napi_create_function(env, name, NAPI_AUTO_LENGTH, callback, nullptr, &function) ==
             napi_ok &&
         napi_set_named_property(env, exports, name, function) == napi_ok;
}

}  // namespace

NAPI_MODULE_INIT() {
  using rollgate::binding::CreateMemoryLimiter;
  using rollgate::binding::CreatePortableLimiter;
  using rollgate::binding::LiveLimiters;
  bool all = Export(env, exports, "createMemoryLimiter", CreateMemoryLimiter) &&
             Export(env, exports, "createPortableLimiter", CreatePortableLimiter) &&
             Export(env, exports, "liveLimiters", LiveLimiters);
#ifdef ROLLGATE_HAS_REDIS
  napi_value has_tls = nullptr;
  all = all && Export(env, exports, "createRedisClient", rollgate::binding::CreateRedisClient) &&
        napi_get_boolean(env, rollgate::binding::kRedisHasTls, &has_tls) == napi_ok &&
        napi_set_named_property(env, exports, "redisHasTls", has_tls) == napi_ok;
#endif
#ifdef ROLLGATE_HAS_SHARED
  all = all &&
        Export(env, exports, "createSharedLimiter", rollgate::binding::CreateSharedLimiter) &&
        Export(env, exports, "unlinkShared", rollgate::binding::UnlinkShared);
#endif
  return all ? exports : nullptr;
}
