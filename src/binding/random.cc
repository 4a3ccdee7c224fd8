// On Linux not by std::random_device: linked in, it would take functions of the build machine's
// glibc that older machines have not got.
#include "binding/random.h"

#if defined(__linux__)
#include <sys/random.h>

#include <stdexcept>
#else
#include <random>
#endif

namespace rollgate::binding {

std::uint64_t RandomWord() {
#if defined(__linux__)
  std::uint64_t word;
  if (getrandom(&word, sizeof(word), 0) != sizeof(word)) {
    throw std::runtime_error("the system has no random numbers");
  }
  return word;
#else
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
#endif
}

}  // namespace rollgate::binding
