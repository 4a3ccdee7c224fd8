// When to believe a rate of ticks.
#include "core/tick_clock.h"

namespace rollgate {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;  // ns

/// Over less time a rate would be inexact.
constexpr std::int64_t kShortestSample = kMillisecond / 4;
/// Over more time a processor may have slept, and there is no need of it.
constexpr std::int64_t kLongestSample = 100 * kMillisecond;
/// Between two readings of the ticks: more means that the thread was interrupted there.
constexpr std::uint64_t kLongestReading = 20'000;
/// No processor's counter goes faster than this, or slower than the reverse of it.
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
}

void TickClock::LearnRate(std::uint64_t ticks, std::int64_t ns) {
  const auto duration = static_cast<std::uint64_t>(ns);
  const bool is_plausible =
      ticks <= duration * kMostTicksPerNs && ticks >= duration / kMostTicksPerNs && ticks > 0;
  // In two steps, so that a sample's nanoseconds are not too many for the shift.
  constexpr int kFirst = 30;
  const std::uint64_t ns_per_tick = is_plausible ? (duration << kFirst) / ticks : 0;
  const std::uint64_t rate = (ns_per_tick << (kFraction - kFirst)) / 1000;
  const std::uint64_t difference = rate > us_per_tick_ ? rate - us_per_tick_ : us_per_tick_ - rate;
  const bool agrees = is_plausible && difference <= rate / 512;
  trusted_ticks_ = agrees ? ticks * kMillisecond / duration : 0;
  us_per_tick_ = rate;
}

}  // namespace rollgate
