// Replacements for symbols of glibc 2.25, 2.32 and 2.33, so that the addon runs with older
// versions. Only the addon sees them.
#include <cstdlib>  // for __GLIBC__

#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__))
#if __GLIBC_PREREQ(2, 33)
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" {

/// libstdc++ counts references without atomic operations if this is not 0. Node has threads.
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
