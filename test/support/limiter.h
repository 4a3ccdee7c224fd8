// A store in memory with ids that are numbers and an answer that is ready to look at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/identity.h"
#include "memory/memory_store.h"

namespace rollgate::testing {

inline constexpr Secret kSecret{{0x243f6a8885a308d3, 0x13198a2e03707344, 0xa4093822299f31d0,
                                 0x082efa98ec4e6c89, 0x452821e638d01377, 0xbe5466cf34e90c6c}};
inline constexpr Micros kSecond = 1'000'000;
inline constexpr Micros kHour = 3600 * kSecond;

inline Identity Id(std::int64_t number) {
  const std::string digits = std::to_string(number);
  return IdentityOf(std::u16string(digits.begin(), digits.end()), kSecret);
}

/// A store and what it wrote last.
class Limiter {
 public:
  explicit Limiter(const PolicyOptions& policy, std::size_t max_keys = 1'000'000)
      : store(CreateMemoryStore(Policy(policy), {max_keys, kSecret, false, nullptr})),
        uses_(policy.windows.size()) {}

  /// The windows of the decision are overwritten by the next call.
  Decision Decide(std::int64_t id, Micros now, Recording recording, const Costs& cost = 1) {
    Decision decision;
    decision.windows = uses_;
    store->Decide(Id(id), now, cost, recording, decision);
    return decision;
  }

  Decision Attempt(std::int64_t id, Micros now, const Costs& cost = 1) {
    return Decide(id, now, Recording::kAttempt, cost);
  }

  Decision Peek(std::int64_t id, Micros now, const Costs& cost = 1) {
    return Decide(id, now, Recording::kNothing, cost);
  }

  bool Allows(std::int64_t id, Micros now) { return store->Check(Id(id), now) == 0; }

  bool Settle(std::int64_t id, const Decision& decision, const Costs& cost, const Costs& actual,
              Micros now) {
    return store->Settle(Id(id), {decision.verdict.at, cost, decision.token}, actual, now);
  }

  /// At the time of the attempt, or at `now`.
  bool Refund(std::int64_t id, const Decision& decision, const Costs& cost = 1,
              std::optional<Micros> now = {}) {
    return Settle(id, decision, cost, 0, now.value_or(decision.verdict.at));
  }

  std::unique_ptr<MemoryStore> store;

 private:
  std::vector<WindowUse> uses_;
};

}  // namespace rollgate::testing
