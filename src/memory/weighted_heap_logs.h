// Entries with a cost for each window: on the heap, in a size that follows what ids do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "core/bytes.h"
#include "core/decision.h"
#include "core/inlining.h"
#include "core/time.h"
#include "core/weighted_log.h"
#include "memory/slot.h"

namespace rollgate::memory {

/// The entries of one store's slots. The payload is a pointer to the id's log on the heap, with a
/// mark that tells it from a pointer of HeapLogs.
class WeightedHeapLogs {
 public:
  using Account = WeightedLog::Account;

  WeightedHeapLogs(const WeightedLog& rules, const Policy&) : windows_(rules.windows()) {}

  static bool IsMarked(Slot& slot) { return (LoadAs<std::uintptr_t>(slot.payload()) & kMark) != 0; }

  static std::size_t payload_bytes() { return sizeof(HeapLog*); }
  std::size_t extra_bytes() const { return extra_bytes_; }
  static void SetCapacity(std::uint64_t) {}

  Account Begin(const WeightedLog& rules, Slot& slot) const {
    SetLog(slot, nullptr);
    return Account(rules, slot.generation(), nullptr, 0, {});
  }

  Account Load(const WeightedLog& rules, Slot& slot, Micros) const {
    HeapLog* const stored = LogOf(slot);
    if (stored == nullptr) return Account(rules, slot.generation(), nullptr, 0, {});
    return Account(rules, slot.generation(), stored->words(), stored->room, stored->head);
  }

  /// Makes room for an attempt at `at`. Throws std::bad_alloc if there is no memory; what the
  /// entries say stays the same.
  void Reserve(Slot& slot, const WeightedLog& rules, Account& account, Micros at, const Costs&) {
    if (!account.entries().HasRoomAt(at)) MakeRoom(slot, rules, account.entries(), at);
  }

  void Save(Slot& slot, const Account& account) const {
    if (HeapLog* const stored = LogOf(slot)) stored->head = account.entries().head();
  }

  void Destroy(Slot& slot) {
    HeapLog* const stored = LogOf(slot);
    if (stored == nullptr) return;
    assert(extra_bytes_ >= BytesFor(stored->room));
    extra_bytes_ -= BytesFor(stored->room);
    std::free(stored);
  }

 private:
  struct HeapLog {
    std::uint32_t room;  // in entries
    WeightedHead head;
    std::uint32_t unused;

    std::uint64_t* words() { return reinterpret_cast<std::uint64_t*>(this + 1); }
  };
  static_assert(sizeof(HeapLog) == 16 && alignof(std::max_align_t) >= alignof(std::uint64_t));

  std::size_t BytesFor(std::size_t room) const {
    return sizeof(HeapLog) + WeightedEntries::WordsFor(windows_, room) * sizeof(std::uint64_t);
  }

  static constexpr std::uintptr_t kMark = 1;

  static HeapLog* LogOf(Slot& slot) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the mark is a bit of the pointer
    return reinterpret_cast<HeapLog*>(LoadAs<std::uintptr_t>(slot.payload()) & ~kMark);
  }
  static void SetLog(Slot& slot, HeapLog* stored) {
    StoreAs(slot.payload(), reinterpret_cast<std::uintptr_t>(stored) | kMark);
  }

  ROLLGATE_NOINLINE void MakeRoom(Slot& slot, const WeightedLog& rules, WeightedEntries& entries,
                                  Micros at) {
    const std::uint32_t room = entries.DropAndPlanRoom(at, rules.retention(), rules.zones());
    // It has dropped and merged in place.
    if (HeapLog* const stored = LogOf(slot)) stored->head = entries.head();
    if (room == entries.room()) return;
    auto* const stored = static_cast<HeapLog*>(std::malloc(BytesFor(room)));
    if (stored == nullptr) throw std::bad_alloc();
    stored->room = room;
    entries.MoveTo(stored->words(), room);
    stored->head = entries.head();
    extra_bytes_ += BytesFor(room);
    Destroy(slot);
    SetLog(slot, stored);
  }

  std::uint32_t windows_;
  std::size_t extra_bytes_ = 0;
};

}  // namespace rollgate::memory
