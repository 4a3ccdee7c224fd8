// The store in memory for a policy.
#pragma once

#include "core/algorithms.h"
#include "core/policy.h"
#include "memory/block_logs.h"
#include "memory/inline_logs.h"
#include "memory/table_store.h"
#include "memory/weighted_blocks.h"

namespace rollgate::memory {

/// Returns `make.template operator()<S>()`, where S is the policy's store.
template <class T, class Make>
T WithMemoryStore(const Policy& policy, Make make) {
  return WithAlgorithm<T>(policy, [&]<class Rules>() -> T {
    if constexpr (std::is_same_v<Rules, WeightedLog>) {
      return make.template operator()<TableStore<Rules, WeightedBlocks>>();
    } else if constexpr (KeepsLog<Rules>) {
      return InlineLogs<Rules>::Fits(policy)
                 ? make.template operator()<TableStore<Rules, InlineLogs<Rules>>>()
                 : make.template operator()<TableStore<Rules, BlockLogs<Rules>>>();
    } else {
      return make.template operator()<TableStore<Rules, Counts<Rules>>>();
    }
  });
}

}  // namespace rollgate::memory
