// One id of a store and the same id as bytes, compared with the oracle at each call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/algorithms.h"
#include "core/policy.h"
#include "support/carrier.h"
#include "support/limiter.h"
#include "support/oracle.h"

namespace rollgate::testing {

/// Empty if the decision is as expected.
inline std::string Difference(const Decision& decision, const Answer& expected) {
  const Answer answer = AnswerOf(decision);
  if (answer == expected) return "";
  std::ostringstream text;
  PrintTo(expected, &(text << "expected "));
  PrintTo(answer, &(text << "\n     got "));
  return text.str();
}

/// Each call returns what is wrong, or nothing.
class Compared {
 public:
  using CostsOfWindows = Oracle::CostsOfWindows;

  /// `memory` outlives this.
  Compared(const PolicyOptions& policy, Limiter& memory, std::int64_t id)
      : policy_(policy), memory_(memory), id_(id), carrier_(policy), oracle_(policy) {}

  std::string Attempt(Micros now, const CostsOfWindows& costs) {
    const Answer expected = oracle_.Attempt(now, costs);
    const Decision in_memory = memory_.Attempt(id_, now, CostsOf(costs));
    const std::string wrong = Difference(in_memory, expected);
    const Decision carried = carrier_.Attempt(now, CostsOf(costs));
    if (expected.allowed()) made_.push_back({in_memory, carried, costs, oracle_.attempts()});
    return wrong + Difference(carried, expected) + SizeOfState() + TakesWhatIsGone(now);
  }

  /// An attempt of cost 1, of which the store tells only the time left.
  std::string Check(Micros now) {
    const Answer expected = oracle_.Attempt(now, 1);
    const bool is_right = memory_.store->Check(Id(id_), now) == expected.time_left;
    return (is_right ? "" : "another time left") + Difference(carrier_.Attempt(now), expected);
  }

  std::string Peek(Micros now, const CostsOfWindows& costs) {
    const Answer expected = oracle_.Peek(now, costs);
    const std::string wrong = Difference(memory_.Peek(id_, now, CostsOf(costs)), expected);
    return wrong + Difference(carrier_.Peek(now, CostsOf(costs)), expected);
  }

  /// How many allowed attempts can be settled.
  std::size_t made() const { return made_.size(); }

  /// Replaces what one of these cost; 0 in each window takes it back. Not for GCRA.
  std::string Settle(std::size_t place, const CostsOfWindows& actual, Micros now) {
    const Made one = made_[place];
    made_.erase(made_.begin() + static_cast<std::ptrdiff_t>(place));
    const bool counts = oracle_.Settle(one.attempt, actual);
    const bool found = memory_.Settle(id_, one.in_memory, CostsOf(one.costs), CostsOf(actual), now);
    const bool carried = carrier_.Settle(one.carried, CostsOf(one.costs), CostsOf(actual), now);
    // What is outside of all windows may have been dropped. Whether a weighted count is found
    // depends on its windows.
    const bool is_known = now - one.in_memory.verdict.at < Policy(policy_).retention() &&
                          (!policy_.weighted || policy_.algorithm == Algorithm::kSlidingWindowLog);
    return is_known && (found != counts || carried != counts) ? "an attempt was lost, or found"
                                                              : SizeOfState();
  }

  /// What was made before is found no more, not even in the microsecond of the next attempt.
  void Clear() {
    memory_.store->Clear(Id(id_));
    carrier_.state.clear();
    oracle_ = Oracle(policy_);
    gone_ = std::exchange(made_, {});
  }

 private:
  struct Made {
    Decision in_memory;
    Decision carried;
    CostsOfWindows costs;
    std::size_t attempt;
  };

  Costs CostsOf(const CostsOfWindows& costs) const {
    return policy_.weighted ? Costs(costs) : Costs(costs.front());
  }
  std::string TakesWhatIsGone(Micros now) {
    bool finds = false;
    for (const Made& one : std::exchange(gone_, {})) {
      finds |= memory_.Settle(id_, one.in_memory, CostsOf(one.costs), 0, now) ||
               carrier_.Settle(one.carried, CostsOf(one.costs), 0, now);
    }
    return finds ? "an attempt outlived a clear" : "";
  }
  std::string SizeOfState() {
    const bool is_right = carrier_.state.size() <= carrier_.limiter().largest_state();
    return is_right ? "" : "the state is too large";
  }

  PolicyOptions policy_;
  Limiter& memory_;
  std::int64_t id_;
  Carrier carrier_;
  Oracle oracle_;
  std::vector<Made> made_;
  std::vector<Made> gone_;
};

}  // namespace rollgate::testing
