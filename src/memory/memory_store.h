// The store in memory.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "core/identity.h"
#include "core/policy.h"
#include "core/snapshot.h"
#include "core/store.h"
#include "memory/manual_blocks.h"

namespace rollgate {

struct MemoryStoreOptions {
  std::size_t max_keys = 1'000'000;  ///< >= 1; a full store evicts the id nearest to expiry
  Secret secret;                     ///< random words
  /// Whether the clock may step back, so that ids are forgotten only to make room.
  bool clock_may_step_back = false;
  std::function<void()> on_eviction;  ///< must not call the store, nor throw
};

/// A Store whose ids another one with other limits can take over.
class MemoryStore : public Store {
 public:
  /// Raises kept_actions and kept_for in `limits` to what a successor needs to take over these ids.
  virtual void Keep(PolicyOptions& limits) const = 0;

  /// Adds all ids to `other`, which is empty and has a policy of the same shape: as many windows,
  /// the same algorithm, as weighted. Throws std::bad_alloc and leaves this store as it is.
  virtual void CopyTo(MemoryStore& other, Micros now) const = 0;

  /// Adds an id that is not there.
  virtual void Add(const Identity& id, const Snapshot& snapshot, Micros now) = 0;

  /// What is not of one id.
  struct Common {
    Generation last_generation;
    Micros forgotten_until;
    memory::ManualBlocks& manual_blocks;
    std::size_t held_twice;  ///< ids that have recorded something and are blocked by a call
  };
  virtual void TakeOver(const Common& common) = 0;
};

/// Owned by one thread.
std::unique_ptr<MemoryStore> CreateMemoryStore(const Policy& policy,
                                               const MemoryStoreOptions& options);

/// A store of the same ids with other limits of the same shape: see CopyTo.
std::unique_ptr<MemoryStore> WithLimits(const MemoryStore& store, PolicyOptions limits,
                                        const MemoryStoreOptions& options, Micros now);

}  // namespace rollgate
