// What is held of each id at once, over processes, in which the holdings of a process that was
// killed count no more.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "core/identity.h"
#include "core/time.h"
#include "shared/held_list.h"
#include "shared/layout.h"
#include "shared/table.h"

namespace rollgate::shared {

/// The answer to an acquisition.
struct HeldAnswer {
  enum class Kind { kGranted, kRefused, kNoRoom };

  Kind kind = Kind::kRefused;
  std::uint32_t used = 0;  ///< of the id, with what was granted
  Holding holding = {};    ///< if it was granted
};

/// One holder's access to the ids. Owned by one thread, which also owns `entry`. Throws SharedError
/// if the region holds invalid values.
///
/// `Peers` knows which entries have an owner:
/// - IsLocked(entry): whether another process has it. Never true once its owner has ended, unless
///   there is another one
/// - Look(surely): before IsLocked. Unless `surely`, the answers may be a little old
/// - Tries: as the class of that name
template <class Peers, class Access = Hardware>
class HeldTable {
 public:
  /// `peers` must outlive this.
  HeldTable(const View& view, std::size_t entry, std::size_t room, Peers& peers)
      : view_(view), table_(view, entry), room_(room), peers_(peers), own_(Take(entry)) {
    const std::size_t words = table_.state_words();
    if (room < 1 || HeldList::WordsFor(room) > words) ThrowCorrupt("records are too small");
  }

  const Secret& secret() const { return table_.secret(); }
  std::uint64_t Keys() const { return table_.Keys(); }

  /// Moves to another entry, as a process created by fork() must. It holds nothing then.
  void UseEntry(std::size_t entry) {
    table_.UseEntry(entry);
    own_ = Take(entry);
  }

  /// Grants `cost` of the id, if at most `max` <= kMostHeld of it is held then. `now()` is the
  /// time; `end(now)` from when on the holding does not count.
  template <class Now, class End>
  HeldAnswer Acquire(const Identity& id, std::uint32_t cost, std::uint32_t max, Now now, End end) {
    assert(cost >= 1 && max <= kMostHeld);
    using Kind = HeldAnswer::Kind;
    for (Tries tries(most_tries_);; tries.Next()) {
      if (!table_.Find(id)) {
        if (cost > max) return {Kind::kRefused, 0};
        Holding holding{cost, table_.NextGeneration(), end()};
        const auto begin = [&](Micros) {
          HeldList list = HeldList::Begin(table_.state(), room_, holding.generation);
          list.Add(own_, cost, holding.end);
          return list.saved();
        };
        peers_.Look(true);
        const auto insertion = table_.Insert(
            now(), begin, [&](const Word* record) { return NobodyHolds(record, now); });
        if (insertion == Insertion::kLost) continue;
        if (insertion == Insertion::kNoRoom) return {Kind::kNoRoom, 0};
        return {Kind::kGranted, cost, holding};
      }
      HeldList list(table_.state(), room_);
      DropEnded(list, now, false);
      if (list.used() + cost > max || list.size() == room_) {
        DropEnded(list, now, true);
        if (list.used() + cost > max) return {Kind::kRefused, Bounded(list.used())};
      }
      const Holding holding{cost, list.generation(), end()};
      if (!list.Add(own_, cost, holding.end)) return {Kind::kNoRoom, Bounded(list.used())};
      if (table_.Replace(list.saved())) return {Kind::kGranted, Bounded(list.used()), holding};
    }
  }

  /// Gives back what was granted; false if it does not count any more.
  bool Release(const Identity& id, const Holding& holding) {
    for (Tries tries(most_tries_);; tries.Next()) {
      if (!Holds(id, holding)) return false;
      HeldList list(table_.state(), room_);
      list.Take(own_, holding.cost, holding.end);
      if (table_.Replace(list.saved())) return true;
    }
  }

  /// Whether it still counts.
  bool Holds(const Identity& id, const Holding& holding) {
    if (!table_.Find(id)) return false;
    const HeldList list(table_.state(), room_);
    return list.generation() == holding.generation && list.Has(own_, holding.cost, holding.end);
  }

  template <class Now>
  std::uint32_t UsedOf(const Identity& id, Now now) {
    if (!table_.Find(id)) return 0;
    HeldList list(table_.state(), room_);
    DropEnded(list, now, true);
    return Bounded(list.used());
  }

  /// Nothing that is held of the id counts any more.
  void Clear(const Identity& id) {
    for (Tries tries(most_tries_); table_.Find(id); tries.Next()) {
      if (table_.Remove()) return;
    }
  }
  void ClearAll() { table_.Clear(); }

 private:
  using Tries = typename Peers::Tries;
  using Insertion = typename Table<Access>::Insertion;

  static std::uint32_t Bounded(std::uint64_t used) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(used, kMostHeld));
  }

  Word& TakenOf(std::size_t entry) const { return view_.entries[entry].taken; }

  /// From now on, what the entry's last owner held does not count.
  Holder Take(std::size_t entry) {
    const std::uint64_t taken = Access::Load(TakenOf(entry)) + 1;
    Access::Store(TakenOf(entry), taken);
    return Holder(entry, taken);
  }

  /// Whether the holder has ended. It took its entry before it held anything, and kept it.
  bool HasEnded(Holder holder) {
    if (holder == own_) return false;
    return !holder.HasTaken(Access::Load(TakenOf(holder.entry()))) ||
           !peers_.IsLocked(holder.entry());
  }

  template <class Now>
  void DropEnded(HeldList& list, Now now, bool surely) {
    bool has_looked = false;
    list.Drop([&](Holder holder, Micros end) {
      if (end != kNever && end <= now()) return true;
      if (holder == own_) return false;
      if (!has_looked) peers_.Look(surely);
      has_looked = true;
      return HasEnded(holder);
    });
  }

  /// Of a record that is in its slot. If others change it meanwhile, the answer is not used.
  template <class Now>
  bool NobodyHolds(const Word* record, Now now) {
    const Word* const words = record + kState;
    const std::size_t size = static_cast<std::uint32_t>(Access::Load(words[0]));
    if (size > room_) return false;
    for (std::size_t i = 0; i < size; ++i) {
      const Holder holder(Access::Load(words[1 + 2 * i]));
      const Micros end = HeldList::EndIn(Access::Load(words[2 + 2 * i]));
      if (!HasEnded(holder) && (end == kNever || end > now())) return false;
    }
    return true;
  }

  View view_;
  Table<Access> table_;
  std::size_t room_;
  Peers& peers_;
  Holder own_;
  int most_tries_ = 0;
};

}  // namespace rollgate::shared
