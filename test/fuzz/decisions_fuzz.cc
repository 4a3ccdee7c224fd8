// Any sequence of operations under any policy: the store in memory and the portable limiter decide
// as the oracle does.
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <vector>

#include "core/portable_limiter.h"
#include "support/limiter.h"
#include "support/oracle.h"
#include "support/traces.h"

namespace rollgate {
namespace {

using fuzz::Require;
using testing::Answer;
using testing::AnswerOf;

void RequireSame(const Decision& decision, const Answer& expected) {
  const Answer answer = AnswerOf(decision);
  if (answer == expected) return;
  PrintTo(expected, &(std::cerr << "expected "));
  PrintTo(answer, &(std::cerr << "\n     got "));
  Require(false, "not as the oracle decides");
}

/// One id whose state is carried as bytes.
class Carried {
 public:
  explicit Carried(const PolicyOptions& policy)
      : limiter_(PortableLimiter::Create(Policy(policy))), uses_(policy.windows.size()) {}

  Decision Decide(Micros now, std::uint64_t cost, bool records) {
    Decision decision;
    decision.windows = uses_;
    const auto recording = records ? Recording::kAttempt : Recording::kNothing;
    const auto outcome = limiter_->Decide(state_, now, cost, recording, 7, decision, out_);
    Require(outcome != PortableLimiter::Outcome::kForeign, "a state of our own is foreign");
    if (outcome == PortableLimiter::Outcome::kChanged) state_ = out_;
    Require(state_.size() <= limiter_->largest_state(), "the size of a state");
    return decision;
  }

 private:
  std::unique_ptr<PortableLimiter> limiter_;
  std::vector<WindowUse> uses_;
  std::vector<std::byte> state_;
  std::vector<std::byte> out_;
};

void Run(fuzz::Input input) {
  const PolicyOptions policy = fuzz::ReadPolicy(input);
  const std::int64_t smallest_max = testing::SmallestMax(policy);
  testing::Limiter memory(policy);
  Carried carried(policy);
  testing::Oracle oracle(policy);
  Micros now = input.From(-128);
  constexpr int kMostSteps = 60;  // the oracle takes its time
  for (int step = 0; step < kMostSteps && !input.empty(); ++step) {
    const std::uint8_t operation = input.Byte();
    now += (operation & 8) != 0 ? -input.Between(0, 40) : input.Between(0, 60);
    const auto cost =
        static_cast<std::uint64_t>((operation & 4) != 0 ? input.Between(1, smallest_max) : 1);
    const bool records = (operation & 3) != 0;
    const Answer expected = records ? oracle.Attempt(now, cost) : oracle.Peek(now, cost);
    RequireSame(records ? memory.Attempt(1, now, cost) : memory.Peek(1, now, cost), expected);
    RequireSame(carried.Decide(now, cost, records), expected);
  }
}

}  // namespace
}  // namespace rollgate

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  rollgate::Run({data, size});
  return 0;
}
