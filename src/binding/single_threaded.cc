// A stand-in for a variable of glibc 2.32, so that older ones will do as well. libstdc++ reads from
// it whether references may be counted without atomic operations; beside Node's threads never.
#include <cstdlib>  // for __GLIBC__

#if defined(__GLIBC__)
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" char __libc_single_threaded;
char __libc_single_threaded = 0;
#endif
