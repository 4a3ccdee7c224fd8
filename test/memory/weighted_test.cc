// Limits that count different things: against the oracle that keeps every attempt, in memory and as
// bytes; and what merging may do beyond the longest exact log.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/portable_limiter.h"
#include "core/weighted_entries.h"
#include "support/limiter.h"
#include "support/oracle.h"
#include "support/traces.h"

namespace rollgate::testing {
namespace {

using CostsOfWindows = Oracle::CostsOfWindows;

Costs AsCosts(const CostsOfWindows& costs, const PolicyOptions& policy) {
  return policy.weighted ? Costs(costs) : Costs(costs.front());
}

/// The same limiter over bytes, for the calls of the tests.
class CarriedLimiter {
 public:
  explicit CarriedLimiter(const PolicyOptions& policy)
      : policy_(policy),
        limiter_(PortableLimiter::Create(Policy(policy))),
        uses_(policy.windows.size()) {}

  Decision Attempt(Micros now, const CostsOfWindows& costs, bool records) {
    Decision decision;
    decision.windows = uses_;
    const Recording recording = records ? Recording::kAttempt : Recording::kNothing;
    Take(limiter_->Decide(state_, now, AsCosts(costs, policy_), recording, generation_, decision,
                          out_));
    return decision;
  }

  bool Settle(const Decision& decision, const CostsOfWindows& costs, const CostsOfWindows& actual,
              Micros now = 0) {
    const Receipt receipt{decision.verdict.at, AsCosts(costs, policy_), decision.token};
    return Take(limiter_->Settle(state_, receipt, AsCosts(actual, policy_), now, out_));
  }

  void Clear() {
    state_.clear();
    ++generation_;
  }

  std::size_t bytes() const { return state_.size(); }

 private:
  bool Take(PortableLimiter::Outcome outcome) {
    EXPECT_NE(outcome, PortableLimiter::Outcome::kForeign);
    if (outcome == PortableLimiter::Outcome::kChanged) state_ = out_;
    return outcome == PortableLimiter::Outcome::kChanged;
  }

  PolicyOptions policy_;
  std::unique_ptr<PortableLimiter> limiter_;
  std::vector<WindowUse> uses_;
  std::vector<std::byte> state_;
  std::vector<std::byte> out_;
  Generation generation_ = 1;
};

struct Made {
  Decision in_memory;
  Decision carried;
  CostsOfWindows costs;
  std::size_t attempt;
};

/// Costs that can pass, but for `above` in 100 of them.
CostsOfWindows RandomCosts(Random& random, const PolicyOptions& policy, int above = 0) {
  if (!policy.weighted) {
    const std::int64_t cost = random.Chance(60) ? 1 : random.Between(1, 1024);
    return CostsOfWindows(policy.windows.size(), static_cast<std::uint64_t>(cost));
  }
  CostsOfWindows costs;
  for (const Window& window : policy.windows) {
    const auto max = static_cast<std::int64_t>(window.max);
    costs.push_back(static_cast<std::uint64_t>(random.Chance(25) ? 0 : random.Between(1, max)));
  }
  if (std::count(costs.begin(), costs.end(), 0u) == std::ssize(costs)) costs.back() = 1;
  if (random.Chance(above)) costs.front() = policy.windows.front().max + 1;
  return costs;
}

struct Form {
  Algorithm algorithm;
  bool weighted;  ///< else a log of stamps that turns
};

class WeightedTraces : public ::testing::TestWithParam<Form> {};
INSTANTIATE_TEST_SUITE_P(All, WeightedTraces,
                         ::testing::Values(Form{Algorithm::kSlidingWindowLog, true},
                                           Form{Algorithm::kSlidingWindowLog, false},
                                           Form{Algorithm::kSlidingWindowCounter, true},
                                           Form{Algorithm::kFixedWindow, true}));

// Kills: a sum that ignores a window's own cost, a window asked for nothing, a settle that is added
// to later entries only; a trace of what never passes, and a block that hides it.
TEST_P(WeightedTraces, AgreeWithTheOracle) {
  constexpr int kPolicies = 200;
  constexpr int kSteps = 150;
  for (int seed = 0; seed < kPolicies; ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    PolicyOptions policy = RandomPolicy(random, random.Chance(50), 30);
    policy.algorithm = GetParam().algorithm;
    policy.weighted = GetParam().weighted;
    for (Window& window : policy.windows) window.max += policy.weighted ? 0 : 1024;
    if (random.Chance(30)) policy.blocks = {random.Between(1, 30), random.Between(1, 60)};
    Limiter limiter(policy);
    CarriedLimiter carrier(policy);
    Oracle oracle(policy);
    std::vector<Made> made;
    const bool settles = random.Chance(70);
    Micros now = 1000;
    const auto in_memory = [&](const CostsOfWindows& costs, bool records) {
      Decision decision;
      decision.windows = limiter.uses();
      if (records) {
        limiter.store->Decide(Id(1), now, AsCosts(costs, policy), Recording::kAttempt, decision);
      } else {
        limiter.store->Decide(Id(1), now, AsCosts(costs, policy), Recording::kNothing, decision);
      }
      return decision;
    };
    for (int step = 0; step < kSteps; ++step) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed << ", step " << step);
      // A settled attempt may have pushed others out that a clock that steps back would need.
      now = settles ? NextLater(random, now) : NextReading(random, now);
      const CostsOfWindows costs = RandomCosts(random, policy, 5);
      if (settles && random.Chance(30) && !made.empty()) {
        const auto place = static_cast<std::size_t>(random.Between(0, std::ssize(made) - 1));
        const Made one = made[place];
        made.erase(made.begin() + static_cast<std::ptrdiff_t>(place));
        CostsOfWindows actual = RandomCosts(random, policy);
        if (random.Chance(30)) actual.assign(actual.size(), 0);
        if (random.Chance(20)) {
          for (std::uint64_t& amount : actual) amount += 50;
        }
        const Receipt receipt{one.in_memory.verdict.at, AsCosts(one.costs, policy),
                              one.in_memory.token};
        const bool found = limiter.store->Settle(Id(1), receipt, AsCosts(actual, policy), now);
        const bool carried_found = carrier.Settle(one.carried, one.costs, actual);
        oracle.Settle(one.attempt, actual);
        // What is outside of all windows may have been dropped.
        const Micros age = now - one.in_memory.verdict.at;
        if (policy.algorithm == Algorithm::kSlidingWindowLog && age < Policy(policy).retention()) {
          ASSERT_TRUE(found && carried_found);
        }
      } else if (random.Chance(2)) {
        limiter.store->Clear(Id(1));
        carrier.Clear();
        oracle = Oracle(policy);
        for (const Made& one : made) {
          const Receipt receipt{one.in_memory.verdict.at, AsCosts(one.costs, policy),
                                one.in_memory.token};
          ASSERT_FALSE(limiter.store->Settle(Id(1), receipt, 0, now));
        }
        made.clear();
      } else if (random.Chance(30)) {
        const CostsOfWindows asked = random.Chance(30) ? CostsOfWindows(costs.size(), 0) : costs;
        const Answer expected = oracle.Peek(now, asked);
        ASSERT_EQ(AnswerOf(in_memory(asked, false)), expected);
        ASSERT_EQ(AnswerOf(carrier.Attempt(now, asked, false)), expected);
      } else {
        const Answer expected = oracle.Attempt(now, costs);
        const Decision decision = in_memory(costs, true);
        ASSERT_EQ(AnswerOf(decision), expected);
        const Decision carried = carrier.Attempt(now, costs, true);
        ASSERT_EQ(AnswerOf(carried), expected);
        if (expected.allowed()) made.push_back({decision, carried, costs, oracle.attempts()});
      }
    }
  }
}

// Kills: a settle that is lost where the attempt has leaked; an id that is forgotten before.
TEST(WeightedGcra, AnAttemptSettledWithinItsWindowIsAsIfItHadCostThatMuch) {
  int leaked = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    PolicyOptions policy = RandomPolicy(random, false, 30);
    policy.algorithm = Algorithm::kGcra;
    policy.weighted = true;
    Micros longest = 0;
    for (const Window& window : policy.windows) longest = std::max(longest, window.interval);
    Limiter settled(policy);
    Limiter direct(policy);
    CarriedLimiter carried(policy);
    const auto attempt = [&](Limiter& limiter, Micros now, const CostsOfWindows& costs) {
      Decision decision;
      decision.windows = limiter.uses();
      limiter.store->Decide(Id(1), now, Costs(costs), Recording::kAttempt, decision);
      return decision;
    };
    Micros now = 1000;
    for (int step = 0; step < 100; ++step) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed << ", step " << step);
      now = NextLater(random, now);
      const CostsOfWindows costs = RandomCosts(random, policy);
      CostsOfWindows actual = RandomCosts(random, policy);
      Decision decision;
      decision.windows = direct.uses();
      direct.store->Decide(Id(1), now, Costs(actual), Recording::kNothing, decision);
      if (!decision.verdict.allowed()) actual = costs;
      const Decision as_if = attempt(direct, now, actual);
      const Decision made = attempt(settled, now, costs);
      const Decision made_carried = carried.Attempt(now, costs, true);
      if (!made.verdict.allowed() || !as_if.verdict.allowed()) {
        if (made.verdict.allowed() != as_if.verdict.allowed()) {
          settled.store->Clear(Id(1));
          direct.store->Clear(Id(1));
          carried.Clear();
        }
        continue;
      }
      const Micros at = now;
      now += random.Between(0, longest + 1);
      for (std::int64_t id = 2; id < 70; ++id) settled.store->Check(Id(id), now);
      decision.windows = settled.uses();
      settled.store->Decide(Id(1), now, Costs(0), Recording::kNothing, decision);
      leaked += decision.windows[0].used == 0;
      const Receipt receipt{at, Costs(costs), made.token};
      const bool lasts = now - at < longest;
      ASSERT_EQ(settled.store->Settle(Id(1), receipt, Costs(actual), now), lasts);
      ASSERT_EQ(carried.Settle(made_carried, costs, actual, now), lasts);
      decision.windows = direct.uses();
      direct.store->Decide(Id(1), now, Costs(0), Recording::kNothing, decision);
      const Answer expected = AnswerOf(decision);
      ASSERT_EQ(AnswerOf(carried.Attempt(now, CostsOfWindows(costs.size(), 0), false)), expected);
      decision.windows = settled.uses();
      settled.store->Decide(Id(1), now, Costs(0), Recording::kNothing, decision);
      ASSERT_EQ(AnswerOf(decision), expected);
    }
  }
  EXPECT_GT(leaked, 1000);
}

PolicyOptions TokenBudget() {
  return {.windows = {{60 * kSecond, 2'000'000}, {kHour, 20'000'000}},
          .count_blocked = false,
          .weighted = true};
}

// Kills: merging onto the older stamp, zones without the number of windows, a block that never
// stops growing.
TEST(WeightedLog, BeyondItsEntriesRoomComesBackLateButNeverEarly) {
  const PolicyOptions policy = TokenBudget();
  Limiter limiter(policy);
  std::vector<std::pair<Micros, std::uint64_t>> allowed;
  Random random(1);
  Micros now = 0;
  const auto used = [&](const Window& window, Micros at) {
    std::uint64_t sum = 0;
    for (auto one = allowed.rbegin(); one != allowed.rend(); ++one) {
      if (at - one->first >= window.interval) break;
      sum += one->second;
    }
    return sum;
  };
  for (int i = 0; i < 30'000; ++i) {
    now += random.Between(0, 20'000);
    const auto cost = static_cast<std::uint64_t>(random.Between(1, 10'000));
    Decision decision;
    decision.windows = limiter.uses();
    limiter.store->Decide(Id(1), now, cost, Recording::kAttempt, decision);
    for (std::size_t w = 0; w < policy.windows.size(); ++w) {
      const Window& window = policy.windows[w];
      if (decision.verdict.allowed()) {
        ASSERT_LE(used(window, now) + cost, window.max) << i;
        continue;
      }
      const Micros late = window.interval * std::ssize(policy.windows) / 256;
      const std::uint64_t held = decision.windows[w].used;
      ASSERT_GE(held, used(window, now)) << i;
      ASSERT_LE(held, used({window.interval + late, window.max}, now)) << i;
    }
    if (decision.verdict.allowed()) allowed.emplace_back(now, cost);
  }
  EXPECT_GT(allowed.size(), 2 * WeightedEntries::kMost);
  EXPECT_LE(limiter.store->stats().bytes, 40u << 10);

  // All room is back one interval after the last action.
  Decision decision;
  decision.windows = limiter.uses();
  limiter.store->Decide(Id(1), allowed.back().first + kHour, 2'000'000, Recording::kNothing,
                        decision);
  EXPECT_TRUE(decision.verdict.allowed());
}

// Kills: a settle that finds the next entry after its own was dropped or removed.
TEST(WeightedLog, SettlesNothingThatIsGone) {
  Limiter limiter({.windows = {{10, 100}}, .count_blocked = false, .weighted = true});
  const Decision first = limiter.Attempt(1, 0, 60);
  const Receipt receipt{0, 60, first.token};
  for (Micros now = 1; now <= 5; ++now) limiter.Attempt(1, now, 1);  // room for 8 is used up
  EXPECT_TRUE(limiter.store->Settle(Id(1), receipt, 0, 5));
  EXPECT_FALSE(limiter.store->Settle(Id(1), receipt, 0, 5));
  EXPECT_EQ(limiter.Peek(1, 5, 0).windows[0].used, 5u);

  const Decision second = limiter.Attempt(1, 6, 50);
  for (Micros now = 20; now < 30; ++now) limiter.Attempt(1, now, 1);
  EXPECT_FALSE(limiter.store->Settle(Id(1), {6, 50, second.token}, 0, 30));
  EXPECT_EQ(limiter.Peek(1, 29, 0).windows[0].used, 10u);
}

TEST(WeightedLog, AnOverdraftRefusesUntilEnoughHasLeft) {
  Limiter limiter({.windows = {{100, 10}, {1000, 20}}, .count_blocked = false, .weighted = true});
  const Decision decision = limiter.Attempt(1, 0, 1);
  EXPECT_TRUE(limiter.store->Settle(Id(1), {0, 1, decision.token}, 25, 0));
  const Decision refused = limiter.Attempt(1, 50, 1);
  EXPECT_EQ(refused.time_left, 950);
  EXPECT_EQ(refused.windows[0].used, 25u);
  EXPECT_EQ(refused.windows[0].remaining, 0u);
  EXPECT_FALSE(limiter.Attempt(1, 999, 1).verdict.allowed());
  EXPECT_TRUE(limiter.Attempt(1, 1000, 10).verdict.allowed());
}

TEST(WeightedLog, MemoryDoesNotDependOnTheCost) {
  for (const std::uint64_t cost : {1u, 4000u}) {
    Limiter limiter(
        {.windows = {{60 * kSecond, 2'000'000}}, .count_blocked = false, .weighted = true});
    for (Micros now = 0; now < 100 * kSecond; now += 1000) limiter.Attempt(1, now, cost);
    EXPECT_LE(limiter.store->stats().bytes, 22u << 10) << cost;
  }
}

}  // namespace
}  // namespace rollgate::testing
