// Derives what a policy asks of a log: how long and how many actions must be remembered.
#include "core/policy.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace rollgate {

Policy::Policy(PolicyOptions options)
    : windows_(std::move(options.windows)),
      min_difference_(Bounded(options.min_difference)),
      count_blocked_(options.count_blocked),
      retention_(min_difference_) {
  assert(!windows_.empty());
  smallest_max_ = windows_.front().max;
  std::uint64_t largest_max = 0;
  for (Window& window : windows_) {
    window.interval = Bounded(window.interval);
    assert(window.interval > 0 && window.max >= 1);
    retention_ = std::max(retention_, window.interval);
    smallest_max_ = std::min(smallest_max_, window.max);
    largest_max = std::max(largest_max, window.max);
  }
  log_capacity_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(largest_max, kLongestLog));
  exceeds_log_ = largest_max > kLongestLog;
}

}  // namespace rollgate
