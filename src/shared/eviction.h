// Chooses the slot of a new id, and records how far ids were forgotten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/time.h"
#include "shared/attachment.h"
#include "shared/layout.h"

namespace rollgate::shared {

inline constexpr std::uint64_t kNoTag = 0;  ///< of a control word without an id

inline std::uint32_t EraOf(std::uint64_t origin) {
  return static_cast<std::uint32_t>(origin >> 32);
}

struct Victim {
  std::uint64_t slot = 0;
  std::uint64_t control = 0;
  Micros expires = 0;
  bool is_known = false;     ///< holds an id of this era
  bool has_expired = false;  ///< or not known
};

template <class Access>
Victim VictimAt(const Attachment<Access>& own, std::uint64_t slot, Micros now) {
  assert(slot < own.view().geometry.slots());
  Victim victim;
  victim.slot = slot;
  victim.control = Access::Load(own.SlotAt(slot));
  victim.expires = kLongAgo;
  if (own.controls().Tag(victim.control) != kNoTag) {
    const Word* const record = own.RecordOf(victim.control);
    // If the record has become another limiter's spare, the swap will fail.
    const auto expires = static_cast<Micros>(Access::Load(record[kExpires]));
    const std::uint32_t era = EraOf(Access::Load(record[kOrigin]));
    victim.is_known = era == own.Era();
    if (victim.is_known) victim.expires = expires;
  }
  victim.has_expired = !victim.is_known || victim.expires <= now;
  return victim;
}

/// An empty slot of the emptier bucket, else the one that expired first or is nearest to expiry.
template <class Access>
Victim ChooseVictim(const Attachment<Access>& own, const std::array<std::uint64_t, 2>& homes,
                    std::size_t slots_per_bucket, Micros now) {
  assert(slots_per_bucket <= kSlotsPerBucket);
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
  // Ids are found sooner in their first bucket; the second is for when the first gets crowded.
  constexpr int kCrowded = 2;
  if (buckets == 1 || free[0] > kCrowded || free[0] > free[1]) return best[0];
  if (free[1] > free[0]) return best[1];
  return best[0].expires <= best[1].expires ? best[0] : best[1];
}

/// A slot that is free, if only because `is_free(record)` says so of one that has not expired.
template <class Access, class IsFree>
std::optional<Victim> FindFree(const Attachment<Access>& own,
                               const std::array<std::uint64_t, 2>& homes,
                               std::size_t slots_per_bucket, Micros now, IsFree is_free) {
  for (const std::uint64_t bucket : homes) {
    for (std::size_t i = 0; i < slots_per_bucket; ++i) {
      const Victim victim = VictimAt(own, bucket * kSlotsPerBucket + i, now);
      // If the record changes meanwhile, the swap will fail.
      if (victim.has_expired || is_free(own.RecordOf(victim.control))) return victim;
    }
  }
  return std::nullopt;
}

/// Header::forgotten: eight bits of the era, and a moment; 0 is none. Ids of that era that are not
/// in the region act no earlier than the moment, because they may have been forgotten.
class ForgottenUntil {
 public:
  template <class Access>
  static Micros Read(const Attachment<Access>& own, std::uint32_t era) {
    const std::uint64_t word = Access::Load(own.view().header->forgotten);
    const bool is_set = word >> kMomentBits == (era & 0xff) && (word & kMomentMask);
    if (!is_set) return kLongAgo;
    return static_cast<Micros>(word & kMomentMask) - kZero;
  }

  /// Returns false after `most_tries` failures.
  template <class Access>
  static bool Raise(const Attachment<Access>& own, std::uint32_t era, Micros moment,
                    int most_tries) {
    // No id may act later than it must, so an earlier moment than the word can hold is left out.
    if (moment <= -kZero) return true;
    const auto bounded = std::min(moment, kZero - 1);
    const std::uint64_t raised =
        std::uint64_t{era & 0xff} << kMomentBits | static_cast<std::uint64_t>(bounded + kZero);
    assert((raised & kMomentMask) != 0);
    Word& forgotten = own.view().header->forgotten;
    for (int tries = 0; tries < most_tries; ++tries) {
      const std::uint64_t word = Access::Load(forgotten);
      // A thread that raised the word for a later era had read that era. So if the era is
      // unchanged, the word is of it or an earlier one; else all ids are forgotten anyway.
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
  static_assert(kZero > 0 && kZero <= kLongest);
};

}  // namespace rollgate::shared
