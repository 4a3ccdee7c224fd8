// Locks the bytes of entries, and counts forks.
#include "shared/entry_lock.h"

#include <fcntl.h>
#include <pthread.h>

#include <cerrno>
#include <string>

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

}  // namespace

EntryLock EntryLock::Take(const File& region) {
  CountForks();
  EntryLock taken;
  taken.file_ = region.OpenAgain();
  taken.forks_ = forks_so_far.load(std::memory_order_relaxed);
  for (std::size_t entry = 0; entry < kEntries; ++entry) {
    struct flock lock = LockOf(F_WRLCK, entry, 1);
    if (::fcntl(taken.file_.descriptor(), F_OFD_SETLK, &lock) == 0) {
      taken.entry_ = entry;
      return taken;
    }
    if (errno != EAGAIN && errno != EACCES) {
      FailBySystem("cannot lock a part of the file of a shared limiter", errno);
    }
  }
  throw SharedError(SharedError::Kind::kFull,
                    std::to_string(kEntries) +
                        " limiters are attached already, and there is room for no more; each "
                        "thread needs but one");
}

EntryLock::~EntryLock() {
  // Closing alone would leave it to those who have the file from fork(); these close their own
  // only.
  if (!file_ || IsForked()) return;
  struct flock lock = LockOf(F_UNLCK, 0, kEntries);
  ::fcntl(file_.descriptor(), F_OFD_SETLK, &lock);
}

}  // namespace rollgate::shared
