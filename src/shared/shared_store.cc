// Removes regions, and attaches to one behind its interface, for tests.
#include "shared/shared_store.h"

#include "shared/region.h"
#include "shared/region_store.h"

namespace rollgate {

std::unique_ptr<SharedStore> SharedStore::Attach(const Policy& policy,
                                                 const SharedStoreOptions& options) {
  return shared::WithSharedStore<std::unique_ptr<SharedStore>>(
      policy, [&]<class S>() -> std::unique_ptr<SharedStore> {
        return std::make_unique<S>(policy, options);
      });
}

bool UnlinkShared(const std::string& directory, const std::string& name) {
  return shared::Region::Unlink(directory, name);
}

}  // namespace rollgate
