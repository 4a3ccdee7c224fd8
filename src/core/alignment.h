// Words that several threads access, also of several processes; and how they keep aligned windows
// on those of the wall clock, whatever steps it takes.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>

#include "core/time.h"

namespace rollgate {

using Word = std::atomic<std::uint64_t>;

/// Accesses to shared words. A Load, or a CompareExchange that finds the value, acquires what the
/// writer released with its Store or CompareExchange. Loads also keep the later accesses of their
/// thread after them, so a record read between two equal loads of a control word is whole.
/// docs/design/memory-orders.md says which access needs its order; the tests' model of ARMv8 needs
/// every store to be a release.
struct Hardware {
  static constexpr std::memory_order kLoad = std::memory_order_acquire;
  static constexpr std::memory_order kStore = std::memory_order_release;
  static constexpr std::memory_order kSwap = std::memory_order_acq_rel;
  static constexpr std::memory_order kFailedSwap = std::memory_order_acquire;

  static std::uint64_t Load(const Word& word) { return word.load(kLoad); }
  static void Store(Word& word, std::uint64_t value) { word.store(value, kStore); }
  static bool CompareExchange(Word& word, std::uint64_t expected, std::uint64_t desired) {
    return word.compare_exchange_strong(expected, desired, kSwap, kFailedSwap);
  }
};

/// How far the time of aligned windows is ahead of the clock of a limiter, and of the wall clock.
/// Zero at first. In a region, any number of threads may read and change both.
struct AlignmentWords {
  Word offset;  ///< to add to the limiter's clock
  Word lead;    ///< whole periods
};

/// The wall clock and the limiter's may differ by so much more or less before windows move. Above
/// the inexactness of two readings, so that processes of one region do not correct each other.
inline constexpr Micros kAlignmentTolerance = 1000;

/// A word as a duration; 0 for what no clock gives, because others may have written anything.
inline Micros DurationIn(std::uint64_t word) {
  const auto duration = static_cast<Micros>(word);
  return duration > -kLongest / 4 && duration < kLongest / 4 ? duration : 0;
}

/// The offset to add to the limiter's clock.
template <class Access = Hardware>
Micros OffsetIn(const AlignmentWords& words) {
  return DurationIn(Access::Load(words.offset));
}

/// Lets the windows follow the wall clock, which is `wall_offset` ahead of the limiter's clock.
/// Each window begins at a multiple of `period`, which is the longest one.
///
/// Steps forward are followed. Steps back are followed as far as they are less than a period: of
/// longer ones, whole periods become `lead`, which later steps forward use up first. Then the time
/// of aligned windows steps back by less than a period, so accounts, which take time as no earlier
/// than their newest action, stand still for less than a period, and then are aligned again.
///
/// A process may be killed or stopped between the two swaps, and who loses one gives up. Whatever
/// is left, a difference of less than a period or of whole ones, the next call finishes. No order
/// of steps and calls lets time leap ahead of the wall clock: see
/// test/shared/alignment_model_test.cc.
template <class Access = Hardware>
void FollowWall(AlignmentWords& words, Micros wall_offset, Micros period) {
  assert(period > 0);
  const std::uint64_t offset = Access::Load(words.offset);
  const std::uint64_t lead = Access::Load(words.lead);
  Micros whole = std::max(DurationIn(lead), Micros{0});
  whole -= whole % period;
  const Micros step = wall_offset + whole - DurationIn(offset);
  if (step > -kAlignmentTolerance && step < kAlignmentTolerance) return;
  const Micros next_lead = whole - std::min(whole, step - step % period);
  const auto next = static_cast<std::uint64_t>(next_lead);
  if (next != lead && !Access::CompareExchange(words.lead, lead, next)) return;
  Access::CompareExchange(words.offset, offset,
                          static_cast<std::uint64_t>(wall_offset + next_lead));
}

}  // namespace rollgate
