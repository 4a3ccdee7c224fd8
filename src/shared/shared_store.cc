// Attaches to regions behind the interface of stores.
#include "shared/shared_store.h"

#include <algorithm>
#include <utility>

#include "shared/configuration.h"
#include "shared/region.h"
#include "shared/region_store.h"
#include "shared/shared_error.h"

namespace rollgate {
namespace {

using Made = std::unique_ptr<SharedStore>;

shared::RegionOptions RegionFor(const Policy& policy, const SharedStoreOptions& options,
                                const shared::LogForm& form) {
  return shared::WithSharedStore<shared::RegionOptions>(
      policy, form, [&]<class S>() -> shared::RegionOptions {
        return {.directory = options.directory,
                .name = options.name,
                .max_keys = options.max_keys,
                .record_words = S::RecordWords(policy, form),
                .configuration = shared::ConfigurationOf(policy, options.clock, form),
                .has_log = form.room > 0,
                .retention = S::RetentionOf(policy),
                .log_capacity = std::min<std::uint64_t>(policy.log_capacity(), form.room)};
      });
}

Made StoreIn(shared::Region region, const Policy& policy, const SharedStoreOptions& options) {
  const shared::LogForm form = shared::LogFormOf(region.configuration());
  return shared::WithSharedStore<Made>(policy, form, [&]<class S>() -> Made {
    return std::make_unique<S>(policy, form, std::move(region), options);
  });
}

}  // namespace

std::unique_ptr<SharedStore> SharedStore::Attach(const Policy& given,
                                                 const SharedStoreOptions& options) {
  const Policy policy = given.ThatVaries();
  const auto attach = [&](const shared::LogForm& form) {
    return StoreIn(shared::Region::Attach(RegionFor(policy, options, form)), policy, options);
  };
  const shared::LogForm form = shared::LogFormFor(policy, options.room);
  const shared::LogForm exact = shared::LogFormFor(policy, options.room, false);
  try {
    return attach(form);
  } catch (const SharedError& error) {
    // Rounding up must not make a region too large for its place.
    if (error.kind() != SharedError::Kind::kSystem || exact.room == form.room) throw;
    return attach(exact);
  }
}

std::unique_ptr<SharedStore> SharedStore::WithLimits(std::unique_ptr<SharedStore>& store,
                                                     const Policy& given,
                                                     const SharedStoreOptions& options) {
  const Policy policy = given.ThatVaries();
  const shared::LogForm form = shared::LogFormFor(policy, options.room);
  store->region().Admit(RegionFor(policy, options, form));
  shared::Region region = std::move(store->region());
  store = nullptr;
  return StoreIn(std::move(region), policy, options);
}

bool UnlinkShared(const std::string& directory, const std::string& name) {
  return shared::Region::Unlink(directory, name);
}

}  // namespace rollgate
