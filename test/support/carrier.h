// One id under a limiter that keeps no state: its bytes are carried from call to call.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/decision.h"
#include "core/policy.h"
#include "core/portable_limiter.h"
#include "core/time.h"

namespace rollgate::testing {

class Carrier {
 public:
  using Outcome = PortableLimiter::Outcome;

  explicit Carrier(const PolicyOptions& policy)
      : limiter_(PortableLimiter::Create(Policy(policy))), uses_(policy.windows.size()) {}

  /// The windows of the decision are overwritten by the next call.
  Decision Decide(Micros now, const Costs& cost, Recording recording) {
    generation_ += 40'503;
    Decision decision;
    decision.windows = uses_;
    Take(limiter_->Decide(state, now, cost, recording, generation_, decision, out_));
    return decision;
  }
  Decision Attempt(Micros now, const Costs& cost = 1) {
    return Decide(now, cost, Recording::kAttempt);
  }
  Decision Peek(Micros now, const Costs& cost = 1) {
    return Decide(now, cost, Recording::kNothing);
  }

  /// Whether anything was left of the attempt.
  bool Settle(const Decision& decision, const Costs& cost, const Costs& actual, Micros now) {
    Take(limiter_->Settle(state, {decision.verdict.at, cost, decision.token}, actual, now, out_));
    return outcome == Outcome::kChanged;
  }
  bool Refund(const Decision& decision, Micros now, const Costs& cost = 1) {
    return Settle(decision, cost, 0, now);
  }

  PortableLimiter& limiter() { return *limiter_; }

  std::vector<std::byte> state;
  Outcome outcome = Outcome::kUnchanged;  ///< of the last call

 private:
  void Take(Outcome taken) {
    outcome = taken;
    if (outcome == Outcome::kChanged) state = out_;
  }

  std::unique_ptr<PortableLimiter> limiter_;
  std::vector<WindowUse> uses_;
  std::vector<std::byte> out_;
  Generation generation_ = 0;
};

}  // namespace rollgate::testing
