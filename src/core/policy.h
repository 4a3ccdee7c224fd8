// What is allowed: windows and further rules, and what follows from them for stores.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "core/time.h"

namespace rollgate {

/// At most `max` actions in any `interval`. An action leaves exactly `interval` after it was made.
struct Window {
  Micros interval;           ///< > 0; of a calendar window, the longest that an action can matter
  std::uint64_t max;         ///< >= 1; a call may bring 0
  bool is_calendar = false;  ///< its boundaries are those of a Calendars
};

/// Defined in algorithms.h; 0 is the log.
enum class Algorithm : std::uint8_t;

/// Finds the boundaries of calendar windows, which follow from a host's zone data.
class Calendars {
 public:
  struct Span {
    std::int64_t ordinal;  ///< tells the window from others of its calendar
    Micros start;
    Micros end;
  };

  virtual ~Calendars() = default;
  Calendars(const Calendars&) = delete;
  Calendars& operator=(const Calendars&) = delete;

  /// The one that contains `at`. `window` is numbered as in the policy.
  virtual Span Find(std::size_t window, Micros at) = 0;

  /// Whether the current call has calendars of its own, so that nothing of them may be remembered.
  bool are_of_call = false;

 protected:
  Calendars() = default;
};

/// The most lengths of blocks in a policy.
inline constexpr std::size_t kMostBlocks = 255;

struct PolicyOptions {
  std::vector<Window> windows;  ///< at least one
  Micros min_difference = 0;    ///< least time between two actions
  bool count_blocked = true;    ///< whether refusals are recorded as actions
  Algorithm algorithm = {};
  /// The lengths of an id's first block, second block and so on; the last repeats. At most
  /// kMostBlocks; none: refusals start no block.
  std::vector<Micros> blocks = {};
  /// Whether windows count different things: each attempt has a cost for each window.
  bool weighted = false;
  /// How many actions to keep, and how long, because earlier limits of these ids needed them.
  std::uint64_t kept_actions = 0;
  Micros kept_for = 0;
  /// The largest limit that calls may bring; 0: none above the largest max, and none with GCRA.
  std::uint64_t largest_limit = 0;
  Calendars* calendars = nullptr;  ///< not owned; of calendar windows
};

/// The largest log, a gigabyte or two. To record more actions throws std::bad_alloc.
inline constexpr std::uint32_t kLongestLog = std::uint32_t{1} << 28;

/// How many actions a log keeps at least when one is recorded whatever the limits say: those that
/// it would push out may count under the larger limit of a later call.
inline constexpr std::uint64_t kKeptByRecords = 1024;

/// No limit is larger.
inline constexpr std::uint64_t kMostLimit = (std::uint64_t{1} << 53) - 1;

/// A PolicyOptions::largest_limit for these limits of a call. One of two, so that stores seldom
/// change their form.
inline std::uint64_t LargestLimitFor(std::span<const std::uint64_t> limits) {
  constexpr std::uint64_t kSmall = kKeptByRecords;
  const bool is_small = std::ranges::max(limits) <= kSmall;
  return is_small ? kSmall : kMostLimit;
}

/// Rules, which all must allow an attempt. Templates take a Policy or a SingleWindowPolicy as P.
class Policy {
 public:
  explicit Policy(PolicyOptions options)
      : windows_(std::move(options.windows)),
        min_difference_(Bounded(options.min_difference)),
        count_blocked_(options.count_blocked),
        algorithm_(options.algorithm),
        blocks_(std::move(options.blocks)),
        weighted_(options.weighted),
        varies_(options.largest_limit > 0),
        kept_actions_(options.kept_actions),
        calendars_(options.calendars) {
    assert(!windows_.empty() && min_difference_ >= 0 && blocks_.size() <= kMostBlocks);
    for (Window& window : windows_) {
      window.interval = Bounded(window.interval);
      assert(window.interval > 0 && window.max >= 1);
      assert(!window.is_calendar || calendars_ != nullptr);
      longest_interval_ = std::max(longest_interval_, window.interval);
      kept_actions_ = std::max(kept_actions_, window.max);
      has_calendar_ |= window.is_calendar;
      own_maxes_.push_back(window.max);
    }
    largest_limit_ = std::max(options.largest_limit, kept_actions_);
    retention_ = std::max({longest_interval_, min_difference_, options.kept_for});
    for (Micros& length : blocks_) {
      length = Bounded(length);
      assert(length > 0);
      block_retention_ = std::max(block_retention_, Bounded(length + longest_interval_));
    }
    UseLimits({});
    assert(log_capacity() >= 1 && retention_ >= longest_interval_);
  }

  std::span<const Window> windows() const { return windows_; }
  Micros min_difference() const { return min_difference_; }
  bool count_blocked() const { return count_blocked_; }
  Algorithm algorithm() const { return algorithm_; }
  std::span<const Micros> blocks() const { return blocks_; }

  /// How long an action can affect decisions, blocks aside.
  Micros retention() const { return retention_; }

  Micros longest_interval() const { return longest_interval_; }

  /// How long a refusal can affect decisions through the block that it starts: offences are
  /// remembered for the longest interval after their block. 0 without blocks.
  Micros block_retention() const { return block_retention_; }

  /// How many of an id's newest actions can affect decisions: the largest max, or more if earlier
  /// limits needed them. A window is full exactly when its max-th newest action is inside.
  std::uint32_t log_capacity() const { return LogCapacity(most_needed_); }

  /// Whether a window allows more actions than the longest log holds.
  bool exceeds_log() const { return most_needed_ > kLongestLog; }

  /// Whether each attempt has a cost for each window, which may differ.
  bool weighted() const { return weighted_; }

  bool has_calendar() const { return has_calendar_; }
  Calendars& calendars() const { return *calendars_; }

  /// The largest limit of a call that stores of this policy have room for.
  std::uint64_t largest_limit() const { return largest_limit_; }

  /// Whether states say which limits they were recorded under, so that calls may bring others.
  bool varies() const { return varies_; }
  Policy ThatVaries() const {
    Policy policy = *this;
    policy.varies_ = true;
    return policy;
  }
  /// The same with room for any limit.
  Policy ForAnyLimit() const {
    Policy policy = ThatVaries();
    policy.largest_limit_ = kMostLimit;
    return policy;
  }

  /// Replaces the max of each window for a call; none sets the own ones again. Logs then keep as
  /// many actions as the call needs, and no fewer than without. Precondition: none is above
  /// largest_limit().
  void UseLimits(std::span<const std::uint64_t> limits) {
    assert(limits.empty() || limits.size() == windows_.size());
    has_limits_of_call_ = !limits.empty();
    most_needed_ = kept_actions_;
    for (std::size_t i = 0; i < windows_.size(); ++i) {
      windows_[i].max = limits.empty() ? own_maxes_[i] : limits[i];
      most_needed_ = std::max(most_needed_, windows_[i].max);
    }
  }
  /// Lets logs keep so many actions, until limits are set.
  void KeepAtLeast(std::uint64_t actions) { most_needed_ = std::max(most_needed_, actions); }

  bool has_limits_of_call() const { return has_limits_of_call_; }

 private:
  friend class SingleWindowPolicy;

  static std::uint32_t LogCapacity(std::uint64_t needed) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(needed, kLongestLog));
  }

  std::vector<Window> windows_;
  std::vector<std::uint64_t> own_maxes_;
  Micros min_difference_;
  bool count_blocked_;
  Algorithm algorithm_;
  std::vector<Micros> blocks_;
  Micros retention_;
  Micros longest_interval_ = 0;
  Micros block_retention_ = 0;
  bool weighted_;
  bool varies_;
  bool has_calendar_ = false;
  bool has_limits_of_call_ = false;
  std::uint64_t kept_actions_;
  std::uint64_t most_needed_ = 0;
  std::uint64_t largest_limit_;
  Calendars* calendars_;
};

/// One window and nothing else: constants let the compiler remove what is unused.
class SingleWindowPolicy {
 public:
  static bool Fits(const Policy& policy) {
    return policy.windows().size() == 1 && policy.min_difference() == 0 &&
           policy.blocks().empty() && !policy.weighted();
  }

  /// Precondition: Fits(policy).
  explicit SingleWindowPolicy(const Policy& policy)
      : window_{policy.windows().front()},
        count_blocked_(policy.count_blocked()),
        retention_(policy.retention()),
        own_max_(policy.own_maxes_.front()),
        kept_actions_(policy.kept_actions_),
        largest_limit_(policy.largest_limit()),
        calendars_(policy.calendars_) {
    assert(Fits(policy));
    UseLimits({});
  }

  std::span<const Window, 1> windows() const { return window_; }
  static constexpr Micros min_difference() { return 0; }
  static constexpr std::span<const Micros> blocks() { return {}; }
  bool count_blocked() const { return count_blocked_; }
  static constexpr bool weighted() { return false; }
  Micros retention() const { return retention_; }
  Micros longest_interval() const { return window_[0].interval; }
  std::uint32_t log_capacity() const { return Policy::LogCapacity(most_needed_); }
  bool exceeds_log() const { return most_needed_ > kLongestLog; }
  Calendars& calendars() const { return *calendars_; }
  std::uint64_t largest_limit() const { return largest_limit_; }
  void UseLimits(std::span<const std::uint64_t> limits) {
    window_[0].max = limits.empty() ? own_max_ : limits[0];
    most_needed_ = std::max(kept_actions_, window_[0].max);
  }
  void KeepAtLeast(std::uint64_t actions) { most_needed_ = std::max(most_needed_, actions); }

 private:
  std::array<Window, 1> window_;
  bool count_blocked_;
  Micros retention_;
  std::uint64_t own_max_;
  std::uint64_t kept_actions_;
  std::uint64_t most_needed_ = 0;
  std::uint64_t largest_limit_;
  Calendars* calendars_;
};

/// The form of the policy in an algorithm.
template <class Rules>
using PolicyOf = std::decay_t<decltype(std::declval<Rules>().policy())>;

/// One T for each window of a policy `P`.
template <class P, class T>
using PerWindow =
    std::conditional_t<std::is_same_v<P, SingleWindowPolicy>, std::array<T, 1>, std::vector<T>>;

template <class T, class P>
PerWindow<P, T> ForEachWindow(const P& policy) {
  if constexpr (std::is_same_v<P, SingleWindowPolicy>) {
    return {T(policy.windows()[0])};
  } else {
    return PerWindow<P, T>(policy.windows().begin(), policy.windows().end());
  }
}

}  // namespace rollgate
