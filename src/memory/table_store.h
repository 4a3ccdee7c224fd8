// What every store in memory does with its table, whatever it keeps of an id.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>
#include <utility>

#include "core/block.h"
#include "core/inlining.h"
#include "core/policy.h"
#include "memory/memory_store.h"
#include "memory/table.h"

namespace rollgate::memory {

/// A store around one table. `Derived` has Release(Slot&), which gives back what a slot owns
/// elsewhere, extra_bytes() for that, and calls ReleaseAll() in its destructor.
template <class Derived>
class TableStore : public Store {
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

  StoreStats stats() const override {
    const auto& derived = static_cast<const Derived&>(*this);
    return {table_.live(), allowed_, blocked_, table_.evicted(),
            table_.bytes() + derived.extra_bytes()};
  }

 protected:
  TableStore(const MemoryStoreOptions& options, std::size_t payload_bytes, Micros retention)
      : table_({payload_bytes, std::max<std::size_t>(options.max_keys, 1), retention,
                !options.clock_may_step_back, options.secret}),
        on_eviction_(options.on_eviction) {}

  Table& table() { return table_; }
  const Table& table() const { return table_; }

  void Count(bool allowed) { ++(allowed ? allowed_ : blocked_); }

  /// Lets the table forget as many ids as there are attempts, if so many have expired: where no new
  /// ids come, what a flood has left must go all the same.
  void TendNowAndThen(Micros now) {
    constexpr std::size_t kAttempts = 64;
    if ((allowed_ + blocked_) % kAttempts == 0) [[unlikely]] {
      Tend(now, kAttempts);
    }
  }

  /// Takes a slot for an id that is not in the table. Its life has begun, its payload is the
  /// caller's to fill.
  Place Insert(const Identity& id, Micros moment, Micros now) {
    const std::uint64_t evicted = table_.evicted();
    const Place place = table_.Insert(id, moment, now, [this](Slot& slot) { Release(slot); });
    if (table_.evicted() != evicted && on_eviction_) on_eviction_();
    // Far from those of the ids before it, for with GCRA an id's own grows with its actions.
    place.slot->set_incarnation(incarnations_ += 20'251);
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
  std::function<void()> on_eviction_;
  std::uint16_t incarnations_ = 0;
  std::uint64_t allowed_ = 0;
  std::uint64_t blocked_ = 0;
};

/// What a policy with blocks makes of a slot: behind all else of its payload there are the id's own
/// moment and its block. The table's moment is then when the id expires, which may be long after
/// its last action. Under any other policy all this is nothing.
template <class P>
class BlockPlaces {
 public:
  /// `offset` is where the rest of the payload ends, `retention` is how long after its own moment
  /// an id has expired but for a block.
  BlockPlaces(const P& policy, std::size_t offset, Micros retention)
      : offset_(offset),
        retention_(retention),
        longest_interval_(policy.longest_interval()),
        has_blocks_(!policy.blocks().empty()) {}

  std::size_t bytes() const { return HasBlocks() ? sizeof(Micros) + Block::kBytes : 0; }

  /// Of the table.
  Micros retention() const { return HasBlocks() ? 0 : retention_; }
  Micros TableMoment(Micros moment, const Block& block) const {
    if (!HasBlocks()) return moment;
    return std::max(moment + retention_, block.until + longest_interval_);
  }

  /// The id's own.
  Micros Moment(const Place& place) const {
    if (!HasBlocks()) return place.slot->moment();
    Micros moment;
    std::memcpy(&moment, At(place), sizeof moment);
    return moment;
  }
  Block Load(const Place& place) const {
    return HasBlocks() ? Block::Load(At(place) + sizeof(Micros)) : Block();
  }

  /// Fills the place of a new id, whose moment the table has.
  void Create(const Place& place, Micros moment) const {
    if (HasBlocks()) Store(place, moment, Block());
  }

  void Save(Table& table, const Place& place, Micros moment, const Block& block) const {
    if (HasBlocks()) Store(place, moment, block);
    const Micros table_moment = TableMoment(moment, block);
    if (table_moment != place.slot->moment()) table.Touch(place, table_moment);
  }

 private:
  bool HasBlocks() const { return !std::is_same_v<P, SingleWindowPolicy> && has_blocks_; }

  std::byte* At(const Place& place) const { return place.slot->payload() + offset_; }

  void Store(const Place& place, Micros moment, const Block& block) const {
    std::memcpy(At(place), &moment, sizeof moment);
    block.Store(At(place) + sizeof moment);
  }

  std::size_t offset_;
  Micros retention_;
  Micros longest_interval_;
  bool has_blocks_;
};

}  // namespace rollgate::memory
