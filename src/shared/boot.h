// Which start of the host this is: a region made before the last one counts time from elsewhere.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace rollgate::shared {

using Boot = std::array<std::uint64_t, 2>;

/// `system_root` as in RegionOptions. Throws SharedError where the system does not say.
Boot CurrentBoot(const std::string& system_root);

}  // namespace rollgate::shared
