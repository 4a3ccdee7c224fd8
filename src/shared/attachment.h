// A limiter's entry in a region: its spare record and the swap that it intends. If its process is
// killed, the next owner finds out from the entry whether the swap was done.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "shared/layout.h"
#include "shared/shared_error.h"

namespace rollgate::shared {

/// One limiter's attachment to a region. Owned by one thread, which also owns `entry`. Throws
/// SharedError if a value read from the region is no valid index.
template <class Access>
class Attachment {
 public:
  Attachment(const View& view, std::size_t entry)
      : view_(view),
        controls_(view.geometry.records()),
        records_(view.geometry.records()),
        words_(view.geometry.record_words()),
        entry_(entry) {
    assert(entry < kEntries && records_ > kEntries && words_ > kState);
    Recover();
  }

  const View& view() const { return view_; }
  const Controls& controls() const { return controls_; }
  std::size_t record_words() const { return words_; }

  /// Moves to another entry, as a process created by fork() must.
  void UseEntry(std::size_t entry) {
    assert(entry < kEntries);
    entry_ = entry;
    Recover();
  }

  Word& SlotAt(std::uint64_t slot) const {
    if (slot >= view_.geometry.slots()) ThrowCorrupt("slot out of range");
    return view_.buckets[slot / kSlotsPerBucket].slots[slot % kSlotsPerBucket];
  }

  Word* RecordOf(std::uint64_t control) const {
    const std::uint64_t record = controls_.Record(control);
    if (record >= records_) ThrowCorrupt("record out of range");
    return view_.records + record * words_;
  }

  std::uint32_t Era() const { return static_cast<std::uint32_t>(Access::Load(view_.header->era)); }

  /// The last control word of the record that no slot has.
  std::uint64_t spare() const { return spare_; }

  /// This entry in the origins of records.
  std::uint64_t name() const { return entry_ + 1; }

  /// Declares the next swap of a slot's word, from `expected` to `next`. `expected` is written
  /// last: while it equals `spare`, nothing is intended.
  void Intend(std::uint64_t slot, std::uint64_t expected, std::uint64_t next) {
    assert(slot < view_.geometry.slots() && controls_.Record(next) == controls_.Record(spare_));
    Entry& mine = Mine();
    Access::Store(mine.target, slot);
    Access::Store(mine.next, next);
    Access::Store(mine.expected, expected);
  }

  /// The same for an insertion, which is announced in this bucket.
  void IntendInsertion(std::uint64_t bucket, std::uint64_t slot, std::uint64_t expected,
                       std::uint64_t next) {
    assert(bucket < view_.geometry.buckets());
    Access::Store(Mine().bucket, bucket);
    Intend(slot, expected, next);
  }

  /// After a swap, the record that it removed from its slot is the spare.
  void TakeSpare(std::uint64_t control) {
    spare_ = control;
    Access::Store(Mine().spare, control);
  }

  static bool IsPending(std::uint64_t insertion) { return (insertion & kPending) != 0; }
  std::uint64_t Announcement(std::uint64_t insertion) const {
    return ((insertion >> 17) + 1) << 17 | kPending | entry_;
  }
  static std::uint64_t Completed(std::uint64_t insertion) {
    return insertion & ~(kPending | kEntryMask);
  }

  /// Completes an announced insertion, unless another process has.
  void Complete(Bucket& home, std::uint64_t insertion) const {
    const std::uint64_t entry = insertion & kEntryMask;
    if (entry >= kEntries) ThrowCorrupt("entry out of range");
    const Entry& its = view_.entries[entry];
    const std::uint64_t target = Access::Load(its.target);
    const std::uint64_t next = Access::Load(its.next);
    const std::uint64_t expected = Access::Load(its.expected);
    // While an insertion is pending, its owner does not change its entry.
    if (Access::Load(home.insertion) != insertion) return;
    Access::CompareExchange(SlotAt(target), expected, next);
    Access::CompareExchange(home.insertion, insertion, Completed(insertion));
  }

  /// Whether the intended swap was done, by any process. Precondition: no process can do it any
  /// more.
  ///
  /// After the swap, the record is in its slot until another process swaps it out. That process
  /// writes the control word to its `expected` first and leaves it there until it writes its next
  /// record, which is this one and then has its name. So this order misses no swap.
  bool IsPublished() const {
    const std::uint64_t next = Access::Load(Mine().next);
    if (Access::Load(SlotAt(Access::Load(Mine().target))) == next) return true;
    const std::size_t entries = EntriesUsed();
    for (std::size_t i = 0; i < entries; ++i) {
      if (i != entry_ && Access::Load(view_.entries[i].expected) == next) return true;
    }
    return WriterOf(Access::Load(RecordOf(next)[kOrigin])) != name();
  }

  /// Counts ids inserted into or removed from an era.
  void CountKeys(std::uint32_t era, std::int32_t by) {
    assert(by == 1 || by == -1);
    const std::uint64_t word = Access::Load(Mine().keys);
    const std::uint32_t keys = word >> 32 == era ? static_cast<std::uint32_t>(word) : 0;
    Access::Store(Mine().keys, std::uint64_t{era} << 32 | (keys + static_cast<std::uint32_t>(by)));
  }

  /// Ids in the region, including expired ones. Each killed process can have made it wrong by one.
  std::uint64_t Keys() const {
    const std::uint32_t era = Era();
    std::int64_t keys = 0;
    for (std::size_t i = 0; i < EntriesUsed(); ++i) {
      const std::uint64_t word = Access::Load(view_.entries[i].keys);
      if (word >> 32 == era) keys += static_cast<std::int32_t>(word);
    }
    return static_cast<std::uint64_t>(std::max<std::int64_t>(keys, 0));
  }

 private:
  // Bucket::insertion: a count, whether one is pending, and by which entry.
  static constexpr std::uint64_t kPending = std::uint64_t{1} << 16;
  static constexpr std::uint64_t kEntryMask = kPending - 1;
  static_assert(kEntries < 0xffff, "names have 16 bits, 0 is none");

  static std::uint64_t WriterOf(std::uint64_t origin) { return origin & 0xffff; }

  Entry& Mine() const { return view_.entries[entry_]; }

  std::size_t EntriesUsed() const {
    return std::min<std::size_t>(Access::Load(view_.header->entries_used), kEntries);
  }

  /// Finds this entry's spare record, whatever its last owner was doing.
  void Recover() {
    spare_ = Access::Load(Mine().spare);
    const std::uint64_t expected = Access::Load(Mine().expected);
    if (expected != spare_) {
      const std::uint64_t bucket = Access::Load(Mine().bucket);
      if (bucket >= view_.geometry.buckets()) ThrowCorrupt("bucket out of range");
      Bucket& home = view_.buckets[bucket];
      const std::uint64_t insertion = Access::Load(home.insertion);
      if (IsPending(insertion) && (insertion & kEntryMask) == entry_) Complete(home, insertion);
      if (IsPublished()) {
        TakeSpare(expected);
      } else {
        Access::Store(Mine().expected, spare_);
      }
    }
    RecordOf(spare_);  // throws if it is out of range
  }

  View view_;
  Controls controls_;
  std::uint64_t records_;  // in the region
  std::size_t words_;      // of a record
  std::size_t entry_;
  std::uint64_t spare_ = 0;  // equal to Entry::spare
};

}  // namespace rollgate::shared
