// What one call may cost, counted rather than timed: the table by itself, without a store.
#include "memory/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "support/limiter.h"
#include "support/traces.h"

namespace rollgate::memory {
namespace {

using testing::Id;
using testing::Random;

/// So many that the table grows for the last time well before it is full: growing makes bounds
/// exact.
constexpr std::int64_t kIds = 57'000;
/// An eviction asks each chunk once, at most, and few groups.
constexpr std::size_t kMostLooks =
    static_cast<std::size_t>(kIds) / SubTable::kSlotsPerChunk * 5 / 4 + 20;

/// Whether ids that have expired are forgotten.
class CostOfEvictions : public ::testing::TestWithParam<bool> {
 protected:
  CostOfEvictions()
      : table_({20, static_cast<std::size_t>(kIds), testing::kHour, GetParam(), testing::kSecret}) {
  }

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

INSTANTIATE_TEST_SUITE_P(Forgetful, CostOfEvictions, ::testing::Bool());

}  // namespace
}  // namespace rollgate::memory
