// Random calls under random policies: the store in memory, in each of its layouts, and the portable
// limiter decide as the oracle does.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/algorithms.h"
#include "support/compared.h"
#include "support/limiter.h"
#include "support/traces.h"

namespace rollgate::testing {
namespace {

using CostsOfWindows = Oracle::CostsOfWindows;

struct Form {
  const char* name;
  Algorithm algorithm;
  bool weighted = false;        ///< each window has its own cost
  std::uint64_t least_max = 0;  ///< above 1024, a log of stamps becomes one of costs
};

PolicyOptions AnyPolicy(Random& random, const Form& form, Micros scale) {
  const bool count_blocked = form.algorithm != Algorithm::kGcra && random.Chance(50);
  PolicyOptions policy = RandomPolicy(random, count_blocked, random.Chance(50) ? 8 : 40);
  policy.algorithm = form.algorithm;
  policy.weighted = form.weighted;
  policy.min_difference *= scale;
  for (Window& window : policy.windows) {
    window.interval *= scale;
    window.max += form.least_max;
  }
  for (std::int64_t i = random.Chance(40) ? random.Between(1, 3) : 0; i > 0; --i) {
    policy.blocks.push_back(random.Between(1, 60) * scale);
  }
  return policy;
}

/// What an attempt came to: nothing, or up to 50 more than it could have cost. A log of few stamps
/// has no room for more, so there it comes to nothing.
CostsOfWindows AnyActual(Random& random, const PolicyOptions& policy, const Form& form) {
  const bool is_small_log =
      form.algorithm == Algorithm::kSlidingWindowLog && !form.weighted && form.least_max == 0;
  if (is_small_log || random.Chance(40)) return CostsOfWindows(policy.windows.size(), 0);
  CostsOfWindows actual = RandomCosts(random, policy);
  const std::uint64_t more = random.Chance(20) ? 50 : 0;
  for (std::uint64_t& cost : actual) cost += more;
  return actual;
}

class Traces : public ::testing::TestWithParam<Form> {
 protected:
  /// Where a log without costs counts refusals, a settled attempt gives back less.
  static bool CanSettle(const PolicyOptions& policy) {
    const bool is_exact = policy.algorithm != Algorithm::kSlidingWindowLog || policy.weighted ||
                          GetParam().least_max > 0 || !policy.count_blocked;
    return is_exact && policy.algorithm != Algorithm::kGcra;
  }

  static std::string Step(Random& random, const PolicyOptions& policy, Compared& id, Micros now,
                          bool settles) {
    const CostsOfWindows costs = RandomCosts(random, policy, 5);
    if (settles && random.Chance(30) && id.made() > 0) {
      const std::int64_t last = static_cast<std::int64_t>(id.made()) - 1;
      const auto place = static_cast<std::size_t>(random.Between(0, last));
      return id.Settle(place, AnyActual(random, policy, GetParam()), now);
    }
    if (random.Chance(3)) id.Clear();
    if (random.Chance(20)) {
      return id.Peek(now, random.Chance(30) ? CostsOfWindows(costs.size(), 0) : costs);
    }
    if (!policy.weighted && costs.front() == 1 && random.Chance(30)) return id.Check(now);
    return id.Attempt(now, costs);
  }
};
INSTANTIATE_TEST_SUITE_P(
    All, Traces,
    ::testing::Values(Form{"Log", Algorithm::kSlidingWindowLog},
                      Form{"LogThatTurns", Algorithm::kSlidingWindowLog, false, 1024},
                      Form{"WeightedLog", Algorithm::kSlidingWindowLog, true},
                      Form{"Counter", Algorithm::kSlidingWindowCounter},
                      Form{"WeightedCounter", Algorithm::kSlidingWindowCounter, true},
                      Form{"FixedWindow", Algorithm::kFixedWindow},
                      Form{"WeightedFixedWindow", Algorithm::kFixedWindow, true},
                      Form{"Gcra", Algorithm::kGcra}),
    [](const auto& info) { return info.param.name; });

// Kills: a sum that ignores a window's own cost, a window asked for nothing, a settle that is added
// to later entries only; a trace of what never passes, and a block that hides it.
TEST_P(Traces, AreDecidedAsByTheOracle) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Random random(seed);
    const Micros scale = random.Chance(70) ? 1 : kHour / 5;  // with it, stamps of 8 bytes
    const PolicyOptions policy = AnyPolicy(random, GetParam(), scale);
    Limiter memory(policy);
    // A clock that steps back shows which ids were forgotten, and what a settled attempt has pushed
    // out.
    const bool steps_back = random.Chance(50);
    const bool settles = !steps_back && CanSettle(policy);
    std::vector<Compared> ids;
    for (std::int64_t id = steps_back ? 0 : random.Between(0, 2); id >= 0; --id) {
      ids.emplace_back(policy, memory, id);
    }
    Micros reading = random.Between(-100, 100);
    for (int step = 0; step < 100; ++step) {
      reading = steps_back ? NextReading(random, reading) : NextLater(random, reading);
      const Micros now = reading * scale + (steps_back ? random.Between(-1, 1) : 0);
      const std::int64_t last = std::ssize(ids) - 1;
      Compared& id = ids[static_cast<std::size_t>(random.Between(0, last))];
      ASSERT_EQ(Step(random, policy, id, now, settles), "") << "seed " << seed << ", step " << step;
    }
  }
}

// Kills: a refusal of kWaiting or kAsking that counts or starts a block, in the state or in its own
// answer; one of kWaiting in the statistics.
TEST_P(Traces, TellWaitsExactlyAndLeaveNoTraceOfThem) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const PolicyOptions policy = AnyPolicy(random, GetParam(), 1);
    Limiter limiter(policy);
    Micros now = random.Between(-100, 100);
    const auto decide = [&](Micros at, Recording recording, const CostsOfWindows& costs) {
      const Costs cost = policy.weighted ? Costs(costs) : Costs(costs.front());
      return AnswerOf(limiter.Decide(1, at, recording, cost));
    };
    const auto usage = [&] { return AnswerOf(limiter.Peek(1, now, 0)); };
    for (int step = 0; step < 40; ++step) {
      now = NextReading(random, now);
      const CostsOfWindows costs = RandomCosts(random, policy);
      if (random.Chance(60)) {
        decide(now, Recording::kAttempt, costs);
        continue;
      }
      const Answer before = usage();
      const Answer asked = decide(now, Recording::kAsking, costs);
      ASSERT_EQ(usage(), before);
      const std::uint64_t blocked = limiter.store->stats().blocked;
      ASSERT_EQ(decide(now, Recording::kWaiting, costs), asked);
      ASSERT_EQ(limiter.store->stats().blocked, blocked);
      if (asked.allowed()) continue;
      ASSERT_EQ(usage(), before);
      ASSERT_FALSE(decide(now + asked.time_left - 1, Recording::kAsking, costs).allowed());
      ASSERT_TRUE(decide(now + asked.time_left, Recording::kAsking, costs).allowed());
    }
  }
}

}  // namespace
}  // namespace rollgate::testing
