// Why a call to Redis came to nothing.
#pragma once

#include <string>

namespace rollgate::redis {

struct Failure {
  enum class Kind {
    kTimeout,      ///< no answer within the command's time
    kUnreachable,  ///< no connection, or it was lost before the answer came
    kAuth,         ///< the server wants another name or password
    kReply,        ///< the server answered with an error, or with what makes no sense
    kClosed,       ///< the client was closed
  };
  Kind kind;
  std::string message;
};

/// What kind of failure an error reply is, by its first word.
Failure FromErrorReply(std::string message);

}  // namespace rollgate::redis
