// The ids of a shared region: many threads and processes find, change, insert and forget them
// without locks.
//
// The only file whose memory orders matter. docs/design/shared-memory.md has the protocol in steps
// and the argument why a kill at any step is harmless. In short:
//
// - A slot's control word names a record, which holds an id and its state. A record in a slot is
//   never written to. To change an id, a process writes its own spare record and swaps it in with
//   one compare-and-swap. The record that was there is its next spare.
// - A control word never occurs twice, so a swap that comes too late fails.
// - A new id must be inserted only once. A process announces the insertion in the id's first
//   bucket. This fails if another one was announced since the process searched there. Then any
//   process can complete the insertion.
// - An entry says what its owner is about to swap. If the owner dies, the next owner finds out
//   whether the swap was done, and so which record is the spare.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "core/identity.h"
#include "core/time.h"
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

/// What is to be published of state().
struct Saved {
  Micros expires = 0;     ///< when the id will have expired
  std::size_t words = 0;  ///< how many words are in use; the others need not be kept
};

/// One attachment's way to the ids. Owned by one thread; `entry` is its own.
///
/// Calls work on state(), a private copy of what is known of one id: Find fills it, Replace and
/// Insert publish it. What is read from the region is checked before it is used as an index;
/// SharedError where it makes no sense.
template <class Access>
class Table {
 public:
  Table(const View& view, std::size_t entry)
      : view_(view),
        controls_(view.geometry.records()),
        slots_per_bucket_(std::min<std::size_t>(view.header->max_keys, kSlotsPerBucket)),
        records_(view.geometry.records()),
        words_(view.geometry.record_words()),
        entry_(entry),
        record_(words_) {
    std::copy_n(view.header->secret.begin(), secret_.words.size(), secret_.words.begin());
    Recover();
  }

  const Secret& secret() const { return secret_; }

  /// The state of the id that was found last, or that is to be inserted.
  std::uint64_t* state() { return record_.data() + kState; }
  std::size_t state_words() const { return record_.size() - kState; }

  /// Looks for an id and copies its record; tells whether it is there, be it expired.
  bool Find(const Identity& id) {
    // In a loop, or an attack, an id comes again and again.
    const bool is_same = id == id_ && tag_ != kNoTag;
    if (is_same && slot_ != kNowhere && Read(*word_, Access::Load(*word_))) {
      return IsOfThisGeneration();
    }
    if (!is_same) Locate(id);
    // Read before the search, so that an insertion by anybody else since then is noticed.
    insertion_ = Access::Load(Home().insertion);
    // Beside atomic accesses the compiler takes members for changed.
    const Controls controls = controls_;
    const std::uint64_t tag = tag_;
    const std::size_t slots = slots_per_bucket_;
    for (const std::uint64_t bucket : homes_) {
      std::array<Word, kSlotsPerBucket>& words = view_.buckets[bucket].slots;
      for (std::size_t i = 0; i < slots; ++i) {
        const std::uint64_t control = Access::Load(words[i]);
        if (controls.Tag(control) != tag || !Read(words[i], control)) continue;
        slot_ = bucket * kSlotsPerBucket + i;
        word_ = &words[i];
        return IsOfThisGeneration();
      }
      if (homes_[0] == homes_[1]) break;
    }
    slot_ = kNowhere;
    generation_ = Generation();
    return false;
  }

  /// Publishes the record in place of the one that Find has found. False where somebody was faster;
  /// then nothing has changed.
  bool Replace(const Saved& saved) {
    assert(slot_ != kNowhere);
    const std::uint64_t next = controls_.After(spare_, tag_);
    WriteSpare(saved);
    return Swap(next);
  }

  enum class Insertion {
    kDone,     ///< in an empty slot, or one whose id had expired
    kEvicted,  ///< in place of an id that had not expired
    kLost,     ///< somebody was faster; nothing has changed
  };

  /// Inserts the id that Find has not found. `begin(earliest)` fills state() for an id that is not
  /// to act before a moment, and returns what is to be published.
  template <class Begin>
  Insertion Insert(Micros now, Begin begin) {
    if (slot_ != kNowhere) return Revive(begin);
    if (IsPending(insertion_)) {
      Complete(Home(), insertion_);
      return Insertion::kLost;
    }
    const Victim victim = ChooseVictim(now);
    if (Generation() != generation_) return Insertion::kLost;
    if (victim.is_known && victim.has_expired) RaiseForgotten(victim.expires);
    // After the search: if it missed an id that was forgotten meanwhile, this is late enough.
    const Saved saved = begin(Forgotten());
    const std::uint64_t next = controls_.After(spare_, tag_);
    WriteSpare(saved);
    slot_ = victim.slot;
    word_ = &SlotAt(victim.slot);
    control_ = victim.control;
    Access::Store(Mine().bucket, homes_[0]);
    Intend(next);
    const std::uint64_t announced = Announcement(insertion_);
    if (!Access::CompareExchange(Home().insertion, insertion_, announced)) return Insertion::kLost;
    Complete(Home(), announced);
    if (!IsPublished()) return Insertion::kLost;
    TakeSpare(control_);
    if (!victim.is_known) CountKeys(1);
    return victim.is_known && !victim.has_expired ? Insertion::kEvicted : Insertion::kDone;
  }

  /// Forgets the id that Find has found. False where somebody was faster.
  bool Remove() {
    assert(slot_ != kNowhere);
    const std::uint64_t next = controls_.After(spare_, kNoTag);
    Access::Store(RecordOf(spare_)[kOrigin], Origin());
    if (!Swap(next)) return false;
    CountKeys(-1);
    return true;
  }

  /// Forgets all ids.
  void Clear() {
    const std::uint64_t generation = Access::Load(view_.header->generation);
    // If it fails somebody else has just done the same.
    Access::CompareExchange(view_.header->generation, generation, generation + 1);
  }

  /// How many ids there are, expired ones not yet forgotten included. Each process that was killed
  /// may have made it wrong by one.
  std::uint64_t Keys() const {
    const std::uint32_t generation = Generation();
    std::int64_t keys = 0;
    for (std::size_t i = 0; i < EntriesUsed(); ++i) {
      const std::uint64_t word = Access::Load(view_.entries[i].keys);
      if (word >> 32 == generation) keys += static_cast<std::int32_t>(word);
    }
    return static_cast<std::uint64_t>(std::max<std::int64_t>(keys, 0));
  }

  /// A number that tells an id which is inserted next from its earlier generations.
  std::uint32_t NextGeneration() const {
    return static_cast<std::uint32_t>(controls_.After(spare_, kNoTag) * 0x9e3779b97f4a7c15 >> 32);
  }

  /// The earliest moment at which an id that was not found acts.
  Micros Forgotten() const {
    const std::uint64_t word = Access::Load(view_.header->forgotten);
    const bool is_set = word >> kForgottenBits == (generation_ & 0xff) && (word & kForgottenMask);
    if (!is_set) return kLongAgo;
    return static_cast<Micros>(word & kForgottenMask) - kForgottenZero;
  }

  /// Moves to another entry: what a copy of the process that fork() has made has to do.
  void UseEntry(std::size_t entry) {
    entry_ = entry;
    Recover();
  }

 private:
  static constexpr std::uint8_t kMostExponent = 32;
  static constexpr std::uint64_t kNoTag = 0;
  static constexpr std::uint64_t kNowhere = ~std::uint64_t{0};

  // `insertion` of a bucket: how many there were, whether one is pending, and whose it is.
  static constexpr std::uint64_t kPending = std::uint64_t{1} << 16;
  static constexpr std::uint64_t kEntryMask = kPending - 1;
  static_assert(kEntries <= kPending);

  // `forgotten` of the header: eight bits of the generation and a moment; 0 is none.
  static constexpr int kForgottenBits = 56;
  static constexpr std::uint64_t kForgottenMask = (std::uint64_t{1} << kForgottenBits) - 1;
  static constexpr Micros kForgottenZero = Micros{1} << (kForgottenBits - 1);

  struct Victim {
    std::uint64_t slot = kNowhere;
    std::uint64_t control = 0;
    Micros expires = 0;
    bool is_known = false;     // holds an id of this generation
    bool has_expired = false;  // or is not known
  };

  Entry& Mine() const { return view_.entries[entry_]; }
  Bucket& Home() const { return view_.buckets[homes_[0]]; }

  Word& SlotAt(std::uint64_t slot) const {
    if (slot >= view_.geometry.slots()) ThrowCorrupt("there is no such slot");
    return view_.buckets[slot / kSlotsPerBucket].slots[slot % kSlotsPerBucket];
  }

  Word* RecordOf(std::uint64_t control) const {
    const std::uint64_t record = controls_.Record(control);
    if (record >= records_) ThrowCorrupt("there is no such record");
    return view_.records + record * words_;
  }

  std::uint32_t Generation() const {
    return static_cast<std::uint32_t>(Access::Load(view_.header->generation));
  }

  std::size_t EntriesUsed() const {
    return std::min<std::size_t>(Access::Load(view_.header->entries_used), kEntries);
  }

  // `origin` of a record: generation, how many words of the state are in use (a power of two at
  // least that many, as its exponent), kind of the id, and who wrote it.
  std::uint64_t Origin() const { return entry_ + 1; }
  static std::uint64_t WriterOf(std::uint64_t origin) { return origin & 0xffff; }
  static std::uint8_t KindOf(std::uint64_t origin) {
    return static_cast<std::uint8_t>(origin >> 16);
  }
  std::size_t WordsInUse(std::uint64_t origin) const {
    const auto exponent = static_cast<std::uint8_t>(origin >> 24);
    return exponent < kMostExponent ? std::min(words_, kState + (std::size_t{1} << exponent))
                                    : words_;
  }
  static std::uint32_t GenerationOf(std::uint64_t origin) {
    return static_cast<std::uint32_t>(origin >> 32);
  }

  /// Where the id can be: the two buckets that its hash names, and the tag it has there.
  void Locate(const Identity& id) {
    id_ = id;
    const std::uint64_t hash = HashOf(id, secret_);
    const std::uint64_t buckets = view_.geometry.buckets();
    homes_[0] = (hash >> 32) * buckets >> 32;
    homes_[1] = (hash & 0xffffffff) * buckets >> 32;
    if (homes_[1] == homes_[0]) homes_[1] = homes_[0] + 1 < buckets ? homes_[0] + 1 : 0;
#if defined(__GNUC__)
    __builtin_prefetch(&view_.buckets[homes_[1]]);
#endif
    tag_ = hash & 0xff;
    if (tag_ == kNoTag) tag_ = 1;
  }

  /// Copies the record in a slot, where a control word was found, if it is that of the id that is
  /// looked for.
  bool Read(const Word& slot, std::uint64_t control) {
    const Identity id = id_;
    const std::uint64_t tag = tag_;
    std::uint64_t* const copy = record_.data();
    for (int tries = 0; controls_.Tag(control) == tag; ++tries) {
      if (tries == kMostTries) ThrowCorrupt("an id never stands still");
      const Word* const record = RecordOf(control);
      const std::uint64_t origin = Access::Load(record[kOrigin]);
      const bool is_it = Access::Load(record[kIdLow]) == id.low &&
                         Access::Load(record[kIdHigh]) == id.high && KindOf(origin) == id.kind;
      if (is_it) {
        copy[kOrigin] = origin;
        const std::size_t words = WordsInUse(origin);
        for (std::size_t i = kExpires; i < words; ++i) copy[i] = Access::Load(record[i]);
      }
      // The record was this id's all the time, or another's, if its slot still says so.
      const std::uint64_t again = Access::Load(slot);
      if (again == control) {
        control_ = control;
        return is_it;
      }
      control = again;
    }
    return false;
  }

  /// Whoever wrote the record had read its generation first, so it is not beyond this one.
  bool IsOfThisGeneration() {
    generation_ = Generation();
    return GenerationOf(record_[kOrigin]) == generation_;
  }

  /// Writes the record to the spare, where nobody looks for anything valid.
  void WriteSpare(const Saved& saved) {
    assert(saved.words >= 1 && saved.words <= state_words());
    Word* const spare = RecordOf(spare_);
    const Identity id = id_;
    const auto exponent = static_cast<std::uint64_t>(std::bit_width(saved.words - 1));
    const std::uint64_t origin =
        std::uint64_t{generation_} << 32 | exponent << 24 | std::uint64_t{id.kind} << 16 | Origin();
    const std::size_t words = WordsInUse(origin);
    const std::uint64_t* const copy = record_.data();
    // First of all: see IsPublished.
    Access::Store(spare[kOrigin], origin);
    Access::Store(spare[kIdLow], id.low);
    Access::Store(spare[kIdHigh], id.high);
    Access::Store(spare[kExpires], static_cast<std::uint64_t>(saved.expires));
    for (std::size_t i = kState; i < words; ++i) Access::Store(spare[i], copy[i]);
  }

  /// Tells whoever may have to tidy up what is about to be swapped. `expected` comes last: while it
  /// equals `spare`, nothing is.
  void Intend(std::uint64_t next) {
    Entry& mine = Mine();
    const std::uint64_t expected = control_;
    Access::Store(mine.target, slot_);
    Access::Store(mine.next, next);
    Access::Store(mine.expected, expected);
  }

  bool Swap(std::uint64_t next) {
    Intend(next);
    if (!Access::CompareExchange(*word_, control_, next)) return false;
    TakeSpare(control_);
    return true;
  }

  /// The record that a swap has put out of its slot is the next spare.
  void TakeSpare(std::uint64_t control) {
    spare_ = control;
    Access::Store(Mine().spare, control);
  }

  /// An id of an older generation is begun anew where it is.
  template <class Begin>
  Insertion Revive(Begin begin) {
    if (!Replace(begin(Forgotten()))) return Insertion::kLost;
    CountKeys(1);
    return Insertion::kDone;
  }

  /// Which slot a new id takes: in the bucket that has more to give, an empty one, else the one
  /// that has expired longest; where all are needed, the one nearest to expiry.
  Victim ChooseVictim(Micros now) const {
    std::array<Victim, 2> best;
    std::array<int, 2> free{};
    const int buckets = homes_[0] == homes_[1] ? 1 : 2;
    for (int b = 0; b < buckets; ++b) {
      for (std::size_t i = 0; i < slots_per_bucket_; ++i) {
        const Victim victim = VictimAt(homes_[b] * kSlotsPerBucket + i, now);
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

  Victim VictimAt(std::uint64_t slot, Micros now) const {
    Victim victim;
    victim.slot = slot;
    victim.control = Access::Load(SlotAt(slot));
    victim.expires = kLongAgo;
    if (controls_.Tag(victim.control) != kNoTag) {
      const Word* const record = RecordOf(victim.control);
      // If the record is somebody's spare by now, the swap will fail.
      const auto expires = static_cast<Micros>(Access::Load(record[kExpires]));
      const std::uint32_t generation = GenerationOf(Access::Load(record[kOrigin]));
      victim.is_known = generation == Generation();
      if (victim.is_known) victim.expires = expires;
    }
    victim.has_expired = !victim.is_known || victim.expires <= now;
    return victim;
  }

  /// From now on ids that are not found act no earlier than this.
  void RaiseForgotten(Micros moment) {
    // Earlier than the word can tell is not told, for nobody must act later than he would.
    if (moment <= -kForgottenZero) return;
    const auto bounded = std::min(moment, kForgottenZero - 1);
    const std::uint64_t raised = std::uint64_t{generation_ & 0xff} << kForgottenBits |
                                 static_cast<std::uint64_t>(bounded + kForgottenZero);
    for (int tries = 0; tries < kMostTries; ++tries) {
      const std::uint64_t word = Access::Load(view_.header->forgotten);
      // Whoever raised it for a later generation had read that before. So if there is none, it is
      // of this or of an earlier one; else all was forgotten anyway.
      if (Generation() != generation_) return;
      const bool is_set = word >> kForgottenBits == (generation_ & 0xff);
      if (is_set && word >= raised) return;
      if (Access::CompareExchange(view_.header->forgotten, word, raised)) return;
    }
    ThrowCorrupt("a moment never stands still");
  }

  static bool IsPending(std::uint64_t insertion) {
    return (insertion & kPending) != 0;
  }
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
    return WriterOf(Access::Load(RecordOf(next)[kOrigin])) != Origin();
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

  /// `keys` of an entry: the generation, and by how much its owners have changed the number of ids.
  void CountKeys(std::int32_t by) {
    const std::uint64_t word = Access::Load(Mine().keys);
    const std::uint32_t keys = word >> 32 == generation_ ? static_cast<std::uint32_t>(word) : 0;
    Access::Store(Mine().keys,
                  std::uint64_t{generation_} << 32 | (keys + static_cast<std::uint32_t>(by)));
  }

  /// Each try fails only because somebody else has changed something, so this many are a lie.
  static constexpr int kMostTries = 1 << 20;

  View view_;
  Controls controls_;
  std::size_t slots_per_bucket_;
  std::uint64_t records_;  // there are so many, of so many words
  std::size_t words_;
  std::size_t entry_;
  Secret secret_;
  std::uint64_t spare_ = 0;  // as `spare` of the entry

  // Of the last Find.
  Identity id_;
  std::uint64_t tag_ = 0;
  std::array<std::uint64_t, 2> homes_{};
  std::uint64_t insertion_ = 0;
  std::uint64_t slot_ = kNowhere;
  Word* word_ = nullptr;  // of that slot
  std::uint64_t control_ = 0;
  std::uint32_t generation_ = 0;
  std::vector<std::uint64_t> record_;
};

}  // namespace rollgate::shared
