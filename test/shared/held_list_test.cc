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
  Micros end;
};

constexpr std::size_t kRoom = 4;

/// What the holder holds that ends no earlier.
std::uint64_t From(const std::vector<Held>& held, Holder holder, Micros end) {
  std::uint64_t sum = 0;
  for (const Held& each : held) {
    if (each.holder == holder && each.end >= end) sum += each.cost;
  }
  return sum;
}

TEST(HeldList, CountsEachHolderToTheEndAndGivesAllBack) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    std::array<std::uint64_t, HeldList::WordsFor(kRoom)> words;
    HeldList list = HeldList::Begin(words.data(), kRoom, 7);
    std::vector<Held> all;
    const std::array holders = {Holder(1, 5), Holder(1, 6), Holder(1023, 5)};
    const auto holders_of = [&](Holder holder) { return From(all, holder, -kLongest); };
    Micros now = 0;
    for (int step = 0; step < 200; ++step) {
      now += random.Between(0, 3);
      list.Drop([&](Holder, Micros end) { return end <= now; });
      std::erase_if(all, [&](const Held& held) { return held.end <= now; });
      if (all.empty() || random.Chance(55)) {
        const Held held{holders[static_cast<std::size_t>(random.Between(0, 2))],
                        static_cast<std::uint32_t>(random.Between(1, 3)),
                        random.Chance(20) ? kNever : now + random.Between(1, 40)};
        const bool is_added = list.Add(held.holder, held.cost, held.end);
        if (is_added) all.push_back(held);
        // Only a holder that has no part yet can find no room.
        else
          EXPECT_EQ(holders_of(held.holder), 0u) << "seed " << seed;
      } else {
        const auto released =
            all.begin() + random.Between(0, static_cast<std::int64_t>(all.size()) - 1);
        ASSERT_TRUE(list.Has(released->holder, released->cost, released->end)) << "seed " << seed;
        list.Take(released->holder, released->cost, released->end);
        all.erase(released);
      }
      // Nothing ends too early, so what is held at any later time is in the list.
      for (const Held& held : all) {
        ASSERT_TRUE(list.Has(
            held.holder, static_cast<std::uint32_t>(From(all, held.holder, held.end)), held.end))
            << "seed " << seed << " step " << step;
      }
      std::uint64_t sum = 0;
      for (const Holder holder : holders) sum += holders_of(holder);
      ASSERT_GE(list.used(), sum);
      Micros latest = kLongAgo;
      for (const Held& held : all) latest = std::max(latest, held.end);
      ASSERT_GE(list.saved().expires, latest);
    }
  }
}

TEST(HeldList, IsExactWhileThereIsRoom) {
  std::array<std::uint64_t, HeldList::WordsFor(kRoom)> words;
  HeldList list = HeldList::Begin(words.data(), kRoom, 7);
  const Holder holder(3, 1);
  for (Micros end = 10; end <= 40; end += 10) EXPECT_TRUE(list.Add(holder, 1, end));
  EXPECT_TRUE(list.Add(holder, 2, 20));
  EXPECT_FALSE(list.Add(Holder(4, 1), 1, 20));
  EXPECT_EQ(list.used(), 6u);
  list.Drop([](Holder, Micros end) { return end <= 20; });
  EXPECT_EQ(list.used(), 2u);
  EXPECT_EQ(list.generation(), 7u);
  EXPECT_FALSE(list.Has(holder, 2, 40));
  list.Take(holder, 1, 30);
  EXPECT_EQ(list.saved().expires, 40);
  list.Take(holder, 1, 40);
  EXPECT_EQ(list.saved().expires, kLongAgo);
}

TEST(HeldList, CannotHaveMorePartsThanRoom) {
  std::array<std::uint64_t, HeldList::WordsFor(kRoom)> words = {kRoom + 1};
  EXPECT_THROW(HeldList(words.data(), kRoom), SharedError);
}

}  // namespace
}  // namespace rollgate::testing
