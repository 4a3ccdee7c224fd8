// Joins the table, what is kept of each id, and the algorithm.
#include "memory/memory_store.h"

#include <concepts>
#include <cstdint>
#include <memory>

#include "core/fixed_window.h"
#include "core/gcra.h"
#include "core/sliding_window_counter.h"
#include "memory/account_store.h"
#include "memory/block_logs.h"
#include "memory/inline_logs.h"
#include "memory/log_store.h"

namespace rollgate {
namespace {

using memory::AccountStore;
using memory::BlockLogs;
using memory::InlineLogs;
using memory::LogStore;

template <class Logs>
std::unique_ptr<MemoryStore> CreateWith(const Policy& policy, const MemoryStoreOptions& options) {
  if (SingleWindowPolicy::Fits(policy)) {
    return std::make_unique<LogStore<SingleWindowPolicy, Logs>>(policy, options);
  }
  return std::make_unique<LogStore<Policy, Logs>>(policy, options);
}

template <std::unsigned_integral Stamp>
std::unique_ptr<MemoryStore> CreateFor(const Policy& policy, const MemoryStoreOptions& options) {
  return InlineLogs<Stamp>::Fits(policy) ? CreateWith<InlineLogs<Stamp>>(policy, options)
                                         : CreateWith<BlockLogs<Stamp>>(policy, options);
}

std::unique_ptr<MemoryStore> CreateLogStore(const Policy& policy,
                                            const MemoryStoreOptions& options) {
  // Half the bytes where the longest window allows it: up to 71 minutes.
  return policy.retention() <= RingLog<std::uint32_t>::kLongestRetention
             ? CreateFor<std::uint32_t>(policy, options)
             : CreateFor<std::uint64_t>(policy, options);
}

template <template <class> class Rules>
std::unique_ptr<MemoryStore> CreateAccountStore(const Policy& policy,
                                                const MemoryStoreOptions& options) {
  if (SingleWindowPolicy::Fits(policy) && Rules<SingleWindowPolicy>::FitsSingleWindow(policy)) {
    return std::make_unique<AccountStore<Rules<SingleWindowPolicy>>>(policy, options);
  }
  return std::make_unique<AccountStore<Rules<Policy>>>(policy, options);
}

}  // namespace

std::unique_ptr<MemoryStore> MemoryStore::Create(const Policy& policy,
                                                 const MemoryStoreOptions& options) {
  switch (policy.algorithm()) {
    case Algorithm::kSlidingWindowLog:
      break;
    case Algorithm::kSlidingWindowCounter:
      return CreateAccountStore<SlidingWindowCounter>(policy, options);
    case Algorithm::kFixedWindow:
      return CreateAccountStore<FixedWindow>(policy, options);
    case Algorithm::kGcra:
      return CreateAccountStore<Gcra>(policy, options);
  }
  return CreateLogStore(policy, options);
}

}  // namespace rollgate
