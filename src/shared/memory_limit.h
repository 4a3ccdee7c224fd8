// How much memory this process may still use: what the control groups (cgroups) that bound a
// container leave, and what the host has.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

namespace rollgate::shared {

struct MemoryLimit {
  std::uint64_t bytes;  ///< the limit
  std::uint64_t left;   ///< of it, not used; page cache counts as not used
  std::uint64_t kept;   ///< how much of it has to stay free
  std::string file;     ///< where the limit is written
  std::string name;     ///< what it is, for messages

  std::uint64_t Usable() const { return left - std::min(left, kept); }
};

/// The limit with the least that is usable, among the host's memory and those of the process's
/// group and of the groups around it, of version 1 or 2. None where there is no limit or the system
/// does not say. `system_root` as in RegionOptions.
std::optional<MemoryLimit> TightestMemoryLimit(const std::string& system_root);

}  // namespace rollgate::shared
