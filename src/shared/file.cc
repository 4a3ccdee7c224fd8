// Opens, checks, locks and removes files.
#include "shared/file.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <cstddef>
#include <system_error>

#include "shared/layout.h"
#include "shared/shared_error.h"

namespace rollgate::shared {
namespace {

const char* KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISLNK(mode)) return "a symbolic link";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

void RefuseForeign(const std::string& path, const struct stat& status) {
  if (!S_ISREG(status.st_mode)) {
    throw SharedError(SharedError::Kind::kFile,
                      path + " is " + KindOf(status.st_mode) + ", expected a regular file");
  }
  if (status.st_uid != ::geteuid()) {
    throw SharedError(SharedError::Kind::kFile, path + " belongs to the user with id " +
                                                    std::to_string(status.st_uid) + ", expected " +
                                                    std::to_string(::geteuid()) +
                                                    ", the user of this process");
  }
}

void CountForks() {
  static const int kError = ::pthread_atfork(nullptr, nullptr, [] { ++forks_so_far; });
  if (kError != 0) FailBySystem("cannot register a handler of fork()", kError);
}

struct flock LockOf(short type, std::size_t first, std::size_t count) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(first);
  lock.l_len = static_cast<off_t>(count);
  return lock;
}

/// The lock that others have on a byte, perhaps among other ones; F_UNLCK if there is none.
struct flock OthersLockOn(const File& file, std::size_t byte) {
  struct flock lock = LockOf(F_WRLCK, byte, 1);
  if (::fcntl(file.descriptor(), F_OFD_GETLK, &lock) != 0) {
    FailBySystem("cannot examine the locks on the file of a shared limiter", errno);
  }
  return lock;
}

/// Whether all entries are locked one by one, rather than by TakeAll; the lock of the last one
/// shows that. Precondition: every entry was found locked.
bool IsFull(const File& file) {
  const struct flock lock = OthersLockOn(file, kEntries - 1);
  const bool are_all_taken = lock.l_start == 0 && lock.l_len == off_t{kEntries};
  return lock.l_type != F_UNLCK && !are_all_taken;
}

bool LookAt(const std::string& path, struct stat& status) {
  return ::fstatat(AT_FDCWD, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

}  // namespace

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

struct stat File::Status() const {
  assert(descriptor_ >= 0);
  struct stat status = {};
  if (::fstat(descriptor_, &status) != 0) FailBySystem("cannot examine a file", errno);
  return status;
}

File File::OpenAgain() const {
  assert(descriptor_ >= 0);
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor_);
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) FailBySystem("cannot reopen a file by " + path, errno);
  return File(descriptor);
}

bool File::IsAt(const std::string& path) const {
  struct stat there = {};
  if (!LookAt(path, there)) return false;
  const struct stat own = Status();
  return there.st_dev == own.st_dev && there.st_ino == own.st_ino;
}

FileLock::FileLock(const File& file, std::try_to_lock_t) {
  assert(file);
  if (::flock(file.descriptor(), LOCK_EX | LOCK_NB) == 0) {
    descriptor_ = file.descriptor();
  } else if (errno != EWOULDBLOCK && errno != EINTR) {
    FailBySystem("cannot lock a file", errno);
  }
}

FileLock::~FileLock() {
  if (descriptor_ >= 0) ::flock(descriptor_, LOCK_UN);
}

EntryLock EntryLock::On(const File& region) {
  CountForks();
  EntryLock lock;
  lock.file_ = region.OpenAgain();
  lock.forks_ = forks_so_far.load(std::memory_order_relaxed);
  return lock;
}

bool EntryLock::TryLock(std::size_t first, std::size_t count) const {
  assert(file_ && count >= 1 && first + count <= 2 * kEntries);
  struct flock lock = LockOf(F_WRLCK, first, count);
  if (::fcntl(file_.descriptor(), F_OFD_SETLK, &lock) == 0) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  FailBySystem("cannot lock a part of the file of a shared limiter", errno);
}

EntryLock EntryLock::Take(const File& region) {
  EntryLock lock = On(region);
  for (; lock.entry_ < kEntries; ++lock.entry_) {
    if (lock.TryLock(lock.entry_, 1)) return lock;
  }
  if (!IsFull(lock.file_)) return EntryLock();
  throw SharedError(
      SharedError::Kind::kFull,
      std::to_string(kEntries) +
          " limiters are attached already, which is the most; a thread needs only one");
}

EntryLock EntryLock::TakeAll(const File& region) {
  EntryLock lock = On(region);
  return lock.TryLock(0, kEntries) ? std::move(lock) : EntryLock();
}

void EntryLock::LockHolder() const {
  // The entry's last owner has unlocked this byte, too.
  if (!TryLock(kEntries + entry_, 1)) {
    FailBySystem("cannot lock a part of the file of a shared limiter", EAGAIN);
  }
}

bool EntryLock::IsHeldByAnother(std::size_t entry) const {
  assert(file_ && entry < kEntries);
  return OthersLockOn(file_, kEntries + entry).l_type != F_UNLCK;
}

EntryLock::~EntryLock() {
  // Closing alone would leave the lock to children of fork(), whose copies do not unlock.
  if (!file_ || IsForked()) return;
  struct flock lock = LockOf(F_UNLCK, 0, 2 * kEntries);
  ::fcntl(file_.descriptor(), F_OFD_SETLK, &lock);
}

File OpenOwn(const std::string& path) {
  // O_NONBLOCK, because FIFOs and devices are refused only once they are open.
  File file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (file) {
    RefuseForeign(path, file.Status());
    return file;
  }
  const int error = errno;
  if (error == ENOENT) return File();
  struct stat status = {};
  if (LookAt(path, status)) RefuseForeign(path, status);
  FailBySystem("cannot open " + path, error);
}

bool Exists(const std::string& path) {
  struct stat status = {};
  return LookAt(path, status);
}

// Not a stream: linked in, those take a megabyte and need a newer glibc.
std::optional<std::string> ReadText(const std::string& path) {
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::string text;
  std::array<char, 4096> bytes;
  for (;;) {
    const ssize_t got = ::read(file.descriptor(), bytes.data(), bytes.size());
    if (got < 0) return std::nullopt;
    if (got == 0) return text;
    text.append(bytes.data(), static_cast<std::size_t>(got));
  }
}

bool RemoveIfAt(const std::string& path, const File& file) {
  if (!file.IsAt(path)) return false;
  if (::unlink(path.c_str()) == 0) return true;
  if (errno == ENOENT) return false;
  FailBySystem("cannot remove " + path, errno);
}

void FailBySystem(const std::string& what, int error) {
  throw SharedError(SharedError::Kind::kSystem,
                    what + ": " + std::generic_category().message(error));
}

}  // namespace rollgate::shared
