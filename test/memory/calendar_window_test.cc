// Calendar windows, with a calendar whose windows have different lengths.
#include "core/calendar_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/algorithms.h"
#include "support/carrier.h"
#include "support/limiter.h"

namespace rollgate {
namespace {

constexpr Micros kLongestWindow = 40;

/// Windows of 10, 20, 30 and 40 us, in turn.
class Turns final : public Calendars {
 public:
  Span Find(std::size_t, Micros at) override {
    ++asked;
    constexpr std::array<Micros, 5> kStarts{0, 10, 30, 60, 100};
    const Micros moved = at - shift;
    const Micros round = moved / 100 - (moved % 100 < 0 ? 1 : 0);
    for (std::size_t i = 0;; ++i) {
      const Micros end = round * 100 + kStarts[i + 1];
      if (moved < end) {
        const auto ordinal = 4 * round + static_cast<std::int64_t>(i) + first_ordinal;
        return {ordinal, round * 100 + kStarts[i] + shift, end + shift};
      }
    }
  }

  Micros shift = 0;  ///< of all boundaries
  std::int64_t first_ordinal = 0;
  int asked = 0;
};

PolicyOptions PolicyWith(Turns& calendar, std::uint64_t max) {
  PolicyOptions policy{{{kLongestWindow, max, true}, {25, 3}}, 0, false, Algorithm::kFixedWindow};
  policy.calendars = &calendar;
  return policy;
}

// Kills: a question to the host in each check.
TEST(CalendarWindow, AsksForBoundariesOncePerWindow) {
  Turns calendar;
  testing::Limiter limiter(PolicyWith(calendar, 1000));
  for (int id = 0; id < 100; ++id) {
    for (Micros now = 60; now < 100; ++now) limiter.Attempt(id, now);
  }
  EXPECT_EQ(calendar.asked, 1);
}

// Kills: another order in place of equal ordinals: a calendar with smaller ones would never end.
TEST(CalendarWindow, OfACallEndsWhenItsOwnWindowDoes) {
  Turns calendar;
  testing::Limiter limiter(PolicyWith(calendar, 1));
  EXPECT_TRUE(limiter.Attempt(1, 60).verdict.allowed());
  calendar.are_of_call = true;
  calendar.shift = 5;
  calendar.first_ordinal = -1000;
  EXPECT_FALSE(limiter.Attempt(1, 99).verdict.allowed());
  EXPECT_TRUE(limiter.Attempt(1, 104).verdict.allowed());
  EXPECT_EQ(limiter.Attempt(1, 104).time_left, 1);
  EXPECT_TRUE(limiter.Attempt(1, 105).verdict.allowed());
}

// Kills: a time left until the end that the id has, at which the window of the call goes on.
TEST(CalendarWindow, WaitsAsLongAsTheCalendarOfTheCallGoesOn) {
  Turns calendar;
  testing::Limiter limiter(PolicyWith(calendar, 1));
  limiter.Attempt(1, 60);
  EXPECT_EQ(limiter.Attempt(1, 90).time_left, 10);
  calendar.are_of_call = true;
  calendar.shift = 5;
  EXPECT_EQ(limiter.Attempt(1, 90).time_left, 15);
  EXPECT_FALSE(limiter.Attempt(1, 104).verdict.allowed());
  EXPECT_TRUE(limiter.Attempt(1, 105).verdict.allowed());
}

// Kills: an attempt that is taken from a window in which it was not counted.
TEST(CalendarWindow, TakesBackWhatItsWindowCounts) {
  Turns calendar;
  testing::Limiter limiter(PolicyWith(calendar, 3));
  const Decision first = limiter.Attempt(1, 60);
  const Decision second = limiter.Attempt(1, 99);
  EXPECT_TRUE(limiter.Refund(1, second));
  EXPECT_EQ(limiter.Peek(1, 99, 0).windows[0].used, 1u);
  limiter.Attempt(1, 100);
  EXPECT_FALSE(limiter.Refund(1, first));
  EXPECT_EQ(limiter.Peek(1, 100, 0).windows[0].used, 1u);
}

// Kills: a count that is lost, or kept for ever, where another host knows other boundaries.
TEST(CalendarWindow, ABoundaryThatMovesLosesNoCount) {
  for (const Micros shift : {-3, 3}) {
    std::array<Turns, 2> calendars;
    calendars[1].shift = shift;
    PolicyOptions policy{{{kLongestWindow, 2, true}}, 0, false, Algorithm::kFixedWindow};
    policy.calendars = &calendars[0];
    testing::Carrier here(policy);
    policy.calendars = &calendars[1];
    testing::Carrier there(policy);
    std::vector<std::byte> state;
    const auto allows = [&](testing::Carrier& host, Micros now) {
      host.state = state;
      const bool allowed = host.Attempt(now).verdict.allowed();
      state = host.state;
      return allowed;
    };
    EXPECT_TRUE(allows(here, 70));
    EXPECT_TRUE(allows(there, 80));
    // Until the later of both boundaries, the window is the same.
    const auto [earlier, later] = std::minmax<Micros>({100, 100 + shift});
    EXPECT_FALSE(allows(here, earlier - 1));
    EXPECT_FALSE(allows(there, later - 1));
    EXPECT_TRUE(allows(there, later));
    EXPECT_TRUE(allows(here, later));
    EXPECT_FALSE(allows(here, later));
  }
}

}  // namespace
}  // namespace rollgate
