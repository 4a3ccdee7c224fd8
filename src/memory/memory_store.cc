// Joins the table, what is kept of each id, and the algorithm.
#include "memory/memory_store.h"

#include <concepts>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/account_algorithms.h"
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
std::unique_ptr<Store> CreateWith(const Policy& policy, const MemoryStoreOptions& options) {
  if (SingleWindowPolicy::Fits(policy)) {
    return std::make_unique<LogStore<SingleWindowPolicy, Logs>>(policy, options);
  }
  return std::make_unique<LogStore<Policy, Logs>>(policy, options);
}

template <std::unsigned_integral Stamp>
std::unique_ptr<Store> CreateFor(const Policy& policy, const MemoryStoreOptions& options) {
  return InlineLogs<Stamp>::Fits(policy) ? CreateWith<InlineLogs<Stamp>>(policy, options)
                                         : CreateWith<BlockLogs<Stamp>>(policy, options);
}

std::unique_ptr<Store> CreateLogStore(const Policy& policy, const MemoryStoreOptions& options) {
  // Half the bytes where the longest window allows it: up to 71 minutes.
  return policy.retention() <= RingLog<std::uint32_t>::kLongestRetention
             ? CreateFor<std::uint32_t>(policy, options)
             : CreateFor<std::uint64_t>(policy, options);
}

}  // namespace

std::unique_ptr<Store> CreateMemoryStore(const Policy& policy, const MemoryStoreOptions& options) {
  const auto make = [&]<class Rules>() -> std::unique_ptr<Store> {
    return std::make_unique<AccountStore<Rules>>(policy, options);
  };
  auto store = WithAccountAlgorithm<std::unique_ptr<Store>>(policy, make);
  return store ? std::move(store) : CreateLogStore(policy, options);
}

}  // namespace rollgate
