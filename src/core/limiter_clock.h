// The built-in clock of a limiter: the host's at a fraction of its cost, aligned to the wall clock
// if the windows are.
#pragma once

#include <cassert>
#include <cstdint>

#include "core/alignment.h"
#include "core/inlining.h"
#include "core/time.h"

namespace rollgate {

/// Interpolates between readings of the system's clock by a processor's tick counter.
///
/// Learns the rate of ticks from readings of the system's clock, and extrapolates for a millisecond
/// after each. Reads nothing itself. A rate is used once two consecutive samples agree on it, so
/// not if the machine slept or its counter restarted meanwhile.
class TickClock {
 public:
  /// Sets `now` to the time at `ticks`. Returns false if the system must be asked.
  bool Tell(std::uint64_t ticks, Micros& now) const {
    const std::uint64_t gone = ticks - noted_ticks_;
    if (gone >= trusted_ticks_) return false;
    now = noted_us_ + static_cast<Micros>((noted_rest_ + gone * us_per_tick_) >> kFraction);
    return true;
  }

  /// The time for limiters never falls, although ticks can be a microsecond ahead.
  Micros Advance(Micros now) { return latest_ = std::max(latest_, now); }

  /// Records that the system's clock read `ns` between these two readings of the ticks.
  ROLLGATE_COLD void Note(std::uint64_t before, std::int64_t ns, std::uint64_t after) {
    if (after - before > kLongestReading) return;
    const std::int64_t since = ns - noted_ns_;
    if (has_noted_ && since >= 0 && since < kShortestSample) return;
    if (has_noted_ && since >= 0 && since <= kLongestSample)
      LearnRate(before - noted_ticks_, since);
    has_noted_ = true;
    noted_ns_ = ns;
    noted_ticks_ = before;
    const std::int64_t rest = (ns % 1000 + 1000) % 1000;
    noted_us_ = (ns - rest) / 1000;
    noted_rest_ = (static_cast<std::uint64_t>(rest) << kFraction) / 1000;
    assert(rest >= 0 && rest < 1000 && noted_rest_ < std::uint64_t{1} << kFraction);
  }

 private:
  static constexpr std::int64_t kMillisecond = 1'000'000;  // ns

  /// A shorter sample is inexact.
  static constexpr std::int64_t kShortestSample = kMillisecond / 4;
  /// During a longer one, the processor may have slept.
  static constexpr std::int64_t kLongestSample = 100 * kMillisecond;
  /// More ticks between two readings mean that the thread was interrupted.
  static constexpr std::uint64_t kLongestReading = 20'000;
  /// No processor's counter is faster, or slower than the inverse.
  static constexpr std::uint64_t kMostTicksPerNs = 20;

  static constexpr int kFraction = 40;

  void LearnRate(std::uint64_t ticks, std::int64_t ns) {
    assert(ns >= kShortestSample && ns <= kLongestSample);
    const auto duration = static_cast<std::uint64_t>(ns);
    const bool is_plausible =
        ticks <= duration * kMostTicksPerNs && ticks >= duration / kMostTicksPerNs && ticks > 0;
    // In two steps, so the shift does not overflow.
    constexpr int kFirst = 30;
    const std::uint64_t ns_per_tick = is_plausible ? (duration << kFirst) / ticks : 0;
    const std::uint64_t rate = (ns_per_tick << (kFraction - kFirst)) / 1000;
    const std::uint64_t difference =
        rate > us_per_tick_ ? rate - us_per_tick_ : us_per_tick_ - rate;
    const bool agrees = is_plausible && difference <= rate / 512;
    trusted_ticks_ = agrees ? ticks * kMillisecond / duration : 0;
    us_per_tick_ = rate;
  }

  Micros latest_ = std::numeric_limits<Micros>::min();
  bool has_noted_ = false;
  std::int64_t noted_ns_ = 0;
  std::uint64_t noted_ticks_ = 0;
  // The noted time again, so that Tell need not divide: microseconds, and the rest.
  Micros noted_us_ = 0;
  std::uint64_t noted_rest_ = 0;     // in 2^-kFraction us
  std::uint64_t us_per_tick_ = 0;    // of the last sample, in 2^-kFraction us
  std::uint64_t trusted_ticks_ = 0;  // extrapolate so far; 0 without a rate
};

/// Microseconds. Owned by one thread. Without an alignment it never steps back; with one, it steps
/// as FollowWall says.
///
/// A call of the host takes 20 ns, a quarter of a check. If the host reads the processor's tick
/// counter, this clock does so itself: see TickClock. It may differ from the host's by a
/// microsecond, and by all that the ticks miss for a millisecond of theirs.
///
/// `Host` has static members:
/// - Nanos(): a clock that is never set and never steps back, and goes on while the host sleeps, if
///   there is such a clock
/// - WallMicros(): the time since the epoch, which may be set
/// - kHasTicks; and then Ticks(), and CountsTicks(): whether Nanos() counts those
template <class Host>
class LimiterClock {
 public:
  /// Windows shall be those of the wall clock, as `words` say, which must live as long as this.
  /// `period` is the longest interval.
  void Align(AlignmentWords& words, Micros period) {
    alignment_ = &words;
    period_ = period;
    follows_at_ = kLongAgo;
  }

  /// Sets another longest interval.
  void SetPeriod(Micros period) { period_ = period; }

  Micros Now() {
    if constexpr (Host::kHasTicks) {
      Micros now;
      if (ticks_.Tell(Host::Ticks(), now)) [[likely]] {
        return ticks_.Advance(now) + offset_;
      }
    }
    return Ask();
  }

 private:
  /// How often the wall clock is read at least, while there are calls.
  static constexpr Micros kFollowsEvery = 100'000;

  ROLLGATE_COLD Micros Ask() {
    const Micros now = ticks_.Advance(Read());
    if (alignment_ == nullptr) return now;
    if (now >= follows_at_) {
      FollowWall(*alignment_, WallOffset(), period_);
      follows_at_ = now + kFollowsEvery;
    }
    offset_ = OffsetIn(*alignment_);
    return now + offset_;
  }

  Micros Read() {
    if constexpr (Host::kHasTicks) {
      if (counts_ticks_) {
        const std::uint64_t before = Host::Ticks();
        const std::int64_t now = Host::Nanos();
        ticks_.Note(before, now, Host::Ticks());
        return now / 1000;
      }
    }
    return Host::Nanos() / 1000;
  }

  /// How far the wall clock is ahead, from the least interrupted of three readings.
  static Micros WallOffset() {
    Micros offset = 0;
    Micros shortest = kNever;
    for (int i = 0; i < 3; ++i) {
      const Micros before = Host::Nanos() / 1000;
      const Micros wall = Host::WallMicros();
      const Micros took = Host::Nanos() / 1000 - before;
      if (took >= shortest) continue;
      shortest = took;
      offset = wall - before;
    }
    return offset;
  }

  TickClock ticks_;
  bool counts_ticks_ = Host::CountsTicks();
  AlignmentWords* alignment_ = nullptr;
  Micros offset_ = 0;
  Micros period_ = 0;
  Micros follows_at_ = kLongAgo;
};

}  // namespace rollgate
