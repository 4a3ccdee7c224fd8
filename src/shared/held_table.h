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
  /// Unless it is kNever, what this holder got of the id and generation with this end ends with
  /// `holding` now.
  Micros raised_from = kNever;
};

/// One holder's access to the ids. Owned by one thread, which also owns `entry`. Throws SharedError
/// if the region holds invalid values.
///
/// `Peers` knows which entries have a holder:
/// - Hold(entry): this process becomes the holder, for as long as it lives and has the entry
/// - IsHeld(entry): whether another process is the holder, at some time since the last Look()
/// - Tries: as the class of that name
template <class Peers, class Access = Hardware>
class HeldTable {
 public:
  /// `peers` must outlive this.
  HeldTable(const View& view, std::size_t entry, std::size_t room, Peers& peers)
      : view_(view), table_(view, entry), room_(room), peers_(peers), own_(Take(entry)) {
    if (room < 1 || room > HeldList::RoomIn(table_.state_words())) {
      ThrowCorrupt("records are too small");
    }
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
        const Holding holding{cost, table_.NextGeneration(), end()};
        const auto begin = [&](Micros) {
          HeldList list = HeldList::Begin(table_.state(), room_, holding.generation);
          list.Add(own_, cost, holding.end);
          return list.saved();
        };
        peers_.Look();
        const auto insertion = table_.Insert(
            now(), begin, [&](const Word* record) { return NobodyHolds(record, now); });
        if (insertion == Insertion::kLost) continue;
        if (insertion == Insertion::kNoRoom) return {Kind::kNoRoom, 0};
        return {Kind::kGranted, cost, holding};
      }
      HeldList list(table_.state(), room_);
      DropEnded(list, now);
      if (list.used() + cost > max) return {Kind::kRefused, Bounded(list.used())};
      const auto added = list.Add(own_, cost, end());
      if (!added) return {Kind::kNoRoom, Bounded(list.used())};
      if (table_.Replace(list.saved())) {
        return {Kind::kGranted,
                Bounded(list.used()),
                {cost, list.generation(), added->end},
                added->raised_from};
      }
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
    DropEnded(list, now);
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

  /// In this order: who finds the entry held finds the number of its holder.
  Holder Take(std::size_t entry) {
    const std::uint64_t taken = Access::Load(TakenOf(entry)) + 1;
    Access::Store(TakenOf(entry), taken);
    peers_.Hold(entry);
    return Holder(entry, taken);
  }

  /// Whether the holder has ended: nobody has its entry, or another one.
  bool HasEnded(Holder holder) {
    if (holder == own_) return false;
    if (!peers_.IsHeld(holder.entry())) return true;
    return !holder.HasTaken(Access::Load(TakenOf(holder.entry())));
  }

  template <class Now>
  void DropEnded(HeldList& list, Now now) {
    bool has_looked = false;
    list.Drop([&](Holder holder, Micros end) {
      if (end != kNever && end <= now()) return true;
      if (holder == own_) return false;
      if (!has_looked) peers_.Look();
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
