// Which slot a new id takes, and how far ids were forgotten for that.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/time.h"
#include "shared/attachment.h"
#include "shared/layout.h"
#include "shared/shared_error.h"

namespace rollgate::shared {

/// The tag of a control word without an id.
inline constexpr std::uint64_t kNoTag = 0;

/// The era in which a record was written.
inline std::uint32_t EraOf(std::uint64_t origin) {
  return static_cast<std::uint32_t>(origin >> 32);
}

/// A slot that a new id may take.
struct Victim {
  std::uint64_t slot = 0;
  std::uint64_t control = 0;
  Micros expires = 0;
  bool is_known = false;     ///< holds an id of this era
  bool has_expired = false;  ///< or is not known
};

template <class Access>
Victim VictimAt(const Attachment<Access>& own, std::uint64_t slot, Micros now) {
  Victim victim;
  victim.slot = slot;
  victim.control = Access::Load(own.SlotAt(slot));
  victim.expires = kLongAgo;
  if (own.controls().Tag(victim.control) != kNoTag) {
    const Word* const record = own.RecordOf(victim.control);
    // If the record is another limiter's spare by now, the swap will fail.
    const auto expires = static_cast<Micros>(Access::Load(record[kExpires]));
    const std::uint32_t era = EraOf(Access::Load(record[kOrigin]));
    victim.is_known = era == own.Era();
    if (victim.is_known) victim.expires = expires;
  }
  victim.has_expired = !victim.is_known || victim.expires <= now;
  return victim;
}

/// Which slot of an id's two buckets it takes: in the bucket that has more to give, an empty one,
/// else the one that has expired longest; where all are needed, the one nearest to expiry.
template <class Access>
Victim ChooseVictim(const Attachment<Access>& own, const std::array<std::uint64_t, 2>& homes,
                    std::size_t slots_per_bucket, Micros now) {
  std::array<Victim, 2> best;
  std::array<int, 2> free{};
  const int buckets = homes[0] == homes[1] ? 1 : 2;
  for (int b = 0; b < buckets; ++b) {
    for (std::size_t i = 0; i < slots_per_bucket; ++i) {
      const Victim victim = VictimAt(own, homes[b] * kSlotsPerBucket + i, now);
      free[b] += victim.has_expired;
      if (i == 0 || victim.expires < best[b].expires) best[b] = victim;
    }
  }
  // An id in its first bucket is found sooner, so the second is for where the first gets crowded.
  constexpr int kCrowded = 2;
  if (buckets == 1 || free[0] > kCrowded || free[0] > free[1]) return best[0];
  if (free[1] > free[0]) return best[1];
  return best[0].expires <= best[1].expires ? best[0] : best[1];
}

/// The header's word `forgotten`: eight bits of the era, and a moment. Ids of that era that are not
/// in the region act no earlier than this moment, because they may have been forgotten; 0 is none.
class ForgottenUntil {
 public:
  template <class Access>
  static Micros Read(const Attachment<Access>& own, std::uint32_t era) {
    const std::uint64_t word = Access::Load(own.view().header->forgotten);
    const bool is_set = word >> kMomentBits == (era & 0xff) && (word & kMomentMask);
    if (!is_set) return kLongAgo;
    return static_cast<Micros>(word & kMomentMask) - kZero;
  }

  /// Returns false if it never stands still, which cannot be.
  template <class Access>
  static bool Raise(const Attachment<Access>& own, std::uint32_t era, Micros moment,
                    int most_tries) {
    // A moment that the word cannot hold is left out, as nobody must act later than he would.
    if (moment <= -kZero) return true;
    const auto bounded = std::min(moment, kZero - 1);
    const std::uint64_t raised =
        std::uint64_t{era & 0xff} << kMomentBits | static_cast<std::uint64_t>(bounded + kZero);
    Word& forgotten = own.view().header->forgotten;
    for (int tries = 0; tries < most_tries; ++tries) {
      const std::uint64_t word = Access::Load(forgotten);
      // A thread that raised it for a later era had read that era before. So if the era is the
      // same, the word is of this or of an earlier one; else all was forgotten anyway.
      if (own.Era() != era) return true;
      const bool is_set = word >> kMomentBits == (era & 0xff);
      if (is_set && word >= raised) return true;
      if (Access::CompareExchange(forgotten, word, raised)) return true;
    }
    return false;
  }

 private:
  static constexpr int kMomentBits = 56;
  static constexpr std::uint64_t kMomentMask = (std::uint64_t{1} << kMomentBits) - 1;
  static constexpr Micros kZero = Micros{1} << (kMomentBits - 1);
};

}  // namespace rollgate::shared
