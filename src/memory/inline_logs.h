// Logs small enough for a slot.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/decision.h"
#include "core/policy.h"
#include "core/ring_log.h"
#include "core/time.h"
#include "memory/slot.h"

namespace rollgate::memory {

/// Reads and writes the logs of one store's slots; `Rules` is a SlidingWindowLog. The payload is a
/// byte, then the ring of stamps. The byte has the position of the oldest stamp and the number of
/// stamps, four bits each; the number 15 is a full log with displaced actions.
template <class Rules>
class InlineLogs {
 public:
  using Account = typename Rules::Account;
  using Log = typename Rules::Log;
  using Stamp = typename Log::StampType;

  /// Larger slots would waste memory on ids that act once.
  static constexpr std::size_t kLargestPayload = 56;

  static bool Fits(const Policy& policy) {
    return policy.largest_limit() - 1 <= kLargestPayload / sizeof(Stamp);
  }

  InlineLogs(const Rules& rules, const Policy&) : room_(rules.policy().log_capacity() - 1) {
    assert(room_ <= kLargestPayload / sizeof(Stamp));
  }

  std::size_t payload_bytes() const { return 1 + room_ * sizeof(Stamp); }

  std::size_t extra_bytes() const { return 0; }

  Account Begin(const Rules& rules, Slot& slot) const {
    return Account(rules, slot.generation(), LogHead{}, slot.payload() + 1, room_, room_ + 1);
  }

  Account Load(const Rules& rules, Slot& slot, Micros newest) const {
    const auto ring = std::to_integer<std::uint32_t>(*slot.payload());
    const std::uint32_t older = ring & kOlderMask;
    LogHead head;
    assert(older <= room_ || older == kFullAndDisplaced);
    head.newest = newest;
    head.displaced = older == kFullAndDisplaced;
    const bool is_empty = Rules::kKeepsEmptyLogs && newest == kLongAgo;
    head.size = is_empty ? 0 : 1 + (head.displaced ? room_ : older);
    head.head = ring >> 4;
    return Account(rules, slot.generation(), head, slot.payload() + 1, room_, room_ + 1);
  }

  void Reserve(Slot&, const Rules&, Account&, Micros, const Costs&) const {}

  /// Writes all but the newest action.
  void Save(Slot& slot, const Account& account) const {
    const LogHead& head = account.log().head();
    const std::uint32_t older =
        head.displaced ? kFullAndDisplaced : head.size - (head.size > 0 ? 1 : 0);
    assert(!head.displaced || head.size == room_ + 1);
    assert(head.head <= kOlderMask && older <= kOlderMask);
    *slot.payload() = static_cast<std::byte>(head.head << 4 | older);
  }

  void Destroy(Slot&) const {}

 private:
  static constexpr std::uint32_t kOlderMask = 0x0f;
  static constexpr std::uint32_t kFullAndDisplaced = 15;
  static_assert(kLargestPayload / sizeof(Stamp) < kFullAndDisplaced);

  std::uint32_t room_;
};

}  // namespace rollgate::memory
