// The list of the stores in memory, and which of them a policy takes.
#pragma once

#include <concepts>
#include <cstdint>

#include "core/account_algorithms.h"
#include "core/policy.h"
#include "core/ring_log.h"
#include "memory/account_store.h"
#include "memory/block_logs.h"
#include "memory/inline_logs.h"
#include "memory/log_store.h"

namespace rollgate::memory {

template <class T, class Logs, class Make>
T WithLogStore(const Policy& policy, Make& make) {
  return SingleWindowPolicy::Fits(policy)
             ? make.template operator()<LogStore<SingleWindowPolicy, Logs>>()
             : make.template operator()<LogStore<Policy, Logs>>();
}

template <class T, std::unsigned_integral Stamp, class Make>
T WithLogsOf(const Policy& policy, Make& make) {
  return InlineLogs<Stamp>::Fits(policy) ? WithLogStore<T, InlineLogs<Stamp>>(policy, make)
                                         : WithLogStore<T, BlockLogs<Stamp>>(policy, make);
}

/// Returns `make.template operator()<S>()`, where S is the store that the policy takes: its
/// constructor is S(const Policy&, const MemoryStoreOptions&).
template <class T, class Make>
T WithMemoryStore(const Policy& policy, Make make) {
  if (policy.algorithm() != Algorithm::kSlidingWindowLog) {
    return WithAccountAlgorithm<T>(policy, [&]<class Rules>() -> T {
      return make.template operator()<AccountStore<Rules>>();
    });
  }
  // Half the bytes where the longest window allows it: up to 71 minutes.
  return policy.retention() <= RingLog<std::uint32_t>::kLongestRetention
             ? WithLogsOf<T, std::uint32_t>(policy, make)
             : WithLogsOf<T, std::uint64_t>(policy, make);
}

}  // namespace rollgate::memory
