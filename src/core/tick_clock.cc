// Learns the rate of a processor's ticks.
#include "core/tick_clock.h"

#include <cassert>

namespace rollgate {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;  // ns

/// A shorter sample is inexact.
constexpr std::int64_t kShortestSample = kMillisecond / 4;
/// During a longer one, the processor may have slept.
constexpr std::int64_t kLongestSample = 100 * kMillisecond;
/// More ticks between two readings mean that the thread was interrupted.
constexpr std::uint64_t kLongestReading = 20'000;
/// No processor's counter is faster, or slower than the inverse.
constexpr std::uint64_t kMostTicksPerNs = 20;

}  // namespace

void TickClock::Note(std::uint64_t before, std::int64_t ns, std::uint64_t after) {
  if (after - before > kLongestReading) return;
  const std::int64_t since = ns - noted_ns_;
  if (has_noted_ && since >= 0 && since < kShortestSample) return;
  if (has_noted_ && since >= 0 && since <= kLongestSample) LearnRate(before - noted_ticks_, since);
  has_noted_ = true;
  noted_ns_ = ns;
  noted_ticks_ = before;
  const std::int64_t rest = (ns % 1000 + 1000) % 1000;
  noted_us_ = (ns - rest) / 1000;
  noted_rest_ = (static_cast<std::uint64_t>(rest) << kFraction) / 1000;
  assert(rest >= 0 && rest < 1000 && noted_rest_ < std::uint64_t{1} << kFraction);
}

void TickClock::LearnRate(std::uint64_t ticks, std::int64_t ns) {
  assert(ns >= kShortestSample && ns <= kLongestSample);
  const auto duration = static_cast<std::uint64_t>(ns);
  const bool is_plausible =
      ticks <= duration * kMostTicksPerNs && ticks >= duration / kMostTicksPerNs && ticks > 0;
  // In two steps, so the shift does not overflow.
  constexpr int kFirst = 30;
  const std::uint64_t ns_per_tick = is_plausible ? (duration << kFirst) / ticks : 0;
  const std::uint64_t rate = (ns_per_tick << (kFraction - kFirst)) / 1000;
  const std::uint64_t difference = rate > us_per_tick_ ? rate - us_per_tick_ : us_per_tick_ - rate;
  const bool agrees = is_plausible && difference <= rate / 512;
  trusted_ticks_ = agrees ? ticks * kMillisecond / duration : 0;
  us_per_tick_ = rate;
}

}  // namespace rollgate
