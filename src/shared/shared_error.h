// Errors of shared limiters.
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
    kFile,      ///< the file is not a usable region: foreign, truncated, another version or user
    kSystem,    ///< the system refused: no space, no permission, no such directory
    kFull,      ///< too many limiters are attached
    kCorrupt,   ///< the region holds invalid values
  };

  SharedError(Kind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}

  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

[[noreturn]] ROLLGATE_COLD inline void ThrowCorrupt(const char* what) {
  throw SharedError(SharedError::Kind::kCorrupt, std::string("the region is corrupt: ") + what);
}

}  // namespace rollgate
