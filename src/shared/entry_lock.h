// What makes an entry of a region one attachment's alone, for as long as that lives.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "shared/file.h"

namespace rollgate::shared {

/// How many calls of fork() lie between this process and the one that first locked an entry.
inline std::atomic<std::uint64_t> forks_so_far{0};

/// A lock on the byte of the region's file whose offset is the number of the entry. The system lets
/// go of it when the process ends, however it does. Owned by one thread.
class EntryLock {
 public:
  /// Locks the first entry that is free. None while somebody has TakeAll. Throws SharedError.
  static EntryLock Take(const File& region);

  /// Locks all entries, so that nobody can attach; none if a living attachment has one of them.
  /// Throws SharedError.
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

  /// Whether this is a copy that fork() has made: then the entry is the original's.
  bool IsForked() const { return forks_ != forks_so_far.load(std::memory_order_relaxed); }

 private:
  /// Holds nothing yet.
  static EntryLock On(const File& region);

  /// Tries to lock these; tells whether it could. Throws SharedError.
  bool TryLock(std::size_t first, std::size_t count) const;

  /// An opening of the file that nothing else uses. Not that of a mapping: what is mapped counts as
  /// open, and a child of fork() has it as well, so the lock would outlive its owner.
  File file_;
  std::size_t entry_ = 0;
  std::uint64_t forks_ = 0;
};

}  // namespace rollgate::shared
