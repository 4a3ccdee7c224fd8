// What a Redis client gets from JavaScript and gives back: its options, and replies.
#pragma once

#include <napi.h>

#include <string>
#include <vector>

#include "redis/client.h"

struct redisReply;

namespace rollgate::binding {

/// Reads the `options` of createRedisClient, which lib has checked. Throws std::invalid_argument
/// where a certificate or key makes no sense.
redis::ClientOptions ReadClientOptions(const Napi::Object& from);

/// A reply that outlives the buffer it came in.
struct Reply {
  int type;  ///< as hiredis names them
  long long integer = 0;
  std::string text{};
  std::vector<Reply> elements{};

  static Reply Copy(const redisReply& from);
};

/// Strings, numbers, null and arrays of them.
Napi::Value ToJs(Napi::Env env, const Reply& reply);

}  // namespace rollgate::binding
