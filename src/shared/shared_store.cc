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

/// What Region::Attach asks for; `configuration` is kept here.
struct Request {
  Request(const Policy& policy, const SharedStoreOptions& options, bool rounds_up = true)
      : form(shared::LogFormFor(policy, options.room, rounds_up)),
        configuration(shared::ConfigurationOf(policy, options.clock, form)) {
    region = shared::WithSharedStore<shared::RegionOptions>(
        policy, form, [&]<class S>() -> shared::RegionOptions {
          return {.directory = options.directory,
                  .name = options.name,
                  .max_keys = options.max_keys,
                  .record_words = S::RecordWords(policy, form),
                  .configuration = configuration,
                  .has_log = form.room > 0,
                  .retention = S::RetentionOf(policy),
                  .log_capacity = std::min<std::uint64_t>(policy.log_capacity(), form.room)};
        });
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  shared::LogForm form;
  std::vector<std::uint64_t> configuration;
  shared::RegionOptions region;
};

Made StoreIn(shared::Region region, const Policy& policy, const SharedStoreOptions& options) {
  const shared::LogForm form = shared::LogFormOf(region.configuration());
  return shared::WithSharedStore<Made>(policy, form, [&]<class S>() -> Made {
    return std::make_unique<S>(policy, form, std::move(region), options.on_eviction);
  });
}

}  // namespace

std::unique_ptr<SharedStore> SharedStore::Attach(const Policy& policy,
                                                 const SharedStoreOptions& options) {
  const Request request(policy, options);
  const Request exact(policy, options, false);
  try {
    return StoreIn(shared::Region::Attach(request.region), policy, options);
  } catch (const SharedError& error) {
    // Rounding up must not make a region too large for its place.
    const bool has_rounded = exact.form.room < request.form.room;
    if (error.kind() != SharedError::Kind::kSystem || !has_rounded) throw;
    return StoreIn(shared::Region::Attach(exact.region), policy, options);
  }
}

std::unique_ptr<SharedStore> SharedStore::WithLimits(std::unique_ptr<SharedStore>& store,
                                                     const Policy& policy,
                                                     const SharedStoreOptions& options) {
  const Request request(policy, options);
  store->region().Admit(request.region);
  shared::Region region = std::move(store->region());
  store = nullptr;
  return StoreIn(std::move(region), policy, options);
}

bool UnlinkShared(const std::string& directory, const std::string& name) {
  return shared::Region::Unlink(directory, name);
}

}  // namespace rollgate
