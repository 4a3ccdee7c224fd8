// Derives how long and how many actions a store must keep.
#include "core/policy.h"

#include <utility>

#include "core/block.h"

namespace rollgate {

Policy::Policy(PolicyOptions options)
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

}  // namespace rollgate
