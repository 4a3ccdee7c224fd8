// What is held of one id, by a few holders, compared with each holding by itself.
#include "shared/held_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/time.h"
#include "shared/shared_error.h"
#include "support/traces.h"

namespace rollgate::testing {
namespace {

using shared::HeldList;
using shared::Holder;

struct Held {
  Holder holder;
  std::uint32_t cost;
  Micros end;       ///< from when on it need not count
  Micros part_end;  ///< of the part that it is in
};

constexpr std::size_t kRoom = 6;

/// Releases are late now and then: others have dropped the part, and the holder has new ones.
TEST(HeldList, CountsEachHoldingToItsEndAndReleasesNoOther) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::array<std::uint64_t, HeldList::WordsFor(kRoom)> words;
    HeldList list = HeldList::Begin(words.data(), kRoom, 7);
    const std::array holders = {Holder(1, 5), Holder(1, 6), Holder(1023, 5), Holder(0, 1)};
    std::vector<Held> all;
    Micros now = 0;
    const auto counted = [&](auto is_meant) {
      std::uint64_t sum = 0;
      for (const Held& held : all) sum += held.part_end > now && is_meant(held) ? held.cost : 0;
      return sum;
    };
    for (int step = 0; step < 200; ++step) {
      now += random.Between(0, 3);
      list.Drop([&](Holder, Micros end) { return end <= now; });
      if (all.empty() || random.Chance(55)) {
        const Holder holder = holders[static_cast<std::size_t>(random.Between(0, 3))];
        const auto cost = static_cast<std::uint32_t>(random.Between(1, 3));
        const Micros end = random.Chance(10) ? kNever : now + random.Between(1, 40);
        const auto added = list.Add(holder, cost, end);
        if (!added) {
          // Only a holder that has no part yet can find no room.
          EXPECT_EQ(counted([&](const Held& held) { return held.holder == holder; }), 0u);
          EXPECT_EQ(list.size(), kRoom);
          continue;
        }
        ASSERT_GE(added->end, end);
        for (Held& held : all) {
          const bool is_raised = held.holder == holder && held.part_end == added->raised_from;
          if (is_raised && added->raised_from != kNever) held.part_end = added->end;
        }
        all.push_back({holder, cost, end, added->end});
      } else {
        const auto released =
            all.begin() + random.Between(0, static_cast<std::int64_t>(all.size()) - 1);
        const auto& [holder, cost, end, part_end] = *released;
        ASSERT_EQ(list.Has(holder, cost, part_end), part_end > now);
        if (part_end > now) list.Take(holder, cost, part_end);
        all.erase(released);
      }
      for (const Held& held : all) ASSERT_GE(held.part_end, held.end);
      ASSERT_EQ(list.used(), counted([](const Held&) { return true; }));
      Micros latest = kLongAgo;
      for (const Held& held : all) {
        if (held.part_end > now) latest = std::max(latest, held.part_end);
      }
      ASSERT_EQ(list.saved().expires, latest);
    }
  }
}

TEST(HeldList, LeavesHalfOfItsRoomToOtherHolders) {
  std::array<std::uint64_t, HeldList::WordsFor(kRoom)> words;
  HeldList list = HeldList::Begin(words.data(), kRoom, 7);
  const Holder holder(3, 1);
  for (Micros end = 10; end <= 30; end += 10) EXPECT_EQ(list.Add(holder, 1, end)->end, end);
  // It joins the part that ends next, or raises its latest one.
  EXPECT_EQ(list.Add(holder, 1, 15)->end, 20);
  EXPECT_EQ(list.Add(holder, 1, 40)->raised_from, 30);
  for (std::size_t other = 4; other < 7; ++other) {
    EXPECT_EQ(list.Add(Holder(other, 1), 1, 5)->end, 5);
  }
  EXPECT_FALSE(list.Add(Holder(7, 1), 1, 5));
  EXPECT_EQ(list.used(), 8u);
}

TEST(HeldList, CannotHaveMorePartsThanRoom) {
  std::array<std::uint64_t, HeldList::WordsFor(kRoom)> words = {kRoom + 1};
  EXPECT_THROW(HeldList(words.data(), kRoom), SharedError);
}

}  // namespace
}  // namespace rollgate::testing
