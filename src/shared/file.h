// Files as regions need them: opened with checks, locked, also by entries, removed.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace rollgate::shared {

/// Owns an open file.
class File {
 public:
  File() = default;
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~File();

  explicit operator bool() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

  struct stat Status() const;

  /// Opens the same file again, with locks of its own. The file need not have a name any more.
  File OpenAgain() const;

  /// Whether the path names this very file now.
  bool IsAt(const std::string& path) const;

 private:
  int descriptor_ = -1;
};

/// An exclusive flock(). Unlocked explicitly, because a child of fork() would keep it.
class FileLock {
 public:
  /// Does not wait: converts to false if another process has the lock.
  FileLock(const File& file, std::try_to_lock_t);
  ~FileLock();
  explicit operator bool() const { return descriptor_ >= 0; }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_ = -1;
};

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

  /// Locks a second byte, which says that what this entry's earlier owners held does not count any
  /// more. Throws SharedError.
  void LockHolder() const;

  /// Whether another lock has the second byte of an entry. Throws SharedError.
  bool IsHeldByAnother(std::size_t entry) const;

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

/// Opens the file at a path for reading and writing; none if there is none. Throws SharedError,
/// kFile unless it is a regular file of this user. Follows no link.
File OpenOwn(const std::string& path);

bool Exists(const std::string& path);

/// The content of a file, including the kernel's; none, with errno, if it cannot be read.
std::optional<std::string> ReadText(const std::string& path);

/// Removes the file if the path names it; returns whether it did. Precondition: the caller has the
/// FileLock of the file, so nobody removes its successor.
bool RemoveIfAt(const std::string& path, const File& file);

/// Throws SharedError, kSystem, with what failed and why by `error`, an errno.
[[noreturn]] void FailBySystem(const std::string& what, int error);

}  // namespace rollgate::shared
