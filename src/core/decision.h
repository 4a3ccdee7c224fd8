// What the core answers: a Verdict decides, a Decision tells the whole story.
#pragma once

#include <cstdint>
#include <span>

#include "core/time.h"

namespace rollgate {

/// Whether an attempt passes, and when it counts as made.
struct Verdict {
  bool blocked_by_count = false;
  bool blocked_by_min_difference = false;
  bool blocked_by_block = false;  ///< then by nothing else, and nothing is recorded
  Micros at = 0;  ///< the clock's time; where time is clamped, never before the newest action

  bool allowed() const {
    return !blocked_by_count && !blocked_by_min_difference && !blocked_by_block;
  }
};

/// How far one window is used once the attempt is made.
struct WindowUse {
  std::uint64_t used = 0;       ///< what is counted in the window, at most its max
  std::uint64_t remaining = 0;  ///< max - used
  Micros reset_in = 0;          ///< until `used` gets less; 0 when it is 0
};

/// Everything about one attempt. All durations run from the clock's own reading.
struct Decision {
  Verdict verdict;
  Micros time_left = 0;            ///< 0 when allowed; else until the same attempt would pass
  Micros wait = 0;                 ///< until a next action of cost 1 would pass
  std::uint64_t actions_left = 0;  ///< the least `remaining` of all windows
  Micros reset_in = 0;             ///< blocked: time_left; else of the window with the least left
  std::uint64_t token = 0;         ///< see Receipt
  std::span<WindowUse> windows;    ///< one per window of the policy, owned by the caller
};

/// A generation of an id begins when it is first seen and ends when it is cleared or forgotten. Its
/// number tells it from earlier ones.
using Generation = std::uint32_t;
inline constexpr int kGenerationBits = 32;

/// Tokens are below 2^53, so that JavaScript's numbers hold them.
inline constexpr int kTokenBits = 53;

/// What it takes to give back an allowed attempt: its Decision's verdict.at and token.
struct Receipt {
  Micros at;
  std::uint64_t cost;
  std::uint64_t token;  ///< the id's generation, and with GCRA the number of the action
};

}  // namespace rollgate
