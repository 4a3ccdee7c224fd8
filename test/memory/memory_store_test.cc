// What memory a store takes and gives back, in each of the four ways in which it keeps logs, and
// how long logs become under limits of calls.
#include "memory/memory_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <new>
#include <vector>

#include "core/algorithms.h"
#include "memory/heap_logs.h"
#include "memory/table_store.h"
#include "support/limiter.h"
#include "support/oracle.h"
#include "support/traces.h"

namespace rollgate {
namespace {

using testing::Id;
using testing::kHour;
using testing::kSecond;
using testing::Limiter;
using testing::Oracle;
using testing::Random;

/// Logs are kept inline or in blocks, of short or of long stamps.
struct Layout {
  const char* name;
  Micros interval;
  std::uint64_t max;
};

class EveryLayout : public ::testing::TestWithParam<Layout> {
 protected:
  static PolicyOptions Options() { return {{{GetParam().interval, GetParam().max}}, 0, false}; }
};
INSTANTIATE_TEST_SUITE_P(Stores, EveryLayout,
                         ::testing::Values(Layout{"InlineShort", 50, 5},
                                           Layout{"BlockShort", 50, 40},
                                           Layout{"InlineLong", 2 * kHour, 5},
                                           Layout{"BlockLong", 2 * kHour, 40}),
                         [](const auto& info) { return info.param.name; });

// Making room for an overdraft drops what has left the window: the attempt itself. Memory that
// other ids have freed must not show through.
TEST_P(EveryLayout, AnOverdraftThatComesTooLateLeavesWhatIsThere) {
  const std::uint64_t max = GetParam().max;
  const Micros later = GetParam().interval;
  constexpr int kIds = 50;
  Limiter limiter(Options());
  std::vector<Decision> first;
  for (int id = 1; id <= kIds; ++id) {
    first.push_back(limiter.Attempt(id, 0));
    limiter.Attempt(id, 0);  // so that its log has room, and drops nothing later
    limiter.Attempt(kIds + id, 0, max);
  }
  for (int id = 1; id <= kIds; ++id) limiter.store->Clear(Id(kIds + id));
  for (int id = 1; id <= kIds; ++id) {
    SCOPED_TRACE(id);
    limiter.Attempt(id, later);
    limiter.Settle(id, first[static_cast<std::size_t>(id) - 1], 1, max, later);
    ASSERT_EQ(limiter.Peek(id, later).actions_left, max - 2);
    ASSERT_EQ(limiter.store->Check(Id(id), later), 0);
    ASSERT_EQ(limiter.Peek(id, later).actions_left, max - 3);
  }
}

TEST_P(EveryLayout, ARefundTakesNothingFromALaterGeneration) {
  Limiter limiter(Options());
  const Decision before = limiter.Attempt(1, 7);
  limiter.store->ClearAll();
  for (int generation = 0; generation < 70'000; ++generation) {
    limiter.Attempt(1, 7);  // in the very same microsecond
    ASSERT_FALSE(limiter.Refund(1, before)) << generation;
    ASSERT_TRUE(limiter.store->Clear(Id(1)));
  }
}

TEST_P(EveryLayout, AllMemoryOfAnIdGoesWithIt) {
  Limiter limiter(Options(), 50);
  const std::size_t empty = limiter.store->stats().bytes;
  std::size_t full = 0;
  for (std::int64_t id = 0; id < 5000; ++id) {
    const Decision decision = limiter.Attempt(id, 0, GetParam().max);
    if (id == 999) full = limiter.store->stats().bytes;
    if (id % 3 == 0) limiter.store->Clear(Id(id));
    if (id % 3 == 1) limiter.Refund(id, decision, GetParam().max);
  }
  EXPECT_LE(limiter.store->stats().bytes, full + 1000);
  limiter.store->ClearAll();
  EXPECT_EQ(limiter.store->stats().bytes, empty);
}

TEST_P(EveryLayout, ARefusalWithoutATraceTakesNoMemory) {
  PolicyOptions options = Options();
  options.windows.push_back({GetParam().interval, 1});
  Limiter limiter(options);
  limiter.Attempt(1, 0);
  const std::size_t before = limiter.store->stats().bytes;
  EXPECT_FALSE(limiter.Allows(1, 1));
  EXPECT_FALSE(limiter.Attempt(1, 1).verdict.allowed());
  EXPECT_EQ(limiter.store->stats().bytes, before);
}

TEST(MemoryStore, ShortStampsReachAsFarAsTheLongestRetentionThatUsesThem) {
  constexpr Micros kShortest = Micros{1} << 32;
  for (const Micros retention : {kShortest - 2, kShortest - 1, kShortest, kShortest + 1}) {
    SCOPED_TRACE(retention);
    const PolicyOptions options{{{retention, 3}}, 0, false};
    Limiter limiter(options);
    Oracle oracle(options);
    for (const Micros now :
         {Micros{0}, Micros{1}, Micros{2}, retention - 1, retention, retention + 1, retention + 2,
          2 * retention, 2 * retention + 1, 3 * retention - 1, 9 * retention, 9 * retention + 1}) {
      ASSERT_EQ(limiter.store->Check(Id(1), now), oracle.Attempt(now, 1).time_left) << now;
    }
  }
}

TEST(MemoryStore, ARefusalIsRememberedThatPushesOutActionsBesideOneThatIsTooOldForAStamp) {
  // The oldest action is dropped in the same step in which a refusal of cost 2 pushes out another
  // that still counts.
  Limiter limiter({{{kSecond, 3}}, 0, true});
  limiter.Attempt(1, 0);
  limiter.Attempt(1, 4'294'900'000);
  const Decision third = limiter.Attempt(1, 4'294'950'000);
  EXPECT_FALSE(limiter.Attempt(1, 4'294'980'000, 2).verdict.allowed());
  EXPECT_TRUE(limiter.Refund(1, third));
  EXPECT_FALSE(limiter.Allows(1, 4'294'990'000));
}

TEST(MemoryStore, ALimitLargerThanAnyMemoryHolds) {
  constexpr std::uint64_t kMax = std::uint64_t{1} << 53;
  Limiter limiter({{{kSecond, kMax}}, 0, true});
  EXPECT_EQ(limiter.Attempt(1, 0, kLongestLog + 1ull).actions_left, kMax - kLongestLog - 1);
  EXPECT_EQ(limiter.Attempt(2, 0).actions_left, kMax - 1);
  for (Micros now = 0; now < 10'000; ++now) EXPECT_TRUE(limiter.Allows(2, now));
  EXPECT_EQ(limiter.Attempt(2, 10'000, kMax - 10'001).actions_left, 0u);
  EXPECT_FALSE(limiter.Allows(2, 10'000));
  EXPECT_LE(limiter.store->stats().bytes, 100'000u);
}

/// As if memory for logs ended after four actions.
struct PolicyOfShortLogs : Policy {
  explicit PolicyOfShortLogs(const Policy& policy) : Policy(policy) {}
  static std::uint32_t log_capacity() { return 4; }
  static bool exceeds_log() { return true; }
};

// Kills: a log that drops actions that count where it cannot grow.
TEST(MemoryStore, ALogThatCannotGrowFailsTheCall) {
  using Log = SlidingWindowLog<PolicyOfShortLogs, std::uint64_t>;
  memory::TableStore<Log, memory::HeapLogs<Log>> store(Policy({{{kSecond, 9}}, 0, false}), {});
  for (Micros now = 0; now < 4; ++now) EXPECT_EQ(store.Check(Id(1), now), 0);
  EXPECT_THROW(store.Check(Id(1), 4), std::bad_alloc);
  EXPECT_EQ(store.Check(Id(1), kSecond), 0) << "the oldest has left";
  EXPECT_THROW(store.Check(Id(1), kSecond), std::bad_alloc);
}

PolicyOptions WithLimitsOfCalls(Micros interval) {
  PolicyOptions policy{{{interval, 1}}, 0, true};
  policy.largest_limit = 1 << 20;
  return policy;
}

void UseLimit(Limiter& limiter, std::uint64_t limit) {
  ASSERT_TRUE(limiter.store->UseLimits(std::array{limit}));
}

// Kills: a log that is cut to a lower limit while its window needs it.
TEST(LimitsOfCalls, BoundALogByTheLargestThatItNeeded) {
  Limiter limiter(WithLimitsOfCalls(kHour));
  UseLimit(limiter, 100);
  for (Micros now = 0; now < 200; ++now) limiter.Attempt(1, now);
  const std::size_t bytes = limiter.store->stats().bytes;
  UseLimit(limiter, 10);
  for (Micros now = 200; now < 10'000; ++now) EXPECT_FALSE(limiter.Allows(1, now));
  EXPECT_EQ(limiter.store->stats().bytes, bytes);
  UseLimit(limiter, 101);
  EXPECT_TRUE(limiter.Allows(1, 10'000)) << "a hundred are known";
}

// Kills: a log with room for the limits of the limiter alone.
TEST(LimitsOfCalls, KeepWhatTheLargestOfAllWindowsNeeds) {
  PolicyOptions policy = WithLimitsOfCalls(kHour);
  policy.windows.push_back({2 * kHour, 1});
  Limiter limiter(policy);
  ASSERT_TRUE(limiter.store->UseLimits(std::array<std::uint64_t, 2>{100, 50}));
  for (Micros now = 0; now < 50; ++now) EXPECT_TRUE(limiter.Allows(1, now));
  EXPECT_FALSE(limiter.Allows(1, 50));
}

/// A log that was longer goes on with as many actions as its window has.
TEST(LimitsOfCalls, CountTheNewestActionsOfALongLog) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Micros interval = random.Between(1000, 4000);
    Limiter limiter(WithLimitsOfCalls(interval));
    const auto grown = static_cast<std::uint64_t>(random.Between(1001, 1900));
    std::vector<Micros> kept;
    Micros now = 0;
    for (std::uint64_t step = 0; step < 4 * grown; ++step, now += random.Between(0, 3)) {
      const auto max = static_cast<std::uint64_t>(step < grown ? 5000 : random.Between(1, 1000));
      UseLimit(limiter, max);
      const Decision decision = limiter.Attempt(1, now);
      if (!kept.empty())
        std::erase_if(kept,
                      [last = kept.back(), interval](Micros at) { return last - at >= interval; });
      const std::size_t capacity = std::max<std::size_t>(max, kept.size());
      const auto inside = static_cast<std::uint64_t>(
          kept.end() - std::upper_bound(kept.begin(), kept.end(), now - interval));
      ASSERT_EQ(decision.verdict.allowed(), inside < max);
      kept.push_back(now);
      if (kept.size() > capacity) kept.erase(kept.begin());
      const std::uint64_t used =
          std::min(static_cast<std::uint64_t>(
                       kept.end() - std::upper_bound(kept.begin(), kept.end(), now - interval)),
                   max);
      ASSERT_EQ(decision.windows[0].used, used);
      ASSERT_EQ(decision.windows[0].reset_in, *(kept.end() - used) + interval - now);
    }
  }
}

// Kills: a ring that is taken for full because the log is, though larger limits have made it
// larger.
TEST(LimitsOfCalls, LeaveALogThatRefusesAsItDid) {
  PolicyOptions policy{{{16, 2}}, 0, true};
  policy.largest_limit = 1024;
  Limiter limiter(policy);
  EXPECT_TRUE(limiter.Allows(1, 119));
  UseLimit(limiter, 6);
  EXPECT_TRUE(limiter.Attempt(1, 204).verdict.allowed());
  ASSERT_TRUE(limiter.store->UseLimits({}));
  EXPECT_TRUE(limiter.Allows(1, 220));
  EXPECT_TRUE(limiter.Allows(1, 222));
  EXPECT_FALSE(limiter.Allows(1, 227));
  EXPECT_FALSE(limiter.Allows(1, 228));
}

// Kills: ids that are moved to a store with room for larger limits, and cut to its own.
TEST(LimitsOfCalls, MoveWhatIdsHaveToAStoreWithRoomForThem) {
  PolicyOptions policy{{{kHour, 1}}, 0, false};
  policy.largest_limit = 1024;
  Limiter limiter(policy);
  UseLimit(limiter, 3);
  for (Micros now = 0; now < 3; ++now) limiter.Attempt(1, now);
  ASSERT_FALSE(limiter.store->UseLimits(std::array<std::uint64_t, 1>{2000}));
  ASSERT_TRUE(limiter.store->UseLimits({}));
  policy.largest_limit = 1 << 20;
  limiter.store = WithLimits(*limiter.store, policy, {10, testing::kSecret, false, nullptr}, 3);
  EXPECT_EQ(limiter.Peek(1, 3, 0).windows[0].used, 3u);
}

}  // namespace
}  // namespace rollgate
