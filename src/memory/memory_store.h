// The limiter in memory: one policy applied to every id of one table.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "core/identity.h"
#include "core/policy.h"
#include "core/store.h"

namespace rollgate {

struct MemoryStoreOptions {
  std::size_t max_keys = 1'000'000;  ///< >= 1; when full, the id nearest to expiry is dropped
  Secret secret;                     ///< random words, see Secret
  /// Whether the caller's clock may step back. Then what an expired id did may matter again, so ids
  /// are forgotten only to make room where there are max_keys.
  bool clock_may_step_back = false;
  std::function<void()> on_eviction;  ///< must not call the store, nor throw
};

/// Owned by one thread.
std::unique_ptr<Store> CreateMemoryStore(const Policy& policy, const MemoryStoreOptions& options);

}  // namespace rollgate
