// Files as a shared region needs them: opened with suspicion, locked, removed.
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

  /// The same file opened once more, with locks of its own; it need not have a name any more.
  File OpenAgain() const;

  /// Whether the path leads to this very file, now.
  bool IsAt(const std::string& path) const;

 private:
  int descriptor_ = -1;
};

/// An exclusive flock(). Let go of explicitly, for a child of fork() would hold it, too.
class FileLock {
 public:
  /// Does not wait: converts to false if somebody else has the lock.
  FileLock(const File& file, std::try_to_lock_t);
  ~FileLock();
  explicit operator bool() const { return descriptor_ >= 0; }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_ = -1;
};

/// The file at a path, for reading and writing, or none if there is none. Refuses (kFile) what is
/// no regular file of this user, and follows no link to one.
File OpenOwn(const std::string& path);

bool Exists(const std::string& path);

/// All that is in a file, which may be one of the kernel's; none if it cannot be read, with errno.
std::optional<std::string> ReadText(const std::string& path);

/// Removes the file if the path leads to it; returns whether it did so. Precondition: the caller
/// has the FileLock of the file, so nobody removes what has just taken its place.
bool RemoveIfAt(const std::string& path, const File& file);

/// Throws SharedError of kind kSystem: what could not be done, and why by `error`, an errno.
[[noreturn]] void FailBySystem(const std::string& what, int error);

}  // namespace rollgate::shared
