// The store in shared memory for a policy.
#pragma once

#include "core/algorithms.h"
#include "core/policy.h"
#include "shared/region_store.h"

namespace rollgate::shared {

/// Returns `make.template operator()<S>()`, where S is the policy's store.
template <class T, class Make>
T WithSharedStore(const Policy& policy, Make make) {
  return WithAlgorithm<T>(
      policy, [&]<class Rules>() -> T { return make.template operator()<RegionStore<Rules>>(); });
}

}  // namespace rollgate::shared
