// Attaches to regions behind the interface of stores.
#include "shared/shared_store.h"

#include "shared/configuration.h"
#include "shared/region.h"
#include "shared/region_store.h"

namespace rollgate {

std::unique_ptr<SharedStore> SharedStore::Attach(const Policy& policy,
                                                 const SharedStoreOptions& options) {
  using Made = std::unique_ptr<SharedStore>;
  const shared::LogForm form = shared::LogFormFor(policy, options.room);
  const auto configuration = shared::ConfigurationOf(policy, options.has_own_clock, form);
  const auto region_options = shared::WithSharedStore<shared::RegionOptions>(
      policy, form, [&]<class S>() -> shared::RegionOptions {
        return {.directory = options.directory,
                .name = options.name,
                .max_keys = options.max_keys,
                .record_words = S::RecordWords(policy, form),
                .epoch_offset = options.epoch_offset,
                .configuration = configuration,
                .has_log = form.room > 0,
                .retention = S::RetentionOf(policy),
                .log_capacity = std::min<std::uint64_t>(policy.log_capacity(), form.room)};
      });
  shared::Region region = shared::Region::Attach(region_options);
  const shared::Header& header = region.header();
  const shared::LogForm its_form =
      shared::LogFormOf({header.configuration.data(), header.configuration_words});
  return shared::WithSharedStore<Made>(policy, its_form, [&]<class S>() -> Made {
    return std::make_unique<S>(policy, its_form, std::move(region), options.on_eviction);
  });
}

bool UnlinkShared(const std::string& directory, const std::string& name) {
  return shared::Region::Unlink(directory, name);
}

}  // namespace rollgate
