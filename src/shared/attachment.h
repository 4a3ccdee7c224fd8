// A limiter's own place in a region: its spare record, and the swaps that it has set out to do.
//
// Whatever a limiter is about to swap, it writes to its entry first. So if its process is killed,
// the next owner of the entry finds out whether that was done, and which record is the spare.
// docs/design/shared-memory.md has the protocol in steps.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "shared/layout.h"
#include "shared/shared_error.h"

namespace rollgate::shared {

/// How words are accessed. A value that is read with Load or found by CompareExchange comes with
/// everything that its writer did before it wrote it, and what a thread does after a Load is not
/// seen before it; so records that are read between two equal loads of a control word are whole.
///
/// The tests explore the table with these orders under sequential consistency, with x86's store
/// buffers, and under a model that contains all that ARMv8 can do with them. For that every store
/// has to be a release. Which access needs its order is in docs/design/memory-orders.md.
struct Hardware {
  static constexpr std::memory_order kLoad = std::memory_order_acquire;
  static constexpr std::memory_order kStore = std::memory_order_release;
  static constexpr std::memory_order kSwap = std::memory_order_acq_rel;
  static constexpr std::memory_order kFailedSwap = std::memory_order_acquire;

  static std::uint64_t Load(const Word& word) { return word.load(kLoad); }
  static void Store(Word& word, std::uint64_t value) { word.store(value, kStore); }
  static bool CompareExchange(Word& word, std::uint64_t expected, std::uint64_t desired) {
    return word.compare_exchange_strong(expected, desired, kSwap, kFailedSwap);
  }
};

/// Where the parts of a region are in this process.
struct View {
  Header* header;
  Entry* entries;
  Bucket* buckets;
  Word* records;
  Geometry geometry;
};

/// One limiter's attachment to a region. Owned by one thread; `entry` is its own. What is read from
/// the region is checked before it is used as an index; SharedError where it makes no sense.
template <class Access>
class Attachment {
 public:
  Attachment(const View& view, std::size_t entry)
      : view_(view),
        controls_(view.geometry.records()),
        records_(view.geometry.records()),
        words_(view.geometry.record_words()),
        entry_(entry) {
    Recover();
  }

  const View& view() const { return view_; }
  const Controls& controls() const { return controls_; }
  std::size_t record_words() const { return words_; }

  /// Moves to another entry, as a process that fork() has made has to do.
  void UseEntry(std::size_t entry) {
    entry_ = entry;
    Recover();
  }

  Word& SlotAt(std::uint64_t slot) const {
    if (slot >= view_.geometry.slots()) ThrowCorrupt("there is no such slot");
    return view_.buckets[slot / kSlotsPerBucket].slots[slot % kSlotsPerBucket];
  }

  Word* RecordOf(std::uint64_t control) const {
    const std::uint64_t record = controls_.Record(control);
    if (record >= records_) ThrowCorrupt("there is no such record");
    return view_.records + record * words_;
  }

  /// How many times everything was forgotten.
  std::uint32_t Era() const { return static_cast<std::uint32_t>(Access::Load(view_.header->era)); }

  /// The control word of the record that nobody else looks at.
  std::uint64_t spare() const { return spare_; }

  /// The name of this entry in the origins of records.
  std::uint64_t name() const { return entry_ + 1; }

  /// Announces what is about to be swapped to whoever may have to tidy up: the word of a slot from
  /// `expected` to `next`. `expected` is written last: while it equals `spare`, nothing is.
  void Intend(std::uint64_t slot, std::uint64_t expected, std::uint64_t next) {
    Entry& mine = Mine();
    Access::Store(mine.target, slot);
    Access::Store(mine.next, next);
    Access::Store(mine.expected, expected);
  }

  /// The same for an insertion, which has to be announced in this bucket.
  void IntendInsertion(std::uint64_t bucket, std::uint64_t slot, std::uint64_t expected,
                       std::uint64_t next) {
    Access::Store(Mine().bucket, bucket);
    Intend(slot, expected, next);
  }

  /// The record that a swap has put out of its slot is the next spare.
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

  /// Does what an announced insertion is about, if nobody else has.
  void Complete(Bucket& home, std::uint64_t insertion) const {
    const std::uint64_t entry = insertion & kEntryMask;
    if (entry >= kEntries) ThrowCorrupt("there is no such entry");
    const Entry& its = view_.entries[entry];
    const std::uint64_t target = Access::Load(its.target);
    const std::uint64_t next = Access::Load(its.next);
    const std::uint64_t expected = Access::Load(its.expected);
    // As long as it is pending its owner changes nothing of it.
    if (Access::Load(home.insertion) != insertion) return;
    Access::CompareExchange(SlotAt(target), expected, next);
    Access::CompareExchange(home.insertion, insertion, Completed(insertion));
  }

  /// Whether the swap that this entry intends was done, by whomever. Precondition: nobody will do
  /// it any more.
  ///
  /// If it was, its record is in its slot until somebody sets out to swap that out. They say so
  /// in `expected` before, and leave it there until they write another record; which is this one,
  /// and begins with their name. So whoever looks in this order cannot miss it.
  bool IsPublished() const {
    const std::uint64_t next = Access::Load(Mine().next);
    if (Access::Load(SlotAt(Access::Load(Mine().target))) == next) return true;
    const std::size_t entries = EntriesUsed();
    for (std::size_t i = 0; i < entries; ++i) {
      if (i != entry_ && Access::Load(view_.entries[i].expected) == next) return true;
    }
    return WriterOf(Access::Load(RecordOf(next)[kOrigin])) != name();
  }

  /// Notes that the number of ids in an era has changed.
  void CountKeys(std::uint32_t era, std::int32_t by) {
    const std::uint64_t word = Access::Load(Mine().keys);
    const std::uint32_t keys = word >> 32 == era ? static_cast<std::uint32_t>(word) : 0;
    Access::Store(Mine().keys, std::uint64_t{era} << 32 | (keys + static_cast<std::uint32_t>(by)));
  }

  /// How many ids there are, expired ones not yet forgotten included. Each process that was killed
  /// may have made it wrong by one.
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
  // `insertion` of a bucket: how many there were, whether one is pending, and whose it is.
  static constexpr std::uint64_t kPending = std::uint64_t{1} << 16;
  static constexpr std::uint64_t kEntryMask = kPending - 1;
  static_assert(kEntries <= kPending);

  static std::uint64_t WriterOf(std::uint64_t origin) { return origin & 0xffff; }

  Entry& Mine() const { return view_.entries[entry_]; }

  std::size_t EntriesUsed() const {
    return std::min<std::size_t>(Access::Load(view_.header->entries_used), kEntries);
  }

  /// Finds out which record is this entry's, whatever its last owner was doing.
  void Recover() {
    spare_ = Access::Load(Mine().spare);
    const std::uint64_t expected = Access::Load(Mine().expected);
    if (expected != spare_) {
      const std::uint64_t bucket = Access::Load(Mine().bucket);
      if (bucket >= view_.geometry.buckets()) ThrowCorrupt("there is no such bucket");
      Bucket& home = view_.buckets[bucket];
      const std::uint64_t insertion = Access::Load(home.insertion);
      if (IsPending(insertion) && (insertion & kEntryMask) == entry_) Complete(home, insertion);
      if (IsPublished()) {
        TakeSpare(expected);
      } else {
        Access::Store(Mine().expected, spare_);
      }
    }
    RecordOf(spare_);  // is there such a record?
  }

  View view_;
  Controls controls_;
  std::uint64_t records_;  // there are so many, of so many words
  std::size_t words_;
  std::size_t entry_;
  std::uint64_t spare_ = 0;  // as `spare` of the entry
};

}  // namespace rollgate::shared
