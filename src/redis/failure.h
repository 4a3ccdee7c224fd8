// Why a call to Redis failed.
#pragma once

#include <string>
#include <utility>

namespace rollgate::redis {

struct Failure {
  enum class Kind {
    kTimeout,      ///< no reply within the command's time
    kUnreachable,  ///< no connection, or it was lost before the reply
    kReply,        ///< the server sent an error, or an invalid reply
    kClosed,       ///< the client was closed
  };
  Kind kind;
  std::string message;
};

/// An error reply. lib/redis/failures.js finds its kind in the message.
inline Failure FromErrorReply(std::string message) {
  return {Failure::Kind::kReply, std::move(message)};
}

}  // namespace rollgate::redis
