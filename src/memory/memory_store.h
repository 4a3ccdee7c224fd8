// The store in memory.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "core/identity.h"
#include "core/policy.h"
#include "core/store.h"

namespace rollgate {

struct MemoryStoreOptions {
  std::size_t max_keys = 1'000'000;  ///< >= 1; a full store evicts the id nearest to expiry
  Secret secret;                     ///< random words
  /// Whether the clock may step back, so that ids are forgotten only to make room.
  bool clock_may_step_back = false;
  std::function<void()> on_eviction;  ///< must not call the store, nor throw
};

/// Owned by one thread.
std::unique_ptr<Store> CreateMemoryStore(const Policy& policy, const MemoryStoreOptions& options);

}  // namespace rollgate
