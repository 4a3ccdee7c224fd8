// What an attempt costs, the core's answers (a Verdict decides, a Decision describes in full), and
// the block that a refusal starts.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/bytes.h"
#include "core/time.h"

namespace rollgate {

/// The same in every window, or one cost for each window of the policy. A window is not asked for a
/// cost of 0. Refers to the costs that it was made of.
class Costs {
 public:
  /// The same in every window. Implicit: a number is a cost.
  constexpr Costs(std::uint64_t all) : all_(all) {}

  /// One for each window, in the order of the policy.
  explicit Costs(std::span<const std::uint64_t> each)
      : each_(each.data()),
        all_(std::any_of(each.begin(), each.end(), [](std::uint64_t cost) { return cost > 0; })) {}

  constexpr std::uint64_t operator[](std::size_t window) const {
    return each_ == nullptr ? all_ : each_[window];
  }

  /// Whether it costs anything in any window.
  constexpr bool IsAny() const { return all_ > 0; }

  constexpr bool IsUniform() const { return each_ == nullptr; }

  /// The cost in every window. Precondition: IsUniform().
  constexpr std::uint64_t uniform() const {
    assert(IsUniform());
    return all_;
  }

 private:
  const std::uint64_t* each_ = nullptr;
  std::uint64_t all_;  // with `each_`, whether any of them is not 0
};

/// What a decision records: RECORDS in lib/base/decision.js.
enum class Recording : std::uint8_t {
  kNothing,    ///< shows what kAttempt would answer
  kAttempt,    ///< the action, or what the policy says of a refusal
  kIfAllowed,  ///< the action; a refusal leaves no trace, but StoreStats counts it
  kWaiting,    ///< the action; a refusal leaves no trace at all
  kAsking,     ///< nothing: shows what kWaiting would answer
  kRecord,     ///< the action, whatever limits and blocks say; shows what is used then
};

/// Whether an allowed attempt is recorded.
constexpr bool RecordsActions(Recording recording) {
  return recording != Recording::kNothing && recording != Recording::kAsking;
}

/// Whether a refusal may count and start a block.
constexpr bool LeavesTraces(Recording recording) {
  return recording == Recording::kAttempt || recording == Recording::kNothing;
}

/// Whether an attempt is allowed, and the time it is recorded with.
struct Verdict {
  bool blocked_by_count = false;
  bool blocked_by_min_difference = false;
  bool blocked_by_block = false;  ///< the other two are false, nothing is recorded
  /// A cost is above the max of its window: blocked by count alone, at any use, unrecorded.
  bool never_passes = false;
  Micros at = 0;  ///< the clock's reading, or the newest action if that is later (not with GCRA)

  bool allowed() const {
    return !blocked_by_count && !blocked_by_min_difference && !blocked_by_block;
  }
};

struct WindowUse {
  std::uint64_t used = 0;       ///< may be above max: see judge.h
  std::uint64_t remaining = 0;  ///< max - used, at least 0
  Micros reset_in = 0;          ///< until `used` falls; 0 if it is 0
};

/// Everything about one attempt. All durations start at the clock's reading.
struct Decision {
  Verdict verdict;
  Micros time_left = 0;            ///< until the same attempt would be allowed, 0 if it is; kNever
  Micros wait = 0;                 ///< until a next attempt of cost 1 would be allowed
  std::uint64_t actions_left = 0;  ///< the smallest `remaining` of all windows
  /// time_left if blocked, unless that is kNever; else of the window with actions_left
  Micros reset_in = 0;
  std::uint64_t token = 0;       ///< see Receipt
  std::span<WindowUse> windows;  ///< one per window of the policy, owned by the caller
};

/// The number of an id's time from when it is first seen until it is cleared or forgotten.
using Generation = std::uint32_t;
inline constexpr int kGenerationBits = 8 * sizeof(Generation);

/// Tokens are below 2^53, so a JavaScript number holds them.
inline constexpr int kTokenBits = 53;
static_assert(kGenerationBits < kTokenBits, "GCRA's tokens hold an action's number, too");

/// What settles an allowed attempt: its Decision's verdict.at and token.
struct Receipt {
  Micros at;
  Costs cost;
  std::uint64_t token;  ///< the id's generation; with GCRA also the number of the action
};

/// blockFor: a refusal blocks the id for a while, whatever its windows say. Attempts during a block
/// do not change it.
struct Block {
  Micros until = kLongAgo;    ///< attempts before this moment are refused
  std::uint8_t offences = 0;  ///< blocks started; at most the number of lengths

  /// Starts the block for a refusal at `at`. Offences are forgotten once the longest interval has
  /// passed since the last block. Preconditions: `lengths` is not empty; no block lasts at `at`.
  void Start(std::span<const Micros> lengths, Micros longest_interval, Micros at) {
    assert(!lengths.empty() && at >= until);
    if (at - until >= longest_interval) offences = 0;
    offences = static_cast<std::uint8_t>(std::min(offences + std::size_t{1}, lengths.size()));
    until = Bounded(at + lengths[offences - 1u]);
  }

  static constexpr std::size_t kBytes = sizeof(Micros) + sizeof offences;
  static_assert(kBytes == 9, "the format of key-value states");

  static Block Load(const std::byte* bytes) {
    return {LoadAs<Micros>(bytes), LoadAs<std::uint8_t>(bytes + sizeof(Micros))};
  }

  void Store(std::byte* bytes) const {
    StoreAs(bytes, until);
    StoreAs(bytes + sizeof until, offences);
  }
};

}  // namespace rollgate
