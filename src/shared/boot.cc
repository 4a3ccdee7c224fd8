// Reads the kernel's own name for this start of the host.
#include "shared/boot.h"

#include <cctype>
#include <cstdio>
#include <memory>
#include <string>

#include "shared/shared_error.h"

namespace rollgate::shared {

Boot CurrentBoot() {
  constexpr const char* kPath = "/proc/sys/kernel/random/boot_id";
  constexpr int kDigits = 32;
  // Not by a stream: linked in, those take a megabyte and a newer glibc.
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(kPath, "r"), std::fclose);
  char text[64] = "";
  if (file) static_cast<void>(std::fgets(text, sizeof text, file.get()));
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
