// Reads the kernel's own name for this start of the host.
#include "shared/boot.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>

#include "shared/file.h"
#include "shared/shared_error.h"

namespace rollgate::shared {

Boot CurrentBoot() {
  constexpr const char* kPath = "/proc/sys/kernel/random/boot_id";
  constexpr int kDigits = 32;
  // Not by a stream: linked in, those take a megabyte and a newer glibc.
  const File file(::open(kPath, O_RDONLY | O_CLOEXEC));
  if (!file) FailBySystem(std::string("cannot open ") + kPath, errno);
  std::array<char, 64> bytes;
  const ssize_t got = ::read(file.descriptor(), bytes.data(), bytes.size());
  if (got < 0) FailBySystem(std::string("cannot read ") + kPath, errno);
  const std::string_view text(bytes.data(), static_cast<std::size_t>(got));
  Boot boot = {};
  int digits = 0;
  for (const char character : text) {
    if (character == '-') continue;
    if (std::isxdigit(static_cast<unsigned char>(character)) == 0 || digits == kDigits) break;
    const int value = character <= '9' ? character - '0' : std::tolower(character) - 'a' + 10;
    std::uint64_t& word = boot[digits++ < kDigits / 2 ? 0 : 1];
    word = word << 4 | static_cast<std::uint64_t>(value);
  }
  if (digits != kDigits) {
    throw SharedError(SharedError::Kind::kSystem,
                      std::string("a shared limiter has to know when the host was started, but ") +
                          kPath + " does not tell");
  }
  return boot;
}

}  // namespace rollgate::shared
