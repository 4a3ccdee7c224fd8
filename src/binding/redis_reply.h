// Replies of Redis on their way to JavaScript.
#pragma once

#include <node_api.h>

#include <string>
#include <vector>

struct redisReply;

namespace rollgate::binding {

/// A reply that outlives the buffer it came in.
struct Reply {
  int type;  ///< as hiredis names them
  long long integer = 0;
  std::string text{};
  std::vector<Reply> elements{};

  static Reply Copy(const redisReply& from);
};

/// Strings, numbers, null and arrays of them.
napi_value ToJs(napi_env env, const Reply& reply);

}  // namespace rollgate::binding
