// Every algorithm at its limits: floods of ids, the ends of time, and numbers that come again.
#include "core/algorithms.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/limiter.h"

namespace rollgate {
namespace {

using testing::kHour;
using testing::kSecond;
using testing::Limiter;

constexpr Algorithm kAll[] = {Algorithm::kSlidingWindowLog, Algorithm::kSlidingWindowCounter,
                              Algorithm::kFixedWindow, Algorithm::kGcra};
const char* const kNames[] = {"Log", "Counter", "FixedWindow", "Gcra"};

/// All four algorithms.
class AnyAlgorithm : public ::testing::TestWithParam<Algorithm> {
 protected:
  static PolicyOptions Policy(Micros interval, std::uint64_t max, std::vector<Micros> blocks = {}) {
    return {{{interval, max}}, 0, false, GetParam(), std::move(blocks)};
  }
};
INSTANTIATE_TEST_SUITE_P(All, AnyAlgorithm, ::testing::ValuesIn(kAll), [](const auto& info) {
  return kNames[static_cast<std::size_t>(info.param)];
});

TEST_P(AnyAlgorithm, ABlockOutlivesAFloodOfIds) {
  Limiter limiter(Policy(kSecond, 1, {1000 * kSecond}), 3);
  limiter.Attempt(1, 0);
  EXPECT_FALSE(limiter.Allows(1, 0));
  for (std::int64_t id = 2; id < 20; ++id) limiter.Attempt(id, 5 * kSecond);
  EXPECT_FALSE(limiter.Allows(1, 6 * kSecond)) << "others are nearer to expiry";
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
      Limiter limiter(Policy(60 * kSecond, max));
      for (std::uint64_t i = 0; i < max; ++i) ASSERT_TRUE(limiter.Allows(1, now));
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
  PolicyOptions policy = Policy(kHour, 1000);
  policy.count_blocked = GetParam() != Algorithm::kGcra;
  Limiter limiter(policy);
  EXPECT_TRUE(limiter.Attempt(1, 7, 1000).verdict.allowed());
  for (int i = 1000; i < 1 << 24; i += 1000) {
    ASSERT_FALSE(limiter.Attempt(1, 7, 1000).verdict.allowed());
  }
  for (int i = 0; i < 2000; ++i) ASSERT_FALSE(limiter.Allows(1, 7));
  EXPECT_EQ(limiter.Peek(1, 7).actions_left, 0u);
}

TEST(Counter, KeepsIdsForTwoWindowsAmongManyOthers) {
  Limiter limiter({{{1000, 10}}, 0, false, Algorithm::kSlidingWindowCounter, {}});
  limiter.Attempt(1, 500, 10);
  for (std::int64_t id = 2; id < 1000; ++id) limiter.Attempt(id, 1500);
  EXPECT_EQ(limiter.Peek(1, 1500, 0).windows[0].used, 5u) << "half of the window before";
}

TEST(GcraRefunds, TakeNothingAfterAClear) {
  for (const std::uint64_t max : {5ull, 100'000ull, 1ull << 30, 1ull << 40}) {
    for (std::int64_t others = 0; others < 9; ++others) {
      Limiter limiter({{{kHour, max}}, 0, false, Algorithm::kGcra, {}});
      const Decision old = limiter.Attempt(1, 0);
      limiter.store->Clear(testing::Id(1));
      for (std::int64_t id = 0; id < others; ++id) limiter.Attempt(2 + id, 0);
      limiter.Attempt(1, 1, max);
      EXPECT_FALSE(limiter.Refund(1, old, 1, 1)) << max << ", " << others;
    }
  }
}

}  // namespace
}  // namespace rollgate
