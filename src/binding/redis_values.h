// The options and the replies of a Redis client as JavaScript values.
#pragma once

#include <napi.h>

#include <string>
#include <vector>

#include "redis/client.h"

struct redisReply;

namespace rollgate::binding {

/// Reads the `options` of createRedisClient, which lib has checked. Throws std::invalid_argument if
/// a certificate or key is invalid.
redis::ClientOptions ReadClientOptions(const Napi::Object& from);

/// A copy of a reply, which does not depend on hiredis's buffers.
struct Reply {
  int type;  ///< REDIS_REPLY_*
  long long integer = 0;
  std::string text{};
  std::vector<Reply> elements{};

  static Reply Copy(const redisReply& from);
};

/// Strings, numbers, null and arrays of them.
Napi::Value ToJs(Napi::Env env, const Reply& reply);

}  // namespace rollgate::binding
