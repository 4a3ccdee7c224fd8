// What is held of one id: the state of its record in a region of slots.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/time.h"
#include "shared/layout.h"
#include "shared/shared_error.h"
#include "shared/table.h"

namespace rollgate::shared {

/// The most that is held of an id at once: costs have 16 bits.
inline constexpr std::uint32_t kMostHeld = 0xffff;

/// Who holds: an entry, and how many times a holder had taken it then. No other owner of the entry
/// has the same number, so what earlier ones held is known. The lowest 16 bits are for a
/// cost.
class Holder {
 public:
  Holder() = default;
  Holder(std::size_t entry, std::uint64_t taken)
      : word_(std::uint64_t{entry} << kEntryShift | (taken & kTakenMask) << kTakenShift) {
    assert(entry < kEntries);
  }
  /// Of the first word of a part.
  explicit Holder(std::uint64_t part) : word_(part & ~std::uint64_t{kMostHeld}) {}

  std::uint64_t word() const { return word_; }
  std::size_t entry() const { return static_cast<std::size_t>(word_ >> kEntryShift); }
  bool HasTaken(std::uint64_t taken) const {
    return (word_ >> kTakenShift & kTakenMask) == (taken & kTakenMask);
  }

  friend bool operator==(const Holder&, const Holder&) = default;

 private:
  static constexpr int kTakenShift = 16;
  static constexpr int kEntryShift = 54;
  static constexpr std::uint64_t kTakenMask = (std::uint64_t{1} << (kEntryShift - kTakenShift)) - 1;
  static_assert(kEntries == std::uint64_t{1} << (64 - kEntryShift), "any word names an entry");

  std::uint64_t word_ = 0;
};

/// What somebody holds, for its release.
struct Holding {
  std::uint32_t cost = 0;
  std::uint32_t generation = 0;  ///< of the id
  Micros end = kNever;           ///< of its part: from then on it does not count
};

/// A list of parts in the words of a state: the first word has the generation of the id and how
/// many parts there are; each part has a word of its holder and its cost, and one of its end. A
/// holder has one part for each end. Where there is little room, what it adds joins a part that
/// ends later.
class HeldList {
 public:
  /// How many words a list of so many parts takes.
  static constexpr std::size_t WordsFor(std::size_t room) { return 1 + 2 * room; }
  static constexpr std::size_t RoomIn(std::size_t words) { return (words - 1) / 2; }

  /// Words that Begin will fill, or that hold a list. Throws SharedError if they can be none.
  HeldList(std::uint64_t* words, std::size_t room) : words_(words), room_(room) {
    if (size() > room) ThrowCorrupt("an id has more holders than there is room for");
  }

  /// Nothing is held.
  static HeldList Begin(std::uint64_t* words, std::size_t room, std::uint32_t generation) {
    words[0] = std::uint64_t{generation} << 32;
    return HeldList(words, room);
  }

  std::uint32_t generation() const { return static_cast<std::uint32_t>(words_[0] >> 32); }
  std::size_t size() const { return static_cast<std::uint32_t>(words_[0]); }

  static Micros EndIn(std::uint64_t word) { return static_cast<Micros>(word); }

  std::uint64_t used() const {
    std::uint64_t used = 0;
    for (std::size_t i = 0; i < size(); ++i) used += CostAt(i);
    return used;
  }

  /// Drops the parts for which `is_over(holder, end)` is true.
  template <class IsOver>
  void Drop(IsOver is_over) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < size(); ++i) {
      if (is_over(Holder(Part(i)), EndAt(i))) continue;
      Part(kept) = Part(i);
      End(kept++) = End(i);
    }
    SetSize(kept);
  }

  /// Where a cost was added: to the part of this end. Everything that was in the part of the end
  /// `raised_from` is in it now, unless that is kNever.
  struct Added {
    Micros end;
    Micros raised_from = kNever;
  };

  /// Returns none if there is no room for another holder. Half of the room is left to such.
  /// Precondition: the sum of costs stays within kMostHeld.
  std::optional<Added> Add(Holder holder, std::uint32_t cost, Micros end) {
    assert(used() + cost <= kMostHeld);
    std::size_t next = size();    // the part that ends first of those that do not end earlier
    std::size_t latest = size();  // the part that ends last of those that do
    for (std::size_t i = 0; i < size(); ++i) {
      if (Holder(Part(i)) != holder) continue;
      if (EndAt(i) >= end) {
        if (next == size() || EndAt(i) < EndAt(next)) next = i;
      } else if (latest == size() || EndAt(i) > EndAt(latest)) {
        latest = i;
      }
    }
    const bool has_part = next != size() || latest != size();
    if (next != size() && EndAt(next) == end) {
      Part(next) += cost;
      return Added{end};
    }
    if (size() < (has_part ? room_ / 2 : room_)) {
      Part(size()) = holder.word() | cost;
      End(size()) = static_cast<std::uint64_t>(end);
      SetSize(size() + 1);
      return Added{end};
    }
    if (!has_part) return std::nullopt;
    const std::size_t joined = next != size() ? next : latest;
    Part(joined) += cost;
    if (joined == next) return Added{EndAt(next)};
    const Micros raised_from = EndAt(latest);
    End(latest) = static_cast<std::uint64_t>(end);
    return Added{end, raised_from};
  }

  /// Whether the holder's part of this end has so much.
  bool Has(Holder holder, std::uint32_t cost, Micros end) const {
    const std::size_t i = Find(holder, end);
    return i < size() && CostAt(i) >= cost;
  }

  /// Takes back what was added, if Has.
  void Take(Holder holder, std::uint32_t cost, Micros end) {
    assert(Has(holder, cost, end));
    const std::size_t i = Find(holder, end);
    Part(i) -= cost;
    if (CostAt(i) == 0) Remove(i);
  }

  /// An id that nobody holds has expired, so that another may have its place.
  Saved saved() const {
    Micros expires = kLongAgo;
    for (std::size_t i = 0; i < size(); ++i) expires = std::max(expires, EndAt(i));
    return {expires, WordsFor(size())};
  }

 private:
  std::uint64_t& Part(std::size_t i) { return words_[1 + 2 * i]; }
  std::uint64_t Part(std::size_t i) const { return words_[1 + 2 * i]; }
  std::uint64_t& End(std::size_t i) { return words_[2 + 2 * i]; }
  Micros EndAt(std::size_t i) const { return EndIn(words_[2 + 2 * i]); }
  std::uint32_t CostAt(std::size_t i) const { return Part(i) & kMostHeld; }

  std::size_t Find(Holder holder, Micros end) const {
    std::size_t i = 0;
    while (i < size() && (Holder(Part(i)) != holder || EndAt(i) != end)) ++i;
    return i;
  }

  void SetSize(std::size_t size) { words_[0] = std::uint64_t{generation()} << 32 | size; }

  void Remove(std::size_t i) {
    Part(i) = Part(size() - 1);
    End(i) = End(size() - 1);
    SetSize(size() - 1);
  }

  std::uint64_t* words_;
  std::size_t room_;
};

}  // namespace rollgate::shared
