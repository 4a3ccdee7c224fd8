// Logs too large for a slot, of stamps and weighted ones: on the heap, in a size that follows what
// ids do.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>

#include "core/bytes.h"
#include "core/decision.h"
#include "core/inlining.h"
#include "core/policy.h"
#include "core/ring_log.h"
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

/// Logs of one store's slots; `Rules` is a SlidingWindowLog. The payload is a pointer to the id's
/// log on the heap, null while the log has only its newest action, if that has displaced no other.
///
/// A log doubles when the actions inside the longest window need more room. A full log first
/// drops the others, and shrinks if few are left: constant amortised time per action.
///
/// Where stamps would take more room than the entries of a weighted log, the first attempt of a
/// cost above 1 turns the id's log into such entries, which it keeps.
template <class Rules>
class HeapLogs {
 public:
  using Account = typename Rules::Account;
  using Log = typename Rules::Log;
  using Stamp = typename Log::StampType;

  HeapLogs(const Rules& rules, const Policy& policy)
      : capacity_(rules.policy().log_capacity()), exceeds_log_(rules.policy().exceeds_log()) {
    if (policy.largest_limit() > WeightedEntries::kMost) weighted_.emplace(policy);
  }

  std::size_t payload_bytes() const { return sizeof(HeapLog*); }

  std::size_t extra_bytes() const {
    return extra_bytes_ + (weighted_ ? weighted_->states.extra_bytes() : 0);
  }

  /// The form of logs with costs above 1.
  struct Weighted {
    explicit Weighted(const Policy& policy) : rules(policy), states(rules, policy) {}

    WeightedLog rules;
    WeightedHeapLogs states;
  };
  bool CanBeWeighted() const { return weighted_.has_value(); }
  Weighted& weighted() { return *weighted_; }
  /// Whether attempts need the weighted form if any has a cost above 1.
  bool KeepsCosts(bool has_costs) const {
    return has_costs && weighted_ && capacity_ > WeightedEntries::kMost;
  }
  static bool IsWeighted(Slot& slot) { return WeightedHeapLogs::IsMarked(slot); }

  /// Turns a log into the weighted form. Throws std::bad_alloc and changes nothing if there is no
  /// memory.
  ROLLGATE_NOINLINE void BecomeWeighted(const Rules& rules, Slot& slot, Micros newest) {
    assert(!IsWeighted(slot));
    const Account account = Load(rules, slot, newest);
    std::array<std::byte, sizeof(Slot) + sizeof(HeapLog*)> copy;
    auto& turned = *new (copy.data()) Slot(slot);
    auto entries = weighted_->states.Begin(weighted_->rules, turned);
    try {
      entries.RecordLog(account.log(), [&](Micros at) {
        weighted_->states.Reserve(turned, weighted_->rules, entries, at, 1);
      });
    } catch (...) {
      weighted_->states.Destroy(turned);
      throw;
    }
    weighted_->states.Save(turned, entries);
    Destroy(slot);
    std::memcpy(slot.payload(), turned.payload(), sizeof(HeapLog*));
  }

  /// Takes the capacity of logs under these limits, at least `least`. Longer logs keep what their
  /// window needs.
  void SetCapacityOf(const Rules& rules, std::size_t least = 1) {
    capacity_ = std::max(rules.policy().log_capacity(), static_cast<std::uint32_t>(least));
    exceeds_log_ = rules.policy().exceeds_log();
  }

  Account Begin(const Rules& rules, Slot& slot) const {
    SetLog(slot, nullptr);
    return Account(rules, slot.generation(), LogHead{}, nullptr, 0, capacity_);
  }

  Account Load(const Rules& rules, Slot& slot, Micros newest) const {
    LogHead head;
    head.newest = newest;
    head.size = Rules::kKeepsEmptyLogs && newest == kLongAgo ? 0 : 1;
    HeapLog* stored = LogOf(slot);
    if (stored == nullptr) {
      return Account(rules, slot.generation(), head, nullptr, 0, capacity_);
    }
    assert(stored->count <= stored->room && (stored->head < stored->room || stored->head == 0));
    head.size += stored->count;
    head.head = stored->head;
    head.displaced = stored->displaced != 0;
    if (head.size > capacity_) [[unlikely]] {
      head = WithoutUnneeded<Stamp>(head, stored->stamps(), stored->room, rules.retention());
    }
    return Account(rules, slot.generation(), head, stored->stamps(), stored->room,
                   std::max(capacity_, head.size));
  }

  /// Makes room for an attempt at `at`, up to the log's capacity. Throws std::bad_alloc if there is
  /// no memory; the stored log stays as it is.
  void Reserve(Slot& slot, const Rules& rules, Account& account, Micros at, const Costs& costs) {
    const std::uint64_t more = costs.uniform();
    const Log& log = account.log();
    if (log.HasFree(more)) [[likely]] {
      return;
    }
    // A full log drops its oldest action.
    const bool is_settled = log.IsFull() && log.NeedsAll(rules.retention());
    if (!is_settled || exceeds_log_) MakeRoom(slot, rules, account.log(), at, more);
  }

  /// Writes all but the newest action.
  void Save(Slot& slot, const Account& account) const {
    const LogHead& head = account.log().head();
    HeapLog* stored = LogOf(slot);
    assert(stored != nullptr ? head.size <= stored->room + 1 : head.size <= 1);
    if (IsOfSlot(stored)) {
      stored->Describe(head);
    } else {
      SetLog(slot, head.displaced ? &displaced_alone : nullptr);
    }
  }

  void Destroy(Slot& slot) {
    if (IsWeighted(slot)) [[unlikely]] {
      weighted_->states.Destroy(slot);
      return;
    }
    if (HeapLog* stored = LogOf(slot); IsOfSlot(stored)) {
      assert(extra_bytes_ >= BytesFor(stored->room));
      extra_bytes_ -= BytesFor(stored->room);
      std::free(stored);
    }
  }

 private:
  struct HeapLog {
    std::uint32_t room;  // in stamps
    std::uint32_t head;
    std::uint32_t count;
    std::uint32_t displaced;  // see LogHead

    void Describe(const LogHead& log) {
      count = log.size - (log.size > 0 ? 1 : 0);
      displaced = log.displaced;
      head = log.head;
    }

    std::byte* stamps() { return reinterpret_cast<std::byte*>(this + 1); }
  };
  static_assert(sizeof(HeapLog) == 16 && alignof(HeapLog) <= alignof(std::max_align_t));

  /// That of all logs of one action which has displaced others; never changes.
  static inline HeapLog displaced_alone{.room = 0, .head = 0, .count = 0, .displaced = 1};

  static bool IsOfSlot(const HeapLog* stored) {
    return stored != nullptr && stored != &displaced_alone;
  }

  static std::size_t BytesFor(std::size_t room) { return sizeof(HeapLog) + room * sizeof(Stamp); }

  static HeapLog* LogOf(Slot& slot) { return LoadAs<HeapLog*>(slot.payload()); }
  static void SetLog(Slot& slot, HeapLog* stored) { StoreAs(slot.payload(), stored); }

  ROLLGATE_NOINLINE void MakeRoom(Slot& slot, const Rules& rules, Log& log, Micros at,
                                  std::uint64_t more) {
    if (exceeds_log_ && more > log.capacity() - log.size()) {
      log.DropUntil(at - rules.retention());
      // A full log would drop actions that count.
      if (more > log.capacity() - log.size()) throw std::bad_alloc();
    }
    const std::uint32_t room = log.DropAndPlanRoom(rules.retention(), more);
    assert(log.size() <= room + 1);
    if (room == log.ring_room()) return;
    auto* stored = static_cast<HeapLog*>(std::malloc(BytesFor(room)));
    if (stored == nullptr) throw std::bad_alloc();
    stored->room = room;
    log.MoveTo(stored->stamps(), room);
    // What it has dropped may be what is settled: then nothing is saved.
    stored->Describe(log.head());
    extra_bytes_ += BytesFor(room);
    Destroy(slot);
    SetLog(slot, stored);
  }

  std::uint32_t capacity_;
  bool exceeds_log_;
  std::size_t extra_bytes_ = 0;
  std::optional<Weighted> weighted_;  // if the log is long enough
};

}  // namespace rollgate::memory
