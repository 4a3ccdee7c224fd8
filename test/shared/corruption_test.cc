// Whatever a region's bytes are while limiters use it: a wrong count or an error, and nothing
// worse.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "core/algorithms.h"
#include "shared/file.h"
#include "shared/held_region.h"
#include "shared/record_states.h"
#include "shared/region.h"
#include "shared/regions.h"
#include "shared/shared_error.h"
#include "shared/shared_store.h"
#include "support/limiter.h"
#include "support/traces.h"

namespace rollgate::testing {
namespace {

/// How many regions are ruined: as many as the environment says, for a long search.
std::uint64_t Rounds() {
  const char* const rounds = std::getenv("ROLLGATE_CORRUPTION_ROUNDS");
  return rounds == nullptr ? 200 : std::strtoull(rounds, nullptr, 10);
}

Micros AnyInterval(Random& random) {
  const Micros intervals[] = {1, 40, kSecond, 2 * kHour, kLongest};
  return intervals[random.Between(0, 4)];
}

Micros AnyMoment(Random& random) {
  return random.Between(-kLongest, kLongest - 1);
}

PolicyOptions AnyPolicy(Random& random) {
  PolicyOptions options;
  options.algorithm = static_cast<Algorithm>(random.Between(0, 3));
  options.count_blocked = options.algorithm != Algorithm::kGcra && random.Chance(50);
  for (std::int64_t i = random.Chance(50) ? 1 : random.Between(2, 3); i > 0; --i) {
    options.windows.push_back(
        {AnyInterval(random), static_cast<std::uint64_t>(random.Between(1, 9))});
  }
  if (random.Chance(30)) options.min_difference = AnyInterval(random);
  for (std::int64_t i = random.Chance(50) ? random.Between(1, 3) : 0; i > 0; --i) {
    options.blocks.push_back(AnyInterval(random));
  }
  return options;
}

/// The file of a region as another program sees it that may write there.
class Vandal {
 public:
  explicit Vandal(const RegionName& name)
      : file_(shared::OpenOwn(name.path())), region_(file_, GeometryOf(file_)) {}

  void Strike(Random& random) {
    shared::Word& word = AnyWord(random);
    const std::uint64_t found = word.load();
    const auto few = static_cast<std::uint64_t>(random.Between(-2, 2));
    const std::uint64_t values[] = {found ^ std::uint64_t{1} << random.Between(0, 63),
                                    found + few,
                                    few << random.Between(0, 63),
                                    AnyWord(random).load(),  // it makes sense elsewhere
                                    found | 0xff,
                                    static_cast<std::uint64_t>(random.Between(0, INT64_MAX - 1))
                                        << random.Between(0, 1)};
    word = values[random.Between(0, 5)];
  }

  /// Calls `change(Word&)` for each word of the records.
  template <class Change>
  void ChangeRecords(Change change) {
    const shared::Geometry& geometry = region_.view().geometry;
    shared::Word* const words = region_.view().records;
    const std::size_t count = (geometry.bytes() - geometry.records_at()) / sizeof(shared::Word);
    for (std::size_t i = 0; i < count; ++i) change(words[i]);
  }

 private:
  static shared::Geometry GeometryOf(const shared::File& file) {
    shared::Header header;
    EXPECT_EQ(pread(file.descriptor(), &header, sizeof header, 0),
              static_cast<ssize_t>(sizeof header));
    return {header.buckets, header.record_words};
  }

  /// More often one that is used.
  shared::Word& AnyWord(Random& random) const {
    const shared::Geometry& geometry = region_.view().geometry;
    const std::size_t records = geometry.records_at();
    const std::pair<std::size_t, std::size_t> parts[] = {
        {0, 22 * sizeof(shared::Word)},  // the header's numbers
        {offsetof(shared::Header, era), geometry.entries_at()},
        {geometry.entries_at(), geometry.entries_at() + 3 * sizeof(shared::Entry)},
        {geometry.entries_at(), geometry.bytes()},
        {geometry.buckets_at(), records},
        {geometry.buckets_at(), records},
        {records, records + geometry.slots() * geometry.record_words() * sizeof(shared::Word)}};
    const auto [from, to] = parts[std::min<std::int64_t>(random.Between(0, 9), 6)];
    const auto word = random.Between(static_cast<std::int64_t>(from / sizeof(shared::Word)),
                                     static_cast<std::int64_t>(to / sizeof(shared::Word)) - 1);
    return reinterpret_cast<shared::Word*>(region_.view().header)[word];
  }

  shared::File file_;
  shared::Mapping region_;
};

/// A caller that goes on after every error.
class User {
 public:
  User(const PolicyOptions& policy, const SharedStoreOptions& options)
      : policy_(policy), options_(options), uses_(policy.windows.size()) {}

  /// Lets go of the region and finds it again, if that is possible.
  bool Attach() {
    store_ = nullptr;
    return Try([&] { store_ = SharedStore::Attach(Policy(policy_), options_); });
  }

  void Call(Random& random, Micros now) {
    if (store_) Try([&] { Act(random, now); });
  }

 private:
  template <class Action>
  static bool Try(Action action) {
    try {
      action();
      return true;
    } catch (const SharedError&) {
      return false;
    }
  }

  void Act(Random& random, Micros now) {
    const Identity id = Id(random.Between(0, 39));
    const auto cost = static_cast<std::uint64_t>(random.Between(1, SmallestMax(policy_)));
    Decision decision;
    decision.windows = uses_;
    const std::int64_t kind = random.Between(0, 11);
    if (kind == 0) store_->Clear(id);
    if (kind == 1) store_->Decide(id, now, cost - 1, Recording::kNothing, decision);
    if (kind == 2) store_->stats();
    if (kind == 3 && random.Chance(10)) store_->ClearAll();
    if (kind == 4 || kind == 5) store_->Settle(random.Chance(50) ? id : last_, receipt_, 0, now);
    if (kind == 6 || kind == 7) store_->Check(id, now);
    if (kind < 8) return;
    store_->Decide(id, now, cost, Recording::kAttempt, decision);
    receipt_ = {decision.verdict.at, cost, decision.token};
    last_ = id;
    if (policy_.algorithm != Algorithm::kSlidingWindowLog || policy_.weighted) return;
    for (std::size_t i = 0; i < uses_.size() && policy_.count_blocked; ++i) {
      EXPECT_LE(uses_[i].used, policy_.windows[i].max);
    }
  }

  PolicyOptions policy_;
  SharedStoreOptions options_;
  std::vector<WindowUse> uses_;
  std::unique_ptr<SharedStore> store_;
  Identity last_;
  Receipt receipt_{0, 1, 0};
};

TEST(SharedCorruption, LeadsToNothingWorseThanAnErrorOrAWrongCount) {
  for (std::uint64_t seed = 0; seed < Rounds(); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const PolicyOptions policy = AnyPolicy(random);
    const RegionName region;
    const SharedStoreOptions options = region.Options(20);
    User users[] = {User(policy, options), User(policy, options)};
    for (User& user : users) ASSERT_TRUE(user.Attach());
    Vandal vandal(region);
    Micros now = random.Chance(80) ? random.Between(0, kSecond) : AnyMoment(random);
    for (int call = 0; call < 600; ++call) {
      if (call > 60 && random.Chance(30)) vandal.Strike(random);
      if (call > 60 && random.Chance(2)) users[random.Between(0, 1)].Attach();
      now = random.Chance(2) ? AnyMoment(random) : Bounded(NextReading(random, now));
      users[random.Between(0, 1)].Call(random, now);
    }
  }
}

TEST(SharedCorruption, OfSlotsLeadsToNothingWorseThanAnErrorOrAWrongCount) {
  for (std::uint64_t seed = 0; seed < Rounds(); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const RegionName region;
    const SharedStoreOptions of_store = region.Options(20);
    const shared::HeldRegionOptions options{
        .directory = of_store.directory, .name = of_store.name, .max_keys = 20, .room = 3};
    std::array users = {std::make_unique<shared::HeldRegion>(options),
                        std::make_unique<shared::HeldRegion>(options)};
    Vandal vandal(region);
    std::vector<std::pair<Identity, shared::Holding>> held;
    const auto act = [&](shared::HeldTable<shared::Holders>& table) {
      const Identity id = Id(random.Between(0, 39));
      const Micros now = random.Between(0, 1000);
      const std::int64_t kind = random.Between(0, 9);
      if (kind == 0) table.Clear(id);
      if (kind == 1) table.UsedOf(id, [&] { return now; });
      if (kind == 2 && random.Chance(10)) table.ClearAll();
      if (kind < 6 && !held.empty()) {
        const auto [of, holding] = held.back();
        held.pop_back();
        table.Release(of, holding);
        return;
      }
      const shared::HeldAnswer answer = table.Acquire(
          id, static_cast<std::uint32_t>(random.Between(1, 3)), 5, [&] { return now; },
          [&] { return random.Chance(50) ? kNever : now + 100; });
      if (answer.kind == shared::HeldAnswer::Kind::kGranted) held.emplace_back(id, answer.holding);
    };
    for (int call = 0; call < 600; ++call) {
      if (call > 60 && random.Chance(30)) vandal.Strike(random);
      try {
        act(users[static_cast<std::size_t>(random.Between(0, 1))]->table());
      } catch (const SharedError&) {
      }
    }
  }
}

TEST(SharedCorruption, ALogOfMoreActionsThanItsRingHoldsIsAnError) {
  const RegionName region;
  const auto store = SharedStore::Attach(Policy({{{kSecond, 9}}, 0, true}), region.Options(20));
  ASSERT_EQ(store->Check(Id(1), 0), 0);
  Vandal(region).ChangeRecords([](shared::Word& word) {
    // One action, above the generation: now three, in a ring without room.
    if (word >> kGenerationBits == 1) word = word + (std::uint64_t{2} << kGenerationBits);
  });
  EXPECT_THROW(store->Check(Id(1), 1), SharedError);
}

TEST(SharedCorruption, DoesNotLeadBeyondTheLengthsOfBlocks) {
  const shared::BlockWords<Policy> blocks(Policy({.windows = {{kSecond, 1}}, .blocks = {1, 2}}), 0);
  for (const std::uint64_t offences : {3, 255, 256}) {
    const std::array<std::uint64_t, 2> state{77, offences};
    EXPECT_EQ(blocks.Load(state.data()).offences, 2) << offences;
  }
}

}  // namespace
}  // namespace rollgate::testing
