// Reads the kernel's boot id.
#include "shared/boot.h"

#include <cerrno>
#include <charconv>

#include "shared/file.h"
#include "shared/shared_error.h"

namespace rollgate::shared {

Boot CurrentBoot(const std::string& system_root) {
  constexpr std::size_t kDigits = 16;  // of a word
  const std::string path = system_root + "/proc/sys/kernel/random/boot_id";
  std::optional<std::string> text = ReadText(path);
  if (!text) FailBySystem("cannot read " + path, errno);
  std::erase(*text, '-');
  Boot boot = {};
  for (std::size_t i = 0; i < boot.size(); ++i) {
    const char* const from = text->data() + i * kDigits;
    if (text->size() < (i + 1) * kDigits ||
        std::from_chars(from, from + kDigits, boot[i], 16).ptr != from + kDigits) {
      throw SharedError(
          SharedError::Kind::kSystem,
          "a shared limiter needs the boot id of the host, but " + path + " has none");
    }
  }
  return boot;
}

}  // namespace rollgate::shared
