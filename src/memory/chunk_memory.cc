// Regions of memory from the system, and lists of their free pieces.
#include "memory/chunk_memory.h"

#include <cassert>
#include <cstdint>
#include <new>
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace rollgate::memory {
namespace {

constexpr std::size_t kRegionBytes = std::size_t{2} << 20;

#if defined(__linux__)
/// A region aligned to its own size.
void* MapRegion() {
  void* mapped =
      mmap(nullptr, 2 * kRegionBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* const begin = static_cast<std::byte*>(mapped);
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(begin) % kRegionBytes;
  if (before > 0) munmap(begin, before);
  std::byte* const region = begin + before;
  if (before < kRegionBytes) munmap(region + kRegionBytes, kRegionBytes - before);
#if defined(MADV_HUGEPAGE)
  madvise(region, kRegionBytes, MADV_HUGEPAGE);  // a wish: without it all works, a little slower
#endif
  return region;
}

void UnmapRegion(void* region) {
  munmap(region, kRegionBytes);
}
#else
void* MapRegion() {
  return ::operator new (kRegionBytes, std::align_val_t{kRegionBytes});
}
void UnmapRegion(void* region) {
  ::operator delete (region, std::align_val_t{kRegionBytes});
}
#endif

}  // namespace

struct ChunkMemory::Piece {
  Piece* next;
};

/// Stands at the beginning of its own memory; every piece finds it by its address.
struct alignas(ChunkMemory::kAlignment) ChunkMemory::Region {
  Piece* free = nullptr;  // pieces given back
  std::byte* untouched;   // from here on no piece was ever taken
  std::size_t untouched_pieces;
  std::size_t taken = 0;
  Region* previous = nullptr;
  Region* next = nullptr;

  bool HasRoom() const { return free != nullptr || untouched_pieces > 0; }
};

ChunkMemory::ChunkMemory(std::size_t piece_bytes)
    : piece_bytes_((piece_bytes + kAlignment - 1) / kAlignment * kAlignment) {}

ChunkMemory::~ChunkMemory() {
  assert(with_room_ == nullptr);
}

bool ChunkMemory::IsUseful() const {
#if defined(__linux__)
  return piece_bytes_ <= kRegionBytes / 8;
#else
  return false;
#endif
}

void* ChunkMemory::Take() {
  Region* region = with_room_ != nullptr ? with_room_ : AddRegion();
  void* piece;
  if (region->free != nullptr) {
    piece = region->free;
    region->free = region->free->next;
  } else {
    piece = region->untouched;
    region->untouched += piece_bytes_;
    --region->untouched_pieces;
  }
  ++region->taken;
  if (!region->HasRoom()) Unlink(region);
  return piece;
}

void ChunkMemory::Give(void* piece) {
  const std::size_t into = reinterpret_cast<std::uintptr_t>(piece) % kRegionBytes;
  auto* const region = reinterpret_cast<Region*>(static_cast<std::byte*>(piece) - into);
  if (!region->HasRoom()) {
    region->next = with_room_;
    if (with_room_ != nullptr) with_room_->previous = region;
    with_room_ = region;
  }
  region->free = new (piece) Piece{region->free};
  if (--region->taken == 0) {
    Unlink(region);
    UnmapRegion(region);
  }
}

ChunkMemory::Region* ChunkMemory::AddRegion() {
  auto* const region = new (MapRegion()) Region;
  region->untouched = reinterpret_cast<std::byte*>(region + 1);
  region->untouched_pieces = (kRegionBytes - sizeof(Region)) / piece_bytes_;
  with_room_ = region;
  return region;
}

void ChunkMemory::Unlink(Region* region) {
  if (region->previous != nullptr) region->previous->next = region->next;
  if (region->next != nullptr) region->next->previous = region->previous;
  if (with_room_ == region) with_room_ = region->next;
  region->previous = nullptr;
  region->next = nullptr;
}

}  // namespace rollgate::memory
