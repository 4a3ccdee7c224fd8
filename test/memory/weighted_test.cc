// Limits that count different things: what is settled late, and what merging may do beyond the
// longest exact log.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/weighted_entries.h"
#include "support/carrier.h"
#include "support/limiter.h"
#include "support/oracle.h"
#include "support/traces.h"

namespace rollgate::testing {
namespace {

using CostsOfWindows = std::vector<std::uint64_t>;

// Kills: a settle that is lost where the attempt has leaked.
TEST(WeightedGcra, AnAttemptSettledWithinItsWindowIsAsIfItHadCostThatMuch) {
  int leaked = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    PolicyOptions policy = RandomPolicy(random, false, 30);
    policy.algorithm = Algorithm::kGcra;
    policy.weighted = true;
    const Micros longest = std::ranges::max(policy.windows, {}, &Window::interval).interval;
    Limiter settled(policy);
    Limiter direct(policy);
    Carrier carried(policy);
    Micros now = 1000;
    for (int step = 0; step < 100; ++step) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed << ", step " << step);
      now = NextLater(random, now);
      const CostsOfWindows costs = RandomCosts(random, policy);
      CostsOfWindows actual = RandomCosts(random, policy);
      if (!direct.Peek(1, now, Costs(actual)).verdict.allowed()) actual = costs;
      const Decision as_if = direct.Attempt(1, now, Costs(actual));
      const Decision made = settled.Attempt(1, now, Costs(costs));
      const Decision made_carried = carried.Attempt(now, Costs(costs));
      const bool is_allowed = made.verdict.allowed();
      if (is_allowed != as_if.verdict.allowed()) {
        settled.store->Clear(Id(1));
        direct.store->Clear(Id(1));
        carried.state.clear();
      }
      if (!is_allowed || !as_if.verdict.allowed()) continue;
      const Micros at = now;
      now += random.Between(0, longest + 1);
      leaked += settled.Peek(1, now, 0).windows[0].used == 0;
      const bool lasts = now - at < longest;
      ASSERT_EQ(settled.Settle(1, made, Costs(costs), Costs(actual), now), lasts);
      ASSERT_EQ(carried.Settle(made_carried, Costs(costs), Costs(actual), now), lasts);
      const Answer expected = AnswerOf(direct.Peek(1, now, 0));
      ASSERT_EQ(AnswerOf(carried.Peek(now, 0)), expected);
      ASSERT_EQ(AnswerOf(settled.Peek(1, now, 0)), expected);
    }
  }
  EXPECT_GT(leaked, 1000);
}

// Kills: an id that is forgotten once its bucket is empty.
TEST(WeightedGcra, AnIdIsKnownAsLongAsItsAttemptCanBeSettled) {
  Limiter limiter({.windows = {{1000, 10}},
                   .count_blocked = false,
                   .algorithm = Algorithm::kGcra,
                   .weighted = true});
  const Decision made = limiter.Attempt(1, 0);  // leaks in 100 us
  for (std::int64_t id = 2; id < 500; ++id) limiter.Attempt(id, 900);
  EXPECT_TRUE(limiter.Settle(1, made, 1, 5, 999));
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
    const Decision decision = limiter.Attempt(1, now, cost);
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
  EXPECT_TRUE(limiter.Peek(1, allowed.back().first + kHour, 2'000'000).verdict.allowed());
}

// Kills: a settle that finds the next entry after its own was dropped or removed.
TEST(WeightedLog, SettlesNothingThatIsGone) {
  Limiter limiter({.windows = {{10, 100}}, .count_blocked = false, .weighted = true});
  const Decision first = limiter.Attempt(1, 0, 60);
  for (Micros now = 1; now <= 5; ++now) limiter.Attempt(1, now, 1);  // room for 8 is used up
  EXPECT_TRUE(limiter.Refund(1, first, 60, 5));
  EXPECT_FALSE(limiter.Refund(1, first, 60, 5));
  EXPECT_EQ(limiter.Peek(1, 5, 0).windows[0].used, 5u);

  const Decision second = limiter.Attempt(1, 6, 50);
  for (Micros now = 20; now < 30; ++now) limiter.Attempt(1, now, 1);
  EXPECT_FALSE(limiter.Refund(1, second, 50, 30));
  EXPECT_EQ(limiter.Peek(1, 29, 0).windows[0].used, 10u);

  // What others were merged onto is gone, too.
  Limiter many({.windows = {{10'000, 10'000}}, .count_blocked = false, .weighted = true});
  const Decision old = many.Attempt(1, 0);
  for (const Micros from : {1, 30'000}) {
    for (Micros now = from; now < from + 2000; ++now) many.Attempt(1, now);
  }
  EXPECT_FALSE(many.Refund(1, old, 1, 32'000));
}

}  // namespace
}  // namespace rollgate::testing
