// Opens, checks, locks and removes files.
#include "shared/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <cstddef>
#include <system_error>

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
