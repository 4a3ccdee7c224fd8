// Ids that a call has blocked: they are ids as all others, bounded by maxKeys.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "core/algorithms.h"
#include "core/policy.h"
#include "memory/memory_store.h"
#include "support/limiter.h"
#include "support/traces.h"

namespace rollgate {
namespace {

using testing::Id;
using testing::kHour;
using testing::kSecond;
using testing::kSecret;
using testing::Limiter;
using testing::Random;

TEST(ManualBlocks, TheNearestToExpiryGoesFirstAmongBlocksAndActions) {
  for (const Algorithm algorithm : {Algorithm::kSlidingWindowLog, Algorithm::kGcra}) {
    Limiter limiter({{{kHour, 1}}, 0, false, algorithm}, 3);
    limiter.store->BlockFor(Id(1), 0, 10 * kSecond);
    limiter.store->BlockFor(Id(2), 0, 3 * kHour);
    EXPECT_TRUE(limiter.Allows(3, 0));                 // until an hour
    EXPECT_TRUE(limiter.Allows(4, 1));                 // 1 goes
    EXPECT_TRUE(limiter.Allows(1, 2));                 // 3 goes
    limiter.store->BlockFor(Id(5), 3, 2 * kHour - 3);  // 4 goes
    EXPECT_FALSE(limiter.Allows(1, 4));
    EXPECT_FALSE(limiter.Allows(2, 4));
    EXPECT_FALSE(limiter.Allows(5, 4));
    EXPECT_EQ(limiter.store->stats().keys, 3u);
    EXPECT_EQ(limiter.store->stats().evicted, 3u);
  }
}

TEST(ManualBlocks, AnEvictionForABlockIsReported) {
  int evictions = 0;
  const auto store = CreateMemoryStore(Policy(PolicyOptions{{{kHour, 5}}, 0, true}),
                                       {1, kSecret, false, [&] { ++evictions; }});
  store->BlockFor(Id(1), 0, kHour);
  EXPECT_EQ(evictions, 0);
  store->BlockFor(Id(2), 0, kHour);
  EXPECT_EQ(evictions, 1);
  EXPECT_EQ(store->Check(Id(3), 0), 0);
  EXPECT_EQ(evictions, 2);
}

TEST(ManualBlocks, TheFirstOneEvictsAnIdThatHasActed) {
  for (std::size_t max_keys = 1; max_keys <= 3; ++max_keys) {
    Limiter limiter({{{kHour, 5}}, 0, true}, max_keys);
    for (std::int64_t id = 1; id <= 3; ++id) EXPECT_TRUE(limiter.Allows(id, 0));
    limiter.store->BlockFor(Id(4), 0, 2 * kHour);
    EXPECT_EQ(limiter.store->stats().keys, max_keys);
    EXPECT_EQ(limiter.store->stats().evicted, 4 - max_keys);
    EXPECT_FALSE(limiter.Allows(4, 0));
  }
}

TEST(ManualBlocks, AreForgottenOnceTheyHaveEnded) {
  Limiter limiter({{{kSecond, 5}}, 0, true});
  const std::size_t bytes = limiter.store->stats().bytes;
  for (std::int64_t id = 0; id < 100; ++id) limiter.store->BlockFor(Id(id), 0, kSecond);
  for (int i = 0; i < 200; ++i) limiter.Allows(1000, 2 * kSecond);
  EXPECT_EQ(limiter.store->stats().keys, 1u);
  EXPECT_EQ(limiter.store->stats().evicted, 0u);
  EXPECT_EQ(limiter.store->stats().bytes, bytes);
}

/// Nothing is forgotten here, so the ids that are held are known.
TEST(ManualBlocks, EveryIdIsCountedOnceWhateverHappensToIt) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const PolicyOptions policy{{{kHour, 3}}, 0, random.Chance(50)};
    const MemoryStoreOptions keeps_all{1000, kSecret, true, nullptr};
    auto store = CreateMemoryStore(Policy(policy), keeps_all);
    std::set<std::int64_t> acted;
    std::map<std::int64_t, Micros> blocked;
    for (Micros now = 0; now < 2000; ++now) {
      const std::int64_t id = random.Between(1, 40);
      switch (random.Between(1, 6)) {
        case 1:
        case 2: {
          const auto block = blocked.find(id);
          const bool is_blocked = block != blocked.end() && now < block->second;
          const Micros wait = store->Check(Id(id), now);
          if (is_blocked) {
            ASSERT_GE(wait, block->second - now);
          } else {
            acted.insert(id);
          }
          break;
        }
        case 3: {
          const Micros end = now + random.Between(1, 300);
          store->BlockFor(Id(id), now, end - now);
          blocked[id] = std::max(blocked[id], end);
          break;
        }
        case 4:
          store->BlockFor(Id(id), now, 0);
          blocked.erase(id);
          break;
        case 5:
          store->Clear(Id(id));
          acted.erase(id);
          blocked.erase(id);
          break;
        default:
          if (random.Chance(10)) store = WithLimits(*store, policy, keeps_all, now);
      }
      std::set<std::int64_t> held = acted;
      for (const auto& [one, end] : blocked) held.insert(one);
      ASSERT_EQ(store->stats().keys, held.size()) << now;
    }
  }
}

/// Each id is held, or known to be gone, and there are never more than max_keys.
TEST(ManualBlocks, AFullStoreHoldsNoMoreThanItMay) {
  for (const bool keeps_all : {false, true}) {
    Random random(7);
    const auto store = CreateMemoryStore(Policy(PolicyOptions{{{500, 3}}, 0, true}),
                                         {50, kSecret, keeps_all, nullptr});
    for (Micros now = 0; now < 50'000; ++now) {
      const std::int64_t id = random.Between(1, 200);
      if (random.Chance(50)) {
        store->Check(Id(id), now);
      } else {
        store->BlockFor(Id(id), now, random.Chance(20) ? 0 : random.Between(1, 900));
      }
      ASSERT_LE(store->stats().keys, 50u);
    }
    EXPECT_GT(store->stats().evicted, 1000u);
    store->ClearAll();
    EXPECT_EQ(store->stats().keys, 0u);
  }
}

}  // namespace
}  // namespace rollgate
