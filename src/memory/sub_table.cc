// Growth of single chunks, and the order of expiry over all.
#include "memory/sub_table.h"

#include <cstring>
#include <utility>

namespace rollgate::memory {

Place SubTable::Insert(const SlotLayout& layout, const Secret& secret, std::uint64_t hash,
                       Micros moment) {
  const Address address = AddressOf(hash);
  Chunk& chunk = chunks_[address.chunk];
  assert(chunk.exists());
  if (chunk.live() >= chunk.slot_count() * 15 / 16) Enlarge(layout, secret, address.chunk);
  const Place place = chunk.Insert(layout, TagOf(hash), address.home, moment);
  if (moment < bounds_[address.chunk]) bounds_.Set(address.chunk, moment);
  ++live_;
  return place;
}

void SubTable::Erase(const Place& place, std::uint64_t hash) {
  const Address address = AddressOf(hash);
  assert(live_ > 0 && place.chunk == &chunks_[address.chunk]);
  chunks_[address.chunk].Erase(place, address.home);
  --live_;
}

Place SubTable::Tighten(const SlotLayout& layout, std::size_t& looks) {
  const std::size_t index = bounds_.LeastLeaf();
  Chunk& chunk = chunks_[index];
  // No group's bound is lower than the chunk's. So a group that still has it is the earliest, and
  // the other bounds, which are not in the cache, are not read.
  if (chunk.exists() && chunk.BoundOf(chunk.earliest()) == bounds_[index]) {
    if (const Place nearest = chunk.NearestOf(layout, chunk.earliest())) return nearest;
    if (looks == 0) return {};
    --looks;
    chunk.TightenGroup(layout, chunk.earliest());
  }
  TightenChunk(index);
  return {};
}

void SubTable::TightenChunk(std::size_t index) {
  Chunk& chunk = chunks_[index];
  const Micros bound = chunk.exists() ? chunk.FindEarliest() : kNever;
  assert(bound >= bounds_[index]);
  bounds_.Set(index, bound);
}

std::uint32_t SubTable::TightenGroup(const SlotLayout& layout, std::size_t index,
                                     std::uint32_t group) {
  Chunk& chunk = chunks_[index];
  if (group < chunk.group_count()) chunk.TightenGroup(layout, group);
  if (group + 1 < chunk.group_count()) return group + 1;
  TightenChunk(index);
  return 0;
}

void SubTable::Prepare(const SlotLayout& layout, std::size_t chunk, std::uint32_t group_count) {
  if (chunks_[chunk].exists()) return;
  chunks_[chunk] = Chunk(layout, group_count);
  chunk_bytes_ += chunks_[chunk].bytes(layout);
}

void SubTable::Release(const SlotLayout& layout, std::size_t chunk) {
  assert(chunk < chunk_count_ && chunks_[chunk].live() == 0);
  if (chunks_[chunk].exists()) chunk_bytes_ -= chunks_[chunk].bytes(layout);
  chunks_[chunk] = Chunk();
  bounds_.Set(chunk, kNever);
}

void SubTable::Enlarge(const SlotLayout& layout, const Secret& secret, std::size_t index) {
  Chunk& small = chunks_[index];
  Chunk large(layout, small.group_count() * 2);
  for (std::uint32_t group = 0; group < small.group_count(); ++group) {
    small.VisitGroup(layout, group, [&](const Place& from) {
      const std::uint64_t hash = HashOf(from.slot->identity(), secret);
      const Place to = large.Insert(layout, TagOf(hash), AddressOf(hash).home, from.slot->moment());
      std::memcpy(static_cast<void*>(to.slot), from.slot, layout.slot_bytes);
    });
  }
  assert(large.live() == small.live() && chunk_bytes_ >= small.bytes(layout));
  chunk_bytes_ += large.bytes(layout);
  chunk_bytes_ -= small.bytes(layout);
  small = std::move(large);
}

}  // namespace rollgate::memory
