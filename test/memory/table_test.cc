// What becomes of ids in a table that grows, shrinks, forgets and is full, and what a call may
// cost.
#include "memory/table.h"

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

namespace rollgate::memory {
namespace {

using testing::Id;
using testing::kHour;
using testing::kSecond;
using testing::kSecret;
using testing::Limiter;
using testing::Oracle;
using testing::Random;

TEST(TableOfAStore, FindsAnIdThatComesAgainAndAgainWhateverItDoes) {
  // An id that is hammered is found without a search. Its place must not be believed once the table
  // has grown, moved or forgotten anything: for every size, hammer one id, then take it away.
  for (std::int64_t ids = 1; ids < 6000; ids += ids < 300 ? 1 : 29) {
    Limiter limiter({{{kHour, 40}}, 0, false});
    for (std::int64_t id = 0; id < ids; ++id) limiter.Allows(id, id);
    Decision decision = limiter.Attempt(ids - 1, ids);
    for (int i = 0; i < 17; ++i) decision = limiter.Attempt(ids - 1, ids + i);
    ASSERT_TRUE(limiter.Refund(ids - 1, decision)) << ids;
    ASSERT_EQ(limiter.Peek(ids - 1, ids + 20, 0).windows[0].used, 18u) << ids;
    if (ids % 2 == 0) {
      ASSERT_TRUE(limiter.store->Clear(Id(ids - 1)));
      ASSERT_EQ(limiter.store->stats().keys, static_cast<std::uint64_t>(ids - 1));
    } else {
      limiter.store->ClearAll();
    }
    ASSERT_EQ(limiter.Peek(ids - 1, ids + 20, 0).windows[0].used, 0u);
  }
}

TEST(TableOfAStore, FindsAnIdThatComesAgainAndAgainAsItBeginsToShrink) {
  for (const int times : {10, 40, 80}) {
    Limiter limiter({{{kHour, 100'000}}, 0, false});
    for (std::int64_t id = 0; id < 4000; ++id) limiter.Allows(id, id);
    for (std::int64_t id = 0; id < 3900; ++id) limiter.store->Clear(Id(id));
    for (int i = 0; i < times; ++i) limiter.Allows(3999, 4000);
    ASSERT_TRUE(limiter.store->Clear(Id(3999)));
    // Until all ids have moved.
    for (int i = 0; i < 20'000; ++i) limiter.Allows(3998, 4000);
    ASSERT_EQ(limiter.store->stats().keys, 99u) << times;
    for (std::int64_t id = 3900; id < 4000; ++id) {
      const std::uint64_t used = id == 3999 ? 0 : id == 3998 ? 20'001 : 1;
      ASSERT_EQ(limiter.Peek(id, 4000, 0).windows[0].used, used) << id;
    }
  }
}

TEST(TableOfAStore, FindsEveryIdWhileItGrowsShrinksAndForgets) {
  // Ids come in waves with time between them, so that the table grows to several chunks, forgets
  // all, shrinks and grows again; some are cleared or taken back as it moves.
  const PolicyOptions policy{{{50'000, 3}}, 0, false};
  Limiter limiter(policy);
  Random random(7);
  Micros now = 0;
  std::size_t most_bytes = 0;
  for (int wave = 0; wave < 6; ++wave) {
    const std::int64_t ids = wave % 2 == 0 ? 20'000 : 1000;
    std::map<std::int64_t, Oracle> oracles;
    std::map<std::int64_t, std::vector<std::pair<Decision, std::size_t>>> made;
    for (int step = 0; step < 40'000; ++step) {
      now += random.Between(0, 1);
      // A third of the time the same few ids, so that some are found again and again.
      const std::int64_t id = random.Between(1, random.Chance(33) ? 3 : ids);
      Oracle& oracle = oracles.try_emplace(id, policy).first->second;
      const Decision decision = limiter.Attempt(id, now);
      const bool allowed = oracle.Allows(now, 1);
      ASSERT_EQ(decision.verdict.allowed(), allowed) << now;
      if (allowed) made[id].emplace_back(decision, oracle.attempts());
      if (random.Chance(30) && !made[id].empty()) {
        ASSERT_EQ(limiter.Refund(id, made[id].back().first), oracle.Refund(made[id].back().second));
        made[id].pop_back();
      } else if (random.Chance(20)) {
        limiter.store->Clear(Id(id));
        oracles.erase(id);
        made.erase(id);
      }
    }
    most_bytes = std::max(most_bytes, limiter.store->stats().bytes);
    now += 100'000;  // all have expired
  }
  EXPECT_LT(limiter.store->stats().bytes, most_bytes);
}

TEST(TableOfAStore, ForgetsNobodyForHavingExpiredWhereTheClockMayStepBack) {
  const PolicyOptions policy{{{1000, 2}}, 0, true};
  MemoryStoreOptions options;
  options.secret = kSecret;
  options.clock_may_step_back = true;
  const auto store = CreateMemoryStore(Policy(policy), options);
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

TEST(TableOfAStore, LetsNobodyThroughTwiceWhereTheClockStepsBackAfterIdsWereForgotten) {
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

TEST(TableOfAStore, ForgetsExpiredIdsAsOthersCome) {
  Limiter limiter({{{1000, 2}}, 0, true});
  for (Micros now = 0; now < 300'000; ++now) limiter.Allows(now, now);
  EXPECT_LE(limiter.store->stats().keys, 2'100u);
  EXPECT_EQ(limiter.store->stats().evicted, 0u);
  EXPECT_LT(limiter.store->stats().bytes, 400'000u);
}

TEST(TableOfAStore, GivesBackMemoryAfterAFlood) {
  Limiter limiter({{{kSecond, 2}}, 0, true});
  for (std::int64_t id = 0; id < 200'000; ++id) limiter.Allows(id, 0);
  const std::size_t flooded = limiter.store->stats().bytes;
  // The same thousand ids from then on: none of them is new.
  for (std::int64_t i = 0; i < 300'000; ++i) limiter.Allows(i % 1000, 2 * kSecond + i);
  EXPECT_LT(limiter.store->stats().bytes, flooded / 10);
}

TEST(TableOfAStore, ClearAllForgetsEverybodyAndHowFarOthersWereForgotten) {
  Limiter limiter({{{kSecond, 100}}, 0, true});
  const std::size_t empty = limiter.store->stats().bytes;
  for (std::int64_t id = 0; id < 5'000; ++id) limiter.Attempt(id, id * kSecond, 20);
  limiter.store->ClearAll();
  EXPECT_EQ(limiter.store->stats().bytes, empty);
  EXPECT_EQ(limiter.store->stats().keys, 0u);
  EXPECT_EQ(limiter.Attempt(1, 7).verdict.at, 7) << "not the time up to which ids had expired";
}

/// For one id, a group, a chunk and several chunks.
class FullTable : public ::testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, FullTable, ::testing::Values(1, 14, 700, 3000));

TEST_P(FullTable, DropsTheIdNearestToExpiryWhateverHappenedBefore) {
  const std::int64_t max_keys = GetParam();
  Limiter limiter({{{kHour, 4}}, 0, false}, static_cast<std::size_t>(max_keys));
  Random random(5);
  std::map<std::int64_t, std::vector<Decision>> recorded;  // of each id, the newest last
  const auto newest = [](const auto& entry) { return entry.second.back().verdict.at; };
  std::int64_t next_id = 0;
  std::uint64_t evicted = 0;
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
        ++evicted;
      }
      recorded[next_id++].push_back(decision);
      ASSERT_EQ(limiter.store->stats().keys, recorded.size()) << now;
      ASSERT_EQ(limiter.store->stats().evicted, evicted) << now;
    } else if (found != recorded.end() && found->second.size() < 4 && random.Chance(40)) {
      // The id's moment is that of the action before again. (A full log keeps its places.)
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

TEST(FullTable, DropsTheIdNearestToExpiryWhileItGrows) {
  // It is in the part that ids move out of, or already in the other.
  const PolicyOptions policy{{{kHour, 1}}, 0, false};
  Limiter growing(policy);
  std::size_t bytes = growing.store->stats().bytes;
  int growths = 0;
  for (std::int64_t max_keys = 1; max_keys < 5000; ++max_keys) {
    growing.Allows(max_keys, max_keys);
    const std::size_t before = std::exchange(bytes, growing.store->stats().bytes);
    if (bytes <= before) continue;
    ++growths;
    for (const std::int64_t later : {1, 5, 15, 25, 30}) {
      const std::int64_t ids = max_keys + later;
      Limiter limiter(policy, static_cast<std::size_t>(ids));
      for (std::int64_t id = 0; id < ids; ++id) limiter.Allows(id, id);
      for (std::int64_t id = 0; id < 20; ++id) {
        limiter.Allows(ids + id, ids + id);
        ASSERT_EQ(limiter.Peek(id, 2 * ids, 0).windows[0].used, 0u) << ids << ", " << id;
        ASSERT_EQ(limiter.Peek(id + 1, 2 * ids, 0).windows[0].used, 1u) << ids << ", " << id;
      }
    }
  }
  EXPECT_GT(growths, 5);
}

TEST(FullTable, ReportsEachEvictionButNotTheIdsThatHadExpired) {
  int reported = 0;
  const auto store = CreateMemoryStore(Policy({{{kSecond, 1}}, 0, true}),
                                       {10, kSecret, false, [&reported] { ++reported; }});
  std::int64_t id = 0;
  for (; id < 10; ++id) store->Check(Id(id), id);
  EXPECT_EQ(reported, 0);
  for (; id < 30; ++id) store->Check(Id(id), id);
  EXPECT_EQ(reported, 20);
  for (; id < 1000; ++id) EXPECT_EQ(store->Check(Id(id), id * kSecond / 9), 0);
  EXPECT_EQ(reported, 20);
  EXPECT_EQ(store->stats().evicted, 20u);
}

/// So many that the table grows for the last time well before it is full: growing makes bounds
/// exact.
constexpr std::int64_t kIds = 57'000;
/// An eviction asks each chunk once, at most, and few groups.
constexpr std::size_t kMostLooks =
    static_cast<std::size_t>(kIds) / SubTable::kSlotsPerChunk * 5 / 4 + 20;

/// Counted rather than timed. The parameter: whether ids that have expired are forgotten.
class CostOfEvictions : public ::testing::TestWithParam<bool> {
 protected:
  CostOfEvictions() : table_({20, static_cast<std::size_t>(kIds), kHour, GetParam(), kSecret}) {}

  void InsertNext() {
    ++now_;
    table_.Insert(Id(next_id_++), now_, now_, [](const Slot&) {});
  }

  /// As stores do.
  void Touch(std::int64_t id) {
    if (++now_ % 64 == 0) table_.Tend(now_, 64, [](const Slot&) {});
    const Place place = table_.Find(Id(id));
    if (place) table_.Touch(place, now_);
  }

  Table table_;
  Micros now_ = 0;
  std::int64_t next_id_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Forgetful, CostOfEvictions, ::testing::Bool());

/// Clients that poll in turn: each action is that of the id nearest to expiry, whose bounds lag.
TEST_P(CostOfEvictions, IsBoundedAfterActionsInOrderOfAge) {
  while (next_id_ < kIds) InsertNext();
  for (int round = 0; round < 3; ++round) {
    for (std::int64_t id = 0; id < kIds; ++id) Touch(id);
    InsertNext();
  }
  EXPECT_EQ(table_.evicted(), 3u);
  EXPECT_LE(table_.most_looks(), kMostLooks);
}

/// Nothing keeps bounds exact until the table is nearly full.
TEST_P(CostOfEvictions, IsBoundedWhateverHappenedBeforeItWasFull) {
  while (next_id_ < kIds * 93 / 100) InsertNext();
  for (std::int64_t id = 0; id < next_id_; ++id) Touch(id);
  while (next_id_ < kIds + 100) InsertNext();
  EXPECT_EQ(table_.evicted(), 100u);
  EXPECT_LE(table_.most_looks(), kMostLooks);
}

TEST_P(CostOfEvictions, IsBoundedAmongActionsInAnyOrder) {
  Random random(11);
  while (next_id_ < kIds) InsertNext();
  while (now_ < 20 * kIds) {
    const std::int64_t first = next_id_ - random.Between(1, kIds);
    const std::int64_t last = std::min(next_id_, first + random.Between(1, 3000));
    for (std::int64_t id = first; id < last; ++id) Touch(id);
    for (std::int64_t i = random.Between(1, 300); i > 0; --i) InsertNext();
  }
  EXPECT_GT(table_.evicted(), 50'000u);
  EXPECT_LE(table_.most_looks(), kMostLooks);
}

}  // namespace
}  // namespace rollgate::memory
