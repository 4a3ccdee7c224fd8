// The clock that counts ticks, on a machine whose time and ticks are moved by hand.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>

#include "core/limiter_clock.h"

namespace rollgate {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;  // ns
constexpr std::int64_t kSecond = 1000 * kMillisecond;

/// A clock as the binding uses it.
class Machine {
 public:
  void Run(std::int64_t ns) {
    ns_ += ns;
    ticks_ += static_cast<std::uint64_t>(static_cast<double>(ns) * ticks_per_ns);
  }

  /// Reads the clock; returns by how many microseconds it is off.
  Micros Read() {
    Micros now;
    if (clock_.Tell(ticks_, now)) {
      ++told_;
    } else {
      clock_.Note(ticks_, ns_, ticks_ + 60);
      ++asked_;
      now = ns_ / 1000;
    }
    now = clock_.Advance(now);
    has_stepped_back_ |= now < latest_;
    latest_ = now;
    return std::abs(now - ns_ / 1000);
  }

  /// Reads every 100 ns for a while; returns the worst error.
  Micros ReadFor(std::int64_t ns) {
    Micros worst = 0;
    for (const std::int64_t end = ns_ + ns; ns_ < end; Run(100)) worst = std::max(worst, Read());
    return worst;
  }

  double ticks_per_ns = 2.3;
  std::uint64_t ticks_ = 5'000'000'000'000;
  std::int64_t ns_ = 3 * kSecond;
  Micros latest_ = 0;
  bool has_stepped_back_ = false;
  int told_ = 0;
  int asked_ = 0;
  TickClock clock_;
};

TEST(TickClock, AsksTheSystemOnceAMillisecondAndIsRightToTheMicrosecond) {
  Machine machine;
  EXPECT_LE(machine.ReadFor(100 * kMillisecond), 1);
  EXPECT_GT(machine.told_, 900'000);
  machine.asked_ = 0;
  machine.ReadFor(100 * kMillisecond);
  EXPECT_LE(machine.asked_, 101);
}

TEST(TickClock, NeverStepsBackWhereTicksGoTooFast) {
  Machine machine;
  machine.ReadFor(10 * kMillisecond);
  machine.ticks_per_ns *= 1.001;  // within what samples may disagree
  machine.ReadFor(100 * kMillisecond);
  EXPECT_GT(machine.told_, 900'000);
  EXPECT_FALSE(machine.has_stepped_back_);
}

TEST(TickClock, IsRightAgainAMillisecondAfterItsTicksWentWrong) {
  for (const std::int64_t jump :
       {std::int64_t{1'000'000}, std::int64_t{2'300'000'000}, std::int64_t{66'240'000'000'000},
        std::int64_t{-1'000'000}, std::int64_t{-2'300'000'000}, std::int64_t{-4'900'000'000'000}}) {
    Machine machine;
    machine.ReadFor(10 * kMillisecond);
    // The ticks go on while time stands still, as in a sleep, or begin anew, as after one.
    machine.ticks_ += static_cast<std::uint64_t>(jump);
    EXPECT_LE(machine.ReadFor(2 * kMillisecond), 1000) << jump;
    EXPECT_LE(machine.ReadFor(50 * kMillisecond), 1) << jump;
  }
}

TEST(TickClock, IsRightAgainAMillisecondAfterItsTicksChangedTheirRate) {
  for (const double rate : {0.1, 1.0, 2.2, 2.4, 4.0, 19.0}) {
    Machine machine;
    machine.ReadFor(10 * kMillisecond);
    machine.ticks_per_ns = rate;
    // A slower counter takes longer to count the ticks of a millisecond.
    EXPECT_LE(machine.ReadFor(30 * kMillisecond), 24'000) << rate;
    EXPECT_LE(machine.ReadFor(50 * kMillisecond), 1) << rate;
  }
}

TEST(TickClock, DoesNotBelieveAReadingThatWasInterrupted) {
  Machine machine;
  machine.ReadFor(10 * kMillisecond);
  machine.Run(2 * kMillisecond);
  machine.clock_.Note(machine.ticks_, machine.ns_ + 5 * kMillisecond, machine.ticks_ + 11'500'000);
  machine.Run(5 * kMillisecond);
  EXPECT_LE(machine.ReadFor(10 * kMillisecond), 1);
}

TEST(TickClock, DoesNotBelieveAShortInterruptionThatNoSampleShows) {
  Machine machine;
  machine.ReadFor(10 * kMillisecond);
  machine.Run(200 * kMillisecond);  // too long to learn a rate from
  const std::uint64_t before = machine.ticks_;
  machine.Run(kMillisecond / 2);
  machine.clock_.Note(before, machine.ns_, machine.ticks_);
  EXPECT_LE(machine.ReadFor(10 * kMillisecond), 1);
}

TEST(TickClock, AlwaysAsksWhereTicksStandStillOrRace) {
  for (const double rate : {0.0, 0.01, 1000.0}) {
    Machine machine;
    machine.ticks_per_ns = rate;
    EXPECT_EQ(machine.ReadFor(5 * kMillisecond), 0) << rate;
    EXPECT_EQ(machine.told_, 0) << rate;
  }
}

}  // namespace
}  // namespace rollgate
