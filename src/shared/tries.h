// How often a change is tried again that others were faster with.
#pragma once

#include <algorithm>

#include "shared/pause.h"
#include "shared/shared_error.h"

namespace rollgate::shared {

/// Counts the tries of a loop and backs off for ten to fifty microseconds. Measured: two processes
/// on one id then take long turns, in a third of the time of alternating changes.
class Tries {
 public:
  explicit Tries(int& most) : most_(most) {}

  void Next() {
    if (++tries_ > kMost) ThrowCorrupt("no change succeeds");
    most_ = std::max(most_, tries_);
    for (int i = 0; i < 256 << std::min(tries_, 2); ++i) Pause();
  }

 private:
  static constexpr int kMost = 1 << 16;
  int& most_;
  int tries_ = 0;
};

}  // namespace rollgate::shared
