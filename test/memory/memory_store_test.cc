// The store held against one oracle per id, and what is special to a table of bounded size.
#include "memory/memory_store.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "support/oracle.h"
#include "support/traces.h"

namespace rollgate {
namespace {

using testing::Oracle;
using testing::Random;

constexpr Secret kSecret{{0x243f6a8885a308d3, 0x13198a2e03707344, 0xa4093822299f31d0,
                          0x082efa98ec4e6c89, 0x452821e638d01377, 0xbe5466cf34e90c6c}};
constexpr Micros kSecond = 1'000'000;
constexpr Micros kHour = 3600 * kSecond;

Identity Id(std::int64_t number) {
  const std::string digits = std::to_string(number);
  return IdentityOf(std::u16string(digits.begin(), digits.end()), kSecret);
}

std::unique_ptr<MemoryStore> StoreFor(const PolicyOptions& policy,
                                      std::size_t max_keys = 1'000'000) {
  return MemoryStore::Create(Policy(policy), {max_keys, kSecret, false, nullptr});
}

/// A store and what it wrote last.
class Limiter {
 public:
  explicit Limiter(const PolicyOptions& policy, std::size_t max_keys = 1'000'000)
      : store(StoreFor(policy, max_keys)), uses_(policy.windows.size()) {}

  Decision Attempt(std::int64_t id, Micros now, std::uint64_t cost = 1) {
    Decision decision;
    decision.windows = uses_;
    store->Attempt(Id(id), now, cost, decision);
    return decision;
  }

  Decision Peek(std::int64_t id, Micros now, std::uint64_t cost = 1) {
    Decision decision;
    decision.windows = uses_;
    store->Peek(Id(id), now, cost, decision);
    return decision;
  }

  bool Allows(std::int64_t id, Micros now) { return store->Check(Id(id), now) == 0; }

  bool Refund(std::int64_t id, const Decision& decision, std::uint64_t cost = 1) {
    return store->Refund(Id(id), {decision.verdict.at, cost, decision.incarnation});
  }

  std::unique_ptr<MemoryStore> store;

 private:
  std::vector<WindowUse> uses_;
};

/// The four ways in which logs are kept: inline and in blocks, of short and of long stamps.
struct Layout {
  const char* name;
  Micros interval;
  std::uint64_t max;
};
class EveryLayout : public ::testing::TestWithParam<Layout> {};
INSTANTIATE_TEST_SUITE_P(Stores, EveryLayout,
                         ::testing::Values(Layout{"InlineShort", 50, 5},
                                           Layout{"BlockShort", 50, 40},
                                           Layout{"InlineLong", 2 * kHour, 5},
                                           Layout{"BlockLong", 2 * kHour, 40}),
                         [](const auto& info) { return info.param.name; });

TEST_P(EveryLayout, AgreesWithTheOracleOnEveryCall) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    // The first window picks the layout, the scale of time keeps its boundaries in reach.
    const Micros scale = GetParam().interval / 50;
    PolicyOptions options{{{GetParam().interval, GetParam().max}}, 0, seed % 2 == 0};
    if (random.Chance(50)) {
      options.windows.push_back({random.Between(1, 60) * scale, GetParam().max + 3});
    }
    if (random.Chance(30)) options.min_difference = random.Between(1, 5) * scale;
    const Policy policy(options);
    Limiter limiter(options);
    std::map<std::int64_t, Oracle> oracles;
    Micros reading = 0;
    // With several ids the clock does not step back: it would tell which ones were forgotten.
    const std::int64_t ids = random.Chance(50) ? 1 : 4;
    for (int step = 0; step < 500; ++step) {
      reading =
          ids == 1 ? testing::NextReading(random, reading) : testing::NextLater(random, reading);
      const Micros now = reading * scale + (ids == 1 ? random.Between(-1, 1) : 0);
      const std::int64_t id = random.Between(1, ids);
      Oracle& oracle = oracles.try_emplace(id, policy).first->second;
      const auto cost = static_cast<std::uint64_t>(random.Chance(80) ? 1 : random.Between(1, 5));
      const int kind = static_cast<int>(random.Between(1, 3));
      if (kind == 1) {
        ASSERT_EQ(limiter.store->Check(Id(id), now), oracle.Attempt(now, 1).time_left);
        continue;
      }
      const Oracle::Answer expected =
          kind == 2 ? oracle.Attempt(now, cost) : oracle.Peek(now, cost);
      const Decision actual =
          kind == 2 ? limiter.Attempt(id, now, cost) : limiter.Peek(id, now, cost);
      ASSERT_EQ(actual.verdict.allowed(), expected.allowed());
      ASSERT_EQ(actual.time_left, expected.time_left);
      ASSERT_EQ(actual.wait, expected.wait);
      ASSERT_EQ(actual.actions_left, expected.actions_left);
      for (std::size_t i = 0; i < expected.used.size(); ++i) {
        ASSERT_EQ(actual.windows[i].used, expected.used[i]);
        ASSERT_EQ(actual.windows[i].reset_in, expected.reset_in[i]);
      }
    }
  }
}

TEST_P(EveryLayout, RefundsOnceAndOnlyWhatIsStillThere) {
  Limiter limiter({{{GetParam().interval, GetParam().max}}, 0, false});
  const Decision first = limiter.Attempt(1, 0);
  const Decision second = limiter.Attempt(1, 1, 3);
  EXPECT_FALSE(limiter.Refund(2, first));
  EXPECT_TRUE(limiter.Refund(1, first));
  EXPECT_FALSE(limiter.Refund(1, first));
  EXPECT_EQ(limiter.Peek(1, 2).actions_left, GetParam().max - 4);
  EXPECT_TRUE(limiter.Refund(1, second, 3));
  EXPECT_EQ(limiter.store->stats().keys, 0u);
}

TEST_P(EveryLayout, ARefundAfterClearTakesNothing) {
  Limiter limiter({{{GetParam().interval, GetParam().max}}, 0, false});
  const Decision before = limiter.Attempt(1, 7);
  EXPECT_TRUE(limiter.store->Clear(Id(1)));
  limiter.Attempt(1, 7);  // in the very same microsecond
  EXPECT_FALSE(limiter.Refund(1, before));
  EXPECT_EQ(limiter.Peek(1, 7).actions_left, GetParam().max - 2);
  limiter.store->ClearAll();
  limiter.Attempt(1, 7);
  EXPECT_FALSE(limiter.Refund(1, before));
}

TEST_P(EveryLayout, AHammeredIdKeepsNoMoreThanItsLimit) {
  Limiter limiter({{{GetParam().interval, GetParam().max}}, 0, true});
  std::size_t full = 0;
  for (Micros now = 0; now < 100'000; ++now) {
    limiter.store->Check(Id(1), now);
    if (now == 1000) full = limiter.store->stats().bytes;
  }
  EXPECT_EQ(limiter.store->stats().bytes, full);
}

TEST(MemoryStore, APeekCreatesNothing) {
  Limiter limiter({{{kSecond, 5}}, 0, true});
  for (std::int64_t id = 0; id < 1000; ++id) EXPECT_TRUE(limiter.Peek(id, 0).verdict.allowed());
  const MemoryStoreStats stats = limiter.store->stats();
  EXPECT_EQ(stats.keys, 0u);
  EXPECT_EQ(stats.allowed + stats.blocked, 0u);
}

TEST(MemoryStore, FindsEveryIdWhileItGrowsShrinksAndForgets) {
  // Ids come in waves with time between them, so that the table grows to several chunks, forgets
  // all, shrinks and grows again, while every id is judged by an oracle of its own.
  const Policy policy({{{50'000, 2}}, 0, true});
  Limiter limiter({{{50'000, 2}}, 0, true});
  Random random(7);
  std::map<std::int64_t, Oracle> oracles;
  Micros now = 0;
  std::size_t most_bytes = 0;
  for (int wave = 0; wave < 6; ++wave) {
    const std::int64_t ids = wave % 2 == 0 ? 20'000 : 300;
    for (int step = 0; step < 40'000; ++step) {
      now += random.Between(0, 1);
      const std::int64_t id = random.Between(1, ids);
      Oracle& oracle = oracles.try_emplace(id, policy).first->second;
      ASSERT_EQ(limiter.store->Check(Id(id), now), oracle.Attempt(now, 1).time_left);
    }
    most_bytes = std::max(most_bytes, limiter.store->stats().bytes);
    now += 100'000;
    oracles.clear();  // all have expired
  }
  EXPECT_LT(limiter.store->stats().bytes, most_bytes);
}

TEST(MemoryStore, ForgetsExpiredIdsAsOthersCome) {
  Limiter limiter({{{1000, 2}}, 0, true});
  for (Micros now = 0; now < 1'000'000; ++now) limiter.Allows(now, now);
  EXPECT_LE(limiter.store->stats().keys, 2'100u);
  EXPECT_EQ(limiter.store->stats().evicted, 0u);
  EXPECT_LT(limiter.store->stats().bytes, 400'000u);
}

TEST(MemoryStore, GivesBackMemoryAfterAFlood) {
  Limiter limiter({{{kSecond, 2}}, 0, true});
  for (std::int64_t id = 0; id < 200'000; ++id) limiter.Allows(id, 0);
  const std::size_t flooded = limiter.store->stats().bytes;
  // The same thousand ids from then on: none of them is new.
  for (std::int64_t i = 0; i < 300'000; ++i) limiter.Allows(i % 1000, 2 * kSecond + i);
  EXPECT_LT(limiter.store->stats().bytes, flooded / 10);
}

TEST(MemoryStore, DropsTheIdNearestToExpiryWhenFull) {
  constexpr std::size_t kMaxKeys = 2500;  // several chunks
  const Policy policy({{{kHour, 2}}, 0, true});
  Limiter limiter({{{kHour, 2}}, 0, true}, kMaxKeys);
  Random random(3);
  struct Known {
    Oracle oracle;
    Micros newest;
  };
  std::map<std::int64_t, Known> known;
  std::map<Micros, std::int64_t> by_newest;
  std::uint64_t evicted = 0;
  for (Micros now = 1; now < 60'000; ++now) {
    const std::int64_t id = random.Between(1, 4000);
    auto found = known.find(id);
    if (found == known.end()) {
      if (known.size() == kMaxKeys) {
        known.erase(by_newest.begin()->second);
        by_newest.erase(by_newest.begin());
        ++evicted;
      }
      found = known.emplace(id, Known{Oracle(policy), now}).first;
    } else {
      by_newest.erase(found->second.newest);
      found->second.newest = now;
    }
    by_newest.emplace(now, id);
    ASSERT_EQ(limiter.store->Check(Id(id), now), found->second.oracle.Attempt(now, 1).time_left);
    ASSERT_EQ(limiter.store->stats().keys, known.size());
    ASSERT_EQ(limiter.store->stats().evicted, evicted);
  }
  EXPECT_GT(evicted, 10'000u);
}

TEST(MemoryStore, ARefundedIdIsNearerToExpiry) {
  Limiter limiter({{{kHour, 5}}, 0, false}, 3);
  limiter.Attempt(1, 10);
  limiter.Attempt(2, 20);
  limiter.Attempt(3, 5);
  const Decision late = limiter.Attempt(3, 30);
  EXPECT_TRUE(limiter.Refund(3, late));  // its newest action is the one at 5 again
  limiter.Attempt(4, 40);
  EXPECT_EQ(limiter.Peek(1, 50).actions_left, 3u);
  EXPECT_EQ(limiter.Peek(3, 50).actions_left, 4u);  // dropped
}

TEST(MemoryStore, TellsOfTheFirstEvictionOnce) {
  int told = 0;
  const auto store = MemoryStore::Create(Policy({{{kSecond, 1}}, 0, true}),
                                         {10, kSecret, false, [&told] { ++told; }});
  for (std::int64_t id = 0; id < 10; ++id) store->Check(Id(id), id);
  EXPECT_EQ(told, 0);
  for (std::int64_t id = 10; id < 30; ++id) store->Check(Id(id), id);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(store->stats().evicted, 20u);
}

TEST(MemoryStore, ExpiredIdsMakeRoomWithoutBeingCountedAsEvicted) {
  Limiter limiter({{{100, 1}}, 0, true}, 5);
  for (Micros now = 0; now < 100'000; now += 30) EXPECT_TRUE(limiter.Allows(now, now));
  EXPECT_EQ(limiter.store->stats().evicted, 0u);
}

TEST(MemoryStore, AClockThatStepsBackAfterIdsWereForgottenLetsNobodyThroughTwice) {
  Limiter limiter({{{1000, 1}}, 0, false});
  EXPECT_TRUE(limiter.Allows(1, 100));
  EXPECT_TRUE(limiter.Allows(2, 5000));  // forgets id 1, which has expired
  EXPECT_EQ(limiter.store->stats().keys, 1u);
  // Back at 200, id 1 is not known any more. It is judged no earlier than the 1100 at which it was
  // free again, so no two of its actions share a window.
  EXPECT_TRUE(limiter.Allows(1, 200));
  EXPECT_FALSE(limiter.Allows(1, 2099));
  EXPECT_TRUE(limiter.Allows(1, 2100));
}

TEST(MemoryStore, ClearAllForgetsEverybodyAndGivesBackTheMemory) {
  Limiter limiter({{{kSecond, 100}}, 0, true});
  const std::size_t empty = limiter.store->stats().bytes;
  for (std::int64_t id = 0; id < 5'000; ++id) {
    for (int i = 0; i < 20; ++i) limiter.Allows(id, 0);
  }
  limiter.store->ClearAll();
  EXPECT_EQ(limiter.store->stats().bytes, empty);
  EXPECT_EQ(limiter.store->stats().keys, 0u);
  EXPECT_TRUE(limiter.Allows(1, 0));
}

TEST(MemoryStore, HoldsExtremeTimesWithoutOverflow) {
  for (const Micros interval : {kLongest, Micros{1}}) {
    Limiter limiter({{{interval, 1}}, interval, true});
    EXPECT_TRUE(limiter.Attempt(1, -kLongest).verdict.allowed());
    const Decision late = limiter.Attempt(1, kLongest);
    EXPECT_TRUE(late.verdict.allowed());
    EXPECT_FALSE(limiter.Attempt(1, -kLongest).verdict.allowed());
    limiter.Attempt(2, kLongest);
    limiter.Attempt(3, -kLongest);
  }
}

TEST(MemoryStore, HoldsLimitsLargerThanAnyMemory) {
  Limiter limiter({{{kSecond, std::uint64_t{1} << 53}}, 0, true});
  EXPECT_EQ(limiter.Attempt(1, 0).actions_left, (std::uint64_t{1} << 53) - 1);
  for (Micros now = 0; now < 10'000; ++now) EXPECT_TRUE(limiter.Allows(1, now));
}

TEST(MemoryStore, RefusesToForgetWhatALimitBeyondTheLongestLogMustCount) {
  Limiter limiter({{{kSecond, std::uint64_t{1} << 53}}, 0, true});
  EXPECT_THROW(limiter.Attempt(1, 0, kLongestLog + 1ull), std::bad_alloc);
  EXPECT_EQ(limiter.store->stats().keys, 0u);
  limiter.Allows(2, 0);
  EXPECT_THROW(limiter.Attempt(2, 0, kLongestLog), std::bad_alloc);
  EXPECT_EQ(limiter.Peek(2, 0).windows[0].used, 2u);
  EXPECT_EQ(limiter.store->stats().allowed, 1u);
}

TEST(MemoryStore, APeekOfNoCostTellsWhatIsUsed) {
  Limiter limiter({{{100, 2}}, 10, true});
  limiter.Attempt(1, 0);
  limiter.Attempt(1, 5);  // too soon, counted
  const Decision looked = limiter.Peek(1, 50, 0);
  EXPECT_EQ(looked.windows[0].used, 2u);
  EXPECT_EQ(looked.windows[0].reset_in, 50);
  EXPECT_EQ(limiter.Peek(2, 50, 0).windows[0].used, 0u);
}

}  // namespace
}  // namespace rollgate
