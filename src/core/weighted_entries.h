// An id's attempts with a cost for each window: stamps and prefix sums, oldest first, in a ring.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/decision.h"
#include "core/time.h"

namespace rollgate {

/// Where entries are merged, by their age: entries younger than `interval`, and no younger than the
/// zone before, are merged if they are in the same cell of `width`.
struct MergeZone {
  Micros interval;
  Micros width;  ///< >= 1
};

struct WeightedHead {
  std::uint32_t size = 0;  ///< entries
  std::uint32_t head = 0;  ///< position of the oldest
};

/// A view of one id's entries in words of its owner, who stores head() after a change.
///
/// The words are: the newest moment that was dropped, and the newest that others were merged onto;
/// the total of each window; the ring. An entry is a stamp, and for each window the sum of the
/// costs before it. So what a window uses is a difference of two sums, found by bisection. Sums are
/// modulo 2^64; what the entries cost in all stays below that, see KeepBelow.
class WeightedEntries {
 public:
  static constexpr std::uint32_t kMost = 1024;

  static constexpr std::size_t WordsFor(std::size_t windows, std::size_t room) {
    return kTotals + windows + room * (windows + 1);
  }

  /// `words` has WordsFor(windows, room) words; it may be null if `room` is 0.
  WeightedEntries(std::uint64_t* words, std::uint32_t windows, std::uint32_t room,
                  WeightedHead head)
      : words_(words), windows_(windows), room_(room), head_(head) {
    assert(windows >= 1 && head.size <= room && (head.head < room || head.head == 0));
  }

  const WeightedHead& head() const { return head_; }
  std::uint32_t size() const { return head_.size; }
  std::uint32_t room() const { return room_; }
  std::uint32_t windows() const { return windows_; }

  /// The moment of the i-th oldest entry, counted from 0. Another process may have written
  /// anything.
  Micros Stamp(std::uint32_t i) const { return Bounded(static_cast<Micros>(*Entry(i))); }
  Micros Newest() const { return Stamp(head_.size - 1); }

  /// The sum of the costs in a window from the i-th oldest entry on; 0 for size().
  std::uint64_t SumFrom(std::uint32_t i, std::size_t window) const {
    return i == head_.size ? 0 : Total(window) - Entry(i)[1 + window];
  }

  /// The index of the first entry after `moment`; size() if there is none.
  std::uint32_t FirstAfter(Micros moment) const {
    return FirstWhere([&](std::uint32_t i) { return Stamp(i) > moment; });
  }

  /// The first index from which on less than n >= 1 is in a window.
  std::uint32_t FirstWithLessThan(std::uint64_t n, std::size_t window) const {
    return FirstWhere([&](std::uint32_t i) { return SumFrom(i, window) < n; });
  }

  /// Makes sure that Record(at) can add an entry. Drops those that are `retention` older than the
  /// newest, which may be refunded before the clock steps back; once there are kMost, those that
  /// are `retention` old at `at`, or else merges. Returns how large the ring should be: if that is
  /// not room(), the owner must move the entries before it records.
  std::uint32_t DropAndPlanRoom(Micros at, Micros retention, std::span<const MergeZone> zones);

  bool HasRoomAt(Micros at) const {
    return head_.size < room_ || (head_.size > 0 && Newest() == at);
  }

  /// Copies the entries, oldest first, to other words with enough room.
  void MoveTo(std::uint64_t* words, std::uint32_t room);

  /// Changes the size of the ring, which must hold the entries, at the same address.
  void ResizeInPlace(std::uint32_t room);

  /// Precondition: HasRoomAt(at), and no entry is later.
  void Record(Micros at, const Costs& costs) {
    assert(HasRoomAt(at) && (head_.size == 0 || Newest() <= at));
    if (head_.size == 0) std::fill_n(words_ + kTotals, windows_, std::uint64_t{0});
    if (head_.size == 0 || Newest() != at) {
      std::uint64_t* const entry = EntryAt(Place(head_.size));
      entry[0] = static_cast<std::uint64_t>(at);
      std::copy_n(words_ + kTotals, windows_, entry + 1);
      ++head_.size;
    }
    for (std::uint32_t w = 0; w < windows_; ++w) {
      if (costs[w] >= kLargeCost) [[unlikely]] {
        KeepBelow(costs[w], w);
      }
      words_[kTotals + w] += costs[w];
    }
  }

  /// Replaces a part `from` of the entry that has the costs of an attempt at `at` by `to`. Removes
  /// an entry that costs nothing any more. Returns false if the entry has been dropped.
  bool Settle(Micros at, const Costs& from, const Costs& to);

  /// Up to which moments entries were dropped, and merged onto others.
  Micros dropped() const { return room_ == 0 ? kLongAgo : Moment(kDropped); }
  Micros merged() const { return room_ == 0 ? kLongAgo : Moment(kMerged); }
  /// After all entries of others, which had such moments, were recorded here.
  void TakeOverMoments(Micros dropped, Micros merged) {
    if (head_.size == 0) return;
    SetMoment(kDropped, std::max(Moment(kDropped), dropped));
    SetMoment(kMerged, std::max(Moment(kMerged), merged));
  }

  /// Whether the numbers make sense, for words from elsewhere.
  bool IsSound() const;

 private:
  enum Word : std::size_t { kDropped, kMerged, kTotals };

  std::uint32_t Place(std::uint32_t i) const {
    const std::uint32_t place = head_.head + i;
    return place < room_ ? place : place - room_;
  }
  std::size_t Stride() const { return windows_ + 1; }
  std::uint64_t* EntryAt(std::uint32_t place) const {
    assert(place < room_);
    return words_ + kTotals + windows_ + place * Stride();
  }
  std::uint64_t* Entry(std::uint32_t i) const {
    assert(i < head_.size);
    return EntryAt(Place(i));
  }
  std::uint64_t Total(std::size_t window) const { return words_[kTotals + window]; }

  Micros Moment(std::size_t word) const { return static_cast<Micros>(words_[word]); }
  void SetMoment(std::size_t word, Micros moment) {
    words_[word] = static_cast<std::uint64_t>(moment);
  }
  void Begin() {
    SetMoment(kDropped, kLongAgo);
    SetMoment(kMerged, kLongAgo);
  }

  /// The first index for which `fact` holds; once it does, it holds for all later ones.
  template <class Fact>
  std::uint32_t FirstWhere(Fact fact) const {
    std::uint32_t first = 0;
    for (std::uint32_t left = head_.size; left > 0;) {
      const std::uint32_t half = left / 2;
      if (fact(first + half)) {
        left = half;
      } else {
        first += half + 1;
        left -= half + 1;
      }
    }
    return first;
  }

  /// Nobody makes as many attempts as could reach kMostInAll with lower costs.
  static constexpr std::uint64_t kLargeCost = std::uint64_t{1} << 24;
  /// What the entries may cost in one window, far beyond any max.
  static constexpr std::uint64_t kMostInAll = std::uint64_t{1} << 62;

  /// Prepares a window for `more`, which counted refusals or overdrafts could bring to 2^64: moves
  /// all costs onto the newest entry, and cuts them.
  void KeepBelow(std::uint64_t more, std::size_t window);

  void DropUntil(Micros moment);
  void Merge(std::span<const MergeZone> zones);
  void Remove(std::uint32_t i);

  std::uint64_t* words_;
  std::uint32_t windows_;
  std::uint32_t room_;
  WeightedHead head_;
};

}  // namespace rollgate
