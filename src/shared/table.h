// The ids of a shared region: many threads and processes find, change, insert and forget them
// without locks.
//
// With attachment.h and eviction.h the only file whose memory orders matter.
// docs/design/shared-memory.md has the protocol in steps and the argument why a kill at any step is
// harmless. In short:
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
#include "shared/attachment.h"
#include "shared/eviction.h"
#include "shared/layout.h"
#include "shared/shared_error.h"

namespace rollgate::shared {

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
      : own_(view, entry),
        view_(view),
        controls_(own_.controls()),
        slots_per_bucket_(std::min<std::size_t>(view.header->max_keys, kSlotsPerBucket)),
        words_(own_.record_words()),
        record_(words_) {
    std::copy_n(view.header->secret.begin(), secret_.words.size(), secret_.words.begin());
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
      return IsOfThisEra();
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
        return IsOfThisEra();
      }
      if (homes_[0] == homes_[1]) break;
    }
    slot_ = kNowhere;
    era_ = own_.Era();
    return false;
  }

  /// Publishes the record in place of the one that Find has found. False where somebody was faster;
  /// then nothing has changed.
  bool Replace(const Saved& saved) {
    assert(slot_ != kNowhere);
    const std::uint64_t next = controls_.After(own_.spare(), tag_);
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
    if (own_.IsPending(insertion_)) {
      own_.Complete(Home(), insertion_);
      return Insertion::kLost;
    }
    const Victim victim = ChooseVictim(own_, homes_, slots_per_bucket_, now);
    if (own_.Era() != era_) return Insertion::kLost;
    if (victim.is_known && victim.has_expired &&
        !ForgottenUntil::Raise(own_, era_, victim.expires, kMostTries)) {
      ThrowCorrupt("a moment never stands still");
    }
    // After the search: if it missed an id that was forgotten meanwhile, this is late enough.
    const Saved saved = begin(Forgotten());
    const std::uint64_t next = controls_.After(own_.spare(), tag_);
    WriteSpare(saved);
    slot_ = victim.slot;
    word_ = &own_.SlotAt(victim.slot);
    control_ = victim.control;
    own_.IntendInsertion(homes_[0], victim.slot, victim.control, next);
    const std::uint64_t announced = own_.Announcement(insertion_);
    if (!Access::CompareExchange(Home().insertion, insertion_, announced)) return Insertion::kLost;
    own_.Complete(Home(), announced);
    if (!own_.IsPublished()) return Insertion::kLost;
    own_.TakeSpare(control_);
    if (!victim.is_known) own_.CountKeys(era_, 1);
    return victim.is_known && !victim.has_expired ? Insertion::kEvicted : Insertion::kDone;
  }

  /// Forgets the id that Find has found. False where somebody was faster.
  bool Remove() {
    assert(slot_ != kNowhere);
    const std::uint64_t next = controls_.After(own_.spare(), kNoTag);
    Access::Store(own_.RecordOf(own_.spare())[kOrigin], own_.name());
    if (!Swap(next)) return false;
    own_.CountKeys(era_, -1);
    return true;
  }

  /// The earliest moment at which an id that was not found acts.
  Micros Forgotten() const { return ForgottenUntil::Read(own_, era_); }

  /// Forgets all ids.
  void Clear() {
    const std::uint64_t era = Access::Load(view_.header->era);
    // If it fails somebody else has just done the same.
    Access::CompareExchange(view_.header->era, era, era + 1);
  }

  /// See Attachment.
  std::uint64_t Keys() const { return own_.Keys(); }
  void UseEntry(std::size_t entry) { own_.UseEntry(entry); }

  /// A number that tells an id which is inserted next from its earlier generations.
  std::uint32_t NextGeneration() const {
    return static_cast<std::uint32_t>(controls_.After(own_.spare(), kNoTag) * 0x9e3779b97f4a7c15 >>
                                      32);
  }

 private:
  static constexpr std::uint8_t kMostExponent = 32;
  static constexpr std::uint64_t kNowhere = ~std::uint64_t{0};

  Bucket& Home() const { return view_.buckets[homes_[0]]; }

  // `origin` of a record: era, how many words of the state are in use (a power of two at
  // least that many, as its exponent), kind of the id, and who wrote it.
  static std::uint8_t KindOf(std::uint64_t origin) {
    return static_cast<std::uint8_t>(origin >> 16);
  }
  std::size_t WordsInUse(std::uint64_t origin) const {
    const auto exponent = static_cast<std::uint8_t>(origin >> 24);
    return exponent < kMostExponent ? std::min(words_, kState + (std::size_t{1} << exponent))
                                    : words_;
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
      const Word* const record = own_.RecordOf(control);
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
  bool IsOfThisEra() {
    era_ = own_.Era();
    return EraOf(record_[kOrigin]) == era_;
  }

  /// Writes the record to the spare, where nobody looks for anything valid.
  void WriteSpare(const Saved& saved) {
    assert(saved.words >= 1 && saved.words <= state_words());
    Word* const spare = own_.RecordOf(own_.spare());
    const Identity id = id_;
    const auto exponent = static_cast<std::uint64_t>(std::bit_width(saved.words - 1));
    const std::uint64_t origin =
        std::uint64_t{era_} << 32 | exponent << 24 | std::uint64_t{id.kind} << 16 | own_.name();
    const std::size_t words = WordsInUse(origin);
    const std::uint64_t* const copy = record_.data();
    // First of all: see IsPublished.
    Access::Store(spare[kOrigin], origin);
    Access::Store(spare[kIdLow], id.low);
    Access::Store(spare[kIdHigh], id.high);
    Access::Store(spare[kExpires], static_cast<std::uint64_t>(saved.expires));
    for (std::size_t i = kState; i < words; ++i) Access::Store(spare[i], copy[i]);
  }

  bool Swap(std::uint64_t next) {
    own_.Intend(slot_, control_, next);
    if (!Access::CompareExchange(*word_, control_, next)) return false;
    own_.TakeSpare(control_);
    return true;
  }

  /// An id of an older era begins again where it is.
  template <class Begin>
  Insertion Revive(Begin begin) {
    if (!Replace(begin(Forgotten()))) return Insertion::kLost;
    own_.CountKeys(era_, 1);
    return Insertion::kDone;
  }

  /// Each try fails only because somebody else has changed something, so this many are a lie.
  static constexpr int kMostTries = 1 << 20;

  Attachment<Access> own_;
  View view_;
  Controls controls_;
  std::size_t slots_per_bucket_;
  std::size_t words_;  // of a record
  Secret secret_;

  // Of the last Find.
  Identity id_;
  std::uint64_t tag_ = 0;
  std::array<std::uint64_t, 2> homes_{};
  std::uint64_t insertion_ = 0;
  std::uint64_t slot_ = kNowhere;
  Word* word_ = nullptr;  // of that slot
  std::uint64_t control_ = 0;
  std::uint32_t era_ = 0;
  std::vector<std::uint64_t> record_;
};

}  // namespace rollgate::shared
