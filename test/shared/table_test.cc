// The table of shared memory by itself: which id has to leave, how far ids were forgotten, and
// threads that race on it, which a thread sanitizer sees.
#include "shared/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "shared/tiny_region.h"
#include "support/traces.h"

namespace rollgate::testing {
namespace {

using Insertion = shared::Table<shared::Hardware>::Insertion;

std::vector<Identity> Ids(std::size_t count) {
  std::vector<Identity> ids;
  for (std::uint64_t low = 0; low < count; ++low) ids.push_back({low, 0, 8});
  return ids;
}

/// Inserts an id that expires at a moment.
Insertion Insert(shared::Table<shared::Hardware>& table, const Identity& id, Micros expires) {
  EXPECT_FALSE(table.Find(id));
  return table.Insert(0, [&](Micros) { return shared::Saved{expires, 1}; });
}

/// Of one bucket, and of two that share ids.
class SharedEviction : public ::testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Buckets, SharedEviction, ::testing::Values(1, 2));

TEST_P(SharedEviction, DropsTheIdNearestToExpiryOfTheBucketsThatAnIdCanBeIn) {
  constexpr std::uint64_t kSlots = 5;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    TinyRegion region(GetParam(), kSlots, shared::kState + kStateWords);
    shared::Table<shared::Hardware> table(region.view(), 0);
    const std::vector<Identity> ids = Ids(100);
    std::set<std::pair<Micros, std::size_t>> by_expiry;
    for (std::size_t id = 0; id < ids.size(); ++id) {
      const bool is_full = by_expiry.size() == GetParam() * kSlots;
      const auto expires = static_cast<Micros>(random.Between(1, 1000) * 100 + id);
      ASSERT_EQ(Insert(table, ids[id], expires), is_full ? Insertion::kEvicted : Insertion::kDone);
      if (is_full) {
        ASSERT_FALSE(table.Find(ids[by_expiry.begin()->second])) << id;
        by_expiry.erase(by_expiry.begin());
      }
      by_expiry.emplace(expires, id);
      for (const auto& [moment, known] : by_expiry) ASSERT_TRUE(table.Find(ids[known])) << id;
    }
  }
}

TEST_P(SharedEviction, TakesThePlacesOfClearedIdsFirst) {
  const std::size_t slots = GetParam() * 5;
  TinyRegion region(GetParam(), 5, shared::kState + kStateWords);
  shared::Table<shared::Hardware> table(region.view(), 0);
  const std::vector<Identity> ids = Ids(2 * slots);
  for (std::size_t i = 0; i < slots; ++i) Insert(table, ids[i], 10'000);
  table.Clear();
  for (std::size_t i = 0; i < slots; ++i) EXPECT_FALSE(table.Find(ids[i]));
  for (std::size_t i = slots; i < 2 * slots; ++i) {
    EXPECT_EQ(Insert(table, ids[i], 100), Insertion::kDone) << "nearer to expiry than cleared ids";
  }
}

TEST(SharedTable, NoCallActsLaterThanItsNowHoweverEarlyThatIs) {
  const std::vector<Identity> ids = Ids(2);
  for (const Micros now : {-kLongest, -(Micros{1} << 55) - 20, -(Micros{1} << 55), Micros{0},
                           Micros{1} << 55, kLongest - 100}) {
    SCOPED_TRACE(now);
    TinyRegion region(1, 1, shared::kState + kStateWords);
    shared::Table<shared::Hardware> table(region.view(), 0);
    ASSERT_FALSE(table.Find(ids[0]));
    table.Insert(now, [&](Micros) { return shared::Saved{now + 10, 1}; });
    ASSERT_FALSE(table.Find(ids[1]));
    Micros earliest = 0;
    table.Insert(now + 10, [&](Micros moment) {
      earliest = moment;
      return shared::Saved{now + 20, 1};
    });
    EXPECT_LE(earliest, now + 10);
  }
}

constexpr std::size_t kThreads = 4;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kCalls = 20'000;
#else
constexpr std::size_t kCalls = 200'000;
#endif

TEST(SharedThreads, NeverMixWhatIsKnownOfIds) {
  constexpr int kIds = 10;
  const std::vector<Identity> ids = Ids(kIds);
  TinyRegion region(2, 3, shared::kState + kStateWords);
  region.view().header->entries_used = kThreads;
  std::atomic<Micros> now = 0;
  std::atomic<std::size_t> ready = 0;
  const auto work = [&](std::size_t thread) {
    Client<shared::Hardware> client(ids, 2, region.view(), thread);
    ++ready;
    while (ready < kThreads) std::this_thread::yield();
    Random random(thread);
    for (std::size_t i = 0; i < kCalls; ++i) {
      const int id = static_cast<int>(random.Between(0, kIds - 1));
      const std::int64_t kind = random.Between(0, 9);
      // The client throws if a log says that it is another id's.
      client.Do(kind == 0                       ? Clear(id)
                : kind == 1                     ? Refund(id, now)
                : kind == 2                     ? Peek(id)
                : kind == 3 && random.Chance(1) ? ClearAll()
                                                : Attempt(id, now));
      if (random.Chance(50)) ++now;
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Audit(region.view()), std::vector<std::string>());
}

}  // namespace
}  // namespace rollgate::testing
