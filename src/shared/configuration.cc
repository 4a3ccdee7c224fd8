// Writes a configuration as words, and as options for messages.
#include "shared/configuration.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "core/algorithms.h"
#include "shared/layout.h"
#include "shared/shared_error.h"
#include "shared/shared_store.h"

namespace rollgate::shared {
namespace {

/// Followed by two words for each window and one for each block.
enum ConfigurationWord : std::size_t {
  kAlgorithm,
  kFlags,
  kMinDifference,
  kRoom,
  kWindows,
  kFirstWindow
};
static_assert(kFirstWindow + 2 <= kConfigurationWords, "one window fits");

constexpr std::uint64_t kCountBlocked = 1;
constexpr std::uint64_t kCarriesLimits = 2;
constexpr std::uint64_t kOwnClock = 4;
constexpr std::uint64_t kNamed = 8;
constexpr std::uint64_t kLongStamps = 16;
constexpr std::uint64_t kHasBlocks = 32;
constexpr std::uint64_t kWideCounts = 64;
constexpr std::uint64_t kStopsInSleep = 128;
constexpr std::uint64_t kFlagsInUse = kCountBlocked | kCarriesLimits | kOwnClock | kNamed |
                                      kLongStamps | kHasBlocks | kWideCounts | kStopsInSleep;

/// In the word of an interval.
constexpr std::uint64_t kIsCalendar = std::uint64_t{1} << 63;

std::uint64_t FlagOf(SharedClock clock) {
  return clock == SharedClock::kOwn            ? kOwnClock
         : clock == SharedClock::kStopsInSleep ? kStopsInSleep
                                               : 0;
}

/// In place of an algorithm, in a region that limits what runs at once. It has no windows, and the
/// room that was asked for in place of the minimum difference.
constexpr std::uint64_t kSlots = 1000;
static_assert(kSlots >= kAlgorithms.size());
constexpr std::size_t kLeastRoom = kMinDifference;

/// A duration in milliseconds, with a fraction if it has one. Takes any word.
std::string MillisText(std::uint64_t duration) {
  const bool is_negative = duration >> 63 != 0;
  if (is_negative) duration = -duration;
  std::string text(is_negative ? "-" : "");
  text.append(std::to_string(duration / 1000));
  if (const std::uint64_t fraction = duration % 1000; fraction != 0) {
    std::string digits = std::to_string(1000 + fraction);  // keeps leading zeros
    digits.resize(digits.find_last_not_of('0') + 1);
    text.append(".").append(digits, 1);
  }
  return text;
}

}  // namespace

LogForm LogFormFor(const Policy& policy, std::uint64_t room, bool rounds_up) {
  if (policy.algorithm() != Algorithm::kSlidingWindowLog) return {};
  if (policy.weighted()) return {WeightedEntries::kMost, true};
  const bool has_long_stamps = policy.retention() > ShortLog<Policy>::Log::kLongestRetention;
  const std::uint64_t least = std::max<std::uint64_t>(room, policy.log_capacity());
  const std::uint64_t wanted = rounds_up ? std::bit_ceil(least) : least;
  return {static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted, kLongestSharedLog)),
          has_long_stamps};
}

std::vector<std::uint64_t> ConfigurationOf(const Policy& policy, SharedClock clock,
                                           const LogForm& form) {
  const std::uint64_t flags = (policy.count_blocked() ? kCountBlocked : 0) |
                              (policy.algorithm() == Algorithm::kGcra ? kCarriesLimits : 0) |
                              FlagOf(clock) | (policy.weighted() ? kNamed : 0) |
                              (form.has_long_stamps ? kLongStamps : 0) |
                              (policy.blocks().empty() ? 0 : kHasBlocks) |
                              (CountFormat(policy).is_wide() ? kWideCounts : 0);
  std::vector<std::uint64_t> words = {static_cast<std::uint64_t>(policy.algorithm()), flags,
                                      static_cast<std::uint64_t>(policy.min_difference()),
                                      form.room, policy.windows().size()};
  for (const Window& window : policy.windows()) {
    words.push_back(static_cast<std::uint64_t>(window.interval) |
                    (window.is_calendar ? kIsCalendar : 0));
    words.push_back(window.max);
  }
  for (const Micros length : policy.blocks()) words.push_back(static_cast<std::uint64_t>(length));
  if (words.size() > kConfigurationWords) {
    const std::size_t room = kConfigurationWords - kFirstWindow;
    throw SharedError(SharedError::Kind::kSystem,
                      "a shared limiter cannot have " + std::to_string(policy.windows().size()) +
                          " limits and " + std::to_string(policy.blocks().size()) +
                          " lengths in blockFor: twice the limits and the lengths may be " +
                          std::to_string(room) + " in all");
  }
  assert(words.size() >= kFirstWindow + 2);
  return words;
}

std::vector<std::uint64_t> ConfigurationOfSlots(SharedClock clock, std::uint32_t least_room,
                                                std::uint32_t room) {
  return {kSlots, FlagOf(clock), least_room, room, 0};
}

std::size_t RoomOfSlots(std::span<const std::uint64_t> configuration) {
  assert(configuration.size() >= kFirstWindow && configuration[kAlgorithm] == kSlots);
  return static_cast<std::size_t>(configuration[kRoom]);
}

LogForm LogFormOf(std::span<const std::uint64_t> configuration) {
  assert(configuration.size() >= kFirstWindow);
  return {static_cast<std::uint32_t>(configuration[kRoom]),
          (configuration[kFlags] & kLongStamps) != 0};
}

std::string WhyNot(std::span<const std::uint64_t> ours, std::span<const std::uint64_t> theirs) {
  constexpr const char* kOther = "it has other options";
  constexpr std::uint64_t kMayDiffer = kLongStamps | kWideCounts;
  if (theirs.size() < kFirstWindow || ours[kWindows] != theirs[kWindows] ||
      theirs.size() < kFirstWindow + 2 * ours[kWindows] || ours[kAlgorithm] != theirs[kAlgorithm] ||
      ((ours[kFlags] ^ theirs[kFlags]) & ~kMayDiffer) != 0) {
    return kOther;
  }
  if (ours[kAlgorithm] == kSlots) {
    return ours[kLeastRoom] <= theirs[kRoom]
               ? ""
               : "its ids have room for " + std::to_string(theirs[kRoom]) + " holders";
  }
  const auto has = [](std::span<const std::uint64_t> words, std::uint64_t flag) {
    return (words[kFlags] & flag) != 0;
  };
  const auto algorithm = static_cast<Algorithm>(ours[kAlgorithm]);
  if (algorithm == Algorithm::kGcra) return "";  // its states say which limits they are of
  std::uint64_t largest_max = 0;
  for (std::size_t i = kFirstWindow; i < kFirstWindow + 2 * ours[kWindows]; i += 2) {
    if (algorithm != Algorithm::kSlidingWindowLog && ours[i] != theirs[i]) return kOther;
    largest_max = std::max(largest_max, ours[i + 1]);
  }
  if (algorithm != Algorithm::kSlidingWindowLog) {
    return has(ours, kWideCounts) == has(theirs, kWideCounts) ? "" : "its counts have another size";
  }
  const std::uint64_t room = theirs[kRoom];
  if (room < 1 || room > kLongestSharedLog) return kOther;
  if (has(ours, kNamed)) return room == ours[kRoom] ? "" : kOther;
  if (has(ours, kLongStamps) && !has(theirs, kLongStamps)) {
    return "its records hold intervals of at most 71 minutes";
  }
  if (largest_max > room) {
    return "its records have room for " + std::to_string(room) +
           " actions, and { shared: { room: " + std::to_string(largest_max) +
           " } } where it is made would give them more";
  }
  return "";
}

std::string TextOf(std::span<const std::uint64_t> configuration) {
  constexpr const char* kUnknown = "{ options that this version cannot read }";
  if (configuration.size() < kFirstWindow) return kUnknown;
  const std::uint64_t algorithm = configuration[kAlgorithm];
  const std::uint64_t flags = configuration[kFlags];
  const std::uint64_t windows = configuration[kWindows];
  const std::span<const std::uint64_t> rest = configuration.subspan(kFirstWindow);
  const std::string clock =
      std::string((flags & kOwnClock) != 0 ? ", clock: a function" : "") +
      ((flags & kStopsInSleep) != 0 ? ", a clock that stops while the host sleeps" : "");
  const std::string room = ", shared: { room: " + std::to_string(configuration[kRoom]) + " }";
  if (algorithm == kSlots) return "{ max: slots" + clock + room + " }";
  if (algorithm >= kAlgorithms.size() || (flags & ~kFlagsInUse) != 0 || windows > rest.size() / 2) {
    return kUnknown;
  }

  std::string text = (flags & kNamed) != 0 ? "{ named limits: [" : "{ limits: [";
  for (std::size_t i = 0; i < windows; ++i) {
    const std::uint64_t interval = rest[2 * i];
    text.append(i == 0 ? "{ " : ", { ");
    if ((interval & kIsCalendar) != 0) {
      text.append("calendar: up to ").append(MillisText(interval & ~kIsCalendar)).append(" ms");
    } else {
      text.append("interval: ").append(MillisText(interval));
    }
    text.append(", maxInInterval: ").append(std::to_string(rest[2 * i + 1])).append(" }");
  }
  text += ']';
  if (const std::uint64_t difference = configuration[kMinDifference]; difference != 0) {
    text += ", minDifference: " + MillisText(difference);
  }
  text.append(", algorithm: '").append(kAlgorithms[algorithm].name).append("'");
  text += (flags & kCountBlocked) != 0 ? ", countBlocked: true" : ", countBlocked: false";
  std::string lengths;
  for (const std::uint64_t length : rest.subspan(2 * windows)) {
    lengths.append(lengths.empty() ? "" : ", ").append(MillisText(length));
  }
  if (!lengths.empty()) text += ", blockFor: [" + lengths + ']';
  const bool has_room = algorithm == 0 && (flags & kNamed) == 0;
  return text + clock + (has_room ? room : "") + " }";
}

}  // namespace rollgate::shared
