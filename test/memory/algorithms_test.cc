// Every algorithm with blocks, costs and several windows, against a history that keeps everything.
#include "core/algorithms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/history.h"
#include "support/limiter.h"
#include "support/traces.h"

namespace rollgate {
namespace {

using testing::History;
using testing::Limiter;
using testing::Random;

struct Case {
  Algorithm algorithm;
  bool count_blocked;
  bool has_blocks;
};

std::string NameOf(const ::testing::TestParamInfo<Case>& info) {
  const char* const names[] = {"Log", "Counter", "FixedWindow", "Gcra"};
  std::string name = names[static_cast<std::size_t>(info.param.algorithm)];
  if (info.param.count_blocked) name += "CountingRefusals";
  if (info.param.has_blocks) name += "WithBlocks";
  return name;
}

class EveryAlgorithm : public ::testing::TestWithParam<Case> {};

PolicyOptions PolicyFor(Random& random, const Case& with) {
  PolicyOptions policy = testing::RandomPolicy(random, with.count_blocked);
  policy.algorithm = with.algorithm;
  if (with.has_blocks) {
    for (std::int64_t i = random.Between(1, 3); i > 0; --i) {
      policy.blocks.push_back(random.Between(1, 60));
    }
  }
  return policy;
}

void ExpectSame(const Decision& decision, const History::Answer& expected) {
  EXPECT_EQ(decision.verdict.blocked_by_count, expected.by_count);
  EXPECT_EQ(decision.verdict.blocked_by_min_difference, expected.by_min_difference);
  EXPECT_EQ(decision.verdict.blocked_by_block, expected.by_block);
  EXPECT_EQ(decision.verdict.at, expected.at);
  EXPECT_EQ(decision.time_left, expected.time_left);
  EXPECT_EQ(decision.wait, expected.wait);
  EXPECT_EQ(decision.actions_left, expected.actions_left);
  EXPECT_EQ(decision.reset_in, expected.reset_in);
  for (std::size_t i = 0; i < expected.used.size(); ++i) {
    EXPECT_EQ(decision.windows[i].used, expected.used[i]);
    EXPECT_EQ(decision.windows[i].reset_in, expected.window_reset_in[i]);
  }
}

TEST_P(EveryAlgorithm, DecidesAsTheWholeHistorySays) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const PolicyOptions policy = PolicyFor(random, GetParam());
    const std::uint64_t smallest_max = Policy(policy).smallest_max();
    Limiter limiter(policy);
    History oracle(policy);
    Micros now = random.Between(-100, 100);
    for (int step = 0; step < 60; ++step) {
      now = testing::NextReading(random, now);
      const auto cost = static_cast<std::uint64_t>(
          random.Chance(70) ? 1 : random.Between(1, static_cast<std::int64_t>(smallest_max)));
      if (random.Chance(20)) {
        ExpectSame(limiter.Peek(1, now, cost), oracle.Peek(now, cost));
      } else if (cost == 1 && random.Chance(30)) {
        const Micros time_left = limiter.store->Check(testing::Id(1), now);
        EXPECT_EQ(time_left, oracle.Attempt(now, 1).time_left);
      } else {
        ExpectSame(limiter.Attempt(1, now, cost), oracle.Attempt(now, cost));
      }
      if (HasFailure()) return;
    }
  }
}

class Counts : public EveryAlgorithm {};

TEST_P(Counts, RefundsWhatStillCounts) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const PolicyOptions policy = PolicyFor(random, GetParam());
    Limiter limiter(policy);
    History oracle(policy);
    struct Made {
      Decision decision;
      std::size_t attempt;
    };
    std::vector<Made> made;
    Micros now = 0;
    for (int step = 0; step < 60; ++step) {
      now = testing::NextLater(random, now);
      const Decision decision = limiter.Attempt(1, now);
      const History::Answer expected = oracle.Attempt(now, 1);
      ExpectSame(decision, expected);
      if (expected.allowed()) made.push_back({decision, expected.attempt});
      if (!made.empty() && random.Chance(40)) {
        const auto which =
            static_cast<std::size_t>(random.Between(0, static_cast<std::int64_t>(made.size()) - 1));
        EXPECT_EQ(limiter.Refund(1, made[which].decision),
                  oracle.RefundCounted(made[which].attempt));
        made.erase(made.begin() + static_cast<std::ptrdiff_t>(which));
      }
      if (HasFailure()) return;
    }
  }
}

/// A window of GCRA as the book has it, in units of 1 / max us.
class Bucket {
 public:
  explicit Bucket(const Window& window)
      : interval_(window.interval), max_(static_cast<Micros>(window.max)) {}

  /// Whether the action conforms; it is counted if so.
  bool Take(Micros at, Micros cost) {
    const Micros arrival = std::max(arrival_, at * max_) + cost * interval_;
    if (arrival - at * max_ > max_ * interval_) return false;
    arrival_ = arrival;
    return true;
  }

 private:
  Micros interval_;
  Micros max_;
  Micros arrival_ = -kLongest;
};

TEST(GcraRefunds, NeverLetMoreThroughThanTheRule) {
  std::size_t refunded = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    PolicyOptions policy = PolicyFor(random, {Algorithm::kGcra, false, random.Chance(30)});
    const auto smallest_max = static_cast<std::int64_t>(Policy(policy).smallest_max());
    Limiter limiter(policy);
    struct Made {
      Decision decision;
      std::uint64_t cost;
      bool kept = true;
    };
    std::vector<Made> made;
    Micros now = 0;
    for (int step = 0; step < 200; ++step) {
      now = testing::NextLater(random, now);
      const auto cost = static_cast<std::uint64_t>(random.Between(1, smallest_max));
      const Decision decision = limiter.Attempt(1, now, cost);
      if (decision.verdict.allowed()) made.push_back({decision, cost});
      if (!made.empty() && random.Chance(50)) {
        const auto size = static_cast<std::int64_t>(made.size());
        Made& one = made[static_cast<std::size_t>(
            size - random.Between(1, std::min<std::int64_t>(size, 4)))];
        now += random.Between(0, 3);
        if (one.kept && limiter.Refund(1, one.decision, one.cost, now)) {
          one.kept = false;
          ++refunded;
        }
      }
    }
    for (const Window& window : policy.windows) {
      Bucket bucket(window);
      for (const Made& one : made) {
        if (one.kept) {
          EXPECT_TRUE(bucket.Take(one.decision.verdict.at, static_cast<Micros>(one.cost)));
        }
      }
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(refunded, 1000u);
}

TEST(GcraRefunds, UndoAnAttemptThatNoOtherFollowed) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const PolicyOptions policy = PolicyFor(random, {Algorithm::kGcra, false, false});
    Limiter with(policy);
    Limiter without(policy);
    Micros now = 0;
    for (int step = 0; step < 100; ++step) {
      now = testing::NextLater(random, now) + policy.min_difference;
      if (random.Chance(40)) {
        const Decision decision = with.Attempt(1, now);
        now += random.Between(0, 20);
        if (decision.verdict.allowed()) with.Refund(1, decision, 1, now);
        now += policy.min_difference;
      }
      const Decision expected = without.Attempt(1, now);
      const Decision decision = with.Attempt(1, now);
      EXPECT_EQ(decision.verdict.allowed(), expected.verdict.allowed());
      EXPECT_EQ(decision.time_left, expected.time_left);
      EXPECT_EQ(decision.reset_in, expected.reset_in);
      if (HasFailure()) return;
    }
  }
}

TEST(GcraRefunds, GiveBackWhatHasNotLeaked) {
  // Ten a second, so one leaks in 100 ms.
  Limiter limiter({{{testing::kSecond, 10}}, 0, false, Algorithm::kGcra, {}});
  const Decision first = limiter.Attempt(1, 0);
  const Decision second = limiter.Attempt(1, 0);
  EXPECT_TRUE(limiter.Refund(1, first, 1, 50'000));
  EXPECT_EQ(limiter.Peek(1, 50'000, 0).windows[0].reset_in, 100'000);
  EXPECT_TRUE(limiter.Refund(1, second, 1, 50'000));
  EXPECT_EQ(limiter.Peek(1, 50'000, 0).windows[0].used, 0u);
  const Decision third = limiter.Attempt(1, 50'000);
  EXPECT_FALSE(limiter.Refund(1, third, 1, 150'000)) << "it has leaked";
}

TEST(GcraRefunds, TakeNothingAfterAClear) {
  for (const std::uint64_t max : {5u, 500u, 100'000u}) {
    for (const std::int64_t others : {0, 1, 2, 3, 5, 8}) {
      Limiter limiter({{{testing::kHour, max}}, 0, false, Algorithm::kGcra, {}});
      const Decision old = limiter.Attempt(1, 0);
      limiter.store->Clear(testing::Id(1));
      for (std::int64_t id = 0; id < others; ++id) limiter.Attempt(2 + id, 0);
      const std::uint64_t used = std::min<std::uint64_t>(max, 400);
      limiter.Attempt(1, 1, used);
      EXPECT_FALSE(limiter.Refund(1, old, 1, 2)) << max << ", " << others;
      EXPECT_EQ(limiter.Peek(1, 2, 0).windows[0].used, used) << max << ", " << others;
    }
  }
}

/// With all four algorithms.
class AnyAlgorithm : public ::testing::TestWithParam<Algorithm> {
 protected:
  static PolicyOptions Policy(Micros interval, std::uint64_t max, std::vector<Micros> blocks = {}) {
    return {{{interval, max}}, 0, false, GetParam(), std::move(blocks)};
  }
};

TEST_P(AnyAlgorithm, ABlockOutlivesAFloodOfIds) {
  Limiter limiter(Policy(testing::kSecond, 1, {1000 * testing::kSecond}), 3);
  limiter.Attempt(1, 0);
  EXPECT_FALSE(limiter.Allows(1, 0));
  for (std::int64_t id = 2; id < 20; ++id) limiter.Attempt(id, 5 * testing::kSecond);
  EXPECT_FALSE(limiter.Allows(1, 6 * testing::kSecond)) << "others are nearer to expiry";
  EXPECT_EQ(limiter.store->stats().keys, 3u);
}

TEST_P(AnyAlgorithm, ABlockOutlivesARefundAndExpiredIds) {
  Limiter limiter(Policy(100, 1, {1000}));
  limiter.Attempt(1, 0);
  const Decision second = limiter.Attempt(1, 1150);
  EXPECT_FALSE(limiter.Allows(1, 1150));
  limiter.Refund(1, second, 1, 1151);
  for (std::int64_t id = 2; id < 1000; ++id) limiter.Attempt(id, 1200 + id / 10);
  const Decision decision = limiter.Attempt(1, 1300);
  EXPECT_TRUE(decision.verdict.blocked_by_block);
  EXPECT_EQ(decision.time_left, 850);
}

TEST_P(AnyAlgorithm, AnIdIsForgottenOnceItsBlockAndOffencesAreOver) {
  Limiter limiter(Policy(100, 1, {1000}));
  limiter.Attempt(1, 0);
  EXPECT_FALSE(limiter.Allows(1, 0));
  for (std::int64_t id = 2; id < 2000; ++id) limiter.Attempt(id, 10'000 + id);
  EXPECT_LT(limiter.store->stats().keys, 500u);
}

TEST_P(AnyAlgorithm, HoldsAtTheEndsOfTime) {
  for (const Micros now : {-kLongest, -(Micros{1} << 52) - 7, (Micros{1} << 52) + 7, kLongest}) {
    for (const std::uint64_t max : {2u, 5000u}) {
      SCOPED_TRACE(std::to_string(now) + ", " + std::to_string(max));
      Limiter limiter(Policy(60 * testing::kSecond, max));
      for (std::uint64_t i = 0; i < max; ++i) EXPECT_TRUE(limiter.Allows(1, now));
      const Decision refused = limiter.Attempt(1, now);
      EXPECT_FALSE(refused.verdict.allowed());
      EXPECT_GT(refused.time_left, 0);
      EXPECT_FALSE(limiter.Allows(1, now));
    }
  }
}

TEST_P(AnyAlgorithm, HoldsWhereTimeJumpsFromOneEndToTheOther) {
  Limiter limiter(Policy(kLongest, 1000));
  const Decision first = limiter.Attempt(1, kLongest, 1000);
  EXPECT_FALSE(limiter.Allows(1, -kLongest));
  limiter.Refund(1, first, 1000, -kLongest);
  limiter.Attempt(1, kLongest);
}

/// A count has 24 bits.
TEST_P(AnyAlgorithm, HoldsAgainstMoreRefusalsThanCountsCanTell) {
  PolicyOptions policy = Policy(testing::kHour, 5);
  policy.count_blocked = GetParam() != Algorithm::kGcra;
  Limiter limiter(policy);
  const Identity id = testing::Id(1);
  int allowed = 0;
  for (int i = 0; i < (1 << 24) + 10; ++i) allowed += limiter.store->Check(id, 7) == 0;
  EXPECT_EQ(allowed, 5);
  EXPECT_EQ(limiter.Peek(1, 7).actions_left, 0u);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, AnyAlgorithm,
                         ::testing::Values(Algorithm::kSlidingWindowLog,
                                           Algorithm::kSlidingWindowCounter,
                                           Algorithm::kFixedWindow, Algorithm::kGcra));

constexpr Case kCounting[] = {{Algorithm::kSlidingWindowCounter, true, false},
                              {Algorithm::kSlidingWindowCounter, false, false},
                              {Algorithm::kSlidingWindowCounter, true, true},
                              {Algorithm::kSlidingWindowCounter, false, true},
                              {Algorithm::kFixedWindow, true, false},
                              {Algorithm::kFixedWindow, false, false},
                              {Algorithm::kFixedWindow, true, true},
                              {Algorithm::kFixedWindow, false, true}};

INSTANTIATE_TEST_SUITE_P(Counting, EveryAlgorithm, ::testing::ValuesIn(kCounting), NameOf);
INSTANTIATE_TEST_SUITE_P(Counting, Counts, ::testing::ValuesIn(kCounting), NameOf);
INSTANTIATE_TEST_SUITE_P(Logging, EveryAlgorithm,
                         ::testing::Values(Case{Algorithm::kSlidingWindowLog, true, false},
                                           Case{Algorithm::kSlidingWindowLog, false, false},
                                           Case{Algorithm::kSlidingWindowLog, true, true},
                                           Case{Algorithm::kSlidingWindowLog, false, true}),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Leaking, EveryAlgorithm,
                         ::testing::Values(Case{Algorithm::kGcra, false, false},
                                           Case{Algorithm::kGcra, false, true}),
                         NameOf);

}  // namespace
}  // namespace rollgate
