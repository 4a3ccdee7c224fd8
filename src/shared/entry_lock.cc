// Locks of entries, with OFD locks: fcntl(2).
#include "shared/entry_lock.h"

#include <fcntl.h>
#include <pthread.h>

#include <cassert>
#include <cerrno>

#include "shared/layout.h"
#include "shared/shared_error.h"

namespace rollgate::shared {
namespace {

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

/// Whether all entries are locked one by one, rather than by TakeAll; the lock of the last one
/// shows that. Precondition: every entry was found locked.
bool IsFull(const File& file) {
  struct flock lock = LockOf(F_WRLCK, kEntries - 1, 1);
  if (::fcntl(file.descriptor(), F_OFD_GETLK, &lock) != 0) {
    FailBySystem("cannot examine the locks on the file of a shared limiter", errno);
  }
  const bool are_all_taken = lock.l_start == 0 && lock.l_len == off_t{kEntries};
  return lock.l_type != F_UNLCK && !are_all_taken;
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
  assert(file_ && count >= 1 && first + count <= kEntries);
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

EntryLock::~EntryLock() {
  // Closing alone would leave the lock to children of fork(), whose copies do not unlock.
  if (!file_ || IsForked()) return;
  struct flock lock = LockOf(F_UNLCK, 0, kEntries);
  ::fcntl(file_.descriptor(), F_OFD_SETLK, &lock);
}

}  // namespace rollgate::shared
