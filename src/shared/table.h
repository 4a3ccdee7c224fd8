// The ids of a shared region: many threads and processes find, change, insert and forget them
// without locks. Only this file, attachment.h and eviction.h depend on memory orders.
//
// A slot's control word names a record, which is never written while it is in a slot. To change an
// id, a process writes its spare record and swaps it in with one compare-and-swap; the removed
// record is its next spare. A control word never occurs twice, so a late swap fails.
// docs/design/shared-memory.md has insertions, recovery, and why a kill at any step is harmless.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "core/identity.h"
#include "core/time.h"
#include "shared/attachment.h"
#include "shared/eviction.h"
#include "shared/layout.h"
#include "shared/shared_error.h"

namespace rollgate::shared {

/// What to publish of state().
struct Saved {
  Micros expires = 0;     ///< when the id expires
  std::size_t words = 0;  ///< in use; the others need not be kept
};

/// One attachment's access to the ids. Owned by one thread, which also owns `entry`. Calls work on
/// state(), a private copy of one id's state: Find fills it, Replace and Insert publish it. Throws
/// SharedError if a value read from the region is no valid index.
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
    assert(words_ > kState && view.geometry.buckets() >= 1);
    std::copy_n(view.header->secret.begin(), secret_.words.size(), secret_.words.begin());
  }

  const Secret& secret() const { return secret_; }

  /// The state of the id that was found last, or will be inserted.
  std::uint64_t* state() { return record_.data() + kState; }
  std::size_t state_words() const { return record_.size() - kState; }

  /// Searches for an id and copies its record. Returns whether it is there, expired or not.
  bool Find(const Identity& id) {
    // Loops and attacks use the same id again and again.
    const bool is_same = id == id_ && tag_ != kNoTag;
    if (is_same && slot_ != kNowhere && Read(*word_, Access::Load(*word_))) {
      return IsOfThisEra();
    }
    if (!is_same) Locate(id);
    // Read before the search, to notice later insertions.
    insertion_ = Access::Load(Home().insertion);
    // Around atomic accesses, the compiler reloads members.
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

  /// Publishes state() in place of what Find found; false, and no change, if that has changed.
  bool Replace(const Saved& saved) {
    assert(slot_ != kNowhere);
    const std::uint64_t next = controls_.After(own_.spare(), tag_);
    WriteSpare(saved);
    return Swap(next);
  }

  enum class Insertion {
    kDone,     ///< in an empty slot, or one whose id had expired
    kEvicted,  ///< in place of an id that had not expired
    kLost,     ///< another process was faster; nothing has changed
    kNoRoom,   ///< every slot has an id that must stay; nothing has changed
  };

  /// For Insert: an id that has not expired may leave.
  struct Evicts {};

  /// Inserts the id that Find did not find. `begin(earliest)` fills state() for an id that must not
  /// act before a moment, and returns what to publish. Unless IsFree is Evicts, ids that have not
  /// expired stay, but for one of which `is_free(record)` is true.
  template <class Begin, class IsFree = Evicts>
  Insertion Insert(Micros now, Begin begin, IsFree is_free = {}) {
    if (slot_ != kNowhere) return Revive(begin);
    if (own_.IsPending(insertion_)) {
      own_.Complete(Home(), insertion_);
      return Insertion::kLost;
    }
    Victim victim = ChooseVictim(own_, homes_, slots_per_bucket_, now);
    if (own_.Era() != era_) return Insertion::kLost;
    if constexpr (!std::is_same_v<IsFree, Evicts>) {
      if (!victim.has_expired) {
        const auto free = FindFree(own_, homes_, slots_per_bucket_, now, is_free);
        if (!free) return Insertion::kNoRoom;
        victim = *free;
      }
    }
    if (victim.is_known && victim.has_expired &&
        !ForgottenUntil::Raise(own_, era_, victim.expires, kMostTries)) {
      ThrowCorrupt("the time of forgotten ids never settles");
    }
    // After the search, so it includes an id that was forgotten during the search.
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

  /// Forgets the id that Find found. Returns false if another process was faster.
  bool Remove() {
    assert(slot_ != kNowhere);
    const std::uint64_t next = controls_.After(own_.spare(), kNoTag);
    Access::Store(own_.RecordOf(own_.spare())[kOrigin], own_.name());
    if (!Swap(next)) return false;
    own_.CountKeys(era_, -1);
    return true;
  }

  /// An id that was not found acts no earlier than this.
  Micros Forgotten() const { return ForgottenUntil::Read(own_, era_); }

  void Clear() {
    const std::uint64_t era = Access::Load(view_.header->era);
    // If this fails, another process has just done the same.
    Access::CompareExchange(view_.header->era, era, era + 1);
  }

  /// See Attachment.
  std::uint64_t Keys() const { return own_.Keys(); }
  void UseEntry(std::size_t entry) { own_.UseEntry(entry); }

  /// The generation of the next id to be inserted, different from its earlier ones.
  std::uint32_t NextGeneration() const {
    return static_cast<std::uint32_t>(controls_.After(own_.spare(), kNoTag) * 0x9e3779b97f4a7c15 >>
                                      32);
  }

 private:
  static constexpr std::uint8_t kMostExponent = 32;
  static constexpr std::uint64_t kNowhere = ~std::uint64_t{0};

  Bucket& Home() const { return view_.buckets[homes_[0]]; }

  // kOrigin: era, exponent of the words of the state in use, kind of the id, writer.
  static std::uint8_t KindOf(std::uint64_t origin) {
    return static_cast<std::uint8_t>(origin >> 16);
  }
  std::size_t WordsInUse(std::uint64_t origin) const {
    const auto exponent = static_cast<std::uint8_t>(origin >> 24);
    return exponent < kMostExponent ? std::min(words_, kState + (std::size_t{1} << exponent))
                                    : words_;
  }
  /// Finds the id's two buckets and its tag.
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
    assert(homes_[0] < buckets && homes_[1] < buckets && tag_ < Controls::kTags);
  }

  /// Copies the record of a slot, where `control` was found, if it is that of the wanted id.
  bool Read(const Word& slot, std::uint64_t control) {
    const Identity id = id_;
    const std::uint64_t tag = tag_;
    std::uint64_t* const copy = record_.data();
    for (int tries = 0; controls_.Tag(control) == tag; ++tries) {
      if (tries == kMostTries) ThrowCorrupt("an id never settles");
      const Word* const record = own_.RecordOf(control);
      const std::uint64_t origin = Access::Load(record[kOrigin]);
      const bool is_it = Access::Load(record[kIdLow]) == id.low &&
                         Access::Load(record[kIdHigh]) == id.high && KindOf(origin) == id.kind;
      if (is_it) {
        copy[kOrigin] = origin;
        const std::size_t words = WordsInUse(origin);
        for (std::size_t i = kExpires; i < words; ++i) copy[i] = Access::Load(record[i]);
      }
      // If the slot has not changed, the record was not written meanwhile.
      const std::uint64_t again = Access::Load(slot);
      if (again == control) {
        control_ = control;
        return is_it;
      }
      control = again;
    }
    return false;
  }

  /// The writer had read the era before, so it is not later than this one.
  bool IsOfThisEra() {
    era_ = own_.Era();
    return EraOf(record_[kOrigin]) == era_;
  }

  /// Writes state() to the spare record, where nobody expects anything valid.
  void WriteSpare(const Saved& saved) {
    assert(saved.words >= 1 && saved.words <= state_words());
    Word* const spare = own_.RecordOf(own_.spare());
    const Identity id = id_;
    const auto exponent = static_cast<std::uint64_t>(std::bit_width(saved.words - 1));
    const std::uint64_t origin =
        std::uint64_t{era_} << 32 | exponent << 24 | std::uint64_t{id.kind} << 16 | own_.name();
    const std::size_t words = WordsInUse(origin);
    const std::uint64_t* const copy = record_.data();
    // First: see IsPublished.
    Access::Store(spare[kOrigin], origin);
    Access::Store(spare[kIdLow], id.low);
    Access::Store(spare[kIdHigh], id.high);
    Access::Store(spare[kExpires], static_cast<std::uint64_t>(saved.expires));
    for (std::size_t i = kState; i < words; ++i) Access::Store(spare[i], copy[i]);
  }

  bool Swap(std::uint64_t next) {
    assert(slot_ != kNowhere && word_ == &own_.SlotAt(slot_));
    own_.Intend(slot_, control_, next);
    if (!Access::CompareExchange(*word_, control_, next)) return false;
    own_.TakeSpare(control_);
    return true;
  }

  /// Begins an id of an older era again, in its slot.
  template <class Begin>
  Insertion Revive(Begin begin) {
    if (!Replace(begin(Forgotten()))) return Insertion::kLost;
    own_.CountKeys(era_, 1);
    return Insertion::kDone;
  }

  /// A try fails only if another process has changed something; so many failures mean corruption.
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
