// The built-in clock on a host whose clocks are moved by hand: it sleeps, and its time is set.
#include "core/limiter_clock.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <limits>

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

  static inline Micros now;
  static inline Micros wall;
  static inline double ticks;
  static inline int wall_readings;

  static std::int64_t Nanos() { return now * 1000; }
  static Micros WallMicros() {
    ++wall_readings;
    return wall;
  }
  static bool CountsTicks() { return true; }
  static std::uint64_t Ticks() { return static_cast<std::uint64_t>(ticks); }

  static void Run(Micros duration) {
    now += duration;
    wall += duration;
    ticks += static_cast<double>(duration) * kTicksPerMicro;
  }

  /// A sleep, in which these clocks may stop.
  struct Sleep {
    bool clock_stops;
    bool ticks_stop;
  };
  static void Pass(Micros duration, Sleep sleep) {
    wall += duration;
    if (!sleep.clock_stops) now += duration;
    if (!sleep.ticks_stop) ticks += static_cast<double>(duration) * kTicksPerMicro;
  }

  static constexpr double kTicksPerMicro = 2300;
};

class HostThatSleeps : public ::testing::Test {
 protected:
  void SetUp() override {
    FakeHost::now = 3 * kHour;
    FakeHost::wall = kNoon + 30 * kMinute;
    FakeHost::ticks = 5e12;
    FakeHost::wall_readings = 0;
  }

  /// Reads every 10 us for a while, so that ticks are trusted; returns the last reading.
  template <class Clock>
  static Micros ReadFor(Clock& clock, Micros duration = 5 * kMillisecond) {
    Micros now = clock.Now();
    for (const Micros end = FakeHost::now + duration; FakeHost::now < end; now = clock.Now()) {
      FakeHost::Run(10);
    }
    return now;
  }

  /// By how much it is wrong after that.
  template <class Clock>
  static Micros ErrorAfter(Clock& clock, Micros duration = 5 * kMillisecond) {
    const Micros now = ReadFor(clock, duration);
    return std::abs(now - FakeHost::now);
  }
};

TEST_F(HostThatSleeps, HasAClockThatIsRightAMillisecondAfterTheSleep) {
  for (const Micros duration : {300 * Micros{1}, 5 * kMillisecond, 99 * kMillisecond, kHour}) {
    for (const bool ticks_stop : {false, true}) {
      LimiterClock<FakeHost> clock;
      EXPECT_LE(ErrorAfter(clock), 1);
      FakeHost::Pass(duration, {.clock_stops = false, .ticks_stop = ticks_stop});
      EXPECT_LE(ErrorAfter(clock, kMillisecond + 10), 1) << duration << ticks_stop;
      EXPECT_LE(ErrorAfter(clock), 1) << duration << ticks_stop;
    }
  }
}

TEST_F(HostThatSleeps, HasAClockThatNeverStepsBackWhereItStopsAndTicksRunOn) {
  LimiterClock<FakeHost> clock;
  Micros latest = ReadFor(clock);
  for (const Micros duration : {kMillisecond / 2, kHour}) {
    FakeHost::Pass(duration, {.clock_stops = true, .ticks_stop = false});
    for (int i = 0; i < 1000; ++i) {
      FakeHost::Run(10);
      const Micros now = clock.Now();
      EXPECT_GE(now, latest);
      latest = now;
    }
    EXPECT_NEAR(latest, FakeHost::now, 1);
  }
}

/// An aligned clock, read so often that ticks are trusted.
class AlignedClock : public HostThatSleeps {
 protected:
  /// Long enough for the wall clock to be read again.
  static constexpr Micros kSoon = 110 * kMillisecond;

  void SetUp() override {
    HostThatSleeps::SetUp();
    words_.offset = words_.lead = 0;
    clock_ = {};
    clock_.Align(words_, kHour);
  }

  Micros ReadSoon() { return ReadFor(clock_, kSoon); }

  /// By how much the time of windows differs from the wall clock's then.
  Micros Difference() {
    const Micros now = ReadSoon();
    return std::abs(now - FakeHost::wall);
  }

  static bool IsMultiple(Micros wall, Micros period = kHour) {
    return (wall % period + kAlignmentTolerance) % period <= 2 * kAlignmentTolerance;
  }
  /// The same within a period.
  bool IsAligned(Micros period = kHour) {
    const Micros now = ReadSoon();
    return IsMultiple(now - FakeHost::wall, period);
  }

  AlignmentWords words_ = {};
  LimiterClock<FakeHost> clock_;
};

TEST_F(AlignedClock, ReadsTheTimeOfDayAtLeastOnceASecondAndSeldom) {
  ReadSoon();
  FakeHost::wall_readings = 0;
  ReadFor(clock_, kSecond);
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
  FakeHost::wall += 400 * 24 * kHour;
  EXPECT_LE(Difference(), kAlignmentTolerance);
}

TEST_F(AlignedClock, StepsBackByLessThanAPeriodHoweverFarTheTimeOfDayIsSetBack) {
  for (const Micros step : {kSecond, 59 * kMinute, 60 * kMinute, 61 * kMinute, 999 * kHour}) {
    SetUp();
    const Micros before = ReadSoon();
    FakeHost::wall -= step;
    const Micros after = ReadSoon() - kSoon;
    EXPECT_LE(after, before + kAlignmentTolerance) << step;
    EXPECT_GT(after, before - kHour) << step;
    EXPECT_TRUE(IsAligned()) << step;
    // What was set by mistake is set right.
    FakeHost::wall += step;
    EXPECT_LE(Difference(), kAlignmentTolerance) << step;
  }
}

TEST_F(AlignedClock, IsAlignedToAnotherPeriodOnceThatIsSet) {
  ReadSoon();
  FakeHost::wall -= 5 * kHour + 20 * kMinute;
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
    FakeHost::wall += difference;
    ReadSoon();
    EXPECT_EQ(words_.offset, offset);
    FakeHost::wall -= difference;
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
  const Micros begin = FakeHost::now;
  for (int i = 0; i < 300; ++i) {
    FakeHost::wall -= i % 3 == 0 ? (i * 7919 % 300) * kMinute : 0;
    FakeHost::Run((i * 104729 % 60) * kMinute);
    allowed += Fill();
  }
  // Each window lasts an hour, or longer.
  EXPECT_LE(allowed, kMax * static_cast<std::uint64_t>((FakeHost::now - begin) / kHour + 2));
  EXPECT_GT(allowed, 20 * kMax);
}

}  // namespace
}  // namespace rollgate
