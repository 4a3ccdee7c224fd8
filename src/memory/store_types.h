// The store in memory for a policy.
#pragma once

#include "core/algorithms.h"
#include "core/policy.h"
#include "memory/heap_logs.h"
#include "memory/inline_logs.h"
#include "memory/table_store.h"
#include "memory/weighted_heap_logs.h"

namespace rollgate::memory {

/// Whether an algorithm has the form for one window.
template <class Rules>
inline constexpr bool kIsForOneWindow =
    std::is_same_v<std::decay_t<decltype(std::declval<Rules>().policy())>, SingleWindowPolicy>;

/// Returns `make.template operator()<S>()`, where S is the policy's store.
template <class T, class Make>
T WithMemoryStore(const Policy& policy, Make make) {
  return WithAlgorithm<T>(policy, [&]<class Rules>() -> T {
    if constexpr (std::is_same_v<Rules, WeightedLog>) {
      return make.template operator()<TableStore<Rules, WeightedHeapLogs>>();
    } else if constexpr (KeepsLog<Rules>) {
      if constexpr (!kIsCompact || kIsForOneWindow<Rules>) {
        if (InlineLogs<Rules>::Fits(policy)) {
          return make.template operator()<TableStore<Rules, InlineLogs<Rules>>>();
        }
      }
      return make.template operator()<TableStore<Rules, HeapLogs<Rules>>>();
    } else {
      return make.template operator()<TableStore<Rules, Counts<Rules>>>();
    }
  });
}

}  // namespace rollgate::memory
