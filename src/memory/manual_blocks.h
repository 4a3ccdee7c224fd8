// The ids that were blocked by a call, whatever the policy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/identity.h"
#include "core/time.h"
#include "memory/table.h"

namespace rollgate::memory {

/// A table without payload: an id's moment is the end of its block. Usually there is none, so that
/// a check asks no more than IsEmpty().
class ManualBlocks {
 public:
  /// `options`: of the store's own table.
  explicit ManualBlocks(const TableOptions& options)
      : options_{.payload_bytes = 0,
                 .max_keys = options.max_keys,
                 .retention = 0,
                 .forgets_expired = options.forgets_expired,
                 .secret = options.secret,
                 .few_ids = 0} {}

  bool IsEmpty() const { return !table_; }
  std::size_t live() const { return table_ ? table_->live() : 0; }
  std::size_t bytes() const { return table_ ? table_->bytes() : 0; }
  /// Blocks dropped before their ends.
  std::uint64_t evicted() const { return evicted_ + (table_ ? table_->evicted() : 0); }

  bool Has(const Identity& id) { return table_ && table_->Find(id); }

  /// kLongAgo if the id is not blocked.
  Micros EndOf(const Identity& id) {
    const Place place = table_ ? table_->Find(id) : Place();
    return place ? place.slot->moment() : kLongAgo;
  }

  /// Of all blocks. Precondition: there is one.
  Micros EarliestEnd() { return table_->NearestMoment(); }

  /// Blocks until `end`, or later if it was. May forget others, each after `release(Slot&)`. Throws
  /// std::bad_alloc.
  template <class Release>
  void Set(const Identity& id, Micros now, Micros end, Release release) {
    if (!table_) table_.emplace(options_);
    if (const Place place = table_->Find(id)) {
      if (end > place.slot->moment()) table_->Touch(place, end);
    } else {
      table_->Insert(id, end, now, release);
    }
  }

  /// Returns whether there was a block.
  bool Erase(const Identity& id) {
    const Place place = table_ ? table_->Find(id) : Place();
    if (!place) return false;
    table_->Erase(place);
    DropIfEmpty();
    return true;
  }

  /// Forgets up to `most` blocks that have ended.
  template <class Release>
  void Tend(Micros now, std::size_t most, Release release) {
    table_->Tend(now, most, release);
    DropIfEmpty();
  }

  /// Forgets the block with the earliest end. Precondition: there is one.
  template <class Release>
  void ForgetEarliest(Micros now, Release release) {
    table_->ForgetNearest(now, release);
    DropIfEmpty();
  }

  void Clear() {
    if (table_) evicted_ += table_->evicted();
    table_.reset();
  }

  /// Precondition: `this` is empty.
  void CopyFrom(ManualBlocks& other) {
    if (!other.table_) return;
    other.table_->VisitAll(
        [this](Slot& slot) { Set(slot.identity(), kLongAgo, slot.moment(), [](Slot&) {}); });
  }

 private:
  void DropIfEmpty() {
    if (table_->live() == 0) Clear();
  }

  TableOptions options_;
  std::optional<Table> table_;
  std::uint64_t evicted_ = 0;
};

}  // namespace rollgate::memory
