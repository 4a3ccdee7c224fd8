// The built-in clock of a limiter: the host's at a fraction of its cost, aligned to the wall clock
// if the windows are.
#pragma once

#include <cstdint>

#include "core/alignment.h"
#include "core/inlining.h"
#include "core/tick_clock.h"
#include "core/time.h"

namespace rollgate {

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
