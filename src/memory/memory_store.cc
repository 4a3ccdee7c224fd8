// Makes the store that a policy takes, for tests and benchmarks: those who have it by its
// interface.
#include "memory/memory_store.h"

#include <memory>

#include "memory/store_types.h"

namespace rollgate {

std::unique_ptr<Store> CreateMemoryStore(const Policy& policy, const MemoryStoreOptions& options) {
  return memory::WithMemoryStore<std::unique_ptr<Store>>(
      policy,
      [&]<class S>() -> std::unique_ptr<Store> { return std::make_unique<S>(policy, options); });
}

}  // namespace rollgate
