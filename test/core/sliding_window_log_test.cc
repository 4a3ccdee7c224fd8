// The algorithm on a ring of its own, held against the oracle.
#include "core/sliding_window_log.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/judging.h"
#include "core/ring_log.h"
#include "support/oracle.h"
#include "support/traces.h"

namespace rollgate {
namespace {

using testing::Oracle;
using testing::Random;

/// A limiter for one id, from the core alone.
template <class Stamp>
class OneId {
  using Rules = SlidingWindowLog<Policy, Stamp>;

 public:
  using Account = typename Rules::Account;

  explicit OneId(const Policy& policy)
      : rules_(policy),
        capacity_(policy.log_capacity()),
        ring_((capacity_ - 1) * sizeof(Stamp)),
        uses_(policy.windows().size()) {}

  RingLog<Stamp> log() { return {head_, ring_.data(), capacity_ - 1, capacity_}; }

  Decision Attempt(Micros now, std::uint64_t cost = 1) {
    Decision decision;
    decision.windows = uses_;
    Judging(rules_).Attempt(*this, now, cost, decision);
    return decision;
  }

  Decision Peek(Micros now, std::uint64_t cost = 1) {
    Decision decision;
    decision.windows = uses_;
    Judging(rules_).Peek(*this, now, cost, decision);
    return decision;
  }

  bool Refund(Micros at, std::uint64_t cost) {
    const Refunded refunded = Judging(rules_).Refund(*this, {at, cost, kGeneration}, at);
    if (refunded == Refunded::kAll) head_ = LogHead();
    return refunded != Refunded::kNothing;
  }

  // The carrier: see core/judging.h.
  Account Load() { return Account(rules_, log(), kGeneration); }
  Account LoadCopy() { return Load(); }
  Block LoadBlock() const { return {}; }
  void Reserve(Account&, Micros, std::uint64_t) const {}
  void Save(const Account& account, const Block&) { head_ = account.log().head(); }

 private:
  static constexpr Generation kGeneration = 7;

  Rules rules_;
  std::uint32_t capacity_;
  LogHead head_;
  std::vector<std::byte> ring_;
  std::vector<WindowUse> uses_;
};

void ExpectSame(const Decision& actual, const Oracle::Answer& expected) {
  EXPECT_EQ(actual.verdict.blocked_by_count, expected.by_count);
  EXPECT_EQ(actual.verdict.blocked_by_min_difference, expected.by_min_difference);
  EXPECT_EQ(actual.verdict.at, expected.at);
  EXPECT_EQ(actual.time_left, expected.time_left);
  EXPECT_EQ(actual.wait, expected.wait);
  EXPECT_EQ(actual.actions_left, expected.actions_left);
  for (std::size_t i = 0; i < expected.used.size(); ++i) {
    EXPECT_EQ(actual.windows[i].used, expected.used[i]);
    EXPECT_EQ(actual.windows[i].reset_in, expected.reset_in[i]);
  }
}

template <class Stamp>
class ExactLog : public ::testing::Test {};
using Stamps = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(ExactLog, Stamps);

TYPED_TEST(ExactLog, AgreesWithTheOracleOnRandomTraces) {
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Policy policy(testing::RandomPolicy(random, seed % 2 == 0));
    OneId<TypeParam> id(policy);
    Oracle oracle(policy);
    Micros now = random.Between(-1000, 1000);
    for (int step = 0; step < 80; ++step) {
      now = testing::NextReading(random, now);
      const auto smallest = static_cast<std::int64_t>(policy.smallest_max());
      const auto cost =
          static_cast<std::uint64_t>(random.Chance(70) ? 1 : random.Between(1, smallest));
      if (random.Chance(30)) {
        ExpectSame(id.Peek(now, cost), oracle.Peek(now, cost));
      } else {
        ExpectSame(id.Attempt(now, cost), oracle.Attempt(now, cost));
      }
      if (this->HasFailure()) return;
    }
  }
}

TYPED_TEST(ExactLog, RefundsExactlyWhereRefusalsLeaveNoTrace) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Policy policy(testing::RandomPolicy(random, false));
    OneId<TypeParam> id(policy);
    Oracle oracle(policy);
    struct Made {
      Micros at;
      std::uint64_t cost;
      std::uint64_t attempt;
    };
    std::vector<Made> made;
    Micros now = 0;
    for (int step = 0; step < 80; ++step) {
      now = testing::NextLater(random, now);
      const auto cost = static_cast<std::uint64_t>(
          random.Between(1, static_cast<std::int64_t>(policy.smallest_max())));
      const Oracle::Answer answer = oracle.Attempt(now, cost);
      ExpectSame(id.Attempt(now, cost), answer);
      if (answer.allowed()) made.push_back({answer.at, cost, answer.attempt});
      if (!made.empty() && random.Chance(30)) {
        const auto which =
            static_cast<std::size_t>(random.Between(0, static_cast<std::int64_t>(made.size()) - 1));
        id.Refund(made[which].at, made[which].cost);
        oracle.Refund(made[which].attempt);
        made.erase(made.begin() + static_cast<std::ptrdiff_t>(which));
      }
      if (this->HasFailure()) return;
    }
  }
}

TYPED_TEST(ExactLog, RefundsNeverLetMoreThroughWhereRefusalsCount) {
  int refunded_to_use = 0;
  for (std::uint64_t seed = 0; seed < 800; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Policy policy(testing::RandomPolicy(random, true, 5));
    OneId<TypeParam> id(policy);
    Oracle oracle(policy);
    struct Made {
      Micros at;
      std::uint64_t cost;
      std::uint64_t attempt;
    };
    std::vector<Made> made;
    Micros now = 0;
    bool refunded = false;
    for (int step = 0; step < 80; ++step) {
      now = testing::NextLater(random, now);
      const auto cost = static_cast<std::uint64_t>(
          random.Chance(70) ? 1
                            : random.Between(1, static_cast<std::int64_t>(policy.smallest_max())));
      const Decision decision = id.Attempt(now, cost);
      const Oracle::Answer answer = oracle.Attempt(now, cost);
      if (decision.verdict.allowed()) {
        EXPECT_TRUE(answer.allowed());
        if (refunded) ++refunded_to_use;
        made.push_back({answer.at, cost, answer.attempt});
      }
      if (!made.empty() && random.Chance(25)) {
        id.Refund(made.back().at, made.back().cost);
        oracle.Refund(made.back().attempt);
        made.pop_back();
        refunded = true;
      }
      if (this->HasFailure()) return;
    }
  }
  EXPECT_GT(refunded_to_use, 1000);
}

TYPED_TEST(ExactLog, GivesThePlaceBackWhenNoRefusalTookOne) {
  const Policy policy({{{1000, 3}}, 0, true});
  OneId<TypeParam> id(policy);
  id.Attempt(1);
  id.Attempt(2);
  id.Attempt(3);
  EXPECT_TRUE(id.Refund(2, 1));
  EXPECT_TRUE(id.Attempt(4).verdict.allowed());
  EXPECT_FALSE(id.Attempt(5).verdict.allowed());
}

TYPED_TEST(ExactLog, FindsNothingToRefundTwiceOrElsewhen) {
  const Policy policy({{{1000, 3}}, 0, false});
  OneId<TypeParam> id(policy);
  EXPECT_FALSE(id.log().size() > 0);
  id.Attempt(5);
  EXPECT_FALSE(id.Refund(4, 1));
  EXPECT_FALSE(id.Refund(6, 1));
  EXPECT_TRUE(id.Refund(5, 1));
  EXPECT_EQ(id.log().size(), 0u);
}

TYPED_TEST(ExactLog, AnActionLeavesTheWindowExactlyAfterTheInterval) {
  const Policy policy({{{1'000'000, 1}}, 0, false});
  OneId<TypeParam> id(policy);
  EXPECT_TRUE(id.Attempt(7).verdict.allowed());
  EXPECT_FALSE(id.Attempt(1'000'006).verdict.allowed());
  EXPECT_EQ(id.Peek(1'000'006).time_left, 1);
  EXPECT_TRUE(id.Attempt(1'000'007).verdict.allowed());
}

TYPED_TEST(ExactLog, TheGapItselfIsEnough) {
  const Policy policy({{{1'000'000, 100}}, 50, false});
  OneId<TypeParam> id(policy);
  id.Attempt(0);
  const Decision early = id.Attempt(49);
  EXPECT_TRUE(early.verdict.blocked_by_min_difference);
  EXPECT_FALSE(early.verdict.blocked_by_count);
  EXPECT_EQ(early.time_left, 1);
  EXPECT_TRUE(id.Attempt(50).verdict.allowed());
}

TYPED_TEST(ExactLog, ABlockedAttemptCountsTowardsItsOwnWait) {
  const Policy policy({{{100, 2}}, 0, true});
  OneId<TypeParam> id(policy);
  id.Attempt(0);
  id.Attempt(60);
  EXPECT_EQ(id.Attempt(70).time_left, 90);  // until the action at 60 leaves
  EXPECT_EQ(id.Attempt(80).time_left, 90);  // until the refusal at 70 leaves
}

TYPED_TEST(ExactLog, AStepBackWaitsForTheClockToComeBack) {
  const Policy policy({{{100, 1}}, 0, false});
  OneId<TypeParam> id(policy);
  id.Attempt(1000);
  EXPECT_EQ(id.Attempt(400).time_left, 700);
  EXPECT_FALSE(id.Attempt(1099).verdict.allowed());
  EXPECT_TRUE(id.Attempt(1100).verdict.allowed());
}

TYPED_TEST(ExactLog, ACostTakesThatManyPlacesAtOnce) {
  const Policy policy({{{100, 5}}, 0, false});
  OneId<TypeParam> id(policy);
  EXPECT_EQ(id.Attempt(0, 3).actions_left, 2u);
  EXPECT_FALSE(id.Attempt(10, 3).verdict.allowed());
  EXPECT_TRUE(id.Attempt(10, 2).verdict.allowed());
  EXPECT_EQ(id.Peek(20, 4).time_left, 90);
}

TYPED_TEST(ExactLog, ResetOfAnAllowedAttemptIsThatOfTheWindowWithTheLeastLeft) {
  const Policy policy({{{10, 5}, {1000, 6}, {2000, 6}}, 0, false});
  OneId<TypeParam> id(policy);
  EXPECT_EQ(id.Attempt(0).reset_in, 10);     // 4, 5 and 5 left
  EXPECT_EQ(id.Attempt(10).reset_in, 1990);  // 4, 4 and 4 left: until all of them grow
  EXPECT_EQ(id.Attempt(20).reset_in, 1980);  // 4, 3 and 3 left
}

TEST(RingLogOfShortStamps, KeepsNothingThatAStampCannotTell) {
  constexpr Micros kRange = std::numeric_limits<std::uint32_t>::max();
  const Policy policy({{{kRange, 3}}, 0, false});
  OneId<std::uint32_t> id(policy);
  Oracle oracle(policy);
  // Gaps around the range of a stamp: without care an old action would look new again.
  for (const Micros now : {Micros{0}, Micros{1}, kRange - 1, kRange, kRange + 1, kRange + 2,
                           2 * kRange + 5, 3 * kRange, 9 * kRange, 9 * kRange + 1}) {
    SCOPED_TRACE(now);
    ExpectSame(id.Attempt(now), oracle.Attempt(now, 1));
  }
}

TEST(RingLogOfShortStamps, ARefusalThatPushesOutActionsIsRememberedBesideOneThatIsTooOld) {
  // An action too old for a stamp is dropped in the same breath in which a refusal of cost 2 pushes
  // out another that still counts.
  constexpr Micros kSecond = 1'000'000;
  const Policy policy({{{kSecond, 3}}, 0, true});
  OneId<std::uint32_t> id(policy);
  id.Attempt(0);
  id.Attempt(4'294'900'000);
  const Decision third = id.Attempt(4'294'950'000);
  EXPECT_FALSE(id.Attempt(4'294'980'000, 2).verdict.allowed());
  EXPECT_TRUE(id.Refund(third.verdict.at, 1));
  EXPECT_FALSE(id.Attempt(4'294'990'000).verdict.allowed());
}

TEST(AttemptOne, SaysTheSameAsTheStepsItReplaces) {
  using Rules = SlidingWindowLog<SingleWindowPolicy, std::uint32_t>;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Policy policy(
        {{{random.Between(1, 40), static_cast<std::uint64_t>(random.Between(1, 6))}},
         0,
         random.Chance(50)});
    const Rules rules(policy);
    Oracle oracle(policy);
    const std::uint32_t capacity = policy.log_capacity();
    std::vector<std::byte> ring((capacity - 1) * sizeof(std::uint32_t));
    Micros now = 0;
    LogHead head;
    for (int step = 0; step < 100; ++step) {
      const RingLog<std::uint32_t> log(head, ring.data(), capacity - 1, capacity);
      Rules::Account account(rules, log, 0);
      ASSERT_EQ(account.AttemptOne(now, [](Micros) {}), oracle.Attempt(now, 1).time_left);
      head = account.log().head();
      now = testing::NextReading(random, now);
    }
  }
}

// A ring takes as much room as what is inside the window, not as what was ever recorded.
TEST(DropAndPlanRoom, FollowsWhatIsInsideTheWindow) {
  constexpr Micros kWindow = 1000;
  std::vector<std::byte> ring(1000 * sizeof(std::uint32_t));
  RingLog<std::uint32_t> log(LogHead{}, ring.data(), 0, 1001);
  std::uint32_t largest = 0;
  const auto push = [&](Micros at) {
    if (!log.HasFree(1)) log.ResizeInPlace(log.DropAndPlanRoom(at, kWindow, 1));
    log.Push(at);
    largest = std::max(largest, log.ring_room());
  };
  Micros now = 0;
  for (int i = 0; i < 2000; ++i) push(now += kWindow / 4);
  EXPECT_EQ(largest, 5u);
  for (int i = 0; i < 500; ++i) push(now += 1);
  EXPECT_GE(log.size(), 500u);
  EXPECT_LE(largest, 1000u);
  for (int i = 0; i < 1000; ++i) push(now += kWindow / 4);
  EXPECT_LE(log.ring_room(), 20u);
}

}  // namespace
}  // namespace rollgate
