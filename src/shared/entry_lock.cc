// Locks the bytes of entries, and counts forks.
#include "shared/entry_lock.h"

#include <fcntl.h>
#include <pthread.h>

#include <cerrno>
#include <string>
#include <utility>

#include "shared/layout.h"
#include "shared/shared_error.h"

namespace rollgate::shared {
namespace {

void CountForks() {
  static const int error = ::pthread_atfork(nullptr, nullptr, [] { ++forks_so_far; });
  if (error != 0) FailBySystem("no function can be called at fork()", error);
}

struct flock LockOf(short type, std::size_t first, std::size_t count) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(first);
  lock.l_len = static_cast<off_t>(count);
  return lock;
}

/// Whether one lock on all entries is what keeps this one from being taken.
bool AreAllTaken(const File& file, std::size_t entry) {
  struct flock lock = LockOf(F_WRLCK, entry, 1);
  if (::fcntl(file.descriptor(), F_OFD_GETLK, &lock) != 0) {
    FailBySystem("cannot examine the locks on the file of a shared limiter", errno);
  }
  return lock.l_type != F_UNLCK && lock.l_start == 0 && lock.l_len == off_t{kEntries};
}

}  // namespace

EntryLock EntryLock::On(const File& region) {
  CountForks();
  EntryLock lock;
  lock.file_ = region.OpenAgain();
  lock.forks_ = forks_so_far.load(std::memory_order_relaxed);
  return lock;
}

bool EntryLock::TryLock(std::size_t first, std::size_t count) const {
  struct flock lock = LockOf(F_WRLCK, first, count);
  if (::fcntl(file_.descriptor(), F_OFD_SETLK, &lock) == 0) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  FailBySystem("cannot lock a part of the file of a shared limiter", errno);
}

EntryLock EntryLock::Take(const File& region) {
  EntryLock lock = On(region);
  for (std::size_t entry = 0; entry < kEntries; ++entry) {
    if (lock.TryLock(entry, 1)) {
      lock.entry_ = entry;
      return lock;
    }
    if (AreAllTaken(lock.file_, entry)) return EntryLock();
  }
  throw SharedError(SharedError::Kind::kFull,
                    std::to_string(kEntries) +
                        " limiters are attached already, and there is room for no more; each "
                        "thread needs but one");
}

EntryLock EntryLock::TakeAll(const File& region) {
  EntryLock lock = On(region);
  return lock.TryLock(0, kEntries) ? std::move(lock) : EntryLock();
}

EntryLock::~EntryLock() {
  // Closing alone would leave it to those who have the file from fork(); these close their own
  // only.
  if (!file_ || IsForked()) return;
  struct flock lock = LockOf(F_UNLCK, 0, kEntries);
  ::fcntl(file_.descriptor(), F_OFD_SETLK, &lock);
}

}  // namespace rollgate::shared
