// The built-in clock on a host whose clocks and ticks are moved by hand: it sleeps, and its time is
// set.
#include "core/limiter_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <utility>

#include "core/algorithms.h"
#include "support/carrier.h"

namespace rollgate {
namespace {

constexpr Micros kMillisecond = 1000;
constexpr Micros kSecond = 1'000'000;
constexpr Micros kMinute = 60 * kSecond;
constexpr Micros kHour = 60 * kMinute;

/// A noon.
constexpr Micros kNoon = 1'700'049'600 * kSecond;
static_assert(kNoon % (12 * kHour) == 0 && kNoon % (24 * kHour) != 0);

struct FakeHost {
  static constexpr bool kHasTicks = true;

  static inline std::int64_t ns;
  static inline Micros wall_ahead;  ///< of the wall clock
  static inline double ticks;
  static inline double ticks_per_ns;
  static inline std::int64_t interruption;  ///< in the next reading, in ns
  static inline int readings;
  static inline int wall_readings;

  static Micros Now() { return ns / 1000; }
  static Micros Wall() { return Now() + wall_ahead; }

  static std::int64_t Nanos() {
    ++readings;
    Run(std::exchange(interruption, 0));
    return ns;
  }
  static Micros WallMicros() {
    ++wall_readings;
    return Wall();
  }
  static bool CountsTicks() { return true; }
  static std::uint64_t Ticks() { return static_cast<std::uint64_t>(ticks); }

  static void Run(std::int64_t duration_ns) {
    ns += duration_ns;
    ticks += static_cast<double>(duration_ns) * ticks_per_ns;
  }

  /// A sleep, in which these clocks may stop.
  struct Sleep {
    bool clock_stops;
    bool ticks_stop;
  };
  static void Pass(Micros duration, Sleep sleep) {
    wall_ahead += sleep.clock_stops ? duration : 0;
    ns += sleep.clock_stops ? 0 : duration * 1000;
    if (!sleep.ticks_stop) ticks += static_cast<double>(duration) * 1000 * ticks_per_ns;
  }
};

class ClockOfAHost : public ::testing::Test {
 protected:
  void SetUp() override {
    FakeHost::ns = 3 * kHour * 1000;
    FakeHost::wall_ahead = kNoon + 30 * kMinute - FakeHost::Now();
    FakeHost::ticks = 5e12;
    FakeHost::ticks_per_ns = 2.3;
    clock_ = {};
  }

  /// Reads every 9.9 us for a while, so that ticks are trusted; returns the last reading.
  Micros ReadFor(Micros duration = 5 * kMillisecond) {
    worst_ = 0;
    Micros now = 0;
    for (const Micros end = FakeHost::Now() + duration; FakeHost::Now() < end;) {
      FakeHost::Run(9'900);
      now = clock_.Now();
      ++reads_;
      worst_ = std::max(worst_, std::abs(now - FakeHost::Now()));
    }
    return now;
  }

  /// By how much it is wrong at most meanwhile.
  Micros WorstErrorIn(Micros duration) {
    ReadFor(duration);
    return worst_;
  }

  /// By how much it is wrong after that.
  Micros ErrorAfter(Micros duration = 5 * kMillisecond) {
    const Micros now = ReadFor(duration);
    return std::abs(now - FakeHost::Now());
  }

  LimiterClock<FakeHost> clock_;
  int reads_ = 0;

 private:
  Micros worst_ = 0;
};

TEST_F(ClockOfAHost, AsksTheSystemOnceAMillisecondAndIsRightToTheMicrosecond) {
  EXPECT_LE(WorstErrorIn(100 * kMillisecond), 1);
  FakeHost::readings = 0;
  ReadFor(100 * kMillisecond);
  EXPECT_LE(FakeHost::readings, 101);
}

TEST_F(ClockOfAHost, IsRightAMillisecondAfterASleep) {
  for (const Micros duration : {300 * Micros{1}, 5 * kMillisecond, 99 * kMillisecond, kHour}) {
    for (const bool ticks_stop : {false, true}) {
      clock_ = {};
      EXPECT_LE(ErrorAfter(), 1);
      FakeHost::Pass(duration, {.clock_stops = false, .ticks_stop = ticks_stop});
      EXPECT_LE(ErrorAfter(kMillisecond + 10), 1) << duration << ticks_stop;
      EXPECT_LE(ErrorAfter(), 1) << duration << ticks_stop;
    }
  }
}

TEST_F(ClockOfAHost, NeverStepsBackWhereTheHostsStopsAndTicksRunOn) {
  Micros latest = ReadFor();
  for (const Micros duration : {kMillisecond / 2, kHour}) {
    FakeHost::Pass(duration, {.clock_stops = true, .ticks_stop = false});
    for (int i = 0; i < 1000; ++i) {
      FakeHost::Run(9'900);
      const Micros now = clock_.Now();
      EXPECT_GE(now, latest);
      latest = now;
    }
    EXPECT_NEAR(latest, FakeHost::Now(), 1);
  }
}

TEST_F(ClockOfAHost, IsRightAgainAMillisecondAfterTicksWentWrong) {
  for (const double jump : {1e6, 2.3e9, 6.6e13, -1e6, -2.3e9, -4.9e12}) {
    SetUp();
    ReadFor();
    // The ticks go on while time stands still, as in a sleep, or begin anew, as after one.
    FakeHost::ticks += jump;
    EXPECT_LE(WorstErrorIn(2 * kMillisecond), 1000) << jump;
    EXPECT_LE(WorstErrorIn(50 * kMillisecond), 1) << jump;
  }
}

TEST_F(ClockOfAHost, IsRightAgainAMillisecondAfterTicksChangedTheirRate) {
  for (const double rate : {0.1, 1.0, 2.2, 2.4, 4.0, 19.0}) {
    SetUp();
    ReadFor();
    FakeHost::ticks_per_ns = rate;
    // A slower counter takes longer to count the ticks of a millisecond.
    EXPECT_LE(WorstErrorIn(30 * kMillisecond), 24'000) << rate;
    EXPECT_LE(WorstErrorIn(50 * kMillisecond), 1) << rate;
  }
}

TEST_F(ClockOfAHost, DoesNotBelieveAReadingThatWasInterrupted) {
  constexpr std::int64_t kLong = 5'000'000;
  constexpr std::int64_t kShort = 500'000;  // no sample shows it, after a time that is too long
  for (const auto& [idle_ns, interruption] : {std::pair{2'000'000, kLong}, {200'000'000, kShort}}) {
    SetUp();
    ReadFor();
    FakeHost::Run(idle_ns);
    FakeHost::interruption = interruption;
    EXPECT_LE(WorstErrorIn(10 * kMillisecond), 1) << interruption;
  }
}

TEST_F(ClockOfAHost, AlwaysAsksWhereTicksStandStillOrRace) {
  for (const double rate : {0.0, 0.01, 1000.0}) {
    SetUp();
    FakeHost::ticks_per_ns = rate;
    FakeHost::readings = reads_ = 0;
    EXPECT_EQ(WorstErrorIn(5 * kMillisecond), 0) << rate;
    EXPECT_EQ(FakeHost::readings, reads_) << rate;
  }
}

/// An aligned clock, read so often that ticks are trusted.
class AlignedClock : public ClockOfAHost {
 protected:
  /// Long enough for the wall clock to be read again.
  static constexpr Micros kSoon = 110 * kMillisecond;

  void SetUp() override {
    ClockOfAHost::SetUp();
    words_.offset = words_.lead = 0;
    clock_.Align(words_, kHour);
  }

  Micros ReadSoon() { return ReadFor(kSoon); }

  /// By how much the time of windows differs from the wall clock's then.
  Micros Difference() {
    const Micros now = ReadSoon();
    return std::abs(now - FakeHost::Wall());
  }

  static bool IsMultiple(Micros wall, Micros period = kHour) {
    return (wall % period + kAlignmentTolerance) % period <= 2 * kAlignmentTolerance;
  }
  /// The same within a period.
  bool IsAligned(Micros period = kHour) {
    const Micros now = ReadSoon();
    return IsMultiple(now - FakeHost::Wall(), period);
  }

  AlignmentWords words_ = {};
};

TEST_F(AlignedClock, ReadsTheTimeOfDayAtLeastOnceASecondAndSeldom) {
  ReadSoon();
  FakeHost::wall_readings = 0;
  ReadFor(kSecond);
  EXPECT_GE(FakeHost::wall_readings, 1);
  EXPECT_LE(FakeHost::wall_readings, 40);
}

TEST_F(AlignedClock, FollowsTheWallClockThroughSleepsAndStepsForward) {
  EXPECT_LE(Difference(), kAlignmentTolerance);
  for (const bool clock_stops : {false, true}) {
    for (const bool ticks_stop : {false, true}) {
      FakeHost::Pass(150 * kMinute, {clock_stops, ticks_stop});
      EXPECT_LE(Difference(), kAlignmentTolerance) << clock_stops << ticks_stop;
    }
  }
  FakeHost::wall_ahead += 400 * 24 * kHour;
  EXPECT_LE(Difference(), kAlignmentTolerance);
}

TEST_F(AlignedClock, StepsBackByLessThanAPeriodHoweverFarTheTimeOfDayIsSetBack) {
  for (const Micros step : {kSecond, 59 * kMinute, 60 * kMinute, 61 * kMinute, 999 * kHour}) {
    SetUp();
    const Micros before = ReadSoon();
    FakeHost::wall_ahead -= step;
    const Micros after = ReadSoon() - kSoon;
    EXPECT_LE(after, before + kAlignmentTolerance) << step;
    EXPECT_GT(after, before - kHour) << step;
    EXPECT_TRUE(IsAligned()) << step;
    // What was set by mistake is set right.
    FakeHost::wall_ahead += step;
    EXPECT_LE(Difference(), kAlignmentTolerance) << step;
  }
}

TEST_F(AlignedClock, IsAlignedToAnotherPeriodOnceThatIsSet) {
  ReadSoon();
  FakeHost::wall_ahead -= 5 * kHour + 20 * kMinute;
  EXPECT_TRUE(IsAligned());
  clock_.SetPeriod(2 * kHour);
  EXPECT_TRUE(IsAligned(2 * kHour));
}

TEST_F(AlignedClock, IsRightAgainWhateverOthersHaveWritten) {
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t offset : {most, most / 2, most / 2 + 1, most / 4}) {
    for (const std::uint64_t lead : {most, most / 2, most / 2 + 1, most / 4}) {
      SetUp();
      words_.offset = offset;
      words_.lead = lead;
      ReadSoon();
      EXPECT_LE(std::abs(ReadSoon()), kLongest) << offset << ' ' << lead;
      EXPECT_TRUE(IsAligned()) << offset << ' ' << lead;
    }
  }
}

TEST_F(AlignedClock, StaysAsItIsForDifferencesThatReadingsMayHave) {
  ReadSoon();
  const std::uint64_t offset = words_.offset;
  for (const Micros difference : {kAlignmentTolerance - 1, 1 - kAlignmentTolerance}) {
    FakeHost::wall_ahead += difference;
    ReadSoon();
    EXPECT_EQ(words_.offset, offset);
    FakeHost::wall_ahead -= difference;
  }
}

/// An hourly limit whose clock is aligned.
class HourlyLimit : public AlignedClock {
 protected:
  static constexpr std::uint64_t kMax = 10;

  void SetUp() override {
    AlignedClock::SetUp();
    limit_.state.clear();
  }

  /// The time left.
  Micros Attempt() { return limit_.Attempt(ReadSoon()).time_left; }

  /// Attempts as often as it is allowed; returns how often that was.
  std::uint64_t Fill() {
    std::uint64_t allowed = 0;
    while (Attempt() == 0) ++allowed;
    return allowed;
  }

  testing::Carrier limit_{
      {.windows = {{kHour, kMax}}, .count_blocked = false, .algorithm = Algorithm::kFixedWindow}};
};

TEST_F(HourlyLimit, AllowsNoMoreForTimeThatIsSetBackAgainAndAgain) {
  std::uint64_t allowed = Fill();
  const Micros begin = FakeHost::Now();
  for (int i = 0; i < 300; ++i) {
    FakeHost::wall_ahead -= i % 3 == 0 ? (i * 7919 % 300) * kMinute : 0;
    FakeHost::Run((i * 104729 % 60) * kMinute * 1000);
    allowed += Fill();
  }
  // Each window lasts an hour, or longer.
  EXPECT_LE(allowed, kMax * static_cast<std::uint64_t>((FakeHost::Now() - begin) / kHour + 2));
  EXPECT_GT(allowed, 20 * kMax);
}

}  // namespace
}  // namespace rollgate
