// How a shared limiter fails.
#pragma once

#include <stdexcept>
#include <string>

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

}  // namespace rollgate
