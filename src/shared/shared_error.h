// How a shared limiter fails.
#pragma once

#include <stdexcept>
#include <string>

#include "core/inlining.h"

namespace rollgate {

/// No decision could be made; nothing was recorded.
class SharedError : public std::runtime_error {
 public:
  enum class Kind {
    kMismatch,  ///< the region has other limits
    kFile,      ///< the file is no region of ours: foreign, truncated, another version or user
    kSystem,    ///< the system refused: no space, no permission, no such directory
    kFull,      ///< as many limiters are attached as there is room for
    kCorrupt,   ///< what the region holds makes no sense
  };

  SharedError(Kind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}

  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

/// Throws a SharedError: what is said of the region makes no sense.
[[noreturn]] ROLLGATE_COLD inline void ThrowCorrupt(const char* what) {
  throw SharedError(SharedError::Kind::kCorrupt, std::string("the region is corrupt: ") + what);
}

}  // namespace rollgate
