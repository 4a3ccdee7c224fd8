// One size of the table: chunks, each for an equal range of hashes.
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/identity.h"
#include "core/time.h"
#include "core/wide_multiply.h"
#include "memory/chunk.h"

namespace rollgate::memory {

/// A tournament tree: finds the earliest of many moments while single ones change.
class EarliestTree {
 public:
  explicit EarliestTree(std::size_t count)
      : leaves_(std::bit_ceil(count)), nodes_(2 * leaves_, kNever) {
    assert(count >= 1);
  }

  Micros least() const { return nodes_[1]; }
  Micros operator[](std::size_t leaf) const { return nodes_[leaves_ + leaf]; }

  /// A leaf that holds least().
  std::size_t LeastLeaf() const {
    std::size_t node = 1;
    while (node < leaves_) node = 2 * node + (nodes_[2 * node] != nodes_[node]);
    assert(nodes_[node] == least());
    return node - leaves_;
  }

  void Set(std::size_t leaf, Micros moment) {
    assert(leaf < leaves_);
    std::size_t node = leaves_ + leaf;
    nodes_[node] = moment;
    while (node > 1) {
      node /= 2;
      const Micros least = std::min(nodes_[2 * node], nodes_[2 * node + 1]);
      if (nodes_[node] == least) break;
      nodes_[node] = least;
    }
  }

  std::size_t bytes() const { return nodes_.size() * sizeof(Micros); }

 private:
  std::size_t leaves_;
  std::vector<Micros> nodes_;
};

/// The chunk of a hash, and its position in it.
struct Address {
  std::size_t chunk;
  std::uint32_t home;
};

class SubTable {
 public:
  /// Groups of a chunk; an only chunk starts smaller. A chunk that fills up doubles.
  static constexpr std::uint32_t kGroupsPerChunk = 64;
  static constexpr std::size_t kSlotsPerChunk = std::size_t{kGroupsPerChunk} * kSlotsPerGroup;

  /// Chunks do not exist until Prepare.
  explicit SubTable(std::size_t chunk_count)
      : chunks_(chunk_count), chunk_count_(chunk_count), bounds_(chunk_count) {}

  std::size_t chunk_count() const { return chunk_count_; }
  std::size_t live() const { return live_; }
  std::size_t bytes() const {
    return chunk_bytes_ + bounds_.bytes() + chunks_.size() * sizeof(Chunk);
  }
  Chunk& chunk(std::size_t index) {
    assert(index < chunk_count_);
    return chunks_[index];
  }

  Address AddressOf(std::uint64_t hash) const {
    const Share share = ShareOf(hash, chunk_count_);
    assert(share.index < chunk_count_);
    return {static_cast<std::size_t>(share.index), static_cast<std::uint32_t>(share.rest >> 32)};
  }

  Place Find(const SlotLayout& layout, const Identity& identity, std::uint64_t hash) {
    const Address address = AddressOf(hash);
    Chunk& chunk = chunks_[address.chunk];
    if (chunk_count_ >= kFarChunkCount) chunk.Prefetch(layout, TagOf(hash), address.home);
    return chunk.Find(layout, identity, TagOf(hash), address.home);
  }

  /// Takes a slot; the caller fills all but the moment. Precondition: the chunk exists.
  Place Insert(const SlotLayout& layout, const Secret& secret, std::uint64_t hash, Micros moment);

  void Erase(const Place& place, std::uint64_t hash);

  /// Lowers the bounds of the id's group and chunk to the id's new moment.
  void LowerBound(const Place& place, std::uint64_t hash, Micros moment) {
    place.chunk->LowerBound(place, moment);
    const std::size_t chunk = AddressOf(hash).chunk;
    if (moment < bounds_[chunk]) bounds_.Set(chunk, moment);
  }

  /// No id's moment is earlier than this. kNever without ids, if the bounds are exact.
  Micros EarliestBound() const { return bounds_.least(); }

  /// The id nearest to expiry if EarliestBound() is exact; else brings it nearer to that. Searches
  /// a group at most, and only if `looks` is not 0, which it then decrements.
  Place Tighten(const SlotLayout& layout, std::size_t& looks);

  /// Raises the bound of a chunk to the lowest of its groups.
  void TightenChunk(std::size_t chunk);

  /// Prefetches what the next Tighten will probably read.
  void PrefetchEarliest(const SlotLayout& layout) const {
    const Chunk& chunk = chunks_[bounds_.LeastLeaf()];
    if (chunk.exists()) chunk.PrefetchEarliest(layout);
  }

  /// Makes the bound of a group exact, if the chunk exists, and after its last group the chunk's
  /// bound. Returns the next group, 0 after the last.
  std::uint32_t TightenGroup(const SlotLayout& layout, std::size_t chunk, std::uint32_t group);

  /// Creates a chunk, if it does not exist.
  void Prepare(const SlotLayout& layout, std::size_t chunk, std::uint32_t group_count);

  /// Frees an empty chunk's memory.
  void Release(const SlotLayout& layout, std::size_t chunk);

 private:
  void Enlarge(const SlotLayout& layout, const Secret& secret, std::size_t index);

  /// With so many chunks, half a megabyte or so, ids are outside of the near caches.
  static constexpr std::size_t kFarChunkCount = 16;

  std::vector<Chunk> chunks_;
  std::size_t chunk_count_;
  /// For each chunk, a moment no later than its ids'. Made exact one by one, when needed.
  EarliestTree bounds_;
  std::size_t live_ = 0;
  std::size_t chunk_bytes_ = 0;
};

}  // namespace rollgate::memory
