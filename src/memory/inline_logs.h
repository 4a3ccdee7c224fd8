// Logs small enough to live whole in the slot.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "core/policy.h"
#include "core/ring_log.h"
#include "memory/slot.h"

namespace rollgate::memory {

/// Reads and writes the logs of one store's slots: the payload is a byte with the place of the
/// oldest action and the number of all but the newest, four bits each, and then their stamps. The
/// slot's mark is LogHead::displaced.
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

  std::size_t payload_bytes() const { return 1 + room_ * sizeof(Stamp); }

  /// Bytes outside of the slots.
  std::size_t extra_bytes() const { return 0; }

  /// Such logs have one capacity for good.
  void SetCapacity(std::uint64_t) {}

  /// Begins the log of a new id; it holds one action.
  void Create(Slot& slot) const {
    *slot.payload() = std::byte{0};
    slot.set_mark(false);
  }

  void Destroy(Slot&) const {}

  Log Load(Slot& slot, Micros newest) const {
    LogHead head;
    head.newest = newest;
    const auto ring = std::to_integer<std::uint32_t>(*slot.payload());
    head.size = 1 + (ring & 0x0fu);
    head.head = ring >> 4;
    head.displaced = slot.mark();
    return Log(head, slot.payload() + 1, room_, room_ + 1);
  }

  /// Loads the log with room for more actions, as far as the policy's capacity goes.
  Log LoadWithRoom(Slot& slot, Micros newest, std::uint64_t) const { return Load(slot, newest); }

  /// Writes back all of a log but its newest action. Precondition: the log is not empty.
  void Save(Slot& slot, const Log& log) const {
    const LogHead& head = log.head();
    assert(head.size >= 1);
    *slot.payload() = static_cast<std::byte>(head.head << 4 | (head.size - 1));
    if (slot.mark() != head.displaced) slot.set_mark(head.displaced);
  }

 private:
  static_assert(kLargestPayload / sizeof(Stamp) <= 15, "head and number are four bits each");

  std::uint32_t room_;
};

}  // namespace rollgate::memory
