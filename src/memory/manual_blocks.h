// The ids that were blocked by a call, whatever the policy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "core/identity.h"
#include "core/time.h"

namespace rollgate::memory {

/// Usually there are none, so that a check asks no more than IsEmpty().
class ManualBlocks {
 public:
  explicit ManualBlocks(const Secret& secret) : ends_(0, Hash{secret}) {}

  bool IsEmpty() const { return ends_.empty(); }

  /// kLongAgo if the id is not blocked.
  Micros EndOf(const Identity& id) const {
    const auto found = ends_.find(id);
    return found == ends_.end() ? kLongAgo : found->second;
  }

  /// Blocks until `end`, or later if it was; kLongAgo ends the block. Throws std::bad_alloc.
  void Set(const Identity& id, Micros now, Micros end) {
    if (end == kLongAgo) {
      ends_.erase(id);
      return;
    }
    // Each call forgets more than it adds, if there is anything to forget.
    if (ends_.size() >= next_sweep_) {
      std::erase_if(ends_, [&](const auto& one) { return one.second <= now; });
      next_sweep_ = 2 * ends_.size() + 64;
    }
    Micros& until = ends_.try_emplace(id, kLongAgo).first->second;
    until = std::max(until, end);
  }

  void Clear() { ends_.clear(); }

 private:
  struct Hash {
    Secret secret;
    std::size_t operator()(const Identity& id) const { return HashOf(id, secret); }
  };

  std::unordered_map<Identity, Micros, Hash> ends_;
  std::size_t next_sweep_ = 64;
};

}  // namespace rollgate::memory
