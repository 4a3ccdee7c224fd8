// Files as regions need them: opened with checks, locked, removed.
#pragma once

#include <sys/stat.h>

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
