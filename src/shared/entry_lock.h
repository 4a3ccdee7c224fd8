// The lock that reserves an entry of a region for one attachment.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "shared/file.h"

namespace rollgate::shared {

/// How many calls of fork() created this process, since the first lock.
inline std::atomic<std::uint64_t> forks_so_far{0};

/// A lock on the byte of the region's file whose offset is the entry's number. The system releases
/// it when the process ends in any way. Owned by one thread.
class EntryLock {
 public:
  /// Locks the first free entry; none during TakeAll. Throws SharedError, kFull if none is free.
  static EntryLock Take(const File& region);

  /// Locks all entries, so nobody can attach; none if one is in use. Throws SharedError.
  static EntryLock TakeAll(const File& region);

  EntryLock() = default;
  EntryLock(EntryLock&& other) noexcept { *this = std::move(other); }
  EntryLock& operator=(EntryLock&& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(entry_, other.entry_);
    std::swap(forks_, other.forks_);
    return *this;
  }
  ~EntryLock();

  explicit operator bool() const { return static_cast<bool>(file_); }
  const File& file() const { return file_; }
  std::size_t entry() const { return entry_; }

  /// Whether this is a copy made by fork(): the entry is the original's.
  bool IsForked() const { return forks_ != forks_so_far.load(std::memory_order_relaxed); }

 private:
  /// Opens the file; locks nothing.
  static EntryLock On(const File& region);

  /// Returns whether it could lock these. Throws SharedError.
  bool TryLock(std::size_t first, std::size_t count) const;

  /// An open file description of its own. With the mapping's, the lock would outlive its owner in
  /// children of fork(): a mapping keeps its file open.
  File file_;
  std::size_t entry_ = 0;
  std::uint64_t forks_ = 0;
};

}  // namespace rollgate::shared
