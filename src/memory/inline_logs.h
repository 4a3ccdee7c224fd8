// Logs small enough to live whole in the slot.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "core/policy.h"
#include "core/ring_log.h"
#include "memory/slot.h"

namespace rollgate::memory {

/// Reads and writes the logs of one store's slots: the payload holds the stamps of the older
/// actions, Slot::ring the place of the oldest and their number in four bits each.
template <class Stamp>
class InlineLogs {
 public:
  using Log = RingLog<Stamp>;

  /// Whether logs take more memory as they grow.
  static constexpr bool kGrows = false;

  /// Larger slots would be paid for by the ids that act but once.
  static constexpr std::size_t kLargestPayload = 60;

  static bool Fits(const Policy& policy) {
    return policy.log_capacity() - 1 <= kLargestPayload / sizeof(Stamp);
  }

  explicit InlineLogs(const Policy& policy) : room_(policy.log_capacity() - 1) {
    assert(Fits(policy) && policy.retention() <= Log::kLongestRetention);
  }

  std::size_t payload_bytes() const { return room_ * sizeof(Stamp); }

  /// Bytes outside of the slots.
  std::size_t extra_bytes() const { return 0; }

  /// Begins the log of a new id; it holds one action.
  void Create(Slot& slot) const {
    slot.ring = 0;
    slot.displaced = 0;
  }

  void Destroy(Slot&) const {}

  Log Load(Slot& slot, Micros newest) const {
    LogHead head;
    head.newest = newest;
    head.size = 1 + (slot.ring & 0x0fu);
    head.head = slot.ring >> 4;
    head.displaced = slot.displaced != 0;
    return Log(head, slot.payload(), room_, room_ + 1);
  }

  /// Loads the log with room for more actions, as far as the policy's capacity goes.
  Log LoadWithRoom(Slot& slot, Micros newest, std::uint64_t) const { return Load(slot, newest); }

  /// Writes back all of a log but its newest action. Precondition: the log is not empty.
  void Save(Slot& slot, const Log& log) const {
    const LogHead& head = log.head();
    assert(head.size >= 1);
    slot.ring = static_cast<std::uint8_t>(head.head << 4 | (head.size - 1));
    if (slot.displaced != head.displaced) slot.displaced = head.displaced;
  }

 private:
  static_assert(kLargestPayload / sizeof(Stamp) <= 15, "head and number are four bits each");

  std::uint32_t room_;
};

}  // namespace rollgate::memory
