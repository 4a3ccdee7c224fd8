// Sorts error replies.
#include "redis/failure.h"

#include <string_view>
#include <utility>

namespace rollgate::redis {

Failure FromErrorReply(std::string message) {
  const std::string_view text(message);
  const bool is_auth = text.starts_with("NOAUTH") || text.starts_with("WRONGPASS") ||
                       text.starts_with("NOPERM") || text.starts_with("ERR invalid password") ||
                       text.starts_with("ERR AUTH ") || text.starts_with("ERR Client sent AUTH") ||
                       text.starts_with("ERR Protocol error: unauthenticated");
  return {is_auth ? Failure::Kind::kAuth : Failure::Kind::kReply, std::move(message)};
}

}  // namespace rollgate::redis
