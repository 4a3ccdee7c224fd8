// Whatever a region's bytes are while limiters use it: a wrong count or an error, and nothing
// worse.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/algorithms.h"
#include "shared/block_words.h"
#include "shared/file.h"
#include "shared/mapping.h"
#include "shared/regions.h"
#include "shared/shared_error.h"
#include "shared/shared_store.h"
#include "support/limiter.h"
#include "support/traces.h"

namespace rollgate::testing {
namespace {

constexpr std::size_t kIds = 40;
constexpr std::size_t kRoom = 20;

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
  if (random.Chance(50)) {
    for (std::int64_t i = random.Between(1, 3); i > 0; --i) {
      options.blocks.push_back(AnyInterval(random));
    }
  }
  return options;
}

/// The file of a region as somebody else sees it who may write there.
class Vandal {
 public:
  explicit Vandal(const RegionName& name)
      : file_(shared::OpenOwn(name.path())),
        region_(file_, GeometryOf(file_)),
        words_(reinterpret_cast<shared::Word*>(&region_.header())),
        count_(region_.geometry().bytes() / sizeof(shared::Word)) {}

  void Strike(Random& random) {
    shared::Word& word = Somewhere(random);
    const std::uint64_t found = word.load();
    switch (random.Between(0, 5)) {
      case 0:
        word = found ^ std::uint64_t{1} << random.Between(0, 63);
        break;
      case 1:
        word = found + static_cast<std::uint64_t>(random.Between(-2, 2));
        break;
      case 2:
        word = static_cast<std::uint64_t>(random.Between(-2, 2)) << random.Between(0, 63);
        break;
      case 3:  // something that makes sense elsewhere
        word = Somewhere(random).load();
        break;
      case 4:
        word = (found & ~std::uint64_t{0xff}) | 0xff;
        break;
      default:
        word = static_cast<std::uint64_t>(random.Between(0, INT64_MAX - 1)) << random.Between(0, 1);
    }
  }

 private:
  static shared::Geometry GeometryOf(const shared::File& file) {
    shared::Header header;
    EXPECT_EQ(pread(file.descriptor(), &header, sizeof header, 0),
              static_cast<ssize_t>(sizeof header));
    return {header.buckets, header.record_words};
  }

  shared::Word& Somewhere(Random& random) const {
    const std::size_t entries = region_.geometry().entries_at() / sizeof(shared::Word);
    const std::size_t buckets = region_.geometry().buckets_at() / sizeof(shared::Word);
    const std::size_t records = region_.geometry().records_at() / sizeof(shared::Word);
    const std::size_t used = region_.geometry().slots() * region_.geometry().record_words();
    const auto between = [&](std::size_t from, std::size_t to) -> shared::Word& {
      return words_[random.Between(static_cast<std::int64_t>(from),
                                   static_cast<std::int64_t>(to) - 1)];
    };
    switch (random.Between(0, 9)) {
      case 0:
        return between(0, 22);  // the header's numbers
      case 1:
        return between(offsetof(shared::Header, era) / sizeof(shared::Word), entries);
      case 2:
        return between(entries, entries + 3 * sizeof(shared::Entry) / sizeof(shared::Word));
      case 3:
        return between(entries, count_);
      case 4:
      case 5:
        return between(buckets, records);
      default:
        return between(records, records + used);
    }
  }

  shared::File file_;
  shared::Mapping region_;
  shared::Word* words_;
  std::size_t count_;
};

/// One who goes on whatever comes.
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
    if (!store_) return;
    Try([&] {
      const Identity id = Id(random.Between(0, kIds - 1));
      std::uint64_t smallest = 9;
      for (const Window& window : policy_.windows) smallest = std::min(smallest, window.max);
      const auto cost =
          static_cast<std::uint64_t>(random.Between(1, static_cast<std::int64_t>(smallest)));
      Decision decision;
      decision.windows = uses_;
      switch (random.Between(0, 11)) {
        case 0:
          store_->Clear(id);
          break;
        case 1:
          store_->Peek(id, now, cost - 1, decision);
          break;
        case 2:
          store_->stats();
          break;
        case 3:
          if (random.Chance(10)) store_->ClearAll();
          break;
        case 4:
        case 5:
          store_->Refund(random.Chance(50) ? id : last_, receipt_, now);
          break;
        case 6:
        case 7:
          store_->Check(id, now);
          break;
        default:
          store_->Attempt(id, now, cost, decision);
          receipt_ = {decision.verdict.at, cost, decision.token};
          last_ = id;
          for (std::size_t i = 0; i < uses_.size(); ++i) {
            EXPECT_LE(uses_[i].used, policy_.windows[i].max);
          }
      }
    });
  }

 private:
  template <class Call>
  bool Try(Call call) {
    try {
      call();
      return true;
    } catch (const SharedError& error) {
      return false;
    }
  }

  PolicyOptions policy_;
  SharedStoreOptions options_;
  std::vector<WindowUse> uses_;
  std::unique_ptr<SharedStore> store_;
  Identity last_;
  Receipt receipt_;
};

TEST(SharedCorruption, ComesToNothingWorseThanAnErrorOrAWrongCount) {
  for (std::uint64_t seed = 0; seed < Rounds(); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const PolicyOptions policy = AnyPolicy(random);
    const RegionName region;
    const SharedStoreOptions options = region.Options(kRoom);
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

TEST(SharedCorruption, DoesNotLeadBeyondTheLengthsOfBlocks) {
  const shared::BlockWords<Policy> blocks(Policy({.windows = {{kSecond, 1}}, .blocks = {1, 2}}), 0);
  for (const std::uint64_t offences : {std::uint64_t{3}, std::uint64_t{255}, std::uint64_t{256}}) {
    const std::array<std::uint64_t, 2> state{77, offences};
    EXPECT_EQ(blocks.Load(state.data()).offences, 2) << offences;
  }
}

}  // namespace
}  // namespace rollgate::testing
