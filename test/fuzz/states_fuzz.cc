// Any bytes as the state of an id: they are called foreign, or decided on; what is written then is
// a state again.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/portable_limiter.h"
#include "support/traces.h"

namespace rollgate {
namespace {

using fuzz::Require;
using Outcome = PortableLimiter::Outcome;

void Run(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kPolicyBytes = 16;
  fuzz::Input input(data, std::min(size, kPolicyBytes));
  PolicyOptions policy = fuzz::ReadPolicy(input);
  // Now and then an interval of hours, whose stamps are wider.
  if (input.Byte() > 200) policy.windows[0].interval = Micros{3} << 32;
  const auto limiter = PortableLimiter::Create(Policy(policy));
  const std::size_t from = std::min(size, kPolicyBytes);
  std::vector<std::byte> state(reinterpret_cast<const std::byte*>(data) + from,
                               reinterpret_cast<const std::byte*>(data) + size);
  std::vector<WindowUse> uses(policy.windows.size());
  Decision decision;
  decision.windows = uses;
  std::vector<std::byte> out;
  const Outcome peeked = limiter->Decide(state, 0, 1, Recording::kNothing, 1, decision, out);
  Micros now = 0;
  const Micros usual = limiter->Lifetime({}, now);
  for (int step = 0; step < 8; ++step) {
    const Outcome outcome = limiter->Decide(state, now, 1, Recording::kAttempt, 1, decision, out);
    Require(step > 0 || (outcome == Outcome::kForeign) == (peeked == Outcome::kForeign),
            "a peek and an attempt disagree on what is foreign");
    Require(step == 0 || outcome != Outcome::kForeign, "what was written is no state");
    if (outcome == Outcome::kForeign) return;
    Require(decision.verdict.allowed() == (decision.time_left <= 0), "the time left");
    if (outcome == Outcome::kChanged) state = out;
    Require(state.size() <= limiter->largest_state() || outcome == Outcome::kUnchanged,
            "the size of a state");
    const Receipt receipt{decision.verdict.at, 1, decision.token};
    if (step % 3 == 2 && limiter->Settle(state, receipt, 0, now, out) == Outcome::kChanged) {
      state = out;
    }
    Require(limiter->Lifetime(state, now) >= usual, "the lifetime of a state");
    now += 7;
  }
}

}  // namespace
}  // namespace rollgate

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  rollgate::Run(data, size);
  return 0;
}
