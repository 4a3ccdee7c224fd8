// What the processes that share a table agree on, and its text.
#include "shared/configuration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/algorithms.h"
#include "shared/layout.h"
#include "shared/regions.h"
#include "shared/shared_error.h"
#include "support/traces.h"

namespace rollgate::shared {
namespace {

using Words = std::vector<std::uint64_t>;

Words WordsOf(const PolicyOptions& options, SharedClock clock = {}) {
  return ConfigurationOf(Policy(options), clock, LogFormFor(Policy(options), 0));
}

std::string TextOfPolicy(const PolicyOptions& options, SharedClock clock = {}) {
  return TextOf(WordsOf(options, clock));
}

class NoCalendars final : public Calendars {
 public:
  Span Find(std::size_t, Micros at) override { return {0, at, at + 1}; }
};

const PolicyOptions kPlain = {{{60'000'000, 5}}};

TEST(SharedConfiguration, DiffersWithEverythingThatOthersHaveToAgreeIn) {
  std::vector<Words> all = {
      WordsOf(kPlain),
      WordsOf(kPlain, SharedClock::kOwn),
      WordsOf(kPlain, SharedClock::kStopsInSleep),
      WordsOf({{{60'000'000, 6}}}),
      WordsOf({{{60'000'001, 5}}}),
      WordsOf({{{60'000'000, 5}, {1'000'000, 1}}}),
      WordsOf({{{1'000'000, 1}, {60'000'000, 5}}}),
      WordsOf({{{60'000'000, 5}}, 1}),
      WordsOf({{{60'000'000, 5}}, 0, false}),
      WordsOf({{{60'000'000, 5}}, 0, false, Algorithm::kGcra}),
      WordsOf({{{60'000'000, 5}}, 0, true, Algorithm::kFixedWindow}),
      WordsOf({{{60'000'000, 5}}, 0, true, {}, {1}}),
      WordsOf({{{60'000'000, 5}}, 0, true, {}, {1, 5}}),
      WordsOf({{{60'000'000, 5}}, 0, true, {}, {}, true}),
      // What could be taken for one another if only the numbers were written down.
      WordsOf({{{1, 2}, {3, 4}}}),
      WordsOf({{{1, 2}}, 0, true, {}, {3, 4}}),
  };
  EXPECT_EQ(WordsOf(kPlain), WordsOf({{{60'000'000, 5}}, 0, true}));
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
}

TEST(SharedConfiguration, OfSlotsFitsNoOtherKindAndAnyRoomThatIsLargeEnough) {
  const Words slots = ConfigurationOfSlots({}, 0, 16);
  EXPECT_EQ(RoomOfSlots(slots), 16u);
  EXPECT_NE(WhyNot(slots, WordsOf(kPlain)), "");
  EXPECT_NE(WhyNot(WordsOf(kPlain), slots), "");
  EXPECT_NE(WhyNot(slots, ConfigurationOfSlots(SharedClock::kOwn, 0, 16)), "");
  EXPECT_EQ(WhyNot(slots, ConfigurationOfSlots({}, 0, 4)), "");
  EXPECT_EQ(WhyNot(ConfigurationOfSlots({}, 4, 4), ConfigurationOfSlots({}, 0, 4)), "");
  EXPECT_EQ(WhyNot(ConfigurationOfSlots({}, 5, 5), ConfigurationOfSlots({}, 0, 4)),
            "its ids have room for 4 holders");
  EXPECT_EQ(TextOf(slots), "{ max: slots, shared: { room: 16 } }");
  EXPECT_EQ(TextOf(ConfigurationOfSlots(SharedClock::kOwn, 0, 16)),
            "{ max: slots, clock: a function, shared: { room: 16 } }");
}

TEST(SharedConfiguration, IsToldInTheWordsAndUnitsOfTheOptions) {
  EXPECT_EQ(TextOfPolicy(kPlain),
            "{ limits: [{ interval: 60000, maxInInterval: 5 }], algorithm: 'sliding-window-log', "
            "countBlocked: true, shared: { room: 8 } }");
  EXPECT_EQ(
      TextOfPolicy({{{60'000'000, 5}, {3'600'000'000, 100}},
                    100'000,
                    false,
                    Algorithm::kGcra,
                    {60'000'000, 500}},
                   SharedClock::kOwn),
      "{ limits: [{ interval: 60000, maxInInterval: 5 }, { interval: 3600000, maxInInterval: 100 "
      "}], minDifference: 100, algorithm: 'gcra', countBlocked: false, blockFor: [60000, 0.5], "
      "clock: a function }");
  NoCalendars calendars;
  PolicyOptions monthly{{{1'000'000, 1, true}}, 0, true, Algorithm::kFixedWindow};
  monthly.calendars = &calendars;
  EXPECT_EQ(TextOfPolicy(monthly),
            "{ limits: [{ calendar: up to 1000 ms, maxInInterval: 1 }], algorithm: 'fixed-window', "
            "countBlocked: true }");
  EXPECT_NE(TextOfPolicy(kPlain, SharedClock::kStopsInSleep)
                .find("countBlocked: true, a clock that stops while the host sleeps"),
            std::string::npos);
}

TEST(SharedConfiguration, TellsFractionsOfMillisecondsInFull) {
  for (const auto& [duration, text] : {std::pair<Micros, std::string>{1, "0.001"},
                                       {1'010, "1.01"},
                                       {1'100, "1.1"},
                                       {12'345, "12.345"},
                                       {kLongest, "2305843009213693.952"}}) {
    EXPECT_NE(TextOfPolicy({{{1'000'000, 1}}, duration}).find("minDifference: " + text + ","),
              std::string::npos)
        << text;
  }
}

TEST(SharedConfiguration, HasRoomForManyLimitsButNotForMore) {
  PolicyOptions options = {std::vector<Window>(505, Window{1'000'000, 1})};
  EXPECT_LE(WordsOf(options).size(), kConfigurationWords);
  options.windows.push_back({1'000'000, 1});
  testing::ExpectError(SharedError::Kind::kSystem, {"506 limits"}, [&] { WordsOf(options); });
}

TEST(SharedConfiguration, TakesAnyWords) {
  const std::string unknown = "{ options that this version cannot read }";
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  const Words good = WordsOf(kPlain);
  for (std::size_t size = 0; size < good.size(); ++size) {
    // Exactly so many on the heap, so that a sanitizer sees what is read beyond them.
    EXPECT_EQ(TextOf(Words(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size))),
              unknown);
  }
  EXPECT_EQ(TextOf(Words{4, 0, 0, 1, 1, 1, 1}), unknown);      // no such algorithm
  EXPECT_EQ(TextOf(Words{0, 256, 0, 1, 1, 1, 1}), unknown);    // no such flag
  EXPECT_EQ(TextOf(Words{0, 0, 0, 1, kMost, 1, 1}), unknown);  // more limits than words
  EXPECT_EQ(TextOf(Words(kConfigurationWords, kMost)), unknown);
  EXPECT_EQ(TextOf(Words{0, 0, kMost, 8, 0, kMost - 999, std::uint64_t{1} << 63}),
            "{ limits: [], minDifference: -0.001, algorithm: 'sliding-window-log', countBlocked: "
            "false, blockFor: [-1, -9223372036854775.808], shared: { room: 8 } }");

  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    testing::Random random(seed);
    Words words(static_cast<std::size_t>(random.Between(0, 20)));
    for (std::uint64_t& word : words) {
      word = random.Chance(80) ? static_cast<std::uint64_t>(random.Between(0, 8))
                               : kMost >> random.Between(0, 63);
    }
    EXPECT_FALSE(TextOf(words).empty());
  }
}

/// Whether a limiter of `ours` fits into a region that was made for `theirs`.
std::string WhyNotIn(const PolicyOptions& theirs, const PolicyOptions& ours,
                     std::uint64_t room = 0) {
  const Policy made(theirs);
  return WhyNot(WordsOf(ours), ConfigurationOf(made, {}, LogFormFor(made, room)));
}

// Kills: a room that is compared with the exact limit, stamps of any length, counts of any size.
TEST(SharedConfiguration, FitsWhereRecordsHoldIt) {
  constexpr Micros kMinute = 60'000'000;
  constexpr Micros kDay = 24 * 60 * kMinute;
  EXPECT_EQ(WhyNotIn({{{kMinute, 100}}}, {{{kMinute, 128}}}), "");
  EXPECT_NE(WhyNotIn({{{kMinute, 100}}}, {{{kMinute, 129}}}), "");
  EXPECT_EQ(WhyNotIn({{{kMinute, 100}}}, {{{kMinute, 129}}}, 129), "");
  EXPECT_EQ(WhyNotIn({{{kMinute, 100}}}, {{{kMinute / 2, 1}}}), "");
  EXPECT_NE(WhyNotIn({{{kMinute, 100}}}, {{{kDay, 100}}}), "");
  EXPECT_EQ(WhyNotIn({{{kDay, 100}}}, {{{kMinute, 100}}}), "");
  EXPECT_NE(WhyNotIn({{{kMinute, 100}}}, {{{kMinute, 100}, {kDay, 5}}}), "");
  EXPECT_NE(WhyNotIn({{{kMinute, 100}}}, {{{kMinute, 100}}, 0, false}), "");

  const auto counted = [](Algorithm algorithm, Micros interval, std::uint64_t max) {
    return PolicyOptions{{{interval, max}}, 0, false, algorithm};
  };
  for (const Algorithm algorithm : {Algorithm::kFixedWindow, Algorithm::kSlidingWindowCounter}) {
    EXPECT_EQ(WhyNotIn(counted(algorithm, 10, 5), counted(algorithm, 10, 5000)), "");
    EXPECT_NE(WhyNotIn(counted(algorithm, 10, 5), counted(algorithm, 11, 5)), "");
    EXPECT_NE(WhyNotIn(counted(algorithm, 10, 5), counted(algorithm, 10, 1 << 25)), "");
  }
  EXPECT_EQ(WhyNotIn(counted(Algorithm::kGcra, 10, 5), counted(Algorithm::kGcra, 10, 5)), "");
  EXPECT_EQ(WhyNotIn(counted(Algorithm::kGcra, 10, 5), counted(Algorithm::kGcra, 11, 6)), "");
}

}  // namespace
}  // namespace rollgate::shared
