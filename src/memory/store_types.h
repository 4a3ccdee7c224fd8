// Which store in memory a policy takes.
#pragma once

#include "core/algorithms.h"
#include "core/policy.h"
#include "memory/block_logs.h"
#include "memory/inline_logs.h"
#include "memory/table_store.h"

namespace rollgate::memory {

/// Returns `make.template operator()<S>()`, where S is the store that the policy takes: its
/// constructor is S(const Policy&, const MemoryStoreOptions&).
template <class T, class Make>
T WithMemoryStore(const Policy& policy, Make make) {
  return WithAlgorithm<T>(policy, [&]<class Rules>() -> T {
    if constexpr (requires { typename Rules::Log; }) {
      return InlineLogs<Rules>::Fits(policy)
                 ? make.template operator()<TableStore<Rules, InlineLogs<Rules>>>()
                 : make.template operator()<TableStore<Rules, BlockLogs<Rules>>>();
    } else {
      return make.template operator()<TableStore<Rules, Counts<Rules>>>();
    }
  });
}

}  // namespace rollgate::memory
