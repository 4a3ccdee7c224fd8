// The parts of weighted entries that do not run in each attempt.
#include "core/weighted_entries.h"

namespace rollgate {
namespace {

/// Floors, also before the clock's origin.
Micros CellOf(Micros stamp, Micros width) {
  const Micros cell = stamp / width;
  return stamp % width < 0 ? cell - 1 : cell;
}

}  // namespace

std::uint32_t WeightedEntries::DropAndPlanRoom(Micros at, Micros retention,
                                               std::span<const MergeZone> zones) {
  constexpr std::uint32_t kLeast = 4;
  if (head_.size > 0) DropUntil(Newest() - retention);
  if (head_.size < room_) return room_ > kLeast && head_.size < room_ / 4 ? room_ / 2 : room_;
  if (room_ < kMost) return std::clamp(room_ * 2, kLeast, kMost);
  DropUntil(at - retention);
  if (head_.size == room_) Merge(zones);
  return room_;
}

void WeightedEntries::MoveTo(std::uint64_t* words, std::uint32_t room) {
  assert(head_.size <= room);
  if (room_ > 0) std::copy_n(words_, kTotals + windows_, words);
  for (std::uint32_t i = 0; i < head_.size; ++i) {
    std::copy_n(Entry(i), Stride(), words + kTotals + windows_ + i * Stride());
  }
  words_ = words;
  if (room_ == 0) Begin();
  room_ = room;
  head_.head = 0;
}

void WeightedEntries::ResizeInPlace(std::uint32_t room) {
  assert(head_.size <= room);
  std::uint64_t* const ring = words_ + kTotals + windows_;
  std::rotate(ring, ring + head_.head * Stride(), ring + room_ * Stride());
  if (room_ == 0) Begin();
  room_ = room;
  head_.head = 0;
}

bool WeightedEntries::Settle(Micros at, const Costs& from, const Costs& to) {
  if (head_.size == 0 || at <= Moment(kDropped)) return false;
  const std::uint32_t found = FirstAfter(at - 1);
  if (found == head_.size || (Stamp(found) != at && at > Moment(kMerged))) return false;
  bool is_empty = true;
  for (std::uint32_t w = 0; w < windows_; ++w) {
    if (to[w] >= kLargeCost) KeepBelow(to[w], w);
    const std::uint64_t cost = SumFrom(found, w) - SumFrom(found + 1, w);
    // The entry has at least what was recorded, unless another process wrote nonsense.
    const std::uint64_t change = to[w] - std::min(from[w], cost);
    for (std::uint32_t i = found + 1; i < head_.size; ++i) Entry(i)[1 + w] += change;
    words_[kTotals + w] += change;
    is_empty &= cost + change == 0;
  }
  if (is_empty) Remove(found);
  return true;
}

void WeightedEntries::KeepBelow(std::uint64_t more, std::size_t window) {
  if (SumFrom(0, window) <= kMostInAll - more) return;
  const std::uint64_t before = Entry(0)[1 + window];
  for (std::uint32_t i = 1; i < head_.size; ++i) Entry(i)[1 + window] = before;
  words_[kTotals + window] = before + kMostInAll / 2;
}

bool WeightedEntries::IsSound() const {
  for (std::uint32_t w = 0; head_.size > 0 && w < windows_; ++w) {
    // Costs below kLargeCost may add to the most.
    if (SumFrom(0, w) > 2 * kMostInAll) return false;
  }
  for (std::uint32_t i = 0; i < head_.size; ++i) {
    if (Bounded(Stamp(i)) != Stamp(i) || (i > 0 && Stamp(i) <= Stamp(i - 1))) return false;
    for (std::uint32_t w = 0; i > 0 && w < windows_; ++w) {
      if (SumFrom(i, w) > SumFrom(i - 1, w)) return false;
    }
  }
  return true;
}

void WeightedEntries::DropUntil(Micros moment) {
  const std::uint32_t dropped = FirstAfter(moment);
  if (dropped == 0) return;
  SetMoment(kDropped, Stamp(dropped - 1));
  head_.head = dropped == head_.size ? 0 : Place(dropped);
  head_.size -= dropped;
}

void WeightedEntries::Merge(std::span<const MergeZone> zones) {
  assert(head_.size >= 2);
  const Micros newest = Newest();
  const auto zone_of = [&](Micros stamp) {
    std::size_t zone = 0;
    while (zone + 1 < zones.size() && newest - stamp >= zones[zone].interval) ++zone;
    return zone;
  };
  const auto are_neighbours = [&](Micros a, Micros b) {
    const std::size_t zone = zone_of(a);
    const Micros width = zones[zone].width;
    return zone == zone_of(b) && CellOf(a, width) == CellOf(b, width);
  };
  const std::uint32_t before = head_.size;
  std::uint32_t kept = 0;
  for (std::uint32_t first = 0; first < before;) {
    std::uint32_t last = first;
    while (last + 1 < before && are_neighbours(Stamp(last), Stamp(last + 1))) ++last;
    // The sums before the oldest, the stamp of the newest.
    std::uint64_t* const entry = Entry(kept);
    const Micros stamp = Stamp(last);
    if (kept != first) std::copy_n(Entry(first), Stride(), entry);
    entry[0] = static_cast<std::uint64_t>(stamp);
    if (first < last) SetMoment(kMerged, stamp);
    ++kept;
    first = last + 1;
  }
  head_.size = kept;
  if (kept < before) return;
  std::copy_n(Entry(0) + 1, windows_, Entry(1) + 1);
  SetMoment(kMerged, std::max(Moment(kMerged), Stamp(1)));
  head_.head = Place(1);
  --head_.size;
}

void WeightedEntries::Remove(std::uint32_t i) {
  for (; i + 1 < head_.size; ++i) std::copy_n(Entry(i + 1), Stride(), Entry(i));
  --head_.size;
}

}  // namespace rollgate
