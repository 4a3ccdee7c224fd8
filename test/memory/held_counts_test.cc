// How much of each id is held, compared with a list of holders.
#include "memory/held_counts.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "support/limiter.h"
#include "support/traces.h"

namespace rollgate::memory {
namespace {

using testing::Id;
using testing::kSecret;
using testing::Random;

struct Holder {
  std::int64_t id;
  std::uint32_t cost;
  Held* held;
  bool counts;
};

/// Random operations on counts and on a list of holders.
class Trace {
 public:
  Trace(std::uint64_t seed, std::size_t max_keys)
      : random_(seed), max_keys_(max_keys), counts_(max_keys, kSecret) {}
  ~Trace() {
    // Half of what is held is never released: the counts own it.
    while (holders_.size() > 10) Release();
  }

  void Step(std::int64_t ids, std::uint32_t max) {
    const int what = random_.Between(0, 99);
    if (what < 50) {
      Acquire(random_.Between(0, static_cast<int>(ids) - 1),
              static_cast<std::uint32_t>(random_.Between(1, 3)), max);
    } else if (what < 97) {
      Release();
    } else if (what < 99) {
      Clear(random_.Between(0, static_cast<int>(ids) - 1));
    } else if (random_.Between(0, 9) == 0) {
      counts_.ClearAll();
      for (Holder& holder : holders_) holder.counts = false;
    }
    ASSERT_EQ(counts_.held(), Sum([](const Holder&) { return true; }));
    ASSERT_EQ(counts_.held_ids(), Ids().size());
  }

 private:
  template <class Fits>
  std::uint64_t Sum(Fits fits) const {
    std::uint64_t sum = 0;
    for (const Holder& holder : holders_) sum += holder.counts && fits(holder) ? holder.cost : 0;
    return sum;
  }
  std::set<std::int64_t> Ids() const {
    std::set<std::int64_t> ids;
    for (const Holder& holder : holders_) {
      if (holder.counts) ids.insert(holder.id);
    }
    return ids;
  }

  void Acquire(std::int64_t id, std::uint32_t cost, std::uint32_t max) {
    const std::uint64_t used = Sum([id](const Holder& holder) { return holder.id == id; });
    const bool is_full = used == 0 && Ids().size() >= max_keys_;
    const bool fits = used + cost <= max;
    const HeldCounts::Answer answer = counts_.Acquire(Id(id), cost, max);
    ASSERT_EQ(answer.held != nullptr, fits && !is_full);
    ASSERT_EQ(answer.is_full, fits && is_full);
    ASSERT_EQ(answer.used, answer.held == nullptr ? used : used + cost);
    ASSERT_EQ(counts_.UsedOf(Id(id)), answer.used);
    if (answer.held != nullptr) holders_.push_back({id, cost, answer.held, true});
  }

  void Release() {
    if (holders_.empty()) return;
    const int place = random_.Between(0, static_cast<int>(holders_.size()) - 1);
    std::swap(holders_[static_cast<std::size_t>(place)], holders_.back());
    const Holder holder = holders_.back();
    ASSERT_EQ(holder.held->is_cleared, !holder.counts);
    holders_.pop_back();
    counts_.Release(holder.held, holder.cost);
  }

  void Clear(std::int64_t id) {
    counts_.Clear(Id(id));
    for (Holder& holder : holders_) holder.counts = holder.counts && holder.id != id;
  }

  Random random_;
  std::size_t max_keys_;
  HeldCounts counts_;
  std::vector<Holder> holders_;
};

TEST(HeldCounts, AreThoseOfAListOfHolders) {
  for (const auto& [ids, max_keys] : {std::pair{5, 1000}, {200, 1000}, {200, 20}}) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      Trace trace(seed, static_cast<std::size_t>(max_keys));
      for (int i = 0; i < 2000; ++i) {
        ASSERT_NO_FATAL_FAILURE(trace.Step(ids, 6)) << "seed " << seed << ", step " << i;
      }
    }
  }
}

TEST(HeldCounts, LeaveNoBytesBehind) {
  HeldCounts counts(1'000'000, kSecret);
  const std::size_t empty = counts.bytes();
  std::vector<Held*> held;
  for (std::int64_t id = 0; id < 100'000; ++id) held.push_back(counts.Acquire(Id(id), 1, 1).held);
  EXPECT_GT(counts.bytes(), 100'000u * 50);
  for (Held* one : held) counts.Release(one, 1);
  EXPECT_EQ(counts.held_ids(), 0u);
  EXPECT_EQ(counts.bytes(), empty);
}

TEST(HeldCounts, AnIdThatIsHeldAgainAndAgainKeepsItsPlace) {
  HeldCounts counts(10, kSecret);
  Held* const first = counts.Acquire(Id(1), 1, 1).held;
  counts.Release(first, 1);
  EXPECT_EQ(counts.Acquire(Id(1), 1, 1).held, first);
}

}  // namespace
}  // namespace rollgate::memory
