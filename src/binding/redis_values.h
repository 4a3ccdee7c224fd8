// The options and the replies of a Redis client as JavaScript values.
#pragma once

#include <napi.h>

#include <vector>

#include "redis/client.h"

namespace rollgate::binding {

/// Reads the `options` of createRedisClient, which lib has checked.
redis::ClientOptions ReadClientOptions(const Napi::Object& from);

redis::Route ReadRoute(const Napi::Object& from);
/// From [first, last, node] for each.
std::vector<redis::Nodes::Range> ReadRanges(const Napi::Array& from);

/// Strings, numbers, null and arrays of them.
Napi::Value ToJs(Napi::Env env, const redis::Reply& reply);

}  // namespace rollgate::binding
