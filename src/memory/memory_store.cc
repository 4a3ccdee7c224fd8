// Creates a store behind its interface, for tests and benchmarks.
#include "memory/memory_store.h"

#include "memory/store_types.h"

namespace rollgate {

std::unique_ptr<MemoryStore> CreateMemoryStore(const Policy& policy,
                                               const MemoryStoreOptions& options) {
  return memory::WithMemoryStore<std::unique_ptr<MemoryStore>>(
      policy, [&]<class S>() -> std::unique_ptr<MemoryStore> {
        return std::make_unique<S>(policy, options);
      });
}

}  // namespace rollgate
