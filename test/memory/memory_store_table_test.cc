// What becomes of ids in a table that grows, shrinks, forgets and is full.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "memory/memory_store.h"
#include "support/limiter.h"
#include "support/oracle.h"
#include "support/traces.h"

namespace rollgate {
namespace {

using testing::Id;
using testing::kHour;
using testing::kSecond;
using testing::kSecret;
using testing::Limiter;
using testing::Oracle;
using testing::Random;

TEST(MemoryStoreTable, FindsAnIdThatComesAgainAndAgainWhateverTheTableDoes) {
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

TEST(MemoryStoreTable, AgreesWithTheOraclesWhileIdsAreClearedAndRefundedInAMovingTable) {
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

TEST(MemoryStoreTable, WhereAClockMayStepBackNobodyIsForgottenForHavingExpired) {
  const Policy policy({{{1000, 2}}, 0, true});
  MemoryStoreOptions store_options;
  store_options.secret = kSecret;
  store_options.clock_may_step_back = true;
  const auto store = CreateMemoryStore(policy, store_options);
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

TEST(MemoryStoreTable, FindsEveryIdWhileItGrowsShrinksAndForgets) {
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

TEST(MemoryStoreTable, ForgetsExpiredIdsAsOthersCome) {
  Limiter limiter({{{1000, 2}}, 0, true});
  for (Micros now = 0; now < 1'000'000; ++now) limiter.Allows(now, now);
  EXPECT_LE(limiter.store->stats().keys, 2'100u);
  EXPECT_EQ(limiter.store->stats().evicted, 0u);
  EXPECT_LT(limiter.store->stats().bytes, 400'000u);
}

TEST(MemoryStoreTable, GivesBackMemoryAfterAFlood) {
  Limiter limiter({{{kSecond, 2}}, 0, true});
  for (std::int64_t id = 0; id < 200'000; ++id) limiter.Allows(id, 0);
  const std::size_t flooded = limiter.store->stats().bytes;
  // The same thousand ids from then on: none of them is new.
  for (std::int64_t i = 0; i < 300'000; ++i) limiter.Allows(i % 1000, 2 * kSecond + i);
  EXPECT_LT(limiter.store->stats().bytes, flooded / 10);
}

TEST(MemoryStoreTable, DropsTheIdNearestToExpiryWhenFull) {
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

TEST(MemoryStoreTable, ARefundedIdIsNearerToExpiry) {
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

/// For one id, a group, a chunk and several chunks.
class FullTable : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(FullTable, DropsTheIdNearestToExpiryWhateverHappenedBefore) {
  const std::int64_t max_keys = GetParam();
  Limiter limiter({{{kHour, 4}}, 0, false}, static_cast<std::size_t>(max_keys));
  Random random(5);
  std::map<std::int64_t, std::vector<Decision>> recorded;  // of each id, the newest last
  const auto newest = [](const auto& entry) { return entry.second.back().verdict.at; };
  std::int64_t next_id = 0;
  for (Micros now = 1; now < 40'000; ++now) {
    const std::int64_t known = next_id - random.Between(1, max_keys);
    const auto found = recorded.find(known);
    if (next_id < max_keys || random.Chance(10)) {
      const bool is_full = std::cmp_equal(recorded.size(), max_keys);
      const Decision decision = limiter.Attempt(next_id, now);
      if (is_full) {
        const auto dropped = std::ranges::min_element(recorded, {}, newest);
        ASSERT_EQ(limiter.Peek(dropped->first, now, 0).windows[0].used, 0u) << now;
        recorded.erase(dropped);
      }
      recorded[next_id++].push_back(decision);
      ASSERT_EQ(limiter.store->stats().keys, recorded.size()) << now;
    } else if (found != recorded.end() && random.Chance(40)) {
      // The id's moment is that of the action before again.
      ASSERT_TRUE(limiter.Refund(known, found->second.back()));
      found->second.pop_back();
      if (found->second.empty()) recorded.erase(found);
    } else if (found != recorded.end()) {
      const Decision decision = limiter.Attempt(known, now);
      if (decision.verdict.allowed()) found->second.push_back(decision);
    }
  }
  for (const auto& [id, decisions] : recorded) {
    ASSERT_EQ(limiter.Peek(id, 40'000, 0).windows[0].used, decisions.size()) << id;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, FullTable, ::testing::Values(1, 14, 700, 3000));

TEST(MemoryStoreTable, TellsOfEachEviction) {
  int told = 0;
  const auto store = CreateMemoryStore(Policy({{{kSecond, 1}}, 0, true}),
                                       {10, kSecret, false, [&told] { ++told; }});
  for (std::int64_t id = 0; id < 10; ++id) store->Check(Id(id), id);
  EXPECT_EQ(told, 0);
  for (std::int64_t id = 10; id < 30; ++id) store->Check(Id(id), id);
  EXPECT_EQ(told, 20);
  EXPECT_EQ(store->stats().evicted, 20u);
}

TEST(MemoryStoreTable, ExpiredIdsMakeRoomWithoutBeingCountedAsEvicted) {
  Limiter limiter({{{100, 1}}, 0, true}, 5);
  for (Micros now = 0; now < 100'000; now += 30) EXPECT_TRUE(limiter.Allows(now, now));
  EXPECT_EQ(limiter.store->stats().evicted, 0u);
}

TEST(MemoryStoreTable, AClockThatStepsBackAfterIdsWereForgottenLetsNobodyThroughTwice) {
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

TEST(MemoryStoreTable, ClearAllForgetsEverybodyAndGivesBackTheMemory) {
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

TEST(MemoryStoreTable, ClearAllForgetsHowFarIdsWereForgotten) {
  Limiter limiter({{{kSecond, 1}}, 0, true});
  for (std::int64_t id = 0; id < 5'000; ++id) limiter.Allows(id, id * kSecond);
  limiter.store->ClearAll();
  EXPECT_EQ(limiter.Attempt(1, 7).verdict.at, 7);  // not the time up to which ids have expired
}

}  // namespace
}  // namespace rollgate
