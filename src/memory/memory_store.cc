// Creates stores in memory, and moves the ids of one to a store with other limits.
#include "memory/memory_store.h"

#include <utility>

#include "memory/table_store.h"

namespace rollgate {

std::unique_ptr<MemoryStore> CreateMemoryStore(const Policy& policy,
                                               const MemoryStoreOptions& options) {
  return memory::WithMemoryStore<std::unique_ptr<MemoryStore>>(
      policy, [&]<class S>() -> std::unique_ptr<MemoryStore> {
        return std::make_unique<S>(policy, options);
      });
}

std::unique_ptr<MemoryStore> WithLimits(const MemoryStore& store, PolicyOptions limits,
                                        const MemoryStoreOptions& options, Micros now) {
  store.Keep(limits);
  std::unique_ptr<MemoryStore> made = CreateMemoryStore(Policy(std::move(limits)), options);
  store.CopyTo(*made, now);
  return made;
}

}  // namespace rollgate
