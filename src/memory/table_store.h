// What every store in memory does with its table, whatever it keeps of an id.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "memory/memory_store.h"
#include "memory/table.h"

// The check is one function: measured, the calls between its parts cost as much as the parts.
#if defined(__GNUC__)
#define ROLLGATE_FLATTEN [[gnu::flatten]]
#define ROLLGATE_NOINLINE [[gnu::noinline]]
#else
#define ROLLGATE_FLATTEN
#define ROLLGATE_NOINLINE
#endif

namespace rollgate::memory {

/// A store around one table. `Derived` has Release(Slot&), which gives back what a slot owns
/// elsewhere, extra_bytes() for that, and calls ReleaseAll() in its destructor.
template <class Derived>
class TableStore : public MemoryStore {
 public:
  bool Clear(const Identity& id) override {
    const Place place = table_.Find(id);
    if (place) Forget(place);
    return static_cast<bool>(place);
  }

  void ClearAll() override {
    ReleaseAll();
    table_.Clear();
  }

  MemoryStoreStats stats() const override {
    const auto& derived = static_cast<const Derived&>(*this);
    return {table_.live(), allowed_, blocked_, table_.evicted(),
            table_.bytes() + derived.extra_bytes()};
  }

 protected:
  TableStore(const MemoryStoreOptions& options, std::size_t payload_bytes, Micros retention)
      : table_({payload_bytes, std::max<std::size_t>(options.max_keys, 1), retention,
                !options.clock_may_step_back, options.secret}),
        on_first_eviction_(options.on_first_eviction) {}

  Table& table() { return table_; }
  const Table& table() const { return table_; }

  void Count(bool allowed) { ++(allowed ? allowed_ : blocked_); }

  /// Lets the table forget as many ids as there are attempts, if so many have expired: where no new
  /// ids come, what a flood has left must go all the same.
  void TendNowAndThen(Micros now) {
    constexpr std::size_t kAttempts = 16;
    if ((allowed_ + blocked_) % kAttempts == 0) [[unlikely]] {
      Tend(now, kAttempts);
    }
  }

  /// Takes a slot for an id that is not in the table. Its life has begun, its payload is the
  /// caller's to fill.
  Place Insert(const Identity& id, Micros moment, Micros now) {
    const Place place = table_.Insert(id, moment, now, [this](Slot& slot) { Release(slot); });
    if (table_.evicted() == 1 && on_first_eviction_) std::exchange(on_first_eviction_, nullptr)();
    // Far from those of the ids before it, for with GCRA an id's own grows with its actions.
    place.slot->set_incarnation(incarnations_ += 10'813);
    return place;
  }

  void Forget(const Place& place) {
    Release(*place.slot);
    table_.Erase(place);
  }

  void ReleaseAll() {
    table_.VisitAll([this](Slot& slot) { Release(slot); });
  }

 private:
  void Release(Slot& slot) { static_cast<Derived&>(*this).Release(slot); }

  ROLLGATE_NOINLINE void Tend(Micros now, std::size_t most) {
    table_.Tend(now, most, [this](Slot& slot) { Release(slot); });
  }

  Table table_;
  std::function<void()> on_first_eviction_;
  std::uint16_t incarnations_ = 0;
  std::uint64_t allowed_ = 0;
  std::uint64_t blocked_ = 0;
};

/// Where the blocks of a store's ids are: behind all else of their payloads, if the policy has any.
class BlockPlaces {
 public:
  template <class P>
  BlockPlaces(const P& policy, std::size_t offset)
      : offset_(offset), has_blocks_(!policy.blocks().empty()) {}

  std::size_t bytes() const { return has_blocks_ ? Block::kBytes : 0; }

  void Create(Slot& slot) const { Save(slot, {}); }

  Block Load(Slot& slot) const {
    return has_blocks_ ? Block::Load(slot.payload() + offset_) : Block();
  }

  void Save(Slot& slot, const Block& block) const {
    if (has_blocks_) block.Store(slot.payload() + offset_);
  }

 private:
  std::size_t offset_;
  bool has_blocks_;
};

}  // namespace rollgate::memory
