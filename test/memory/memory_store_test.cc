// The store held against one oracle per id, and what is special to a table of bounded size.
#include "memory/memory_store.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>
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

TEST_P(EveryLayout, ARefundUnderCountedRefusalsNeverLetsMoreThrough) {
  int refunded_to_use = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Micros scale = GetParam().interval / 50;
    PolicyOptions options{{{GetParam().interval, GetParam().max}}, 0, true};
    if (random.Chance(30)) options.windows.push_back({20 * scale, 3});
    const Policy policy(options);
    Limiter limiter(options);
    Oracle oracle(policy);
    struct Made {
      Decision decision;
      std::uint64_t cost;
      std::uint64_t attempt;
    };
    std::vector<Made> made;
    Micros reading = 0;
    for (int step = 0; step < 400; ++step) {
      reading = random.Chance(97) ? reading + random.Between(0, 2) : reading + 100;
      const Micros now = reading * scale;
      if (random.Chance(40)) {
        const bool allowed = limiter.Allows(1, now);
        const Oracle::Answer answer = oracle.Attempt(now, 1);
        ASSERT_LE(allowed, answer.allowed());
      } else {
        const auto cost = static_cast<std::uint64_t>(random.Between(1, 3));
        const Decision decision = limiter.Attempt(1, now, cost);
        const Oracle::Answer answer = oracle.Attempt(now, cost);
        if (decision.verdict.allowed()) {
          ASSERT_TRUE(answer.allowed());
          made.push_back({decision, cost, answer.attempt});
        }
      }
      if (!made.empty() && random.Chance(30)) {
        refunded_to_use += limiter.Refund(1, made.back().decision, made.back().cost);
        oracle.Refund(made.back().attempt);
        made.pop_back();
      }
    }
  }
  EXPECT_GT(refunded_to_use, 500);
}

TEST_P(EveryLayout, ACountedRefusalKeepsThePlaceThatItTook) {
  // Full, then refused once: the refusal pushes out the first action, which still counts. Taking
  // back the second must not make room before the first would have left.
  const Micros interval = GetParam().interval;
  Limiter limiter({{{interval, GetParam().max}}, 0, true});
  limiter.Attempt(1, 0);
  const Decision second = limiter.Attempt(1, 1);
  for (std::uint64_t i = 2; i < GetParam().max; ++i) limiter.Attempt(1, 2);
  EXPECT_FALSE(limiter.Allows(1, 3));
  EXPECT_TRUE(limiter.Refund(1, second));
  EXPECT_FALSE(limiter.Peek(1, 4).verdict.allowed());
  // Once all of that has expired, a refund gives its place back again.
  const Micros later = 3 * interval;
  const Decision first_again = limiter.Attempt(1, later);
  for (std::uint64_t i = 1; i < GetParam().max; ++i) limiter.Attempt(1, later + 1);
  EXPECT_TRUE(limiter.Refund(1, first_again));
  EXPECT_TRUE(limiter.Peek(1, later + 2).verdict.allowed());
}

TEST_P(EveryLayout, AllMemoryOfAnIdGoesWithIt) {
  Limiter limiter({{{GetParam().interval, GetParam().max}}, 0, false}, 50);
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
  Limiter limiter({{{GetParam().interval, GetParam().max}, {GetParam().interval, 1}}, 0, false});
  limiter.Attempt(1, 0);
  const std::size_t before = limiter.store->stats().bytes;
  EXPECT_FALSE(limiter.Allows(1, 1));
  EXPECT_FALSE(limiter.Attempt(1, 1).verdict.allowed());
  EXPECT_EQ(limiter.store->stats().bytes, before);
}

TEST(MemoryStore, FindsAnIdThatComesAgainAndAgainWhateverTheTableDoes) {
  // An id that is hammered is found without a search. Its place must not be believed once the table
  // has grown, moved or forgotten anything: for every size, hammer one id, then take it away.
  for (std::int64_t ids = 1; ids < 6000; ids += ids < 900 ? 1 : 7) {
    Limiter limiter({{{kHour, 40}}, 0, false});
    for (std::int64_t id = 0; id < ids; ++id) limiter.Allows(id, id);
    Decision decision = limiter.Attempt(ids - 1, ids);
    for (int i = 0; i < 17; ++i) decision = limiter.Attempt(ids - 1, ids + i);
    ASSERT_TRUE(limiter.Refund(ids - 1, decision)) << ids;
    ASSERT_EQ(limiter.Peek(ids - 1, ids + 20, 0).windows[0].used, 18u) << ids;
    if (ids % 2 == 0) {
      ASSERT_TRUE(limiter.store->Clear(Id(ids - 1)));
      ASSERT_EQ(limiter.store->stats().keys, static_cast<std::uint64_t>(ids - 1));
      ASSERT_EQ(limiter.Peek(ids - 1, ids + 20, 0).windows[0].used, 0u);
    } else {
      limiter.store->ClearAll();
      ASSERT_EQ(limiter.Peek(ids - 1, ids + 20, 0).windows[0].used, 0u);
    }
  }
}

TEST(MemoryStore, AgreesWithTheOraclesWhileIdsAreClearedAndRefundedInAMovingTable) {
  const Policy policy({{{kHour, 3}}, 0, false});
  Limiter limiter({{{kHour, 3}}, 0, false});
  Random random(11);
  std::map<std::int64_t, Oracle> oracles;
  std::map<std::int64_t, std::vector<std::pair<Decision, std::uint64_t>>> made;
  for (Micros now = 1; now < 60'000; ++now) {
    // Half the time the same few ids, so that some are found again and again.
    const std::int64_t id = random.Chance(50) ? random.Between(1, 3) : random.Between(1, 12'000);
    Oracle& oracle = oracles.try_emplace(id, policy).first->second;
    const Decision decision = limiter.Attempt(id, now);
    const Oracle::Answer answer = oracle.Attempt(now, 1);
    ASSERT_EQ(decision.verdict.allowed(), answer.allowed());
    if (answer.allowed()) made[id].emplace_back(decision, answer.attempt);
    if (random.Chance(30) && !made[id].empty()) {
      ASSERT_EQ(limiter.Refund(id, made[id].back().first), oracle.Refund(made[id].back().second));
      made[id].pop_back();
    } else if (random.Chance(20)) {
      limiter.store->Clear(Id(id));
      oracles.erase(id);
      made.erase(id);
    }
  }
}

TEST(MemoryStore, WhereAClockMayStepBackNobodyIsForgottenForHavingExpired) {
  const Policy policy({{{1000, 2}}, 0, true});
  MemoryStoreOptions store_options;
  store_options.secret = kSecret;
  store_options.clock_may_step_back = true;
  const auto store = MemoryStore::Create(policy, store_options);
  Random random(5);
  std::map<std::int64_t, Oracle> oracles;
  Micros now = 0;
  for (int step = 0; step < 20'000; ++step) {
    now = random.Chance(2) ? now - random.Between(0, 3000) : now + random.Between(0, 100);
    const std::int64_t id = random.Between(1, 300);
    Oracle& oracle = oracles.try_emplace(id, policy).first->second;
    ASSERT_EQ(store->Check(Id(id), now), oracle.Attempt(now, 1).time_left);
  }
}

TEST(MemoryStore, ShortStampsReachAsFarAsTheLongestRetentionThatUsesThem) {
  constexpr Micros kShortest = Micros{1} << 32;
  for (const Micros retention : {kShortest - 2, kShortest - 1, kShortest, kShortest + 1}) {
    SCOPED_TRACE(retention);
    const Policy policy({{{retention, 3}}, 0, false});
    Limiter limiter({{{retention, 3}}, 0, false});
    Oracle oracle(policy);
    for (const Micros now :
         {Micros{0}, Micros{1}, Micros{2}, retention - 1, retention, retention + 1, retention + 2,
          2 * retention, 2 * retention + 1, 3 * retention - 1, 3 * retention}) {
      ASSERT_EQ(limiter.store->Check(Id(1), now), oracle.Attempt(now, 1).time_left) << now;
    }
  }
}

TEST(MemoryStore, CountsWhatItAllowsAndWhatItBlocks) {
  Limiter limiter({{{kSecond, 2}}, 0, true});
  for (int i = 0; i < 5; ++i) limiter.Allows(1, i);
  for (int i = 0; i < 4; ++i) limiter.Attempt(2, i);
  EXPECT_EQ(limiter.store->stats().allowed, 4u);
  EXPECT_EQ(limiter.store->stats().blocked, 5u);
}

TEST(MemoryStore, ARefusedAttemptResetsWhenItWouldPass) {
  Limiter limiter({{{1000, 2}}, 0, true});
  limiter.Attempt(1, 0);
  limiter.Attempt(1, 400);
  const Decision refused = limiter.Attempt(1, 500);
  EXPECT_EQ(refused.time_left, 900);
  EXPECT_EQ(refused.reset_in, 900);
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
  for (std::int64_t id = 1000; id < 1300; ++id) limiter.Allows(id, 101);  // few are not forgotten
  EXPECT_TRUE(limiter.Allows(2, 5000));  // forgets id 1, which has expired
  EXPECT_LT(limiter.store->stats().keys, 302u);
  // Back at 200, id 1 is not known any more. It is judged no earlier than the 1101 at which the
  // last one forgotten was free again, so no two of its actions share a window.
  EXPECT_TRUE(limiter.Allows(1, 200));
  EXPECT_FALSE(limiter.Allows(1, 2100));
  EXPECT_TRUE(limiter.Allows(1, 2101));
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
