// Stand-ins for what glibc has had since 2.25, 2.32 and 2.33 only, so that the addon runs with
// older ones, too. Nobody sees them but the addon itself.
#include <cstdlib>  // for __GLIBC__

#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__))
#if __GLIBC_PREREQ(2, 33)
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" {

/// libstdc++ asks it whether references may be counted without atomic operations: beside Node's
/// threads never.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern char __libc_single_threaded;
char __libc_single_threaded = 0;
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

ssize_t getrandom(void* buffer, size_t length, unsigned flags) {
  return syscall(SYS_getrandom, buffer, length, flags);
}

// On these processors the kernel's `struct stat` is glibc's.

int fstat(int descriptor, struct stat* status) noexcept {
  return static_cast<int>(syscall(SYS_fstat, descriptor, status));
}

int fstatat(int folder, const char* path, struct stat* status, int flags) noexcept {
  return static_cast<int>(syscall(SYS_newfstatat, folder, path, status, flags));
}

}  // extern "C"
#endif
#endif
