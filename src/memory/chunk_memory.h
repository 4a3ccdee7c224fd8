// Memory for the chunks of a large table, in pieces that share huge pages.
#pragma once

#include <cstddef>

namespace rollgate::memory {

/// Hands out pieces of one size, cut from regions of two megabytes that the system is asked to back
/// with huge pages: measured, a search among a million ids spends a tenth of its time on finding
/// small ones. A region goes back to the system when its last piece does.
class ChunkMemory {
 public:
  static constexpr std::size_t kAlignment = 128;

  explicit ChunkMemory(std::size_t piece_bytes);
  ~ChunkMemory();
  ChunkMemory(const ChunkMemory&) = delete;
  ChunkMemory& operator=(const ChunkMemory&) = delete;

  /// Whether regions are worth it: pieces that fit, on a system with huge pages.
  bool IsUseful() const;

  /// Aligned to kAlignment. Precondition: IsUseful().
  void* Take();
  void Give(void* piece);

 private:
  struct Piece;
  struct Region;

  Region* AddRegion();
  void Unlink(Region* region);

  std::size_t piece_bytes_;
  Region* with_room_ = nullptr;  // those that have a free piece, doubly linked
};

}  // namespace rollgate::memory
