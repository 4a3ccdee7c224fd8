// One size of the table: chunks that share the range of hashes in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/identity.h"
#include "core/wide_multiply.h"
#include "memory/chunk.h"
#include "memory/earliest_tree.h"

namespace rollgate::memory {

/// Which chunk of a sub-table a hash belongs to, and where in it.
struct Address {
  std::size_t chunk;
  std::uint32_t home;
};

class SubTable {
 public:
  /// Groups of a chunk in a table of several. A single chunk begins smaller; one that happens to
  /// fill up grows on its own.
  static constexpr std::uint32_t kGroupsPerChunk = 64;
  static constexpr std::size_t kSlotsPerChunk = std::size_t{kGroupsPerChunk} * kSlotsPerGroup;

  /// The chunks do not exist at first: see Prepare.
  explicit SubTable(std::size_t chunk_count)
      : chunks_(chunk_count), chunk_count_(chunk_count), bounds_(chunk_count) {}

  std::size_t chunk_count() const { return chunk_count_; }
  std::size_t live() const { return live_; }
  std::size_t bytes() const {
    return chunk_bytes_ + bounds_.bytes() + chunks_.size() * sizeof(Chunk);
  }
  Chunk& chunk(std::size_t index) { return chunks_[index]; }

  Address AddressOf(std::uint64_t hash) const {
    const Share share = ShareOf(hash, chunk_count_);
    return {static_cast<std::size_t>(share.index), static_cast<std::uint32_t>(share.rest >> 32)};
  }

  Place Find(const SlotLayout& layout, const Identity& identity, std::uint64_t hash) {
    const Address address = AddressOf(hash);
    Chunk& chunk = chunks_[address.chunk];
    if (chunk_count_ >= kFarChunkCount) chunk.Prefetch(layout, TagOf(hash), address.home);
    return chunk.Find(layout, identity, TagOf(hash), address.home);
  }

  /// Takes a free slot; its bytes are the caller's to fill. Precondition: the chunk exists.
  Place Insert(const SlotLayout& layout, const Secret& secret, std::uint64_t hash, Micros moment);

  void Erase(const Place& place, std::uint64_t hash);

  /// Takes note that the moment of an id is now no later than this.
  void LowerBound(const Place& place, std::uint64_t hash, Micros moment) {
    place.chunk->LowerBound(place, moment);
    const std::size_t chunk = AddressOf(hash).chunk;
    if (moment < bounds_[chunk]) bounds_.Set(chunk, moment);
  }

  /// No id's moment is earlier than this; kNever without ids.
  Micros EarliestBound() const { return bounds_.least(); }

  /// The id nearest to expiry if EarliestBound() is exact; else brings it nearer to that, looking
  /// through no more than `looks` groups, which it counts down.
  Place Tighten(const SlotLayout& layout, std::size_t& looks) {
    return TightenChunk(layout, bounds_.LeastLeaf(), looks);
  }

  /// The same for one chunk and its bound.
  Place TightenChunk(const SlotLayout& layout, std::size_t chunk, std::size_t& looks);

  /// Makes the bound of a group exact, if the chunk exists, and with its last group the chunk's
  /// own; returns the group behind it, 0 behind the last.
  std::uint32_t TightenGroup(const SlotLayout& layout, std::size_t chunk, std::uint32_t group);

  /// Brings a chunk into being, if it is not.
  void Prepare(const SlotLayout& layout, std::size_t chunk, std::uint32_t group_count);

  /// Gives back an empty chunk's memory.
  void Release(const SlotLayout& layout, std::size_t chunk);

 private:
  void Enlarge(const SlotLayout& layout, const Secret& secret, std::size_t index);

  /// From this many chunks on, half a megabyte or so, ids are looked for far from the processor.
  static constexpr std::size_t kFarChunkCount = 16;

  std::vector<Chunk> chunks_;
  std::size_t chunk_count_;
  /// For each chunk a moment no later than that of any id in it. It may lag behind what ids do, and
  /// is made exact one chunk at a time, when the earliest is wanted.
  EarliestTree bounds_;
  std::size_t live_ = 0;
  std::size_t chunk_bytes_ = 0;
};

}  // namespace rollgate::memory
