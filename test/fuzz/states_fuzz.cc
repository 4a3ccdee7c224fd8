// Any bytes as the state of an id: they are called foreign, or decided on; what is written then is
// a state again.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "support/carrier.h"
#include "support/traces.h"

namespace rollgate {
namespace {

using fuzz::Require;
using Outcome = PortableLimiter::Outcome;

void Run(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kPolicyBytes = 16;
  const std::size_t from = std::min(size, kPolicyBytes);
  fuzz::Input input(data, from);
  PolicyOptions policy = fuzz::ReadPolicy(input);
  // Now and then an interval of hours, whose stamps are wider.
  if (input.Byte() > 200) policy.windows[0].interval = Micros{3} << 32;
  testing::Carrier id(policy);
  id.state.assign(reinterpret_cast<const std::byte*>(data) + from,
                  reinterpret_cast<const std::byte*>(data) + size);
  Micros now = 0;
  id.Peek(now);
  const bool is_foreign = id.outcome == Outcome::kForeign;
  const Micros usual = id.limiter().Lifetime({}, now);
  for (int step = 0; step < 8; ++step) {
    const Decision decision = id.Attempt(now);
    Require(step > 0 || (id.outcome == Outcome::kForeign) == is_foreign,
            "a peek and an attempt disagree on what is foreign");
    Require(step == 0 || id.outcome != Outcome::kForeign, "what was written is no state");
    if (id.outcome == Outcome::kForeign) return;
    Require(decision.verdict.allowed() == (decision.time_left <= 0), "the time left");
    Require(id.state.size() <= id.limiter().largest_state() || id.outcome == Outcome::kUnchanged,
            "the size of a state");
    if (step % 3 == 2) id.Refund(decision, now);
    Require(id.limiter().Lifetime(id.state, now) >= usual, "the lifetime of a state");
    now += 7;
  }
}

}  // namespace
}  // namespace rollgate

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  rollgate::Run(data, size);
  return 0;
}
