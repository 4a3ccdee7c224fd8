// The list of the stores in shared memory, and which of them a policy takes.
#pragma once

#include <cstdint>

#include "core/account_algorithms.h"
#include "core/policy.h"
#include "core/ring_log.h"
#include "shared/account_state.h"
#include "shared/log_state.h"
#include "shared/region_store.h"

namespace rollgate::shared {

template <class T, class P, class Make>
T WithLogStore(const Policy& policy, Make& make) {
  return policy.retention() <= RingLog<std::uint32_t>::kLongestRetention
             ? make.template operator()<RegionStore<LogState<P, std::uint32_t>>>()
             : make.template operator()<RegionStore<LogState<P, std::uint64_t>>>();
}

/// Returns `make.template operator()<S>()`, where S is the store that the policy takes: its
/// constructor is S(const Policy&, const SharedStoreOptions&).
template <class T, class Make>
T WithSharedStore(const Policy& policy, Make make) {
  if (policy.algorithm() != Algorithm::kSlidingWindowLog) {
    return WithAccountAlgorithm<T>(policy, [&]<class Rules>() -> T {
      return make.template operator()<RegionStore<AccountState<Rules>>>();
    });
  }
  return SingleWindowPolicy::Fits(policy) ? WithLogStore<T, SingleWindowPolicy>(policy, make)
                                          : WithLogStore<T, Policy>(policy, make);
}

}  // namespace rollgate::shared
