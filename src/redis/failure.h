// Why a call to Redis came to nothing.
#pragma once

#include <string>
#include <utility>

namespace rollgate::redis {

struct Failure {
  enum class Kind {
    kTimeout,      ///< no answer within the command's time
    kUnreachable,  ///< no connection, or it was lost before the answer came
    kReply,        ///< the server answered with an error, or with what makes no sense
    kClosed,       ///< the client was closed
  };
  Kind kind;
  std::string message;
};

/// An error reply. Which it is, its text tells; that is read in one place, lib/redis/failures.js.
inline Failure FromErrorReply(std::string message) {
  return {Failure::Kind::kReply, std::move(message)};
}

}  // namespace rollgate::redis
