// What is allowed: a list of windows, and what follows from them for whoever counts.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/time.h"

namespace rollgate {

/// At most `max` actions in any `interval`. An action leaves the window exactly `interval` after it
/// happened.
struct Window {
  Micros interval;    ///< > 0
  std::uint64_t max;  ///< >= 1
};

/// How actions are counted: algorithms.h has the list, the log being the first.
enum class Algorithm : std::uint8_t;

struct PolicyOptions {
  std::vector<Window> windows;  ///< at least one
  Micros min_difference = 0;    ///< least time between two actions; the gap itself is enough
  bool count_blocked = true;    ///< whether a blocked attempt is recorded as an action
  Algorithm algorithm = {};     ///< the log
  /// How long an id is refused after a refusal: the length of its first block, of its second and so
  /// on, the last one standing for all further ones; none for no blocks. At most 255.
  std::vector<Micros> blocks = {};
  /// Whether the max of the only window is set anew before each attempt: see Policy::SetMax.
  bool sets_max = false;
};

/// No log holds more actions, a gigabyte or two for one id. Where a window allows more and they are
/// made, the store is out of memory.
inline constexpr std::uint32_t kLongestLog = std::uint32_t{1} << 28;

/// A set of rules; an attempt passes only if every rule lets it pass.
class Policy {
 public:
  explicit Policy(PolicyOptions options);

  std::span<const Window> windows() const { return windows_; }
  Micros min_difference() const { return min_difference_; }
  bool count_blocked() const { return count_blocked_; }
  Algorithm algorithm() const { return algorithm_; }
  std::span<const Micros> blocks() const { return blocks_; }

  /// How long an action can matter to any later decision by a window or minDifference.
  Micros retention() const { return retention_; }

  Micros longest_interval() const { return longest_interval_; }

  /// How long a refusal can matter by the block that it starts: offences are remembered for the
  /// longest interval after their block. 0 without blocks.
  Micros block_retention() const { return block_retention_; }

  /// How many of an id's newest actions can matter to any later decision: the largest `max`. A
  /// window is full exactly when its max-th newest action is inside it, so nothing older is asked.
  std::uint32_t log_capacity() const { return log_capacity_; }

  /// Whether a window allows more actions than the longest log holds.
  bool exceeds_log() const { return exceeds_log_; }

  /// Where the policy says so, the next attempts are judged by this max of the only window. What
  /// earlier attempts have recorded under another one stays.
  bool sets_max() const { return sets_max_; }
  /// `records`: whether the attempt may be recorded, so that its max says how long logs should be.
  void SetMax(std::uint64_t max, bool records) {
    smallest_max_ = windows_.front().max = max;
    if (records) most_kept_ = std::max(most_kept_, std::min(max, kMostKept));
  }

  /// How many actions a log keeps at least, then: as many as the largest max so far allows, but no
  /// less than kLeastKept and no more than kMostKept for that. So refusals under a small max still
  /// count under a large one.
  std::uint64_t least_capacity() const { return std::max(smallest_max_, most_kept_); }

  /// The largest cost that can ever pass.
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
  std::uint64_t most_kept_ = kLeastKept;
  std::uint64_t smallest_max_;
};

/// The commonest policy, one window and nothing else: the same answers as Policy's, known to the
/// compiler, so that loops over windows vanish from the check.
class SingleWindowPolicy {
 public:
  static bool Fits(const Policy& policy) {
    return policy.windows().size() == 1 && policy.min_difference() == 0 &&
           policy.blocks().empty() && !policy.sets_max();
  }

  /// Precondition: Fits(policy).
  explicit SingleWindowPolicy(const Policy& policy)
      : window_{policy.windows().front()},
        count_blocked_(policy.count_blocked()),
        log_capacity_(policy.log_capacity()),
        exceeds_log_(policy.exceeds_log()) {}

  std::span<const Window, 1> windows() const { return window_; }
  static constexpr Micros min_difference() { return 0; }
  static constexpr std::span<const Micros> blocks() { return {}; }
  bool count_blocked() const { return count_blocked_; }
  Micros retention() const { return window_[0].interval; }
  Micros longest_interval() const { return window_[0].interval; }
  std::uint32_t log_capacity() const { return log_capacity_; }
  bool exceeds_log() const { return exceeds_log_; }
  std::uint64_t smallest_max() const { return window_[0].max; }

 private:
  std::array<Window, 1> window_;
  bool count_blocked_;
  std::uint32_t log_capacity_;
  bool exceeds_log_;
};

}  // namespace rollgate
