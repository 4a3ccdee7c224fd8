// How much memory this process may still use: what its control groups (cgroups) and the host leave.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

namespace rollgate::shared {

struct MemoryLimit {
  std::uint64_t bytes;  ///< the limit
  std::uint64_t left;   ///< the unused part, including page cache
  std::uint64_t kept;   ///< the part that must stay free
  std::string file;     ///< the source of the limit
  std::string name;     ///< for messages

  std::uint64_t Usable() const { return left - std::min(left, kept); }
};

/// The limit with the least usable memory, among the host's and those of the process's group and
/// the groups around it. None if the system does not say. `system_root`: see RegionOptions.
std::optional<MemoryLimit> TightestMemoryLimit(const std::string& system_root);

}  // namespace rollgate::shared
