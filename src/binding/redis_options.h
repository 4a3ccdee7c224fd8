// The options of a Redis client, which lib has checked.
#pragma once

#include <node_api.h>

#include "redis/client.h"

namespace rollgate::binding {

/// Reads the `options` of createRedisClient. What cannot be read, for the thread is to end, is
/// empty. Throws std::invalid_argument where a certificate or key makes no sense.
redis::ClientOptions ReadClientOptions(napi_env env, napi_value from);

}  // namespace rollgate::binding
