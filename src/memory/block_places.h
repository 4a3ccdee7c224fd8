// Where an id's block (blockFor) is in its slot, if the policy has blocks.
#pragma once

#include <cstddef>

#include "core/bytes.h"
#include "core/decision.h"
#include "core/policy.h"
#include "core/time.h"
#include "memory/table.h"

namespace rollgate::memory {

/// With blocks, the payload ends with the id's own moment and its block, and the table's moment is
/// when the id expires. Without, a slot has neither, and both moments are the same.
template <class P>
class BlockPlaces {
 public:
  /// `offset`: size of the other payload. `retention`: from the id's own moment, blocks aside.
  BlockPlaces(const P& policy, std::size_t offset, Micros retention)
      : offset_(offset),
        retention_(retention),
        longest_interval_(policy.longest_interval()),
        has_blocks_(!policy.blocks().empty()) {}

  std::size_t bytes() const { return HasBlocks() ? sizeof(Micros) + Block::kBytes : 0; }

  /// The table's.
  Micros retention() const { return HasBlocks() ? 0 : retention_; }
  Micros TableMoment(Micros moment, const Block& block) const {
    if (!HasBlocks()) return moment;
    assert(block.until <= kLongest);
    return std::max(moment + retention_, block.until + longest_interval_);
  }

  /// The id's own.
  Micros Moment(const Place& place) const {
    return HasBlocks() ? LoadAs<Micros>(At(place)) : place.slot->moment();
  }
  Block Load(const Place& place) const {
    return HasBlocks() ? Block::Load(At(place) + sizeof(Micros)) : Block();
  }

  void Save(Table& table, const Place& place, Micros moment, const Block& block) const {
    if (HasBlocks()) {
      StoreAs(At(place), moment);
      block.Store(At(place) + sizeof moment);
    }
    const Micros table_moment = TableMoment(moment, block);
    if (table_moment != place.slot->moment()) table.Touch(place, table_moment);
  }

 private:
  bool HasBlocks() const { return !std::is_same_v<P, SingleWindowPolicy> && has_blocks_; }

  std::byte* At(const Place& place) const { return place.slot->payload() + offset_; }

  std::size_t offset_;
  Micros retention_;
  Micros longest_interval_;
  bool has_blocks_;
};

}  // namespace rollgate::memory
