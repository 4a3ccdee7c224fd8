// What is allowed: windows and further rules, and what follows from them for stores.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/time.h"

namespace rollgate {

/// At most `max` actions in any `interval`. An action leaves exactly `interval` after it was made.
struct Window {
  Micros interval;    ///< > 0
  std::uint64_t max;  ///< >= 1
};

/// Defined in algorithms.h; 0 is the log.
enum class Algorithm : std::uint8_t;

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
  /// Whether the max of the only window changes with each attempt: see Policy::SetMax.
  bool sets_max = false;
  /// Whether windows count different things: each attempt has a cost for each window.
  bool weighted = false;
  /// How many actions to keep, and how long, because earlier limits of these ids needed them.
  std::uint64_t kept_actions = 0;
  Micros kept_for = 0;
};

/// The largest log, a gigabyte or two. To record more actions throws std::bad_alloc.
inline constexpr std::uint32_t kLongestLog = std::uint32_t{1} << 28;

/// Rules, which all must allow an attempt. Templates take a Policy or a SingleWindowPolicy as P.
class Policy {
 public:
  explicit Policy(PolicyOptions options)
      : windows_(std::move(options.windows)),
        min_difference_(Bounded(options.min_difference)),
        count_blocked_(options.count_blocked),
        algorithm_(options.algorithm),
        blocks_(std::move(options.blocks)),
        sets_max_(options.sets_max),
        weighted_(options.weighted) {
    assert(!windows_.empty() && (!sets_max_ || (windows_.size() == 1 && !weighted_)));
    assert(min_difference_ >= 0 && blocks_.size() <= kMostBlocks);
    smallest_max_ = windows_.front().max;
    std::uint64_t largest_max = options.kept_actions;
    for (Window& window : windows_) {
      window.interval = Bounded(window.interval);
      assert(window.interval > 0 && window.max >= 1);
      longest_interval_ = std::max(longest_interval_, window.interval);
      smallest_max_ = std::min(smallest_max_, window.max);
      largest_max = std::max(largest_max, window.max);
    }
    if (sets_max_) largest_max = kLongestLog;
    retention_ = std::max({longest_interval_, min_difference_, options.kept_for});
    for (Micros& length : blocks_) {
      length = Bounded(length);
      assert(length > 0);
      block_retention_ = std::max(block_retention_, Bounded(length + longest_interval_));
    }
    log_capacity_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(largest_max, kLongestLog));
    exceeds_log_ = largest_max > kLongestLog;
    assert(log_capacity_ >= 1 && retention_ >= longest_interval_);
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
  std::uint32_t log_capacity() const { return log_capacity_; }

  /// Whether a window allows more actions than the longest log holds.
  bool exceeds_log() const { return exceeds_log_; }

  /// Whether each attempt has a cost for each window, which may differ.
  bool weighted() const { return weighted_; }

  /// Whether SetMax gives the max of the only window before each attempt. Earlier records stay.
  bool sets_max() const { return sets_max_; }
  /// Preconditions: sets_max(), max >= 1. `records`: whether logs should grow to this max.
  void SetMax(std::uint64_t max, bool records) {
    assert(sets_max_ && max >= 1);
    smallest_max_ = windows_.front().max = max;
    if (records) most_kept_ = std::max(most_kept_, std::min(max, kMostKept));
  }

  /// How many actions a log keeps under SetMax: the current max, and as many as the largest max so
  /// far within [kLeastKept, kMostKept]. So refusals under a small max count under a larger one.
  std::uint64_t least_capacity() const { return std::max(smallest_max_, most_kept_); }

  /// The largest cost that can be allowed.
  std::uint64_t smallest_max() const { return smallest_max_; }

 private:
  static constexpr std::uint64_t kLeastKept = 100;
  static constexpr std::uint64_t kMostKept = 1000;

  std::vector<Window> windows_;
  Micros min_difference_;
  bool count_blocked_;
  Algorithm algorithm_;
  std::vector<Micros> blocks_;
  Micros retention_;
  Micros longest_interval_ = 0;
  Micros block_retention_ = 0;
  std::uint32_t log_capacity_;
  bool exceeds_log_;
  bool sets_max_;
  bool weighted_;
  std::uint64_t most_kept_ = kLeastKept;
  std::uint64_t smallest_max_;
};

/// One window and nothing else: constants let the compiler remove what is unused.
class SingleWindowPolicy {
 public:
  static bool Fits(const Policy& policy) {
    return policy.windows().size() == 1 && policy.min_difference() == 0 &&
           policy.blocks().empty() && !policy.sets_max() && !policy.weighted();
  }

  /// Precondition: Fits(policy).
  explicit SingleWindowPolicy(const Policy& policy)
      : window_{policy.windows().front()},
        count_blocked_(policy.count_blocked()),
        retention_(policy.retention()),
        log_capacity_(policy.log_capacity()),
        exceeds_log_(policy.exceeds_log()) {
    assert(Fits(policy));
  }

  std::span<const Window, 1> windows() const { return window_; }
  static constexpr Micros min_difference() { return 0; }
  static constexpr std::span<const Micros> blocks() { return {}; }
  bool count_blocked() const { return count_blocked_; }
  static constexpr bool sets_max() { return false; }
  static constexpr bool weighted() { return false; }
  Micros retention() const { return retention_; }
  Micros longest_interval() const { return window_[0].interval; }
  std::uint32_t log_capacity() const { return log_capacity_; }
  bool exceeds_log() const { return exceeds_log_; }
  std::uint64_t smallest_max() const { return window_[0].max; }

 private:
  std::array<Window, 1> window_;
  bool count_blocked_;
  Micros retention_;
  std::uint32_t log_capacity_;
  bool exceeds_log_;
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
