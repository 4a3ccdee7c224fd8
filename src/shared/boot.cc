// Reads the kernel's boot id.
#include "shared/boot.h"

#include <cctype>
#include <cerrno>

#include "shared/file.h"
#include "shared/shared_error.h"

namespace rollgate::shared {

Boot CurrentBoot(const std::string& system_root) {
  constexpr int kDigits = 32;
  const std::string path = system_root + "/proc/sys/kernel/random/boot_id";
  const std::optional<std::string> text = ReadText(path);
  if (!text) FailBySystem("cannot read " + path, errno);
  Boot boot = {};
  int digits = 0;
  for (const char character : *text) {
    if (character == '-') continue;
    if (std::isxdigit(static_cast<unsigned char>(character)) == 0 || digits == kDigits) break;
    const int value = character <= '9' ? character - '0' : std::tolower(character) - 'a' + 10;
    std::uint64_t& word = boot[digits++ < kDigits / 2 ? 0 : 1];
    word = word << 4 | static_cast<std::uint64_t>(value);
  }
  if (digits != kDigits) {
    throw SharedError(SharedError::Kind::kSystem,
                      "a shared limiter needs the boot id of the host, but " + path + " has none");
  }
  return boot;
}

}  // namespace rollgate::shared
