// Makes the store that a policy takes, for those who need not know which.
#include "memory/memory_store.h"

#include <memory>

#include "memory/memory_stores.h"

namespace rollgate {

std::unique_ptr<Store> CreateMemoryStore(const Policy& policy, const MemoryStoreOptions& options) {
  return memory::WithMemoryStore<std::unique_ptr<Store>>(
      policy,
      [&]<class S>() -> std::unique_ptr<Store> { return std::make_unique<S>(policy, options); });
}

}  // namespace rollgate
